package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * What code calls that the sites lens has instrumented: it writes into the header of a new object who allocated it. Lives in java.base
 * (package java.lang: visible from every class loader), works on the agent's tables by address (crates/agent/src/sites/tables.rs).
 *
 * Spare mode: the header word of an object that is neither locked nor hashed gets the owner's index in the bits above the identity hash, and a
 * random hash that is not 0, in one store: HotSpot keeps such a header like that of any hashed object. What is locked, hashed or marked already is left as it is.
 *
 * Dynamic mode (compact headers have no other room): the hash itself is the owner's current number and random bits (docs/sites-numbering.md).
 *
 * A plain store is right only where no other thread can know the object yet; elsewhere it would undo a lock that another thread has just taken.
 *
 * What instrumented code calls is at most 35 bytes of bytecode with more than 5 stack slots, as in {@link BorescopeProbe}: C2 inlines it where it is hot,
 * C1 nowhere. Nothing here may call a class that could be instrumented itself (crates/agent/src/sites/jdk.rs, NEVER).
 */
public final class BorescopeSites implements Runnable {
    static {
        link();
    }

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = U.objectFieldOffset(Thread.class, "tid");

    private static final long THREADS = config(0);     // by thread id: {u32 call, u32 thread id, u64 random state}
    private static final long THREAD_MASK = config(1);
    private static final long CACHE = config(2);       // by site of the JDK: {u32 owner, u32 call + 1} that was found last
    private static final long OWNERS = config(3);      // hash table of {u32 call, u32 site, u32 owner, u32 0}
    private static final long OWNER_MASK = config(4);
    private static final long PLAIN_OWNERS = config(5); // by owner, a byte: not 0 = nobody else can know the object yet
    private static final long PLAIN_SITES = config(6); // as well, by site of the JDK
    private static final int HASH_SHIFT = (int) config(7);
    private static final int OWNER_SHIFT = (int) config(8);

    private static final long CARED = config(9);       // not the age (markWord.hpp: 4 bits from bit 3 on), nor a class above the hash
    private static final long NEUTRAL = 1L;            // not locked, not hashed, not marked

    private static final long STAMPS = config(10);     // dynamic mode: by owner, what it marks with (see number); 0 = spare mode
    private static final boolean DYNAMIC = STAMPS != 0L;
    private static final long CLASSES = config(11);    // where an object's class stands: 1 above its hash, 2 at byte 8; 0 = not known
    private static final long SEVERAL = 1L << 62, NEVER = 1L << 61;

    private BorescopeSites() {}

    // ---- marking

    /** A new object that others may know already, if the owner's byte does not say that nobody does. */
    public static void mark(Object o, int owner) {
        if (o != null) {
            long h = U.getLong(o, 0L);
            if ((h & CARED) == NEUTRAL) {
                put(o, 0L, h, owner, owner, PLAIN_OWNERS);
            }
        }
    }

    @ForceInline
    private static void put(Object o, long offset, long h, int owner, int index, long plain) {
        if (DYNAMIC) {
            number(o, owner, U.getByte(plain + index) != 0);
        } else if (U.getByte(plain + index) != 0) {
            store(o, offset, marked(h, owner));
        } else {
            U.compareAndSetLong(o, offset, h, marked(h, owner));
        }
    }

    /** A new object that nobody else knows yet. */
    public static void markPlain(Object o, int owner) {
        long h = U.getLong(o, 0L);
        if ((h & CARED) == NEUTRAL) {
            putPlain(o, 0L, h, owner);
        }
    }

    @ForceInline
    private static void putPlain(Object o, long offset, long h, int owner) {
        if (DYNAMIC) {
            number(o, owner, true);
        } else {
            store(o, offset, marked(h, owner));
        }
    }

