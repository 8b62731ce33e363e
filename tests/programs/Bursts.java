import java.lang.reflect.Method;

/**
 * Methods of all kinds that burst mode treats differently, on activations of equal and of very unequal sizes: {@code Bursts TURNS}, or
 * {@code Bursts TURNS virtual} on virtual threads. Does the same each time.
 */
public final class Bursts {
    public static void main(String[] args) throws Exception {
        int turns = Integer.parseInt(args[0]);
        if (args.length == 1) {
            System.out.println(work(0, turns));
            return;
        }
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] threads = new Thread[8];
        long[] sums = new long[threads.length];
        for (int t = 0; t < threads.length; t++) {
            int n = t;
            threads[t] = (Thread) start.invoke(null, (Runnable) () -> {
                for (int part = 0; part < 10; part++) {
                    sums[n] += work(turns / 80 * part, turns / 80);
                    Thread.yield();
                }
            });
        }
        long sum = 0;
        for (int t = 0; t < threads.length; t++) {
            threads[t].join();
            sum += sums[t];
        }
        System.out.println(sum);
    }

    static long work(int from, int turns) {
        long sum = 0;
        for (int i = from; i < from + turns; i++) {
            sum += leaf(i) + even(i) + uneven(i) + nested(i) + caught(i) + many(i);
        }
        return sum;
    }

    /** No loop: exact. */
    static int leaf(int i) {
        return i % 3 == 0 ? helper(i) : i % 5 == 0 ? helper(i + 1) : -i;
    }

    static int helper(int i) {
        return i ^ 5;
    }

    /** Always eight turns. */
    static int even(int i) {
        int sum = 0;
        for (int j = 0; j < 8; j++) {
            if ((i + j) % 3 == 0) {
                sum += helper(j);
            } else {
                sum -= j;
            }
        }
        return sum;
    }

    /** Mostly no turns or a few, now and then some hundred. */
    static int uneven(int i) {
        int turns = i % 97 == 0 ? 300 : i % 11 == 0 ? 40 : i % 4;
        int sum = 0;
        for (int j = 0; j < turns; j++) {
            if ((j & 3) == 0) {
                sum += helper(j);
            } else if (j % 7 == 1) {
                sum ^= helper(i);
            } else {
                sum -= j;
            }
        }
        return sum;
    }

    /** A loop with one way round within another one. */
    static int nested(int i) {
        int sum = 0;
        for (int j = 0; j < i % 5; j++) {
            for (int l = 0; l < (i + j) % 9; l++) {
                sum += l;
            }
            if (sum > 50) {
                sum -= helper(sum);
            }
        }
        return sum;
    }

    static int caught(int i) {
        int sum = 0;
        for (int j = 0; j < 3; j++) {
            try {
                sum += thrower(i + j);
            } catch (IllegalStateException e) {
                sum -= 2;
            }
        }
        return sum;
    }

    private static final IllegalStateException THROWN = new IllegalStateException();

    static int thrower(int i) {
        if (i % 4 == 1) {
            throw THROWN;
        }
        return i;
    }

    /** More paths than a dense row holds. */
    static int many(int i) {
        int sum = 0;
        for (int j = 0; j < 4; j++) {
            int x = i * 7 + j * 3;
            if ((x & 1) != 0) {
                sum += helper(1);
            }
            if ((x & 2) != 0) {
                sum += helper(2);
            }
            if ((x & 4) != 0) {
                sum += helper(3);
            }
            if ((x & 8) != 0) {
                sum += helper(4);
            }
            if ((x & 16) != 0) {
                sum += helper(5);
            }
        }
        return sum;
    }
}
