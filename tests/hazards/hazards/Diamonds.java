package hazards;

/**
 * Short branches: those that a compiler turns into conditional moves, which are not told apart by default, and those that look like them
 * but must be told apart.
 */
class Diamonds {
    static int state;
    int[] m = new int[17];
    int i = 4;
    int j = 16;

    static int abs(int x) { // activations: 3, paths: 2, items: 3
        return x < 0 ? -x : x;
    }

    static boolean less(int a, int b) { // activations: 4, paths: 2, items: 4
        return a < b;
    }

    // A way that is told apart keeps the methods below in the report.
    static int absOrCall(int x, boolean call) { // activations: 4, paths: 4, items: 4, merged: 1
        int y = x < 0 ? -x : x;
        if (call) {
            state += y; // runs: 2
        }
        return y;
    }

    static boolean sameOrCall(Object a, Object b, boolean call) { // activations: 3, items: 3
        if (call) {
            state++; // runs: 1
        }
        return a == b; // runs: 3
    }

    // SciMark's random numbers: the fields make the other branches stores.
    int next() { // activations: 100, items: 100, unfinished: 0, merged: 1
        int k = m[i] - m[j]; // runs: 100
        if (k < 0) {
            k += 2147483647;
        }
        m[j] = k;
        if (i == 0) {
            i = 16; // runs: 6
        } else {
            i--; // runs: 94
        }
        if (j == 0) {
            j = 16; // runs: 5
        } else {
            j--; // runs: 95
        }
        return k; // runs: 100
    }

    static int monteCarlo(int[] xs) { // activations: 1, items: 101, merged: 1
        int under = 0;
        for (int n = 0; n < xs.length; n++) {
            int x = xs[n]; // runs: 100
            if (x < 1 << 30) {
                under++;
            }
        }
        return under;
    }

    static int clamp(int x, int low, int high) { // activations: 3, paths: 3, items: 3
        return x < low ? low : x > high ? high : x;
    }

    static int clampInSteps(int[] a, int low, int high) { // activations: 1, items: 4, unfinished: 0, merged: 2
        int sum = 0;
        for (int i = 0; i < a.length; i++) {
            int x = a[i];
            x = x < low ? low : x;
            x = x > high ? high : x;
            sum += x; // runs: 3
        }
        return sum;
    }

    static int nested(int a, int b) { // activations: 6, paths: 4, items: 6
        int x = 0;
        if (a > 0) {
            x = 1; // runs: 4
            if (b > 0) {
                x = 2; // runs: 2
            }
        } else {
            x = b > 0 ? 3 : 4; // runs: 2
        }
        return x; // runs: 6
    }

    static int longs(long a, long b, int[] sink) { // activations: 3, items: 3
        int x = a < b ? 1 : 2;
        sink[x]++; // runs: 3
        return a == b ? x : -x;
    }

    // NaN takes a way of its own in each comparison.
    static int doubles(double d, float f) { // activations: 6, items: 6
        int x = d < 0.5 ? 1 : 2;
        int y = d >= 0.5 ? 4 : 8;
        int z = f > 0.5f ? 16 : 32;
        return x + y + z; // runs: 6
    }

    static double floats(double d, double e) { // activations: 3, paths: 2, items: 3
        return d < e ? d : e;
    }

    static int references(Object a, Object b, String s) { // activations: 5, items: 4, unfinished: 1
        int x = a == b ? 1 : 2;
        Object o = a != null ? a : b;
        return x + o.hashCode() % 2 + (s == null ? 4 : 8); // runs: 4
    }

    // An arm may throw.
    static int divides(int a, int b) { // activations: 4, paths: 2, items: 3, unfinished: 1, merged: 0
        int x = a > 0 ? a / b : a;
        return x; // runs: 3
    }

    static long remainder(long a, long b, int[] counts) { // activations: 3, unfinished: 1, merged: 0
        if (a > 0) {
            a %= b; // runs: 1
        }
        counts[0]++; // runs: 2
        return a;
    }

    static int fromArray(int[] a, int n) { // activations: 3, items: 2, unfinished: 1, merged: 0
        int x = n < 5 ? a[n] : n;
        return x; // runs: 2
    }

    static int calls(int n) { // activations: 2, paths: 2, items: 2, merged: 0
        int x = n < 5 ? Integer.bitCount(n) : n;
        return x; // runs: 2
    }

