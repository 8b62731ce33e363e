package sites;

/** Exceptions, of the program and of the VM. */
class Thrown {
    static class Own extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int[] code = new int[1]; // live: 12 int[]

        Own(String message, Throwable cause) {
            super(message, cause);
        }
    }

    static class Light extends Error {
        private static final long serialVersionUID = 1;

        Light() {
            super(null, null, false, false);
        }
    }

    static void fail(int depth) {
        if (depth == 0) {
            throw Keep.it(new Own("deep", null)); // live: 4 sites.Thrown$Own
        }
        try {
            fail(depth - 1);
        } catch (Own e) {
            if (depth % 2 == 0) {
                throw Keep.it(new Own("more", e)); // live: 8 sites.Thrown$Own
            }
            throw e;
        }
    }

    static void run() {
        for (int i = 0; i < 4; i++) {
            try {
                fail(5);
            } catch (Own e) {
                Keep.it(new Light()); // live: 4 sites.Thrown$Light
            }
            try {
                Keep.it(new int[2][i - 4]);
            } catch (NegativeArraySizeException e) {
                Keep.it(e);
            }
            try {
                Object text = "text";
                Keep.it((Integer) text);
            } catch (ClassCastException e) {
                Keep.it(e);
            }
        }
    }
}
