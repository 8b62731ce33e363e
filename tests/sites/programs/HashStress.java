import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.ToIntFunction;

/**
 * Random locking, waiting, hashing and collecting on many threads: an object's identity hash never changes, whoever reads it, IdentityHashMap finds what was put, monitors
 * exclude. {@code HashStress THREADS ROUNDS} or {@code HashStress THREADS SECONDSs}; prints what was wrong.
 */
public final class HashStress {
    /** An object that several threads know, some of them while its constructor still runs. */
    private static class Shared {
        static final AtomicIntegerFieldUpdater<Shared> HASH = AtomicIntegerFieldUpdater.newUpdater(Shared.class, "hash");
        volatile int hash;
        /** As all, but compiled code that calls it knows whose it is. */
        int own() {
            return super.hashCode();
        }

        /** Only changed under the monitor, by ordinary code. */
        int locked;
        final AtomicLong locks = new AtomicLong();

        Shared(AtomicReferenceArray<Shared> to, int at, int leak) {
            if (leak > 0) {
                to.set(at, this);
            }
            if (leak > 1) {
                seen(this);
            }
            if (leak > 2) {
                enter(this);
            }
        }
    }

    private static class Derived extends Shared {
        final Object[] more;

        Derived(AtomicReferenceArray<Shared> to, int at, int leak, int n) {
            super(to, at, leak);
            more = new Object[n];
        }
    }

    private static final AtomicLong WRONG = new AtomicLong();
    private static final AtomicLong LOST = new AtomicLong();
    private static final AtomicLong HASHES = new AtomicLong();

    private static final ToIntFunction<Object> REFERENCE = System::identityHashCode;
    private static final ToIntFunction<Object> VIRTUAL = Object::hashCode;
    private static final MethodHandle HANDLE;
    private static final Method REFLECTED;