    static int stores(int n) { // activations: 2, paths: 2, items: 2, merged: 0
        if (n > 0) {
            state = n; // runs: 1
        }
        return n;
    }

    static int casts(Object o, boolean cast) { // activations: 3, items: 2, unfinished: 1, merged: 0
        Object s = cast ? (String) o : "other";
        return s.hashCode(); // runs: 2
    }

    // More is done in an arm than a conditional move is worth.
    static int long_(int a, int b, int c) { // activations: 2, paths: 2, items: 2, merged: 0
        int x = a;
        int y = b;
        int z = c;
        if (a > b) {
            x = b * 31 + a; // runs: 1
            y = a * 17 + c;
            z = x * y - c;
            x ^= z << 3;
        }
        return x + y + z;
    }

    static int swap(int[] a) { // activations: 2, items: 2
        int x = a[0];
        int y = a[1];
        if (x > y) {
            int t = x;
            x = y;
            y = t;
        }
        a[0] = x;
        a[1] = y;
        return x - y; // runs: 2
    }

    // Three ways meet: no diamond.
    static int either(boolean a, boolean b) { // activations: 4, paths: 3, items: 4, merged: 0
        int x = 1;
        if (a || b) {
            x = 2; // runs: 3
        }
        return x;
    }

    // Where the ways meet is a loop head.
    static int atLoopHead(int n) { // activations: 1, items: 11, merged: 0
        int odd = 0;
        while (n > 0) {
            n--; // runs: 10
            if ((n & 1) != 0) {
                odd++; // runs: 5
            }
        }
        return odd;
    }

    static int beforeLoopHead(int n, int x) { // activations: 2, unfinished: 0
        int s = 3;
        if (x > 0) {
            s = 4; // runs: 1
        }
        do {
            s += n; // runs: 9
            n--;
        } while (n > 0);
        return s;
    }

    // The way round is itself the branch.
    static int onBackEdge(int n) { // activations: 2, items: 16, unfinished: 0
        int x = 0;
        do {
            x += n & 3; // runs: 16
            n -= n > 6 ? 2 : 1;
        } while (n > 0);
        return x;
    }

    static int inLoopWithCall(int[] a) { // activations: 1, items: 21, merged: 1
        int sum = 0;
        for (int x : a) {
            sum += Integer.bitCount(x > 10 ? 10 : x); // runs: 20
        }
        return sum;
    }

    static int inLoopWithBranch(int[] a) { // activations: 1, items: 21, merged: 1
        int sum = 0;
        for (int x : a) {
            int y = x > 10 ? 10 : x; // runs: 20
            if (y % 3 == 0) {
                state += y; // runs: 4
            }
            sum += y;
        }
        return sum;
    }

    // An exception right before, behind and around short branches.
    static int inTry(int[] a, int n) { // activations: 4, unfinished: 2
        int x = 0;
        try {
            x = n < 0 ? -n : n;
            x = a[x]; // runs: 2
        } catch (ArrayIndexOutOfBoundsException e) {
            x = n < 0 ? 5 : 6;
            state += x; // runs: 2
        }
        return x; // runs: 4
    }