    /**
     * Writes a header. When C2 inlines the allocation of a next object, it takes the headers of all objects to be as that allocation leaves them
     * (graphKit.cpp, set_output_for_allocation) and drops a store that nothing has used by then. The fence uses it; on x86 it is no instruction.
     */
    @ForceInline
    private static void store(Object o, long offset, long h) {
        U.putLong(o, offset, h);
        U.storeFence();
    }

    /** As {@link #mark}, in a class of the JDK: the owner depends on where the application has called the JDK. */
    public static void markIn(Object o, int site) {
        int owner = owner(site, CACHE + ((long) site << 3), current());
        if (owner != 0) {
            markAs(o, owner, site);
        }
    }

    @ForceInline
    private static void markAs(Object o, int owner, int site) {
        if (o != null) {
            long h = U.getLong(o, 0L);
            if ((h & CARED) == NEUTRAL) {
                put(o, 0L, h, owner, site, PLAIN_SITES);
            }
        }
    }

    /** As {@link #markPlain}, in a class of the JDK. */
    public static void markInPlain(Object o, int site) {
        int owner = owner(site, CACHE + ((long) site << 3), current());
        if (owner != 0) {
            markPlain(o, owner);
        }
    }

    /** A new array of arrays of {@code dims} dimensions that multianewarray has filled (JVMS 6.5). */
    public static void markMulti(Object array, int owner, int dims) {
        markPlain(array, owner);
        if (dims > 1) {
            Object[] parts = (Object[]) array;
            for (int i = 0; i < parts.length; i++) {
                if (parts[i] != null) {
                    markMulti(parts[i], owner, dims - 1);
                }
            }
        }
    }

    /** As {@link #markMulti}, in a class of the JDK. */
    public static void markMultiIn(Object array, int site, int dims) {
        int owner = owner(site, CACHE + ((long) site << 3), current());
        if (owner != 0) {
            markMulti(array, owner, dims);
        }
    }

    /** A neutral header with an owner and a new hash. */
    @ForceInline
    private static long marked(long h, int owner) {
        return h | ((long) owner << OWNER_SHIFT) | (hash() << HASH_SHIFT);
    }

    // ---- dynamic mode

    /**
     * Gives a new object its hash. The owner's word (crates/sites/src/stamp.rs, Stamp.pack): bit 63, bit 62 = a shorter number may be had, bits 32 to 36 = length of
     * the identifier, bits 0 to 30 = hash with identifier 0.
     */
    private static void number(Object o, int owner, boolean plain) {
        long w = U.getLong(STAMPS + ((long) owner << 3));
        if (w >= 0L) {
            w = other(o, owner, w);
            if (w >= 0L) {
                return;
            }
        }
        long random = hash();
        int bits = (int) (w >>> 32) & 31;
        long field = (w & 0x7FFFFFFFL) ^ (random & ((1L << bits) - 1L));
        // Only now: what comes before may stop for a collection, which changes the age.
        long h = U.getLong(o, 0L);
        if ((h & CARED) == NEUTRAL) {
            long marked = h | (field == 0L ? 1L : field) << HASH_SHIFT;
            if (plain) {
                store(o, 0L, marked);
            } else {
                U.compareAndSetLong(o, 0L, h, marked);
            }
            if ((w & SEVERAL) != 0L && (random & ((1L << (bits >>> 1)) - 1L)) == 0L) {
                shorten(owner, w);
            }
        }
    }

    /**
     * The word of an owner that has none of its own. Where a site makes objects of several classes, there is one owner for each of them; the word is then bit 62, bits 25
     * to 56 = the class met last, as it stands in headers, bits 0 to 24 = its owner.
     */
    @DontInline
    private static long other(Object o, int owner, long w) {
        int type = type(o);
        if (w == NEVER) {
            return 0L;
        }
        if ((w & SEVERAL) != 0L && type != 0 && (int) (w >>> 25) == type) {
            long word = U.getLong(STAMPS + ((w & 0x1FFFFFFL) << 3));
            if (word != 0L) {
                return word;
            }
        }
        return stamp(o, owner, type);
    }

