package hazards;

/** Recursion: each activation has a window of its own, whatever its callees of the same method do in between. */
class Recursion {
    static int fib(int n) { // activations: 177, paths: 2, items: 177, unfinished: 0
        if (n < 2) {
            return n; // runs: 89
        }
        return fib(n - 1) + fib(n - 2); // runs: 88
    }

    static boolean even(int n) { // activations: 11, paths: 2, items: 11
        return n == 0 || odd(n - 1);
    }

    static boolean odd(int n) { // activations: 10, paths: 1, items: 10
        return n != 0 && even(n - 1);
    }

    static int loopAndRecurse(int n) { // activations: 16, paths: 4, items: 31, unfinished: 0
        int sum = n;
        for (int i = 0; i < n; i++) {
            sum += loopAndRecurse(i); // runs: 15
        }
        return sum; // runs: 16
    }

    static int deep(int n) { // activations: 2001, paths: 2, items: 2001
        return n == 0 ? 0 : 1 + deep(n - 1);
    }

    static void main(String[] args) { // activations: 1
        System.out.println(fib(10) + loopAndRecurse(4) + deep(2000) + " " + even(20));
    }
}