    // A hundred in a row: told apart, that are more paths than can be numbered.
    static int many(long x, boolean store) { // activations: 20, unfinished: 0, merged: 100
        int n = 0;
        if (store) {
            state++;
        }
        if ((x >>> 0 & 3) == 2) {
            n ^= 0;
        }
        n += (x & 1L << 1) != 0 ? 1 : 7;
        n += (x & 1L << 2) != 0 ? 2 : 14;
        if ((x >>> 3 & 3) == 2) {
            n ^= 3;
        }
        n += (x & 1L << 4) != 0 ? 4 : 28;
        n += (x & 1L << 5) != 0 ? 5 : 4;
        if ((x >>> 6 & 3) == 2) {
            n ^= 6;
        }
        n += (x & 1L << 7) != 0 ? 7 : 18;
        n += (x & 1L << 8) != 0 ? 8 : 25;
        if ((x >>> 9 & 3) == 2) {
            n ^= 9;
        }
        n += (x & 1L << 10) != 0 ? 10 : 8;
        n += (x & 1L << 11) != 0 ? 11 : 15;
        if ((x >>> 12 & 3) == 2) {
            n ^= 12;
        }
        n += (x & 1L << 13) != 0 ? 13 : 29;
        n += (x & 1L << 14) != 0 ? 14 : 5;
        if ((x >>> 15 & 3) == 2) {
            n ^= 15;
        }
        n += (x & 1L << 16) != 0 ? 16 : 19;
        n += (x & 1L << 17) != 0 ? 17 : 26;
        if ((x >>> 18 & 3) == 2) {
            n ^= 18;
        }
        n += (x & 1L << 19) != 0 ? 19 : 9;
        n += (x & 1L << 20) != 0 ? 20 : 16;
        if ((x >>> 21 & 3) == 2) {
            n ^= 21;
        }
        n += (x & 1L << 22) != 0 ? 22 : 30;
        n += (x & 1L << 23) != 0 ? 23 : 6;
        if ((x >>> 24 & 3) == 2) {
            n ^= 24;
        }
        n += (x & 1L << 25) != 0 ? 25 : 20;
        n += (x & 1L << 26) != 0 ? 26 : 27;
        if ((x >>> 27 & 3) == 2) {
            n ^= 27;
        }
        n += (x & 1L << 28) != 0 ? 28 : 10;
        n += (x & 1L << 29) != 0 ? 29 : 17;
        if ((x >>> 30 & 3) == 2) {
            n ^= 30;
        }
        n += (x & 1L << 31) != 0 ? 31 : 0;
        n += (x & 1L << 32) != 0 ? 32 : 7;
        if ((x >>> 33 & 3) == 2) {
            n ^= 33;
        }
        n += (x & 1L << 34) != 0 ? 34 : 21;
        n += (x & 1L << 35) != 0 ? 35 : 28;
        if ((x >>> 36 & 3) == 2) {
            n ^= 36;
        }
        n += (x & 1L << 37) != 0 ? 37 : 11;
        n += (x & 1L << 38) != 0 ? 38 : 18;
        if ((x >>> 39 & 3) == 2) {
            n ^= 39;
        }
        n += (x & 1L << 40) != 0 ? 40 : 1;
        n += (x & 1L << 41) != 0 ? 41 : 8;
        if ((x >>> 42 & 3) == 2) {
            n ^= 42;
        }
        n += (x & 1L << 43) != 0 ? 43 : 22;
        n += (x & 1L << 44) != 0 ? 44 : 29;
        if ((x >>> 45 & 3) == 2) {
            n ^= 45;
        }
        n += (x & 1L << 46) != 0 ? 46 : 12;
        n += (x & 1L << 47) != 0 ? 47 : 19;
        if ((x >>> 48 & 3) == 2) {
            n ^= 48;
        }
        n += (x & 1L << 49) != 0 ? 49 : 2;
        n += (x & 1L << 50) != 0 ? 50 : 9;
        if ((x >>> 51 & 3) == 2) {
            n ^= 51;
        }
        n += (x & 1L << 52) != 0 ? 52 : 23;
        n += (x & 1L << 53) != 0 ? 53 : 30;
        if ((x >>> 54 & 3) == 2) {
            n ^= 54;
        }
        n += (x & 1L << 55) != 0 ? 55 : 13;
        n += (x & 1L << 56) != 0 ? 56 : 20;
        if ((x >>> 57 & 3) == 2) {
            n ^= 57;
        }
        n += (x & 1L << 58) != 0 ? 58 : 3;
        n += (x & 1L << 59) != 0 ? 59 : 10;
        if ((x >>> 60 & 3) == 2) {
            n ^= 60;
        }
        n += (x & 1L << 61) != 0 ? 61 : 24;
        n += (x & 1L << 62) != 0 ? 62 : 0;
        if ((x >>> 63 & 3) == 2) {
            n ^= 63;
        }
        n += (x & 1L << 0) != 0 ? 64 : 14;
        n += (x & 1L << 1) != 0 ? 65 : 21;
        if ((x >>> 2 & 3) == 2) {
            n ^= 66;
        }
        n += (x & 1L << 3) != 0 ? 67 : 4;
        n += (x & 1L << 4) != 0 ? 68 : 11;
        if ((x >>> 5 & 3) == 2) {
            n ^= 69;
        }
        n += (x & 1L << 6) != 0 ? 70 : 25;
        n += (x & 1L << 7) != 0 ? 71 : 1;
        if ((x >>> 8 & 3) == 2) {
            n ^= 72;
        }
        n += (x & 1L << 9) != 0 ? 73 : 15;
        n += (x & 1L << 10) != 0 ? 74 : 22;
        if ((x >>> 11 & 3) == 2) {
            n ^= 75;
        }
        n += (x & 1L << 12) != 0 ? 76 : 5;
        n += (x & 1L << 13) != 0 ? 77 : 12;
        if ((x >>> 14 & 3) == 2) {
            n ^= 78;
        }
        n += (x & 1L << 15) != 0 ? 79 : 26;
        n += (x & 1L << 16) != 0 ? 80 : 2;
        if ((x >>> 17 & 3) == 2) {
            n ^= 81;
        }
        n += (x & 1L << 18) != 0 ? 82 : 16;
        n += (x & 1L << 19) != 0 ? 83 : 23;
        if ((x >>> 20 & 3) == 2) {
            n ^= 84;
        }
        n += (x & 1L << 21) != 0 ? 85 : 6;
        n += (x & 1L << 22) != 0 ? 86 : 13;
        if ((x >>> 23 & 3) == 2) {
            n ^= 87;
        }
        n += (x & 1L << 24) != 0 ? 88 : 27;
        n += (x & 1L << 25) != 0 ? 89 : 3;
        if ((x >>> 26 & 3) == 2) {
            n ^= 90;
        }
        n += (x & 1L << 27) != 0 ? 91 : 17;
        n += (x & 1L << 28) != 0 ? 92 : 24;
        if ((x >>> 29 & 3) == 2) {
            n ^= 93;
        }
        n += (x & 1L << 30) != 0 ? 94 : 7;
        n += (x & 1L << 31) != 0 ? 95 : 14;
        if ((x >>> 32 & 3) == 2) {
            n ^= 96;
        }
        n += (x & 1L << 33) != 0 ? 97 : 28;
        n += (x & 1L << 34) != 0 ? 98 : 4;
        if ((x >>> 35 & 3) == 2) {
            n ^= 99;
        }
        return n;
    }

