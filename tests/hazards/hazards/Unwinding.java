package hazards;

/** Exceptions that leave methods: thrown here (the path ends at the athrow) or below (the path is unfinished). */
class Unwinding {
    static int outOfCallee(int n) { // activations: 3, paths: 1, items: 1, unfinished: 2
        int doubled = n * 2;
        return check(doubled); // runs: 1
    }

    static int check(int n) { // activations: 3, paths: 2, items: 3, unfinished: 0
        if (n > 3) {
            throw new IllegalArgumentException("big"); // runs: 2
        }
        return n; // runs: 1
    }

    static int dive(int n) { // activations: 11, paths: 1, items: 1, unfinished: 10
        if (n == 0) {
            throw new IllegalStateException("bottom"); // runs: 1
        }
        return dive(n - 1) + 1; // runs: 0
    }

    static int diveAndCount(int n) { // activations: 6, unfinished: 5
        try {
            if (n == 0) {
                throw new IllegalStateException("bottom");
            }
            return diveAndCount(n - 1); // runs: 0
        } catch (IllegalStateException e) {
            Caught.count++; // runs: 6
            throw e;
        }
    }

    static class Caught {
        static int count;
    }

    static void endless(int[] cells) { // activations: 1, paths: 2, items: 16, unfinished: 1
        int i = 0;
        while (true) {
            cells[i++] = i; // runs: 16
        }
    }

    static void throwNull(RuntimeException e) { // activations: 1, paths: 1, items: 1, unfinished: 0
        throw e; // runs: 1
    }

    static void main(String[] args) { // activations: 1
        int n = 0;
        for (int i = 1; i < 4; i++) {
            try {
                n += outOfCallee(i);
            } catch (IllegalArgumentException e) {
                n += 100; // runs: 2
            }
        }
        try {
            dive(10);
        } catch (IllegalStateException e) {
            n += 1000;
        }
        try {
            diveAndCount(5);
        } catch (IllegalStateException e) {
            n += Caught.count;
        }
        try {
            endless(new int[16]);
        } catch (ArrayIndexOutOfBoundsException e) {
            n += 5000;
        }
        try {
            throwNull(null);
        } catch (NullPointerException e) {
            n += 7;
        }
        System.out.println(n);
    }
}
