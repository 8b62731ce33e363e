import java.util.concurrent.CountDownLatch;

/**
 * Runs until it is killed: {@code Busy THREADS}. Prints {@code ready} once every thread has gone round its loop, then one line each
 * time a thread has done another million rounds and a hundred thousand calls of a method without a loop, so that a killer can choose its
 * moment by what it has read.
 */
public final class Busy {
    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[0]);
        CountDownLatch started = new CountDownLatch(threads);
        for (int t = 0; t < threads; t++) {
            int n = t;
            new Thread(() -> {
                leaves(step(n, 1000), 1000);
                started.countDown();
                for (int round = 1; ; round++) {
                    leaves(step(n + round, 1_000_000), 100_000);
                    System.out.println("round " + round);
                }
            }).start();
        }
        started.await();
        System.out.println("ready");
    }

    static int step(int seed, int times) {
        int x = seed;
        for (int i = 0; i < times; i++) {
            if ((x & 1) == 0) {
                x = x >>> 1;
            } else if (x % 3 == 0) {
                x = x * 5 + 1;
            } else {
                x = x * 3 + i;
            }
        }
        return x;
    }

    static void leaves(int seed, int times) {
        int x = seed;
        for (int i = 0; i < times; i++) {
            x = leaf(x + i);
        }
    }

    static int leaf(int x) {
        if (x % 3 == 0) {
            return Integer.reverse(x);
        }
        return (x & 1) == 0 ? Integer.bitCount(x) : ~x;
    }
}
