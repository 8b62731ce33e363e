package sites;

import java.util.concurrent.CountDownLatch;

/**
 * Constructors that let `this` out. An object that was hashed or whose monitor is in use before its constructor returns cannot get a mark: it is counted as
 * unknown, and its hash and its monitor stay right. All others are marked.
 */
class Leaks {
    static Object out;
    static int sum;

    static class Stored {
        Stored() {
            out = this;
        }
    }

    static class Printed {
        Printed(StringBuilder to) {
            to.append(this);
        }

        @Override
        public String toString() {
            return "";
        }
    }

    static class Hashed {
        final int hash = System.identityHashCode(this);

        void check() {
            if (hash != System.identityHashCode(this) || hash != hashCode()) {
                throw new AssertionError("the hash has changed");
            }
        }
    }

    static class Locked {
        Locked() {
            synchronized (this) {
                sum++;
            }
        }
    }

    static class Waited {
        Waited() throws InterruptedException {
            synchronized (this) {
                wait(1);
            }
        }
    }

    /** Another thread hashes it while the constructor runs. */
    static class HashedElsewhere {
        int hash;

        HashedElsewhere() throws InterruptedException {
            Thread thread = new Thread(() -> hash = System.identityHashCode(this));
            thread.start();
            thread.join();
        }
    }

    /** Another thread holds its monitor while the constructor returns. */
    static class LockedElsewhere {
        final CountDownLatch held = new CountDownLatch(1); // live: 4 java.util.concurrent.CountDownLatch
        final CountDownLatch release = new CountDownLatch(1); // live: 4 java.util.concurrent.CountDownLatch
        final Thread thread = new Thread(this::hold); // live: 4 java.lang.Thread; upto: 4 sites.Leaks$LockedElsewhere$$Lambda

        LockedElsewhere() throws InterruptedException {
            thread.start();
            held.await();
        }

        synchronized void hold() {
            held.countDown();
            try {
                release.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        void end() throws InterruptedException {
            release.countDown();
            thread.join();
            synchronized (this) {
                sum++;
            }
        }
    }

    static class HashedAbove extends Hashed {
    }

    static class Dies {
        Dies(boolean dies) {
            Keep.it(this);
            if (dies) {
                throw new IllegalArgumentException();
            }
        }
    }

    static class Finalizable {
        @Override
        @SuppressWarnings("removal")
        protected void finalize() {
            sum++;
        }
    }

    // unknown: 8 sites.Leaks$Hashed, 3 sites.Leaks$HashedAbove, 4 sites.Leaks$HashedElsewhere, 2 sites.Leaks$Dies
    // either: 4 sites.Leaks$LockedElsewhere, 3 sites.Leaks$Waited
    static void run() throws Exception {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            Keep.it(new Stored()); // live: 8 sites.Leaks$Stored
            Keep.it(new Printed(text)); // live: 8 sites.Leaks$Printed
            Keep.it(new Locked()); // live: 8 sites.Leaks$Locked
            Hashed hashed = new Hashed(); // live: 0 sites.Leaks$Hashed
            hashed.check();
            Keep.it(hashed);
        }
        for (int i = 0; i < 3; i++) {
            HashedAbove hashed = new HashedAbove();
            Keep.it(hashed);
            System.gc();
            hashed.check();
            Keep.it(new Waited()); // upto: 3 sites.Leaks$Waited
        }
        for (int i = 0; i < 4; i++) {
            HashedElsewhere hashed = new HashedElsewhere();
            if (hashed.hash != System.identityHashCode(hashed)) {
                throw new AssertionError("the hash has changed");
            }
            Keep.it(hashed);
            LockedElsewhere locked = new LockedElsewhere(); // upto: 4 sites.Leaks$LockedElsewhere
            locked.end();
            Keep.it(locked);
        }
        for (int i = 0; i < 5; i++) {
            try {
                Keep.it(new Dies(i % 2 == 1).hashCode()); // live: 3 sites.Leaks$Dies, 3 java.lang.Integer
            } catch (IllegalArgumentException e) {
                sum++;
            }
            Keep.it(new Finalizable()); // live: 5 sites.Leaks$Finalizable
        }
        for (int i = 0; i < 100; i++) {
            new Finalizable();
        }
    }
}
