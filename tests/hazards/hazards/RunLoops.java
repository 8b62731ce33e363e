package hazards;

/**
 * Innermost loops with a single way round and no calls, which the profiler counts as runs of one path: every length of run around the
 * tried lengths of sequences (2, 4, 16), every way in and every way out.
 */
class RunLoops {
    // 12 lengths, 130 turns together.
    static final int[] TURNS = {0, 1, 2, 3, 4, 5, 13, 14, 15, 16, 17, 40};

    // 136 of Node, 12 of Box.
    // expect <init>: activations: 148, items: 278, unfinished: 0
    static class Node {
        final Node next;
        final int value;

        Node(int value, Node next) {
            this.value = value;
            this.next = next;
        }
    }

    static void add(int[] a, int[] b, int[] c) { // activations: 12, paths: 4, items: 142, unfinished: 0
        for (int i = 0; i < a.length; i++) {
            a[i] = b[i] + c[i]; // runs: 130
        }
    }

    static double dot(double[] a, double[] b, int n) { // activations: 12, paths: 4, items: 142, unfinished: 0
        double sum = 0;
        for (int i = 0; i < n; i++) {
            sum += a[i] * b[i]; // runs: 130
        }
        return sum; // runs: 12
    }

    static int breaks(int[] a, int x) { // activations: 4, paths: 5, items: 48, unfinished: 0
        int i = 0;
        for (; i < a.length; i++) {
            if (a[i] == x) {
                break; // runs: 3
            }
        }
        return i; // runs: 4
    }

    static int returns(long[] a, long x) { // activations: 6, items: 60, unfinished: 0
        for (int i = 0; i < a.length; i++) {
            if (a[i] == x) {
                return i; // runs: 5
            }
        }
        return -1; // runs: 1
    }

