package sites;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads that change carriers; before JDK 21 platform threads. What the JDK allocates there has the right line or none. */
class Virtual {
    static class Item {
    }

    static void work() {
        Map<Object, Object> map = Keep.it(new HashMap<>()); // live: 200 java.util.HashMap
        for (int i = 0; i < 20; i++) {
            Item item = new Item(); // live: 4000 sites.Virtual$Item
            map.put(item, item); // upto: 4000 java.util.HashMap$Node
            if (i % 5 == 0) {
                LockSupport.parkNanos(1000);
            } else {
                Thread.yield();
            }
        }
    }

    static Thread start(Runnable job) throws Exception {
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

    static void run() throws Exception {
        Thread[] threads = new Thread[200]; // live: 0 java.lang.Thread[]
        for (int i = 0; i < threads.length; i++) {
            threads[i] = start(Virtual::work); // live: 1 sites.Virtual$$Lambda
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
