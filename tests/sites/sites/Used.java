package sites;

import java.util.IdentityHashMap;
import java.util.Map;

/** Marked objects are locked, waited on, notified, hashed and moved: nothing of that loses the mark, and hashes do not change. */
class Used {
    static class Plain {
    }

    static class Hashed {
        final int[] first = new int[1]; // live: 400 int[]
    }

    static class Locked {
        int turns;
    }

    static class Waited {
        boolean told;
    }

    static class Contended {
        int turns;
    }

    static void hash() {
        Hashed[] all = new Hashed[400]; // live: 1 sites.Used$Hashed[]
        for (int i = 0; i < all.length; i++) {
            all[i] = new Hashed(); // live: 400 sites.Used$Hashed
            if (i % 2 == 0) {
                all[i].first[0] = System.identityHashCode(all[i]);
            }
        }
        System.gc();
        Map<Hashed, Integer> map = new IdentityHashMap<>();
        for (int i = 0; i < all.length; i++) {
            int hash = System.identityHashCode(all[i]);
            if (hash == 0 || i % 2 == 0 && hash != all[i].first[0]) {
                throw new AssertionError("hash " + hash);
            }
            map.put(all[i], i);
        }
        System.gc();
        for (int i = 0; i < all.length; i++) {
            if (map.get(all[i]) != i) {
                throw new AssertionError("lost " + i);
            }
        }
        Keep.it(all);
    }

    static void lock() {
        for (int i = 0; i < 50; i++) {
            Locked locked = Keep.it(new Locked()); // live: 50 sites.Used$Locked
            int hash = i % 2 == 0 ? System.identityHashCode(locked) : 0;
            synchronized (locked) {
                synchronized (locked) {
                    locked.turns += System.identityHashCode(locked) == hash ? 0 : 1;
                }
            }
            if (hash != 0 && (System.identityHashCode(locked) != hash || locked.turns != 0)) {
                throw new AssertionError("the hash has changed");
            }
        }
    }

    static void waits() throws InterruptedException {
        for (int i = 0; i < 20; i++) {
            Waited waited = Keep.it(new Waited()); // live: 20 sites.Used$Waited
            Thread thread = new Thread(() -> {
                synchronized (waited) {
                    waited.told = true;
                    waited.notifyAll();
                }
            });
            int hash = System.identityHashCode(waited);
            synchronized (waited) {
                thread.start();
                while (!waited.told) {
                    waited.wait();
                }
            }
            thread.join();
            if (System.identityHashCode(waited) != hash) {
                throw new AssertionError("the hash has changed");
            }
        }
    }

    static void contend() throws InterruptedException {
        Contended[] all = new Contended[8]; // live: 1 sites.Used$Contended[]
        for (int i = 0; i < all.length; i++) {
            all[i] = new Contended(); // live: 8 sites.Used$Contended
        }
        Thread[] threads = new Thread[4]; // live: 0 java.lang.Thread[]
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                for (int i = 0; i < 40_000; i++) {
                    synchronized (all[i % all.length]) {
                        all[i % all.length].turns++;
                    }
                }
            });
            threads[t].start();
        }
        int turns = 0;
        for (Thread thread : threads) {
            thread.join();
        }
        for (Contended one : Keep.it(all)) {
            turns += one.turns;
        }
        if (turns != 160_000) {
            throw new AssertionError("turns lost: " + turns);
        }
    }

    static void moved() {
        for (int i = 0; i < 1000; i++) {
            Keep.it(new Plain()); // live: 1000 sites.Used$Plain
            if (i % 100 == 0) {
                System.gc();
            }
            byte[] garbage = new byte[1 << 15]; // live: 0 byte[]
            garbage[i] = 1;
        }
    }

    static void run() throws Exception {
        hash();
        lock();
        waits();
        contend();
        moved();
    }
}
