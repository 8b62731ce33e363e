package hazards;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Many threads that start and end, platform and virtual ones: the counts at fixed places and of runs move on with the memory of a dead
 * thread, and are shared where threads change carriers. Before JDK 21 platform threads stand in for virtual ones.
 */
class LeafThreads {
    static int leaf(int id) { // activations: 12000, paths: 4, items: 12000, unfinished: 0
        if (id % 2 == 0) {
            return id % 3 == 0 ? Integer.bitCount(id) : Integer.reverse(id); // runs: 6000
        }
        return id % 3 == 0 ? Integer.highestOneBit(id) : Integer.lowestOneBit(id); // runs: 6000
    }

    static int fails(int id) { // activations: 1200, items: 960, unfinished: 240
        if (id % 5 == 0) {
            return 1 / (id % 5); // runs: 0
        }
        return id % 5 == 1 ? Integer.reverse(id) : id; // runs: 960
    }

    static int sum(int[] a, int n) { // activations: 1200, items: 12600, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += a[i]; // runs: 11400
        }
        return sum;
    }

    static int work(int id, int[] numbers, boolean pauses) { // activations: 600, unfinished: 240
        int sum = 0;
        for (int i = 0; i < 20; i++) {
            sum += leaf(id * 20 + i); // runs: 11760
            if (i % 10 == 9) {
                sum += sum(numbers, (id + i) % 20);
                if (pauses) {
                    LockSupport.parkNanos(1000);
                }
                try {
                    sum += fails(id * 2 + i / 10);
                } catch (ArithmeticException e) {
                    sum--; // runs: 240
                }
            }
        }
        return sum;
    }

    static void start(Runnable job) throws Exception { // activations: 200
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class.forName("java.lang.Thread$Builder").getMethod("start", Runnable.class).invoke(builder, job);
        } catch (NoSuchMethodException e) {
            new Thread(job).start();
        }
    }

    static void main(String[] args) throws Exception { // activations: 1
        int[] numbers = new int[20];
        int[] sums = new int[600];
        for (int wave = 0; wave < 40; wave++) {
            Thread[] threads = new Thread[10];
            for (int i = 0; i < 10; i++) {
                int id = wave * 10 + i;
                threads[i] = new Thread(() -> sums[id] = work(id, numbers, false));
                threads[i].start(); // runs: 400
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        CountDownLatch done = new CountDownLatch(200);
        for (int i = 400; i < 600; i++) {
            int id = i;
            start(() -> {
                sums[id] = work(id, numbers, true);
                done.countDown();
            });
        }
        done.await();
        long sum = 0;
        for (int s : sums) {
            sum += s;
        }
        System.out.println(sum);
    }
}