    // Branches that are told apart, more than can be numbered in an int: edges are cut.
    static int manyTold(long x) { // activations: 20, unfinished: 0, merged: 0
        if ((x & 1L << 7) != 0) {
            state += 7;
        }
        if ((x & 1L << 8) != 0) {
            state += 8;
        }
        if ((x & 1L << 9) != 0) {
            state += 9;
        }
        if ((x & 1L << 10) != 0) {
            state += 10;
        }
        if ((x & 1L << 11) != 0) {
            state += 11;
        }
        if ((x & 1L << 12) != 0) {
            state += 12;
        }
        if ((x & 1L << 13) != 0) {
            state += 13;
        }
        if ((x & 1L << 14) != 0) {
            state += 14;
        }
        if ((x & 1L << 15) != 0) {
            state += 15;
        }
        if ((x & 1L << 16) != 0) {
            state += 16;
        }
        if ((x & 1L << 17) != 0) {
            state += 17;
        }
        if ((x & 1L << 18) != 0) {
            state += 18;
        }
        if ((x & 1L << 19) != 0) {
            state += 19;
        }
        if ((x & 1L << 20) != 0) {
            state += 20;
        }
        if ((x & 1L << 21) != 0) {
            state += 21;
        }
        if ((x & 1L << 22) != 0) {
            state += 22;
        }
        if ((x & 1L << 23) != 0) {
            state += 23;
        }
        if ((x & 1L << 24) != 0) {
            state += 24;
        }
        if ((x & 1L << 25) != 0) {
            state += 25;
        }
        if ((x & 1L << 26) != 0) {
            state += 26;
        }
        if ((x & 1L << 27) != 0) {
            state += 27;
        }
        if ((x & 1L << 28) != 0) {
            state += 28;
        }
        if ((x & 1L << 29) != 0) {
            state += 29;
        }
        if ((x & 1L << 30) != 0) {
            state += 30;
        }
        if ((x & 1L << 31) != 0) {
            state += 31;
        }
        if ((x & 1L << 32) != 0) {
            state += 32;
        }
        if ((x & 1L << 33) != 0) {
            state += 33;
        }
        if ((x & 1L << 34) != 0) {
            state += 34;
        }
        if ((x & 1L << 35) != 0) {
            state += 35;
        }
        if ((x & 1L << 36) != 0) {
            state += 36;
        }
        if ((x & 1L << 37) != 0) {
            state += 37;
        }
        if ((x & 1L << 38) != 0) {
            state += 38;
        }
        if ((x & 1L << 39) != 0) {
            state += 39;
        }
        if ((x & 1L << 40) != 0) {
            state += 40;
        }
        if ((x & 1L << 41) != 0) {
            state += 41;
        }
        if ((x & 1L << 42) != 0) {
            state += 42;
        }
        if ((x & 1L << 43) != 0) {
            state += 43;
        }
        if ((x & 1L << 44) != 0) {
            state += 44;
        }
        if ((x & 1L << 45) != 0) {
            state += 45;
        }
        if ((x & 1L << 46) != 0) {
            state += 46;
        }
        if ((x & 1L << 47) != 0) {
            state += 47;
        }
        if ((x & 1L << 48) != 0) {
            state += 48;
        }
        return state;
    }