    private static int type(Object o) {
        if (CLASSES == 1L) {
            return (int) (U.getLong(o, 0L) >>> 42);
        }
        return CLASSES == 2L ? U.getInt(o, 8L) : 0;
    }

    /** 31 random bits, not all 0: SplitMix64 over a counter of the thread's. Threads whose ids share a counter may draw the same. */
    @ForceInline
    private static long hash() {
        long tid = tid();
        long a = THREADS + ((tid & THREAD_MASK) << 4) + 8;
        long z = U.getLong(a) + 0x9E3779B97F4A7C15L;
        U.putLong(a, z);
        z += tid * 0xD1342543DE82EF95L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = ((z ^ (z >>> 27)) * 0x94D049BB133111EBL) >>> 33;
        return z == 0 ? 1 : z;
    }

    @ForceInline
    private static long tid() {
        return U.getLong(Thread.currentThread(), TID);
    }

    // ---- who allocates: the call of the application into the JDK that the thread is in

    /** The application is about to call the JDK. */
    public static void call(int call) {
        long tid = tid();
        U.putLong(THREADS + ((tid & THREAD_MASK) << 4), tagged(tid, call));
    }

    @ForceInline
    private static long tagged(long tid, int call) {
        return (tid << 32) | call;
    }

    /** The JDK may have called the application: what {@link #leave} is to restore. */
    public static int enter() {
        long tid = tid();
        return untagged(tid, U.getLong(THREADS + ((tid & THREAD_MASK) << 4)));
    }

    /** The call in a word, if it is this thread's. */
    @ForceInline
    private static int untagged(long tid, long w) {
        return (int) (w >>> 32) == (int) tid ? (int) w : 0;
    }

    /** Back to the JDK. */
    public static void leave(int saved) {
        long tid = tid();
        U.putLong(THREADS + ((tid & THREAD_MASK) << 4), tagged(tid, saved));
    }

    /** The thread's call, 0 = not known. */
    @ForceInline
    private static int current() {
        long tid = tid();
        return untagged(tid, U.getLong(THREADS + ((tid & THREAD_MASK) << 4)));
    }

    /** The owner of a site of the JDK, 0 = there are no more. {@code a} = address of the site's cache word. */
    @ForceInline
    private static int owner(int site, long a, int call) {
        long w = U.getLong(a);
        return (int) (w >>> 32) == call + 1 ? (int) w : find(site, call);
    }

    @DontInline
    private static int find(int site, int call) {
        long key = ((long) site << 32) | call;
        long i = key * 0x9E3779B97F4A7C15L >>> 20;
        int owner;
        while (true) {
            long a = OWNERS + ((i & OWNER_MASK) << 4);
            long k = U.getLongAcquire(null, a);
            if (k == key) {
                owner = U.getInt(a + 8);
                break;
            }
            if (k == 0) {
                owner = resolve(site, call);
                break;
            }
            i++;
        }
        U.putLong(CACHE + ((long) site << 3), ((long) (call + 1) << 32) | owner);
        return owner;
    }

    // ---- the end

    /** Has the heap collected as late as some collectors can: behind the application's shutdown hooks. */
    private static void collectAtEnd() {
        // Slots 0 to 2 are the JDK's (SharedSecrets, JavaLangAccess.registerShutdownHook).
        Shutdown.add(9, false, new BorescopeSites());
    }

    /** The hook. */
    @Override
    public void run() {
        ending();
    }

    // ---- native

    private static native void ending();

    /** Binds the natives below. */
    private static native void link();

    private static native long config(int what);

    /** Dynamic mode: the word to mark an object with; 0 = it stays unmarked. */
    private static native long stamp(Object o, int owner, int type);

    /** Dynamic mode: an object got an identifier whose lower half is 0; {@code seen} = the word it was made with. */
    private static native void shorten(int owner, long seen);

    /** A new owner. */
    private static native int resolve(int site, int call);
}
