import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.IntUnaryOperator;

/** The shapes of code that are hard to splice, each run once with its results printed. */
public class Shapes {
    @Target(ElementType.TYPE_USE)
    @Retention(RetentionPolicy.RUNTIME)
    @interface Mark {
        String[] value() default {};
        int number() default 0;
    }

    static class Base {
        final String text;

        Base(String text) {
            this.text = text;
        }
    }

    /** Jumps before super(): UninitializedThis in frames. */
    static class Derived extends Base {
        Derived(boolean a, int n) {
            super(a ? (n > 3 ? "big" : "small") : String.valueOf(n > 0 ? n : -n));
        }
    }

    /** A loop head at bci 0: the first frame has offset 0. */
    static int drain(Iterator<String> it) {
        while (it.hasNext()) {
            if (it.next().isEmpty()) return 1;
        }
        return 0;
    }

    /** Uninitialized objects on the stack across jumps. */
    static String uninitialized(int n) {
        return new StringBuilder(n > 2 ? "many" : "few").append(new String(n == 0 ? "" : n < 0 ? "-" : "+")).toString();
    }

    /** Locals of mixed sizes in reused slots: holes in full frames. */
    static double mixed(int n) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            if (i % 2 == 0) {
                double d = i;
                for (long l = 0; l < 3; l++) {
                    float f = l;
                    sum += d * f;
                }
            } else {
                long l = i;
                for (int j = 0; j < 2; j++) {
                    double e = l + j;
                    sum -= e;
                }
                String s = "x" + l;
                sum += s.length();
            }
        }
        return sum;
    }

    static int locked(Object lock, int[] values) {
        int sum = 0;
        synchronized (lock) {
            for (int value : values) {
                if (value < 0) break;
                synchronized (values) {
                    if (value == 7) continue;
                    sum += value;
                }
            }
        }
        return sum;
    }

    static int caught(String text) {
        int result = 0;
        try {
            result = Integer.parseInt(text);
            if (result > 100) return 100;
        } catch (NumberFormatException | NullPointerException e) {
            result = -1;
            if (text == null) return -2;
        } finally {
            result += 10;
        }
        return result;
    }

    static String switches(int a, String b) {
        StringBuilder out = new StringBuilder();
        switch (a) {
            case 0: out.append("zero");
            case 1: out.append("one"); break;
            case 2: case 3: out.append("some"); break;
            default: out.append("other");
        }
        switch (b) {
            case "alpha": out.append(1); break;
            case "Aa": case "BB": out.append(2); break;
            case "gamma": return out.append('!').toString();
        }
        return out.append(switch (a * 1000) { case 1000 -> "k"; case -1000 -> "m"; case 2000000 -> "g"; default -> "-"; }).toString();
    }

    static int annotated(Object o) {
        @Mark({"a", "b"}) List<@Mark(number = 3) String> list = new @Mark ArrayList<@Mark String>();
        if (o instanceof @Mark String) list.add((@Mark String) o);
        try {
            list.get(1);
        } catch (@Mark IndexOutOfBoundsException e) {
            return list.size();
        }
        return -1;
    }

    static int lambdas(int n) {
        IntUnaryOperator f = x -> x > n ? x - n : n - x;
        int sum = 0;
        do {
            sum += f.applyAsInt(sum) + 1;
        } while (sum < 50 && sum != 13);
        return sum;
    }

    interface Greeter {
        default String greet(String name) {
            return name == null ? "hello" : "hello " + name;
        }
    }

    private long longs(long a, boolean b, double c, Object[] d, int[][] e) {
        long sum = b ? a : (long) c;
        for (Object o : d) sum += o == null ? 1 : o.hashCode();
        for (int[] row : e) for (int x : row) sum ^= x;
        return sum;
    }

    public static void main(String[] args) {
        System.out.println(new Derived(true, 5).text + new Derived(true, 1).text + new Derived(false, -4).text);
        System.out.println(drain(List.of("a", "b").iterator()) + drain(List.of("a", "").iterator()));
        System.out.println(uninitialized(0) + uninitialized(3) + uninitialized(-1));
        System.out.println(mixed(0) + " " + mixed(9));
        System.out.println(locked(new Object(), new int[] {1, 7, 5, -1, 3}));
        System.out.println(caught("12") + " " + caught("1000") + " " + caught("x") + " " + caught(null));
        for (int i = -1; i < 4; i++) System.out.println(switches(i, new String[] {"alpha", "BB", "Aa", "gamma", "?"}[i + 1]));
        System.out.println(annotated("x") + " " + annotated(1));
        System.out.println(lambdas(7) + " " + lambdas(3));
        System.out.println(new Greeter() {}.greet(null) + new Greeter() {}.greet("you"));
        System.out.println(new Shapes().longs(3, args.length > 0, 4.5, new Object[] {null, 5}, new int[][] {{1, 2}, {}, {9}}));
        int hot = 0;
        for (int i = 0; i < 20_000; i++) hot += locked(args, new int[] {i & 7, 7, 1}) + (int) mixed(3);
        System.out.println(hot);
    }
}
