package hazards;

/** Handlers: a path starts at the handler, the path the exception interrupts is unfinished. */
class Catching {
    static int parseAll(String[] words) { // activations: 1, items: 6, unfinished: 2
        int sum = 0;
        for (String word : words) {
            try {
                sum += Integer.parseInt(word);
            } catch (NumberFormatException e) {
                sum -= 1; // runs: 2
            }
        }
        return sum; // runs: 1
    }

    static int throwHere(int n) { // activations: 3, paths: 3, items: 4, unfinished: 0
        try {
            if (n > 1) {
                throw new IllegalStateException("mine"); // runs: 1
            }
            return n; // runs: 2
        } catch (IllegalStateException e) {
            return -n; // runs: 1
        }
    }

    // The handler is searched after the entry's code, so its jump back to the loop head is no back edge: handler and next try are one path.
    static int retry(int failures) { // activations: 1, items: 1, unfinished: 4
        int tries = 0;
        while (true) {
            try {
                return fail(tries, failures); // runs: 1
            } catch (IllegalArgumentException e) {
                tries++; // runs: 1
            }
        }
    }

    static int fail(int tries, int failures) { // activations: 5, paths: 2, items: 5, unfinished: 0
        if (tries < failures) {
            throw new IllegalArgumentException("not yet"); // runs: 4
        }
        return tries; // runs: 1
    }

    static int choose(Object o) { // activations: 4, unfinished: 5
        try {
            return ((String) o).length() / (o.hashCode() - o.hashCode()); // runs: 0
        } catch (ArithmeticException e) {
            return 1; // runs: 1
        } catch (ClassCastException e) {
            return 2; // runs: 1
        } catch (NullPointerException | IndexOutOfBoundsException e) {
            return 3; // runs: 1
        } finally {
            hook(o);
        }
    }

    static void hook(Object o) { // activations: 4, paths: 2
        if (o instanceof Long) {
            throw new IllegalStateException("out of finally"); // runs: 1
        }
    }

    static int rethrow(int n) { // activations: 2, unfinished: 1
        try {
            try {
                return 10 / n; // runs: 1
            } catch (ArithmeticException e) {
                throw new IllegalStateException(e); // runs: 1
            }
        } catch (IllegalStateException e) {
            return -1; // runs: 1
        }
    }

    static void main(String[] args) { // activations: 1
        int n = parseAll(new String[] {"1", "x", "2", "", "3"});
        n += throwHere(0) + throwHere(1) + throwHere(2) + retry(4) + choose("a") + choose(1) + choose(null);
        try {
            n += choose(1L);
        } catch (IllegalStateException e) {
            n += 1000;
        }
        System.out.println(n + rethrow(2) + rethrow(0));
    }
}
