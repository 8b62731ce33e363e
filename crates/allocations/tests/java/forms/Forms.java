package forms;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/**
 * Each form of allocation. A comment says what the line's sites mark when the program runs, in order; behind {@code lib} how many objects {@link Lib} makes for
 * the line. A line whose site is left alone says why.
 */
public class Forms {
    static Object sink;
    static int sum;

    static void objects() {
        sink = new Node(); // Node1
        sink = new Node(new Node()); // Node2 Node3
        sink = new Node(sum == 0 ? new Node() : new Node(sink)); // Node4 Node5
        sink = new Node(1L, "x", 2.0); // Node6
        Node list = null;
        for (int i = 0; i < 3; i++) {
            list = new Node(list); // Node7 Node8 Node9
        }
        sink = list;
        try {
            sink = new Node(Integer.parseInt("x")); //
        } catch (NumberFormatException e) {
            sink = new Forms(); // forms.Forms
        }
        sink = new Derived(); // forms.Forms$Derived
        new Node(); // left: does not leave its method
        Node.at(new Node()); // Node11
        try {
            throw new IllegalStateException(); // java.lang.IllegalStateException
        } catch (IllegalStateException e) {
            sum++;
        }
    }

    static class Derived extends Forms {
        final Object inner;

        Derived() {
            super();
            inner = new Object(); // java.lang.Object
        }
    }

    static void arrays(int n) {
        sink = new int[n]; // [I
        sink = new boolean[n]; // [Z
        sink = new String[n]; // [Ljava.lang.String;
        sink = new String[n][]; // [[Ljava.lang.String;
        sink = new int[n][2]; // [[I/2
        sink = new long[n][n][]; // [[[J/2
        sink = new Object[] {n, new byte[1]}; // [Ljava.lang.Object; java.lang.Integer [B
        int[] small = {1, 2, 3}; // left: does not leave its method
        int[] large = new int[65]; // [I
        int[] unknown = new int[n]; // [I
        sum += small[1] + large.length + unknown[0];
        int[] either = new int[n > 1 ? 65 : 1]; // [I
        int[] filled = new int[3]; // left: does not leave its method
        Arrays.fill(filled, either.length);
        Object[] kept = new Object[2]; // [Ljava.lang.Object;
        sink = kept;
        Arrays.fill(kept, new Node()); // Node12
        sink = many("a", "b"); // [Ljava.lang.String;
    }

    static Object many(String... all) {
        return all;
    }

    static void copies(int[] numbers, String[] texts) throws Exception {
        sink = numbers.clone(); // [I
        sink = ((Forms) new Copy().clone()).getClass(); // forms.Forms$Copy
        sink = Arrays.copyOf(texts, 3); // [Ljava.lang.String;
        sink = Array.newInstance(int.class, 3); // [I
        sink = Copy.class.getDeclaredConstructor().newInstance(); // [Ljava.lang.Class; [Ljava.lang.Object; forms.Forms$Copy
    }

    static class Copy extends Forms implements Cloneable {
        @Override
        public Object clone() throws CloneNotSupportedException {
            return super.clone(); // forms.Forms$Copy
        }
    }

    static void dynamic(int n, String text) {
        sink = (Supplier<Object>) () -> text; // lambda
        sink = (IntFunction<String[]>) String[]::new; // lambda
        sink = text + n; // java.lang.String
        StringBuilder b = new StringBuilder(text); // left: does not leave its method
        b.append(n).append('x');
        sink = b.toString(); // java.lang.String
        sink = new StringBuilder(); // java.lang.StringBuilder
    }

    static void boxes(int n, Map<Object, Object> map) {
        sink = 1000 + n; // java.lang.Integer
        sink = 1.5 * n; // java.lang.Double
        sink = (byte) n; //
        sink = n > 0; //
        Long box = 1000L + n; // left: does not leave its method
        sum += box.intValue() + (int) (long) box;
        sink = map.get(n + 1000); // left: does not leave its method
        map.put(n + 1000, 'x'); // java.lang.Integer java.lang.Character
        Object either = n > 0 ? (Object) 2.5f : (Object) (n + 2000); // java.lang.Float
        sink = either;
        sum += map.containsKey(new Node()) ? 1 : 2; // left: does not leave its method
    }

    static void calls(Forms forms, Own own) {
        sink = Lib.make(); // lib 1
        sink = new Lib(); // forms.Lib lib 1
        sum += Lib.twice(own); // lib 2
        sum += Lib.twice(() -> { // lambda lib 2
            sink = Lib.make(); // lib 1
            sink = Lib.make(); // lib 1
        });
        try {
            sum += Lib.twice(own) + own.nothing(); // lib 2
            sum += Lib.caught(() -> { // lambda lib 1
                sink = Lib.make(); // lib 1
                throw new IllegalStateException(); // java.lang.IllegalStateException
            });
        } finally {
            sum++;
        }
        sink = own.get(); // lib 1
        sink = Lib.supplied(Other::made); // lambda lib 1
        sink = Lib.supplied(Node::new); // lambda lib 1
        sum += Lib.compared(Forms::compare); // lambda lib 1
        sum += Lib.make().hashCode() - other(Lib.make()) - Lib.make().hashCode(); // lib 3
        for (int i = 0; i < 2; i++) {
            if (i == 1) {
                sink = Lib.make(); // lib 1
            }
            sink = Lib.make(); // lib 2
        }
    }

    static int compare(String a, String b) {
        sink = Lib.make(); // lib 1
        return 0;
    }

    static int other(Object o) {
        sink = Lib.make(); // lib 1
        return 0;
    }

    static class Own extends Lib implements Runnable { // lib 1
        @Override
        public void run() {
            sink = Lib.make(); // lib 2
        }

        int nothing() {
            return 0;
        }
    }

    static class Other {
        static Object made() {
            return sink;
        }
    }

    public static void main(String[] args) throws Exception {
        objects();
        arrays(2);
        copies(new int[2], args); // [I
        dynamic(4, "text");
        boxes(4, new HashMap<>()); // java.util.HashMap
        calls(new Forms(), new Own()); // forms.Forms forms.Forms$Own
    }
}
