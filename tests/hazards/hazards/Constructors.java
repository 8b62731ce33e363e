package hazards;

import java.util.ArrayList;
import java.util.List;

/**
 * Branches while `this` is not initialized yet (before super(...)), and while fresh objects lie uninitialized on the stack: frames with
 * UninitializedThis and Uninitialized(offset), whose offsets move when code is inserted before them.
 */
class Constructors {
    // All constructors in this file: 6 of Base, 4 of Derived (one fails before its super call), 2 of Initialized.
    // expect <init>: activations: 12, unfinished: 1
    static class Base {
        final int value;

        Base(int value) {
            this.value = value;
        }
    }

    static class Derived extends Base {
        final String name;

        Derived(boolean flag, int x) {
            super(flag ? x * 2 : x < 0 ? fail(x) : x + 1);
            int n = 0;
            for (int i = 0; i < value; i++) {
                n += i; // runs: 7
            }
            name = "n" + n;
        }

        Derived(int x) {
            this(x > 2, x);
        }

        static int fail(int x) { // activations: 1, paths: 1, items: 1
            throw new IllegalArgumentException("negative: " + x); // runs: 1
        }
    }

    static class Initialized {
        int count = 3;
        final List<Integer> list = new ArrayList<>();

        {
            for (int i = 0; i < count; i++) {
                list.add(i); // runs: 6
            }
        }

        Initialized() {
        }

        Initialized(int more) {
            count = count + more;
        }
    }

    static Base nested(boolean a, boolean b, int n) { // activations: 3, paths: 3, items: 3
        // Two objects wait on the stack while the conditions branch.
        return new Base(new Derived(a, b ? n : n + 1).value + (a ? 1 : 2));
    }

    static String loopInArgument(int n) { // activations: 1
        // The handler and the switch expression's copies run while a StringBuilder is not initialized.
        return new StringBuilder(switch (n) {
            case 1 -> "one";
            case 2 -> "two";
            default -> String.valueOf(n);
        }).append(new StringBuilder(n > 2 ? "x" : "y")).toString();
    }

    static void main(String[] args) { // activations: 1
        int n = nested(true, true, 1).value + nested(true, false, 1).value;
        n += nested(false, true, 0).value;
        try {
            new Derived(false, -1);
        } catch (IllegalArgumentException e) {
            n += 1000;
        }
        System.out.println(n + loopInArgument(3) + new Initialized().count + new Initialized(5).count);
    }
}
