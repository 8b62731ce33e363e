package hazards;

import java.util.concurrent.CountDownLatch;

/** Daemon threads are inside their loops when the JVM ends, and a shutdown hook runs profiled code. */
class DaemonAtExit {
    static void daemon(CountDownLatch reached, CountDownLatch never) { // activations: 3, paths: 2, items: 36, unfinished: 3
        for (int i = 0; ; i++) {
            if (i == 12) {
                reached.countDown();
                try {
                    never.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e); // runs: 0
                }
            }
        }
    }

    static void hook(int n) { // activations: 1, items: 6
        for (int i = 0; i < n; i++) {
            Thread.onSpinWait(); // runs: 5
        }
        System.out.println("hook ran");
    }

    static void main(String[] args) throws Exception { // activations: 1, unfinished: 0
        CountDownLatch reached = new CountDownLatch(3);
        CountDownLatch never = new CountDownLatch(1);
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> daemon(reached, never));
            thread.setDaemon(true);
            thread.start();
        }
        reached.await();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> hook(5)));
        System.out.println("main ends");
    }
}