    static double manyExits(double[] a, double low, double high) { // activations: 4, unfinished: 0
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            double x = a[i];
            if (x < low) {
                return -1; // runs: 1
            }
            sum += x;
            if (sum > high) {
                sum = high; // runs: 2
                break;
            }
            sum *= 0.5;
        }
        return sum; // runs: 3
    }

    static int throwsOut(int n) { // activations: 3, items: 23, unfinished: 0
        for (int i = 0; ; i++) {
            if (i * i > n) {
                throw new IllegalStateException("big"); // runs: 3
            }
        }
    }

    // An exception of the JVM's ends the run: the caller catches it. Nothing else leaves the next two loops.
    static int overrun(int[] a) { // activations: 12, paths: 2, items: 130, unfinished: 12
        int sum = 0;
        for (int i = 0; ; i++) {
            sum += a[i]; // runs: 130
        }
    }

    static int chase(Node n) { // activations: 12, paths: 2, items: 130, unfinished: 12
        int sum = 0;
        while (true) {
            sum += n.value; // runs: 130
            n = n.next;
        }
    }

    static int overrunWithin(int[] a, int n) { // activations: 12, paths: 2, items: 130, unfinished: 12
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += a[i]; // runs: 130
        }
        return sum; // runs: 0
    }

    static int chaseUntil(Node n, int last) { // activations: 13, paths: 3, items: 136, unfinished: 12
        int sum = 0;
        while (n.value != last) {
            sum += n.value; // runs: 135
            n = n.next;
        }
        return sum; // runs: 1
    }

    // The exception comes at the end of a turn, behind a way out, or not at all.
    static int divides(int[] a, int n) { // activations: 4, items: 17, unfinished: 2
        int x = 1000;
        for (int i = 0; i < n; i++) {
            if (a[i] < 0) {
                break; // runs: 1
            }
            x = x / a[i];
        }
        return x; // runs: 2
    }

    // Caught around the loop, in the same method: the sequence goes on at the handler.
    static int caughtAround(int[] a) { // activations: 12, paths: 3, items: 142, unfinished: 12
        int i = 0;
        try {
            while (true) {
                a[i] = i; // runs: 130
                i++;
            }
        } catch (ArrayIndexOutOfBoundsException e) {
            return i; // runs: 12
        }
    }

    static int caughtInOuterLoop(int[] a, int rounds) { // activations: 1, unfinished: 5
        int caught = 0;
        for (int r = 0; r < rounds; r++) {
            try {
                for (int i = 0; i < 6; i++) {
                    a[i * r] = i; // runs: 43
                }
            } catch (ArrayIndexOutOfBoundsException e) {
                caught++; // runs: 5
            }
        }
        return caught;
    }

    // The handler covers something else: a path that starts there runs into the loop.
    static int handlerBefore(String s, int n) { // activations: 4, items: 40, unfinished: 2
        int x;
        try {
            x = Integer.parseInt(s);
        } catch (NumberFormatException e) {
            x = -1;
        }
        for (int i = 0; i < n; i++) {
            x += i; // runs: 36
        }
        return x; // runs: 4
    }

    static int handlerBehind(int[] a, int n) { // activations: 12, unfinished: 4
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 130
        }
        try {
            return a[sum]; // runs: 8
        } catch (ArrayIndexOutOfBoundsException e) {
            return -sum; // runs: 4
        }
    }

    static int nested(int n, int m) { // activations: 6, paths: 7, items: 104, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++) {
                sum += i * j; // runs: 82
            }
        }
        return sum; // runs: 6
    }

    // In a loop that is no run loop: the window has other paths before each run.
    static long triangle(long[] a, int n) { // activations: 1, unfinished: 0
        long sum = 0;
        for (int i = 0; i < n; i++) {
            if (i % 3 == 0) {
                sum = Long.rotateLeft(sum, 5); // runs: 14
            }
            for (int j = 0; j < i % 19; j++) {
                sum += a[j]; // runs: 343
            }
        }
        return sum;
    }

    static int two(int n, int m) { // activations: 7, items: 80, unfinished: 0
        int i = 0;
        int sum = 0;
        for (; i < n; i++) {
            sum += i; // runs: 31
        }
        for (; i < m; i++) {
            sum -= i; // runs: 42
        }
        return sum; // runs: 7
    }

    static int atZero(int n) { // activations: 12, paths: 2, items: 131
        do {
            n -= 1; // runs: 131
        } while (n > 0);
        return n;
    }

    static int doWhile(int n) { // activations: 12, items: 131
        int bits = 0;
        do {
            bits += n & 1; // runs: 131
            n -= 1;
        } while (n > 0);
        return bits;
    }

    static int prefixes(int x, int n) { // activations: 36, items: 426, unfinished: 0
        int s;
        switch (x) {
            case 0:
                s = 5; // runs: 12
                break;
            case 1:
                s = Integer.bitCount(n); // runs: 12
                break;
            default:
                s = -n; // runs: 12
        }
        while (n > 0) {
            s += n * s; // runs: 390
            n--;
        }
        return s;
    }

    static long longs(long from, long to) { // activations: 3, items: 63, unfinished: 0
        long s = 0;
        for (long i = from; i < to; i++) {
            s ^= i; // runs: 60
        }
        return s;
    }

    // No induction that tells how many turns there are.
    static int collatz(long n) { // activations: 4, unfinished: 0
        int steps = 0;
        while ((n & n - 1) != 0) {
            n = (n >>> 1) + (n & 1) * (n + 1);
            steps++;
        }
        return steps;
    }

    static int maximum(int[] a, int n) { // activations: 12, items: 142
        int m = Integer.MIN_VALUE;
        for (int i = 0; i < n; i++) {
            m = Math.max(m, a[i]); // runs: 130
        }
        return m;
    }

    // Only the loop with no other call can be a run loop.
    static int bits(int[] a, int n) { // activations: 12, items: 142
        int m = 0;
        for (int i = 0; i < n; i++) {
            m += Integer.bitCount(a[i]); // runs: 130
        }
        return m;
    }

    static int absolutes(int[] a, int n) { // activations: 12, unfinished: 0, merged: 1
        int sum = 0;
        for (int i = 0; i < n; i++) {
            int x = a[i]; // runs: 130
            sum += x < 0 ? -x : x;
        }
        return sum;
    }

    static void clamp(int[] a, int n, int low, int high) { // activations: 12, unfinished: 0, merged: 2
        for (int i = 0; i < n; i++) {
            int x = a[i]; // runs: 130
            if (x < low) {
                x = low;
            }
            if (x > high) {
                x = high;
            }
            a[i] = x;
        }
    }

    static int largest(int[] a) { // activations: 12, unfinished: 12, merged: 1
        int m = 0;
        for (int i = 0; i < 1000; i++) {
            int x = a[i];
            if (x > m) {
                m = x;
            }
            Init.seen = m; // runs: 130
        }
        return m;
    }

    // The way loads again what the condition has loaded.
    static int loadsAgain(int[] a, int n) { // activations: 12, unfinished: 0, merged: 1
        int m = 0;
        for (int i = 0; i < n; i++) {
            if (a[i] > m) {
                m = a[i];
            }
            Init.seen = m; // runs: 130
        }
        return m;
    }

    static int labels(int n, int m) { // activations: 3, unfinished: 0
        int sum = 0;
        outer:
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++) {
                if (j * j > i + 2) {
                    continue outer;
                }
                if (sum > 60) {
                    break outer; // runs: 1
                }
                sum++;
            }
        }
        return sum; // runs: 3
    }

    static int recurse(int depth) { // activations: 20, unfinished: 0
        int sum = 0;
        for (int i = 0; i < depth; i++) {
            sum += i; // runs: 190
        }
        if (depth > 0) {
            sum += recurse(depth - 1); // runs: 19
        }
        for (int i = depth; i < 19; i++) {
            sum -= i; // runs: 190
        }
        return sum;
    }

    // Unwound by an exception with several activations in flight, some of which had runs before.
    static int dive(int depth, int[] a) { // activations: 5, unfinished: 5, items: 43
        int sum = 0;
        for (int i = 0; i < 3 * depth; i++) {
            sum += a[i]; // runs: 43
        }
        return sum + dive(depth + 1, a);
    }

    static class Init {
        static int seen;
        static final int[] SQUARES = new int[20];

        static { // activations: 2, items: 22, unfinished: 0
            for (int i = 0; i < 20; i++) {
                SQUARES[i] = i * i; // runs: 20
            }
            seen = 1;
        }
    }

    static class Box {
        final int sum;

        Box(int n) {
            int s = 0;
            for (int i = 0; i < n; i++) {
                s += i; // runs: 130
            }
            sum = s;
        }
    }

    // Compiled while it runs (on-stack replacement); then an exception ends it.
    static int hot(int n) { // activations: 1, items: 120001, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i ^ sum; // runs: 120000
        }
        return sum;
    }

    static int hotOverrun(byte[] a) { // activations: 1, items: 100000, unfinished: 1
        int i = 0;
        while (i >= 0) {
            a[i++] = 1; // runs: 100000
        }
        return i;
    }

    static int fails(Runnable job) { // activations: 67, unfinished: 67
        try {
            job.run();
            return 0; // runs: 0
        } catch (RuntimeException e) {
            return 1; // runs: 67
        }
    }

    static int eachLength() { // activations: 1
        int n = 0;
        int[] numbers = new int[100];
        double[] halves = new double[100];
        for (int i = 0; i < 100; i++) {
            numbers[i] = i * 37 % 100 - 50;
            halves[i] = i * 0.5;
        }
        for (int t : TURNS) {
            int[] a = new int[t];
            add(a, numbers, numbers);
            Node list = null;
            for (int i = 0; i < t; i++) {
                list = new Node(i, list);
            }
            Node all = list;
            n += fails(() -> overrun(a)) + fails(() -> chase(all)) + fails(() -> largest(a))
                    + fails(() -> overrunWithin(a, 100)) + fails(() -> chaseUntil(all, -1)) + caughtAround(a);
            n += (int) dot(halves, halves, t) + handlerBehind(numbers, t) + atZero(t) + doWhile(t) + new Box(t).sum;
            n += prefixes(0, t) + prefixes(1, t) + prefixes(2, t);
            n += maximum(numbers, t) + bits(numbers, t) + absolutes(numbers, t) + loadsAgain(numbers, t);
            clamp(numbers.clone(), t, -10, 20);
        }
        return n;
    }

    static void main(String[] args) throws Exception { // activations: 1
        // The witness does not see initializers that start when a field or call is resolved.
        Class.forName("hazards.RunLoops$Node");
        Class.forName("hazards.RunLoops$Init");
        Class.forName("hazards.RunLoops$Box");
        int n = eachLength();
        int[] up = new int[20];
        long[] upLong = new long[20];
        for (int i = 0; i < 20; i++) {
            up[i] = i;
            upLong[i] = i;
        }
        n += breaks(up, 0) + breaks(up, 5) + breaks(up, 19) + breaks(up, 99);
        for (long x : new long[] {0, 1, 2, 15, 16, -5}) {
            n += returns(upLong, x);
        }
        double[] ones = {1, 1, 1, 1};
        n += (int) (manyExits(ones, 2, 3) + manyExits(ones, 0, 1.2) + manyExits(ones, 0, 9) + manyExits(ones, 0, 1.6));
        n += fails(() -> throwsOut(0)) + fails(() -> throwsOut(10)) + fails(() -> throwsOut(200));
        n += divides(new int[] {2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 10) + divides(new int[] {3, 3, 3, -1}, 4);
        n += fails(() -> divides(new int[] {2, 2, 0}, 3)) + fails(() -> divides(new int[1], 1));
        Node five = null;
        for (int i = 0; i < 6; i++) {
            five = new Node(i, five);
        }
        n += chaseUntil(five, 0) + caughtInOuterLoop(new int[20], 9);
        n += handlerBefore("5", 0) + handlerBefore("x", 3) + handlerBefore("7", 16) + handlerBefore("y", 17);
        n += nested(0, 3) + nested(1, 0) + nested(3, 1) + nested(4, 2) + nested(3, 17) + nested(5, 4);
        n += (int) triangle(upLong, 40);
        n += two(0, 0) + two(3, 3) + two(0, 4) + two(4, 8) + two(2, 20) + two(17, 33) + two(5, 2);
        n += (int) (longs(0, 0) + longs(5, 20) + longs(-20, 25));
        n += collatz(1) + collatz(6) + collatz(27) + collatz(1000);
        n += labels(3, 3) + labels(0, 5) + labels(40, 20);
        n += recurse(19) + fails(() -> dive(1, new int[13])) + Init.SQUARES[4];
        n += hot(120_000) + fails(() -> hotOverrun(new byte[100_000]));
        System.out.println(n);
    }
}
