package java.lang;

import jdk.internal.misc.Unsafe;

/**
 * What code calls that is instrumented to record a trace: which site allocated, and which object's identity hash was asked for first, in the
 * order in which it happened. Lives in java.base, works on a file that the agent maps (crates/spool/src/trace.rs).
 *
 * Events are numbered by one counter. The number of the event in which an object was allocated, its bits mixed, becomes the object's identity hash, so
 * that the hash leads back to the event; the site's number above it tells such hashes from those that the VM draws. An object
 * that is locked or hashed by the time its constructor returns stays out of the trace.
 *
 * Nothing here may call a class that could be instrumented itself (crates/agent/src/sites/jdk.rs, NEVER).
 */
public final class BorescopeTrace {
    static {
        link();
    }

    private static final Unsafe U = Unsafe.getUnsafe();

    private static final long EVENTS = config(0);      // u64 each, the first ones are a header
    private static final long NEXT = EVENTS + 8;
    private static final long LIMIT = EVENTS + 16;
    private static final long UNMARKED = EVENTS + 24;
    private static final long LOCKED = EVENTS + 32;
    private static final long BY_SITE = config(1);     // by site, a byte: 0 = not known yet, 1 = its class has a hashCode of its own, 2 = Object's
    private static final long BY_CLASS = config(2);    // as well, by class, of sites that allocate several classes
    private static final int HASH_SHIFT = (int) config(3);
    private static final int NUMBER_SHIFT = (int) config(4);

    private static final long NOT_AGE = ~0x78L;        // markWord.hpp: 4 bits of age from bit 3 on
    private static final long NEUTRAL = 1L;            // not locked, not hashed, not marked
    private static final long LOCK_BITS = 3L;
    private static final long UNLOCKED = 1L;
    private static final long HASH_BITS = 0x7FFFFFFFL;
    private static final long HASHED = 1L << 63;       // in the event of an allocation: there is a reference
    private static final long REFERENCE = 1L << 62;
    private static final long CLASS_BITS = 0xFFFFFL;

    private BorescopeTrace() {}

    // ---- allocations

    /** A new object of just the class that its site names. */
    public static void mark(Object o, int number) {
        if (o != null && isNeutral(o)) {
            record(o, number);
        }
    }

    /** A new object, perhaps, of a class that depends. */
    public static void markOf(Object o, int number) {
        if (o != null && isNeutral(o)) {
            long c = classOf(o);
            if (c > 0) {
                record(o, c << 32 | number);
            } else {
                next(); // There is no more room now: it is counted as lost.
            }
        }
    }

    /** A new array of arrays of {@code dims} dimensions that multianewarray has filled (JVMS 6.5). */
    public static void markMulti(Object array, int number, int dims) {
        markOf(array, number);
        if (dims > 1) {
            Object[] parts = (Object[]) array;
            for (int i = 0; i < parts.length; i++) {
                if (parts[i] != null) {
                    markMulti(parts[i], number, dims - 1);
                }
            }
        }
    }

    private static boolean isNeutral(Object o) {
        return (U.getLong(o, 0L) & NOT_AGE) == NEUTRAL;
    }

    /** The event is written before anybody can find it through the object. If the object is taken by then, the event becomes none. */
    private static void record(Object o, long event) {
        long n = next();
        if (n != 0) {
            long a = EVENTS + (n << 3);
            U.putLong(a, event);
            long mark = (event << 32 >>> 32) << NUMBER_SHIFT | mix(n) << HASH_SHIFT;
            long h;
            do {
                h = U.getLong(o, 0L);
                if ((h & NOT_AGE) != NEUTRAL) {
                    U.putLong(a, 0L);
                    return;
                }
            } while (!U.compareAndSetLong(o, 0L, h, h | mark));
        }
    }

    /** The number of a new event; 0 = there is no room. */
    private static long next() {
        long n = U.getAndAddLong(null, NEXT, 1L);
        return n < U.getLongVolatile(null, LIMIT) || grow(n) ? n : 0L;
    }

    /** One to one on 31 bits, and 0 only for 0, so that hashes are as spread as programs may expect. */
    private static long mix(long n) {
        long z = n * 0x5BD1E995L & HASH_BITS;
        return z ^ z >>> 16;
    }

    /** Undoes {@link #mix}: the xor is its own inverse, the factor's is modulo 2^31. */
    private static long unmix(long z) {
        return (z ^ z >>> 16) * INVERSE & HASH_BITS;
    }

    // Newton: each step doubles the bits that are right, 3 at first.
    private static final long INVERSE = inverse(inverse(inverse(inverse(0x5BD1E995L))));

    private static long inverse(long x) {
        return x * (2L - 0x5BD1E995L * x);
    }

    // ---- references

    /** The identity hash of the object is about to be asked for. */
    public static void identity(Object o) {
        if (o != null) {
            long h = U.getLong(o, 0L);
            if ((h & LOCK_BITS) != UNLOCKED) {
                U.getAndAddLong(null, LOCKED, 1L);
            } else if (h >>> NUMBER_SHIFT == 0) {
                U.getAndAddLong(null, UNMARKED, 1L);
            } else {
                refer(allocation(h));
            }
        }
    }

    /** {@code hashCode()} of the object is about to be called: its identity hash, if its class has none of its own. */
    public static void hashCode(Object o) {
        if (o != null) {
            long h = U.getLong(o, 0L);
            if ((h & LOCK_BITS) == UNLOCKED && h >>> NUMBER_SHIFT != 0) {
                long n = allocation(h);
                long event = n == 0L ? 0L : U.getLong(EVENTS + (n << 3));
                if (event > 0L) {
                    long c = event >>> 32 & CLASS_BITS;
                    long place = c == 0 ? BY_SITE + (h >>> NUMBER_SHIFT) : BY_CLASS + c;
                    int kind = U.getByte(place);
                    if ((kind == 0 ? kindOf(o, place) : kind) == 2) {
                        refer(n);
                    }
                }
            } else if ((h & LOCK_BITS) != UNLOCKED && kindOf(o, 0L) == 2) {
                U.getAndAddLong(null, LOCKED, 1L);
            }
        }
    }

    /** The event that a marked header leads to; 0 = none, if it is somebody else's mark. */
    private static long allocation(long h) {
        long n = unmix(h >>> HASH_SHIFT & HASH_BITS);
        return n < U.getLongVolatile(null, LIMIT) ? n : 0L;
    }

    /** Only the first time: of threads that race, one sees the bit unset. */
    private static void refer(long n) {
        if (n != 0L && U.getAndBitwiseOrLong(null, EVENTS + (n << 3), HASHED) >= 0L) {
            long k = next();
            if (k != 0) {
                U.putLong(EVENTS + (k << 3), REFERENCE | n);
            }
        }
    }

    // ---- native

    /** Binds the natives below. */
    private static native void link();

    private static native long config(int what);

    /** Makes room for an event. */
    private static native boolean grow(long n);

    /** The number of the object's class, from 1 on; 0 = there are no more, and so the trace has ended. */
    private static native int classOf(Object o);

    /** 1 = the object's class has a hashCode of its own, 2 = Object's; remembered at the address, if there is one. */
    private static native int kindOf(Object o, long place);
}
