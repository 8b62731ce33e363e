package sites;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Many threads allocate at the same sites at the same time. */
class Threaded {
    static class Item {
        final byte[] data = new byte[3]; // live: 40000 byte[]
    }

    static void work(int id) {
        Map<Object, Object> map = Keep.it(new HashMap<>()); // live: 8 java.util.HashMap
        for (int i = 0; i < 5000; i++) {
            Item item = new Item(); // live: 40000 sites.Threaded$Item
            map.put(item, item); // jdk: 40000 java.util.HashMap$Node, 8 java.util.HashMap$Node[]
        }
    }

    static void run() throws Exception {
        Thread[] threads = new Thread[8]; // live: 0 java.lang.Thread[]
        for (int i = 0; i < threads.length; i++) {
            int id = i;
            threads[i] = new Thread(() -> work(id));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        ExecutorService pool = Executors.newFixedThreadPool(3);
        for (int i = 0; i < 30; i++) {
            int id = i;
            pool.submit(() -> {
                Keep.it(new int[id]); // live: 30 int[]
            });
        }
        pool.shutdown();
        if (!pool.awaitTermination(60, TimeUnit.SECONDS)) {
            throw new AssertionError("the pool does not end");
        }
    }
}