    static {
        try {
            HANDLE = MethodHandles.lookup().findStatic(System.class, "identityHashCode", MethodType.methodType(int.class, Object.class));
            REFLECTED = Object.class.getMethod("hashCode");
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    /** The hash, asked for in one of the ways that there are; not all of them can be seen in bytecode. */
    private static int hash(Shared shared) {
        switch ((int) HASHES.incrementAndGet() & 63) {
            case 0: return shared.own();
            case 1: return shared.hashCode();
            case 2: return Objects.hashCode(shared);
            case 3: return REFERENCE.applyAsInt(shared);
            case 4: return VIRTUAL.applyAsInt(shared);
            case 5:
                String text = shared.toString();
                return Integer.parseInt(text.substring(text.indexOf('@') + 1), 16);
            case 6:
                try {
                    return (int) HANDLE.invokeExact((Object) shared);
                } catch (Throwable e) {
                    throw new AssertionError(e);
                }
            case 7:
                try {
                    return (int) REFLECTED.invoke(shared);
                } catch (ReflectiveOperationException e) {
                    throw new AssertionError(e);
                }
            default: return System.identityHashCode(shared);
        }
    }

    /** Asks for the hash; all must be told the same. */
    private static void seen(Shared shared) {
        int hash = hash(shared);
        if (hash == 0 || !Shared.HASH.compareAndSet(shared, 0, hash) && shared.hash != hash) {
            WRONG.incrementAndGet();
        }
    }

    private static void enter(Shared shared) {
        synchronized (shared) {
            shared.locked++;
            shared.locks.incrementAndGet();
        }
    }

    private static void checkLocks(Shared shared) {
        synchronized (shared) {
            if (shared.locked != shared.locks.get()) {
                LOST.incrementAndGet();
            }
        }
    }

    /** Objects of one thread, of many kinds; some hashed, all look-ups must be right. */
    private static final class Mine {
        final Object[] objects = new Object[400];
        final int[] hashes = new int[objects.length];
        final Map<Object, Integer> map = new IdentityHashMap<>();
        final SplittableRandom random;

        Mine(long seed) {
            random = new SplittableRandom(seed);
        }

        Object make() {
            switch (random.nextInt(8)) {
                case 0: return new Object();
                case 1: return new int[random.nextInt(20)];
                case 2: return new Object[random.nextInt(300)];
                case 3: return new byte[random.nextInt(5)].clone();
                case 4: return new StringBuilder(random.nextInt(50));
                case 5: return new long[2][random.nextInt(3)];
                case 6: return (Runnable) this::check;
                default: return "s" + random.nextInt();
            }
        }

        void check() {
            int checked = 0;
            for (int i = 0; i < objects.length; i++) {
                if (objects[i] != null && hashes[i] != 0) {
                    int hash = System.identityHashCode(objects[i]);
                    Integer found = map.get(objects[i]);
                    checked++;
                    WRONG.addAndGet(hash == hashes[i] ? 0 : 1);
                    LOST.addAndGet(found != null && found == i ? 0 : 1);
                }
            }
            HASHES.addAndGet(checked);
        }

        void step() throws InterruptedException {
            int i = random.nextInt(objects.length);
            Object object = objects[i];
            int what = object == null ? 0 : random.nextInt(6);
            switch (what) {
                case 0:
                    if (hashes[i] != 0 && map.remove(object) == null) {
                        LOST.incrementAndGet();
                    }
                    objects[i] = make();
                    hashes[i] = 0;
                    break;
                case 1:
                case 2:
                    int hash = System.identityHashCode(object);
                    HASHES.incrementAndGet();
                    if (hash == 0 || hashes[i] != 0 && hash != hashes[i]) {
                        WRONG.incrementAndGet();
                    }
                    hashes[i] = hash;
                    map.put(object, i);
                    break;
                case 3:
                    synchronized (object) {
                        int inside = System.identityHashCode(object);
                        if (hashes[i] != 0 && inside != hashes[i]) {
                            WRONG.incrementAndGet();
                        }
                        synchronized (object) {
                            object.notifyAll();
                        }
                    }
                    break;
                case 4:
                    if (random.nextInt(200) == 0) {
                        synchronized (object) {
                            object.wait(1);
                        }
                    }
                    break;
                default:
                    if (random.nextInt(2000) == 0) {
                        check();
                    }
            }
        }
    }

    private static void work(int id, int round, AtomicReferenceArray<Shared> all, Mine mine) throws InterruptedException {
        for (int i = 0; i < 1000; i++) {
            mine.step();
            int at = mine.random.nextInt(all.length());
            Shared shared = all.get(at);
            switch (mine.random.nextInt(10)) {
                case 0:
                    int leak = mine.random.nextInt(4);
                    boolean derived = mine.random.nextBoolean();
                    Shared made = derived ? new Derived(all, at, leak, i % 7) : new Shared(all, at, leak);
                    seen(made);
                    all.set(at, made);
                    break;
                case 1:
                case 2:
                case 3:
                    seen(shared);
                    break;
                case 4:
                    checkLocks(shared);
                    break;
                case 5:
                    synchronized (shared) {
                        seen(shared);
                    }
                    break;
                default:
                    enter(shared);
            }
        }
        if (round % 50 == id) {
            System.gc();
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        boolean timed = args[1].endsWith("s");
        long limit = Long.parseLong(timed ? args[1].substring(0, args[1].length() - 1) : args[1]);
        long end = System.nanoTime() + limit * 1_000_000_000;
        AtomicReferenceArray<Shared> all = new AtomicReferenceArray<>(64);
        for (int i = 0; i < all.length(); i++) {
            all.set(i, new Shared(all, i, 0));
        }
        Thread[] running = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int id = t;
            running[t] = new Thread(() -> {
                Mine mine = new Mine(id * 7919L);
                try {
                    for (int round = 0; timed ? System.nanoTime() < end : round < limit; round++) {
                        work(id, round, all, mine);
                    }
                    mine.check();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
            running[t].setUncaughtExceptionHandler((thread, e) -> {
                e.printStackTrace();
                LOST.incrementAndGet();
            });
            running[t].start();
        }
        for (Thread thread : running) {
            thread.join();
        }
        for (int i = 0; i < all.length(); i++) {
            seen(all.get(i));
            checkLocks(all.get(i));
        }
        System.out.println("wrong " + WRONG + " lost " + LOST + " of " + HASHES + " hashes");
        System.exit(WRONG.get() + LOST.get() == 0 ? 0 : 1);
    }
}
