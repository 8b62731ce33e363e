package sites;

/** Each instruction that allocates, in the places where javac puts it. */
class Forms {
    static class Node {
        Object a, b;
        long c;

        Node() {
        }

        Node(Object a, Object b) {
            this.a = a;
            this.b = b;
        }

        Node(long c, double d, Object a) {
            this.c = c + (long) d;
            this.a = a;
        }
    }

    enum Colour { // live: 1 sites.Forms$Colour[]
        RED, GREEN, BLUE // live: 3 sites.Forms$Colour
    }

    record Pair(Object left, Object right) {
    }

    class Inner {
    }

    static Object made = new Node(); // live: 1 sites.Forms$Node
    static int calls;
    static final Object[] EMPTY = {}; // live: 1 java.lang.Object[]

    static Object[] several(Object... all) {
        return all;
    }

    static int next() {
        return ++calls;
    }

    static Object maybe(boolean yes) {
        return yes ? new Node() : null; // live: 4 sites.Forms$Node
    }

    static Object dies(int x) {
        if (x > 0) {
            throw new IllegalStateException();
        }
        return null;
    }

    static void objects() {
        Keep.it(new Node()); // live: 1 sites.Forms$Node
        Keep.it(new Node(new Node(), new Pair(1, "x"))); // live: 2 sites.Forms$Node, 1 sites.Forms$Pair
        // javac gives only statements and method calls a line of their own.
        Keep.it(new Node( // live: 2 sites.Forms$Node
                new Node(), // live: 0 sites.Forms$Node
                maybe(true))); // live: 0 sites.Forms$Node
        Keep.it(new Node(7L, 1.5, new int[next()])); // live: 1 sites.Forms$Node, 1 int[]
        Keep.it(next() > 0 ? new Node() : new Pair(null, null)); // live: 1 sites.Forms$Node
        Keep.it(new Node(maybe(next() > 0), maybe(false))); // live: 1 sites.Forms$Node
        Node kept = new Node(); // live: 1 sites.Forms$Node
        kept.a = kept.b = new Node(maybe(true), maybe(true)); // live: 1 sites.Forms$Node
        Keep.it(kept);
        new Node(); // live: 0 sites.Forms$Node
        for (int i = 0; i < 10; i++) {
            Object o = new Node(); // live: 4 sites.Forms$Node
            if (i % 3 == 0) {
                Keep.it(o);
            }
        }
        Forms outer = new Forms(); // live: 1 sites.Forms
        Keep.it(outer.new Inner()); // live: 1 sites.Forms$Inner
        Keep.it(new Object() { // live: 1 sites.Forms$1
            Object mine = new Node(); // live: 1 sites.Forms$Node
        });
        class Local extends Node {
            Object seen = kept;
        }
        Keep.it(new Local()); // live: 1 sites.Forms$1Local
    }

    static void primitives() {
        Keep.it(new boolean[1]); // live: 1 boolean[]
        Keep.it(new byte[2]); // live: 1 byte[]
        Keep.it(new char[3]); // live: 1 char[]
        Keep.it(new short[4]); // live: 1 short[]
        Keep.it(new int[5]); // live: 1 int[]
        Keep.it(new long[6]); // live: 1 long[]
        Keep.it(new float[7]); // live: 1 float[]
        Keep.it(new double[8]); // live: 1 double[]
        Keep.it(new int[0]); // live: 1 int[]
        Keep.it(new int[] {1, 2, 3}); // live: 1 int[]
        Keep.it(new byte[300_000]); // live: 1 byte[]
        long[] big = new long[1 << 18]; // live: 1 long[]
        Keep.it(big);
        for (int i = 0; i < 100; i++) {
            Keep.it(new char[i]); // live: 100 char[]
        }
    }

    static void arrays() {
        Keep.it(new Node[3]); // live: 1 sites.Forms$Node[]
        Keep.it(new Object[] {new Node(), new Pair(null, null), null}); // live: 1 java.lang.Object[], 1 sites.Forms$Node, 1 sites.Forms$Pair
        Keep.it(several(1, "a")); // live: 1 java.lang.Object[]
        Keep.it(several()); // live: 1 java.lang.Object[]
        Keep.it(new Node[2][]); // live: 1 sites.Forms$Node[][]
        Keep.it(new int[2][3]); // live: 1 int[][], 2 int[]
        Keep.it(new int[2][3][]); // live: 1 int[][][], 2 int[][]
        Keep.it(new long[2][3][4]); // live: 1 long[][][], 2 long[][], 6 long[]
        Keep.it(new Node[4][0]); // live: 1 sites.Forms$Node[][], 4 sites.Forms$Node[]
        Keep.it(new Node[0][4]); // live: 1 sites.Forms$Node[][]
        Keep.it(new int[][] {{1}, {2, 3}, {}}); // live: 1 int[][], 3 int[]
        Keep.it(new String[5][2]); // live: 1 java.lang.String[][], 5 java.lang.String[]
        Object[][] jagged = new Object[3][]; // live: 1 java.lang.Object[][]
        for (int i = 0; i < 3; i++) {
            jagged[i] = new Object[i]; // live: 3 java.lang.Object[]
        }
        Keep.it(jagged);
        // Replaced rows are garbage, the array itself is not.
        int[][] replaced = new int[8][1]; // live: 1 int[][], 6 int[]
        replaced[0] = replaced[1] = null;
        Keep.it(replaced);
    }

    static void exceptions() {
        for (int i = 0; i < 6; i++) {
            try {
                Keep.it(new Node(new Node(), dies(i % 2))); // live: 6 sites.Forms$Node
            } catch (IllegalStateException e) {
                Keep.it(new Pair(e.getClass(), null)); // live: 3 sites.Forms$Pair
            } finally {
                Keep.it(new byte[1]); // live: 6 byte[]
            }
        }
        synchronized (Keep.it(new Object())) { // live: 1 java.lang.Object
            Keep.it(new Object()); // live: 1 java.lang.Object
        }
        try {
            Keep.it(new int[-next()]);
        } catch (NegativeArraySizeException e) {
            Keep.it(new short[1]); // live: 1 short[]
        }
    }

    static void switches(int n) {
        for (int i = 0; i < n; i++) {
            Keep.it(switch (i % 4) {
                case 0 -> new Node(); // live: 3 sites.Forms$Node
                case 1 -> new int[i]; // live: 3 int[]
                case 2 -> {
                    Object[] array = new Object[i]; // live: 3 java.lang.Object[]
                    array[0] = new Pair(array, null); // live: 3 sites.Forms$Pair
                    yield array;
                }
                default -> "none";
            });
        }
    }

    static void run() {
        objects();
        primitives();
        arrays();
        exceptions();
        switches(12);
        Keep.it(Colour.RED);
        Keep.it(EMPTY);
    }
}