    static int fails(Runnable job) { // activations: 5
        try {
            job.run();
            return 0; // runs: 0
        } catch (RuntimeException e) {
            return 1; // runs: 5
        }
    }

    static void main(String[] args) { // activations: 1
        int n = abs(-3) + abs(0) + abs(4) + (less(1, 2) ? 1 : 0) + (less(2, 2) ? 2 : 0) + (less(-1, 3) ? 4 : 0) + (less(3, 1) ? 8 : 0);
        n += absOrCall(-3, true) + absOrCall(3, true) + absOrCall(-5, false) + absOrCall(5, false);
        n += sameOrCall("a", "a", true) || sameOrCall("a", "b", false) | sameOrCall(null, "b", false) ? 1 : 0;
        sameOrCall("a", "b", false);
        sameOrCall("b", "b", false);
        Diamonds random = new Diamonds();
        for (int i = 0; i < 17; i++) {
            random.m[i] = i * 1_000_003 * (i % 2 == 0 ? 700 : 1100) & 0x7fffffff;
        }
        int[] xs = new int[100];
        for (int i = 0; i < 100; i++) {
            xs[i] = random.next();
        }
        n += monteCarlo(xs) + clamp(1, 3, 5) + clamp(4, 3, 5) + clamp(9, 3, 5) + clampInSteps(new int[] {1, 4, 9}, 3, 5);
        n += nested(1, 1) + nested(2, 0) + nested(0, 1) + nested(0, 0) + nested(3, -1) + nested(3, 1);
        n += longs(1, 2, new int[3]) + longs(2, 2, new int[3]) + longs(Long.MAX_VALUE, Long.MIN_VALUE, new int[3]);
        double nan = Double.NaN;
        n += doubles(0, 0) + doubles(1, 1) + doubles(nan, 0) + doubles(0, Float.NaN) + doubles(nan, Float.NaN) + doubles(nan, 1);
        n += (int) (floats(1, 2) + floats(2, 1)) + (Double.isNaN(floats(1, nan)) ? 1 : 0);
        n += references("a", "b", null) + references("a", "a", "x") + references(null, "b", null) + references("c", null, "");
        n += fails(() -> references(null, null, "x"));
        n += divides(7, 2) + divides(0, 0) + divides(-3, 0) + fails(() -> divides(1, 0));
        n += (int) (remainder(7, 4, new int[1]) + remainder(-7, 0, new int[1])) + fails(() -> remainder(1, 0, new int[1]));
        n += fromArray(new int[] {1, 2}, 1) + fromArray(null, 9) + fails(() -> fromArray(new int[2], 3));
        n += calls(3) + calls(8) + stores(3) + stores(-3) + casts("x", true) % 2 + casts(4, false) % 2 + fails(() -> casts(4, true));
        n += long_(5, 4, 3) + long_(4, 5, 3) + swap(new int[] {3, 4}) + swap(new int[] {4, 3});
        n += either(true, true) + either(true, false) + either(false, true) + either(false, false);
        n += atLoopHead(10) + beforeLoopHead(4, 1) + beforeLoopHead(5, -1) + onBackEdge(6) + onBackEdge(14);
        int[] up = new int[20];
        for (int i = 0; i < 20; i++) {
            up[i] = i;
        }
        n += inLoopWithCall(up) + inLoopWithBranch(up);
        n += inTry(up, 3) + inTry(up, -4) + inTry(up, 30) + inTry(up, -40);
        long x = 1;
        for (int i = 0; i < 20; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            n += many(x, i % 2 == 0) + manyTold(x);
        }
        System.out.println(n);
    }
}
