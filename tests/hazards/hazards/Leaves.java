package hazards;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;
import tools.Asm;
import tools.Loader;

/**
 * Methods without loops, whose finished paths the profiler counts at fixed places: with handlers, throws and switches; with too many paths for
 * that; with more places together than the first piece of memory holds. And their neighbours that emit more than one path.
 */
class Leaves {
    static int state;

    static int parse(String s) { // activations: 4, paths: 2, items: 4, unfinished: 1
        try {
            return Integer.parseInt(s); // runs: 3
        } catch (NumberFormatException e) {
            return -1; // runs: 1
        }
    }

    static int throwsOut(int n) { // activations: 5, paths: 3, items: 5, unfinished: 0
        if (n < 0) {
            throw new IllegalArgumentException("negative"); // runs: 2
        } else if (n > 10) {
            throw new IllegalStateException("large"); // runs: 1
        }
        return n; // runs: 2
    }

    static int check(int n) { // unfinished: 0, paths: 2
        if (n > 3) {
            throw new IllegalArgumentException("big");
        }
        return n;
    }

    static int calleeThrows(int n) { // activations: 5, paths: 1, items: 2, unfinished: 3
        return check(n) > 4 ? 1 : 2; // runs: 2
    }

    // Two paths an activation where it throws: up to the athrow, and from the handler.
    static int throwsToItself(int n) { // activations: 5, paths: 3, items: 7, unfinished: 0
        try {
            if (n > 2) {
                throw new IllegalStateException("caught below"); // runs: 2
            }
            return n; // runs: 3
        } catch (IllegalStateException e) {
            return -n; // runs: 2
        }
    }

    // The handler covers the athrow but does not catch it.
    static int throwsPastItself(int n) { // activations: 4, paths: 2, items: 4, unfinished: 0
        try {
            if (n > 2) {
                throw new IllegalStateException("caught elsewhere"); // runs: 2
            }
            return n; // runs: 2
        } catch (IllegalArgumentException e) {
            return -n; // runs: 0
        }
    }

    static int lastly(int n) { // activations: 4, items: 3, unfinished: 3
        try {
            return check(n);
        } finally {
            state += n > 0 ? 3 : check(3 - n) % 2;
        }
    }

    static int locked(Object lock, int n) { // activations: 4, items: 4, unfinished: 1
        synchronized (lock) {
            return n > 1 ? check(n) : n;
        }
    }

    static synchronized int lockedWhole(int n) { // activations: 3, items: 2, unfinished: 1
        return n > 1 ? check(n) : n;
    }

    static int fib(int n) { // activations: 177, paths: 2, items: 177, unfinished: 0
        if (n < 2) {
            return n; // runs: 89
        }
        return fib(n - 1) + fib(n - 2); // runs: 88
    }

    static int deep(int n) { // activations: 31, paths: 1, items: 1, unfinished: 30
        if (n == 0) {
            throw new IllegalStateException("bottom"); // runs: 1
        }
        return deep(n - 1) + 1; // runs: 0
    }

    static void never(int n) { // activations: 3, paths: 0, unfinished: 3
        throwsNull(n);
        if (n > 0) {
            state++; // runs: 0
        }
    }

    static void throwsNull(int n) { // activations: 3, paths: 1, items: 3
        throw null; // runs: 3
    }

    static class Point {
        final int x;

        // With the 100 of the classes below.
        Point(int x) { // activations: 103, unfinished: 1
            if (x < 0) {
                this.x = check(-10 * x);
            } else {
                this.x = x > 5 ? 5 : Integer.bitCount(x); // runs: 2
            }
        }
    }

    // 33 paths: more than a dense row has.
    static int manyWays(int n) { // activations: 40, paths: 33, items: 40, unfinished: 0
        switch (n) {
            case 0:
                return 0 + state; // runs: 1
            case 1:
                return 7 + state; // runs: 1
            case 2:
                return 14 + state; // runs: 1
            case 3:
                return 21 + state; // runs: 1
            case 4:
                return 28 + state; // runs: 1
            case 5:
                return 3 + state; // runs: 1
            case 6:
                return 10 + state; // runs: 1
            case 7:
                return 17 + state; // runs: 1
            case 8:
                return 24 + state; // runs: 1
            case 9:
                return 31 + state; // runs: 1
            case 10:
                return 6 + state; // runs: 1
            case 11:
                return 13 + state; // runs: 1
            case 12:
                return 20 + state; // runs: 1
            case 13:
                return 27 + state; // runs: 1
            case 14:
                return 2 + state; // runs: 1
            case 15:
                return 9 + state; // runs: 1
            case 16:
                return 16 + state; // runs: 1
            case 17:
                return 23 + state; // runs: 1
            case 18:
                return 30 + state; // runs: 1
            case 19:
                return 5 + state; // runs: 1
            case 20:
                return 12 + state; // runs: 1
            case 21:
                return 19 + state; // runs: 1
            case 22:
                return 26 + state; // runs: 1
            case 23:
                return 1 + state; // runs: 1
            case 24:
                return 8 + state; // runs: 1
            case 25:
                return 15 + state; // runs: 1
            case 26:
                return 22 + state; // runs: 1
            case 27:
                return 29 + state; // runs: 1
            case 28:
                return 4 + state; // runs: 1
            case 29:
                return 11 + state; // runs: 1
            case 30:
                return 18 + state; // runs: 1
            case 31:
                return 25 + state; // runs: 1
            default:
                return n; // runs: 8
        }
    }

