package hazards;

import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads that park in loops and change carriers; before JDK 21 platform threads do the same. */
class VirtualThreads {
    static int work(int id) { // activations: 200, items: 2200, unfinished: 0
        int sum = 0;
        for (int i = 0; i < 10; i++) {
            if ((id + i) % 4 == 0) {
                LockSupport.parkNanos(1000); // runs: 500
            } else if ((id + i) % 4 == 1) {
                Thread.yield(); // runs: 500
            }
            sum += i; // runs: 2000
        }
        return sum;
    }

    static int recurse(int depth) { // activations: 2200, paths: 2
        if (depth == 0) {
            Thread.yield(); // runs: 200
            return 0;
        }
        return 1 + recurse(depth - 1); // runs: 2000
    }

    static Thread start(Runnable job) throws Exception { // activations: 200
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Method start = Class.forName("java.lang.Thread$Builder").getMethod("start", Runnable.class);
            return (Thread) start.invoke(builder, job);
        } catch (NoSuchMethodException e) {
            Thread thread = new Thread(job);
            thread.start();
            return thread;
        }
    }

    static void main(String[] args) throws Exception { // activations: 1
        CountDownLatch done = new CountDownLatch(200);
        for (int i = 0; i < 200; i++) {
            int id = i;
            start(() -> {
                work(id);
                recurse(10);
                done.countDown(); // runs: 200
            });
        }
        done.await();
        System.out.println("done");
    }
}
