package hazards;

/** try/finally: javac copies the finally block to every way out and covers the copies with catch-all handlers. */
class Finally {
    static int depth;

    static int plain(int x) { // activations: 2, unfinished: 1
        depth++;
        try {
            return 100 / x; // runs: 1
        } finally {
            depth--; // runs: 2
        }
    }

    static int override(int x) { // activations: 2, unfinished: 1
        try {
            return 100 / x; // runs: 1
        } finally {
            if (x == 0) {
                return -1; // runs: 1
            }
        }
    }

    static int nested(int x) { // activations: 4, unfinished: 2
        StringBuilder log = new StringBuilder();
        try {
            try {
                log.append(10 / x);
                if (x == 2) {
                    throw new IllegalStateException("two");
                }
            } finally {
                log.append(10 / (x - 1));
            }
        } catch (ArithmeticException e) {
            log.append("a"); // runs: 2
        } catch (IllegalStateException e) {
            log.append("i"); // runs: 1
        } finally {
            log.append("f"); // runs: 4
        }
        return log.length();
    }

    static int inLoop(int n) { // activations: 1, unfinished: 0
        int done = 0;
        for (int i = 0; i < n; i++) {
            try {
                if (i == 2) {
                    continue; // runs: 1
                }
                if (i == 5) {
                    break; // runs: 1
                }
                done += i; // runs: 4
            } finally {
                done += 100; // runs: 6
            }
        }
        return done;
    }

    static int resources(int n) { // activations: 2, unfinished: 1
        int sum = 0;
        try (Res a = new Res(); Res b = new Res()) {
            sum += 12 / n;
        } catch (ArithmeticException e) {
            sum = -1; // runs: 1
        }
        return sum; // runs: 2
    }

    static class Res implements AutoCloseable {
        @Override
        public void close() { // activations: 4, paths: 1, items: 4
        }
    }

    static void main(String[] args) { // activations: 1
        int n = plain(5) + override(4) + override(0);
        try {
            n += plain(0);
        } catch (ArithmeticException e) {
            n += depth;
        }
        System.out.println(n + nested(0) + nested(1) + nested(2) + nested(3) + inLoop(8) + resources(3) + resources(0));
    }
}
