package hazards;

import java.util.Comparator;
import java.util.List;
import java.util.function.Supplier;

/** Methods of all kinds: static initializers, interface methods, bridges, accessors of inner classes, enums, records. */
class Members {
    static final int[] SQUARES = new int[5];

    // With those of Op and Fails.
    static { // activations: 3, items: 7, unfinished: 1
        for (int i = 0; i < SQUARES.length; i++) {
            SQUARES[i] = i * i; // runs: 5
        }
    }

    interface Shape {
        double area();

        default String describe() { // activations: 2, paths: 2, items: 2
            return area() > 2 ? "big" : "small";
        }

        static Shape of(double side) { // activations: 2, paths: 1
            return () -> side * side; // runs: 4
        }

        private int secret() { // activations: 1
            return 42;
        }

        default int open() { // activations: 1
            return secret();
        }
    }

    // compare and get run half the time through the bridge, which is a method of the same name.
    static class ByLength implements Comparator<String>, Supplier<String> {
        @Override
        public int compare(String a, String b) { // activations: 3
            return a.length() < b.length() ? -1 : a.length() > b.length() ? 1 : 0;
        }

        @Override
        public String get() { // activations: 2
            return "got";
        }
    }

    static class Fails {
        static int value = compute();

        static int compute() { // activations: 1, paths: 1, items: 1, unfinished: 0
            throw new IllegalStateException("in static initializer"); // runs: 1
        }
    }

    class Inner {
        private int hidden = 1;

        class Deeper {
            int sum() { // activations: 1
                return hidden + field; // runs: 1
            }
        }
    }

    private int field = 2;

    record Point(int x, int y) {
        Point {
            if (x < 0) {
                throw new IllegalArgumentException("x"); // runs: 1
            }
        }
    }

    enum Op {
        PLUS {
            @Override
            int apply(int a, int b) {
                return a + b; // runs: 2
            }
        },
        TIMES {
            @Override
            int apply(int a, int b) {
                return a * b; // runs: 2
            }
        };

        abstract int apply(int a, int b);
    }

    static int varargs(Object... all) { // activations: 2
        int n = 0;
        for (Object o : all) {
            n += o == null ? 0 : 1; // runs: 3
        }
        return n;
    }

    static void main(String[] args) throws Exception { // activations: 1
        StringBuilder out = new StringBuilder();
        out.append(SQUARES[4]).append(Shape.of(1).describe()).append(Shape.of(2).describe()).append(((Shape) () -> 1).open());
        ByLength order = new ByLength();
        Comparator<String> raw = order;
        Supplier<String> supplier = order;
        out.append(order.compare("a", "bb")).append(raw.compare("aa", "b")).append(supplier.get());
        try {
            // An initializer that the resolution of a field or call starts is never stepped.
            out.append(new Fails());
        } catch (ExceptionInInitializerError e) {
            out.append("failed");
        }
        try {
            out.append(Fails.value);
        } catch (NoClassDefFoundError e) {
            out.append("again");
        }
        out.append(new Members().new Inner().new Deeper().sum());
        Class.forName("hazards.Members$Op");
        for (Op op : Op.values()) {
            out.append(op.apply(3, 4)).append(op.apply(1, 1)); // runs: 2
        }
        try {
            out.append(new Point(1, 2)).append(new Point(-1, 0));
        } catch (IllegalArgumentException e) {
            out.append("bad point");
        }
        out.append(varargs()).append(varargs(1, null, "x")).append(List.of(new Point(3, 4)));
        System.out.println(out);
    }
}