    // 72 paths: more than have fixed places.
    static int tooManyWays(int n, int m) { // activations: 60, paths: 60, items: 60, unfinished: 0
        int x;
        switch (n) {
            case 0:
                x = state + 0;
                break;
            case 1:
                x = state + 1;
                break;
            case 2:
                x = state + 2;
                break;
            case 3:
                x = state + 3;
                break;
            case 4:
                x = state + 4;
                break;
            case 5:
                x = state + 5;
                break;
            case 6:
                x = state + 6;
                break;
            case 7:
                x = state + 7;
                break;
            default:
                x = n; // runs: 6
        }
        switch (m) {
            case 0:
                return x + 0; // runs: 9
            case 1:
                return x + 1; // runs: 9
            case 2:
                return x + 2; // runs: 9
            case 3:
                return x + 3; // runs: 9
            case 4:
                return x + 4; // runs: 8
            case 5:
                return x + 5; // runs: 8
            case 6:
                return x + 6; // runs: 8
            default:
                return x; // runs: 0
        }
    }

    static int fails(Runnable job) { // activations: 18, items: 18
        try {
            job.run();
            return 0; // runs: 0
        } catch (RuntimeException e) {
            return 1; // runs: 18
        }
    }

    // 100 classes of 61 paths each: together more than the first pieces of memory hold. They differ in a digit or two of their names.
    // expect applyAsInt: activations: 12400, items: 12400, unfinished: 0
    static List<IntUnaryOperator> operators() throws ReflectiveOperationException { // activations: 1
        Asm asm = Loader.operator(49, "hazards.Leaf##", "Leaves.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 2);
        String[] labels = new String[60];
        for (int i = 0; i < 60; i++) {
            labels[i] = "case" + i;
        }
        code.op(27).tableswitch(0, "other", labels);
        for (int i = 0; i < 60; i++) {
            code.label(labels[i]).op(16, i * 7 % 100, 172);
        }
        code.label("other").op(27, 172);
        byte[] bytes = asm.build();
        int at = 0;
        while (bytes[at] != '#' || bytes[at + 1] != '#') {
            at++;
        }
        Loader loader = new Loader();
        List<IntUnaryOperator> operators = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            bytes[at] = (byte) ('0' + i / 10);
            bytes[at + 1] = (byte) ('0' + i % 10);
            Class<?> type = loader.define("hazards.Leaf" + i / 10 + i % 10, bytes);
            operators.add((IntUnaryOperator) type.getDeclaredConstructor().newInstance());
        }
        return operators;
    }

    static void main(String[] args) throws Exception { // activations: 1
        // The witness does not see initializers that start when a field or call is resolved.
        Class.forName("hazards.Leaves$Point");
        int n = parse("1") + parse("x") + parse("22") + parse("333");
        n += throwsOut(1) + throwsOut(10) + fails(() -> throwsOut(-1)) + fails(() -> throwsOut(11)) + fails(() -> throwsOut(-9));
        n += calleeThrows(1) + calleeThrows(2);
        n += fails(() -> calleeThrows(5)) + fails(() -> calleeThrows(6)) + fails(() -> calleeThrows(7));
        for (int i = 0; i < 5; i++) {
            n += throwsToItself(i);
        }
        n += throwsPastItself(1) + throwsPastItself(2) + fails(() -> throwsPastItself(3)) + fails(() -> throwsPastItself(4));
        n += lastly(1) + fails(() -> lastly(5)) + fails(() -> lastly(-1)) + fails(() -> lastly(7));
        n += locked("a", 0) + locked("a", 1) + locked("a", 2) + fails(() -> locked("a", 5));
        n += lockedWhole(0) + lockedWhole(2) + fails(() -> lockedWhole(5));
        n += fib(10) + fails(() -> deep(30)) + fails(() -> never(0)) + fails(() -> never(1)) + fails(() -> never(2));
        n += new Point(3).x + new Point(9).x + fails(() -> new Point(-1));
        for (int i = 0; i < 40; i++) {
            n += manyWays(i);
        }
        for (int i = 0; i < 60; i++) {
            n += tooManyWays(i % 9, i % 7);
        }
        List<IntUnaryOperator> operators = operators();
        int[] sums = new int[4];
        Thread[] threads = new Thread[4];
        for (int t = 0; t < 4; t++) {
            int own = t;
            threads[t] = new Thread(() -> {
                for (IntUnaryOperator operator : operators) {
                    for (int i = 0; i < 31; i++) {
                        sums[own] += operator.applyAsInt(own % 2 * 30 + i);
                    }
                }
            });
            threads[t].start();
        }
        for (int t = 0; t < 4; t++) {
            threads[t].join();
            n += sums[t];
        }
        System.out.println(n);
    }
}
