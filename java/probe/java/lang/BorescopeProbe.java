package java.lang;

import java.lang.invoke.BorescopeTrap;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * What probes call. Lives in java.base (package java.lang: visible from every class loader), works on the agent's memory by address.
 *
 * A platform thread counts in a private arena with plain stores. Virtual threads count in shared arenas: there a block, a root
 * slot, a dense edge's next or a run's jump is the NEGATED address, and a hashed row's table is always empty, so the fast paths
 * fall through to atomic or native code by the one comparison they make anyway. Offsets: crates/spool/src/layout.rs.
 *
 * What probes call most is at most 35 bytes of bytecode with more than 5 stack slots, and what it calls is inlined into it: so C2 inlines it
 * except at cold sites (MinInlineFrequencyRatio, MaxInlineSize), C1 nowhere (C1InlineStackLimit). Inlined by force everywhere, it doubles what the
 * JIT compilers cost a program that is mostly compiled.
 *
 * Nothing here may call a class that could have probes itself (crates/agent/src/paths.rs, NEVER).
 */
public final class BorescopeProbe {
    static {
        link();
    }

    private static final int MOST_SHORT = 16;
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = U.objectFieldOffset(Thread.class, "tid");
    private static final Class<?> VIRTUAL = virtualThreadClass();

    private static final long TABLE = config(0);        // u64 block address by thread id
    private static final long LIMIT = config(1);        // thread ids below it have a slot in TABLE
    private static final long SHARED = config(2);       // negated addresses of the shared arenas' blocks, 0 = not there yet
    private static final long SHARED_MASK = config(3);  // number of shared arenas - 1
    private static final long BASE = config(4);         // address of offset 0 of counters.bin
    private static final int WINDOW = (int) config(5);  // IDs in a full window, k - 1
    private static final int SHORT = WINDOW - 1 < MOST_SHORT ? WINDOW - 1 : MOST_SHORT; // runs that have an edge of their own
    private static final boolean TO_FRONT = config(6) != 0; // k-SF: a child that is found moves to the front
    private static final boolean TRAPS = config(7) != 0; // slow paths may be traps
    private static final int TOP_DEPTH = WINDOW - 1;    // k-SF: depth of the upper part's last level

    private static final int ROW_KIND_HASH = 2;
    private static final int ROW_ENTERS = 24, ROW_TABLE = 40, ROW_SHIFT = 48, ROW_FLAGS = 52, ROW_BYTES = 64;
    private static final int RUN_COUNT = 16 - 48, RUN_TOTAL = 24 - 48, RUN_JUMP = 32 - 48; // from the row behind it
    private static final int TABLE_SLOTS = 16, TABLE_BYTES = 32;
    private static final int COUNTDOWN = 24; // in a block: activations to leave out before the next one that is chosen
    private static final int HASH_MUL = 0x9E3779B1;
    private static final int KSF_ID = 8, KSF_DEPTH = 12, KSF_COUNT = 16, KSF_FIRST = 24, KSF_SIBLING = 28, KSF_ROOT = 32, KSF_FLAGS = 36;
    private static final int KSF_FRONT = 40, KSF_NEXT = 44;

    private BorescopeProbe() {}

    // ---- the thread's block: slots by index, counts or root rows

    @DontInline
    private static long block() {
        Thread t = Thread.currentThread();
        long tid = U.getLong(t, TID);
        // Thread id 0: a thread whose Thread object is still being built. Ids beyond the table and virtual threads share.
        boolean shares = tid <= 0 || tid >= LIMIT || (VIRTUAL != null && VIRTUAL.isInstance(t));
        long block = shares ? U.getLong(SHARED + ((tid & SHARED_MASK) << 3)) : 0;
        return block != 0 ? block : lease(tid, shares);
    }

    // ---- methods that count in slots

    /** The only path ID of an activation: counts it. */
    public static void count(int slot) {
        long block = own();
        if (block == 0) {
            countCold(slot);
        } else {
            increment(1L, block + ((long) slot << 3));
        }
    }

    @DontInline
    private static void countCold(int slot) {
        countAt(block(), slot);
    }

    /** The current thread's own block, 0 = it has none (yet). */
    @ForceInline
    private static long own() {
        long tid = U.getLong(Thread.currentThread(), TID);
        return tid < LIMIT ? U.getLong(TABLE + (tid << 3)) : 0;
    }

    @ForceInline
    private static void increment(long n, long a) {
        U.putLong(a, U.getLong(a) + n);
    }

    /** Entry of an activation: the address of its method's slots. */
    public static long slots(int first) {
        long block = own();
        return block == 0 ? slotsCold(first) : block + ((long) first << 3);
    }

    @DontInline
    private static long slotsCold(int first) {
        long block = block();
        return block < 0 ? block - ((long) first << 3) : block + ((long) first << 3);
    }

    /** A path ended: counts it. */
    public static void countAt(long slots, int r) {
        addAt(slots, r, 1);
    }

    @ForceInline
    private static void addAt(long slots, int r, long n) {
        if (slots < 0) {
            U.getAndAddLong(null, ((long) r << 3) - slots, n);
            return;
        }
        increment(n, slots + ((long) r << 3));
    }

    /** A run loop was left after {@code n} turns: counts r once and then c. */
    @ForceInline
    public static void runAt(long slots, int r, int n, int c) {
        runAt(slots, r, n & 0xffffffffL, c);
    }

    /** As above. */
    @ForceInline
    public static void runAt(long slots, int r, long n, int c) {
        if (n != 0) {
            addAt(slots, r, 1);
            addAt(slots, c, n - 1);
        }
    }

    /** The path register behind a run loop. */
    @ForceInline
    public static int restart(int r, int n, int c) {
        return n == 0 ? r : c;
    }

    /** As above. */
    @ForceInline
    public static int restart(int r, long n, int c) {
        return n == 0 ? r : c;
    }

    // ---- entry of an activation that counts in rows: the state before any path ended

    public static long enter(int slot) {
        long block = own();
        return block == 0 ? enterCold(slot) : entered(slot, block + ((long) slot << 3));
    }

    @ForceInline
    private static long entered(int slot, long a) {
        long s = U.getLong(a);
        if (s <= 0) {
            return root(slot, a);
        }
        increment(1L, s + ROW_ENTERS);
        return s;
    }

    @DontInline
    private static long enterCold(int slot) {
        long block = block();
        block = block < 0 ? -block : block;
        return entered(slot, block + ((long) slot << 3));
    }

    @DontInline
    private static long root(int slot, long a) {
        long s = U.getLong(a);
        if (s < 0) {
            U.getAndAddLong(null, -s + ROW_ENTERS, 1);
            return -s;
        }
        return newRoot(a - ((long) slot << 3), slot);
    }

    // ---- methods of few paths: edges indexed by path ID

    /** A path ended and the activation goes on: counts it and returns the next state. {@code site}: {@link #rare}. */
    public static long hit(long s, int r, int site) {
        return hitAt(s, r, edgeAt(s, r), site);
    }

    @ForceInline
    private static long hitAt(long s, int r, long e, int site) {
        long next = U.getLong(e);
        if (next <= 0) {
            rare(site);
            return cold(s, r, false);
        }
        increment(1L, e + 8);
        return next;
    }

    /** The activation's last path ended: counts it. */
    public static void exit(long s, int r) {
        exitAt(s, r, edgeAt(s, r));
    }

    @ForceInline
    private static void exitAt(long s, int r, long e) {
        if (U.getLong(e) > 0) {
            increment(1L, e + 8);
        } else {
            cold(s, r, true);
        }
    }

    /** A slow path begins: where C2 has inlined the probe of a site that is not 0, it makes an uncommon trap of it. */
    @ForceInline
    private static void rare(int site) {
        if (TRAPS) {
            BorescopeTrap.rare(site);
        }
    }

    @ForceInline
    private static long edgeAt(long s, int r) {
        return s + ROW_BYTES + ((long) r << 4);
    }

    @DontInline
    private static long cold(long s, int r, boolean last) {
        long e = edgeAt(s, r);
        long next = U.getLong(e);
        if (next < 0) {
            U.getAndAddLong(null, e + 8, 1);
            return -next;
        }
        return miss(s, r, last);
    }

    /**
     * A run loop was left after {@code n} turns: counts r once and then c, and returns the next state. {@code p} = the method's number
     * of paths: the edge p + m - 1 stands for m times c, where that is less than a window. {@code site}: {@link #rare}.
     */
    public static long run(long s, int r, int n, int c, int p, int site) {
        return run(s, r, n & 0xffffffffL, c, p, site);
    }

    /** As above. */
    public static long run(long s, int r, long n, int c, int p, int site) {
        if (n == 0) {
            return s;
        }
        s = hit(s, r, site);
        if (n > WINDOW) {
            return n == 1 ? s : WINDOW == 0 ? again(s, n - 1, c) : slotted(s, n - 1, c, site);
        }
        if (n == 1 || n - 1 > SHORT) {
            return n == 1 ? s : turns(s, n - 1, c, site);
        }
        long e = s + ROW_BYTES + ((p + n - 2) << 4);
        long next = U.getLong(e);
        if (next <= 0) {
            rare(site);
            return shortCold(s, n - 1, c, e, next);
        }
        increment(1L, e + 8);
        return next;
    }

    @DontInline
    private static long shortCold(long s, long m, int c, long e, long next) {
        if (next < 0) {
            U.getAndAddLong(null, e + 8, 1);
            return -next;
        }
        return missRun(s, m, c);
    }

    /** k = 1 (only in burst mode: else such methods count in slots): a row has no run slot, and one edge for c. */
    private static long again(long s, long m, int c) {
        long e = edgeAt(s, c);
        if (U.getLong(e) <= 0) {
            return missRun(s, m, c);
        }
        increment(m, e + 8);
        return s;
    }

    /** Turn by turn. */
    private static long turns(long s, long m, int c, int site) {
        while (m-- > 0) {
            s = hit(s, c, site);
        }
        return s;
    }

    /** At least a window's length of turns: the row's run slot stands for them. */
    @ForceInline
    private static long slotted(long s, long m, int c, int site) {
        long jump = U.getLong(s + RUN_JUMP);
        if (jump <= 0) {
            rare(site);
            return slottedCold(s, m, c, jump);
        }
        increment(m, s + RUN_TOTAL);
        increment(1L, s + RUN_COUNT);
        return jump;
    }

    @DontInline
    private static long slottedCold(long s, long m, int c, long jump) {
        if (jump < 0) {
            U.getAndAddLong(null, s + RUN_TOTAL, m);
            U.getAndAddLong(null, s + RUN_COUNT, 1);
            return -jump;
        }
        return missRun(s, m, c);
    }

    // ---- methods of many paths: edges in a hash table

    /** As {@link #hit}, for a hashed row. */
    public static long hitHash(long s, int r) {
        return hitHashAt(s, r, U.getLong(s + ROW_TABLE));
    }

    @ForceInline
    private static long hitHashAt(long s, int r, long table) {
        int i = (r * HASH_MUL) >>> U.getInt(s + ROW_SHIFT);
        long e = table + TABLE_BYTES + ((long) i << 4);
        long w = U.getLong(e);
        if ((int) w != r + 1) {
            return probe(s, r, table, i, false);
        }
        increment(1L, e + 8);
        return BASE + ((w >>> 32) << 4);
    }

    /** As {@link #exit}, for a hashed row. */
    public static void exitHash(long s, int r) {
        exitHashAt(s, r, U.getLong(s + ROW_TABLE));
    }

    @ForceInline
    private static void exitHashAt(long s, int r, long table) {
        int i = (r * HASH_MUL) >>> U.getInt(s + ROW_SHIFT);
        long e = table + TABLE_BYTES + ((long) i << 4);
        if (U.getInt(e) != r + 1) {
            probe(s, r, table, i, true);
        } else {
            increment(1L, e + 8);
        }
    }

    /** As {@link #run}, for hashed rows. */
    public static long runHash(long s, int r, int n, int c, int p) {
        return n == 0 ? s : turnsHash(s, r, n & 0xffffffffL, c, p);
    }

    /** As above. */
    public static long runHash(long s, int r, long n, int c, int p) {
        return n == 0 ? s : turnsHash(s, r, n, c, p);
    }

    private static long turnsHash(long s, int r, long n, int c, int p) {
        s = hitHash(s, r);
        long m = n - 1;
        if (m == 0) {
            return s;
        }
        if (WINDOW > 0 && m >= WINDOW) {
            return slotted(s, m, c, 0);
        }
        // At k = 1 a row has one edge for c, which is its own.
        long e = WINDOW == 0 ? edge(s, c) : m <= SHORT ? edge(s, p + (int) m - 1) : 0;
        if (e == 0) {
            return missRun(s, m, c);
        }
        increment(WINDOW == 0 ? m : 1L, e + 8);
        return BASE + ((U.getLong(e) >>> 32) << 4);
    }

    @DontInline
    private static long probe(long s, int r, long table, int i, boolean last) {
        int mask = U.getInt(table + TABLE_SLOTS) - 1;
        while (true) {
            long e = table + TABLE_BYTES + ((long) i << 4);
            long w = U.getLong(e);
            if ((int) w == r + 1) {
                increment(1L, e + 8);
                return BASE + ((w >>> 32) << 4);
            }
            if ((int) w == 0) {
                return miss(s, r, last);
            }
            i = (i + 1) & mask;
        }
    }

    // ---- burst mode: a random share of activations counts in rows; the others run in a copy of the method's code that has no probes

    /** Entry of an activation: 0 = not chosen, else the state before any path ended, in one of the method's groups. */
    public static long enterBurst(int slot) {
        long block = own();
        return block == 0 ? enterElsewhere(slot) : countDown(slot, block);
    }

    @ForceInline
    private static long countDown(int slot, long block) {
        if (U.getLong(block + COUNTDOWN) == 0) {
            return chosen(block, slot);
        }
        increment(-1L, block + COUNTDOWN);
        return 0;
    }

    @DontInline
    private static long enterElsewhere(int slot) {
        long block = block();
        if (block > 0) {
            return countDown(slot, block);
        }
        // Many threads at once: chosen is who sees the countdown at 0 and replaces it.
        block = -block;
        long left;
        long drawn;
        do {
            left = U.getLongVolatile(null, block + COUNTDOWN);
            drawn = left == 0 ? draw(block) : 0;
        } while (!U.compareAndSetLong(null, block + COUNTDOWN, left, left == 0 ? drawn >>> 4 : left - 1));
        return left == 0 ? enterGroup(block, slot, drawn) : 0;
    }

    @DontInline
    private static long chosen(long block, int slot) {
        long drawn = draw(block);
        U.putLong(block + COUNTDOWN, drawn >>> 4);
        return enterGroup(block, slot, drawn);
    }

    private static long enterGroup(long block, int slot, long drawn) {
        slot += (int) drawn & 15;
        return entered(slot, block + ((long) slot << 3));
    }

    // What the probes of a chosen activation call, as without burst mode, but never inlined: C2 would inline it at a share of 1/64 yet
    // (MinInlineFrequencyRatio), into a copy that is run so seldom.

    @DontInline
    public static long hitChosen(long s, int r) {
        return hit(s, r, 0);
    }

    @DontInline
    public static void exitChosen(long s, int r) {
        exit(s, r);
    }

    @DontInline
    public static long runChosen(long s, int r, int n, int c, int p) {
        return run(s, r, n, c, p, 0);
    }

    @DontInline
    public static long runChosen(long s, int r, long n, int c, int p) {
        return run(s, r, n, c, p, 0);
    }

    @DontInline
    public static long hitHashChosen(long s, int r) {
        return hitHash(s, r);
    }

    @DontInline
    public static void exitHashChosen(long s, int r) {
        exitHash(s, r);
    }

    @DontInline
    public static long runHashChosen(long s, int r, int n, int c, int p) {
        return runHash(s, r, n, c, p);
    }

    @DontInline
    public static long runHashChosen(long s, int r, long n, int c, int p) {
        return runHash(s, r, n, c, p);
    }

    // ---- k-SF as published: state = (beta << 32 | tau), offsets / 16; at first tau = the method's root row

    /** Entry of an activation. */
    public static long enterKsf(int method) {
        return (enter(method) - BASE) >>> 4;
    }

    /** process_bl_path_id(r) of the source document, figure 6. */
    public static long hitKsf(long s, int r) {
        long tau = at((int) s);
        long beta = 0;
        if (U.getInt(tau) == ROW_KIND_HASH) {
            if ((U.getInt(tau + ROW_FLAGS) & 1) != 0) {
                return missKsf(s, r);
            }
            tau = find(tau, r);
        } else {
            if ((U.getInt(tau + KSF_FLAGS) & 1) != 0) {
                return missKsf(s, r);
            }
            if (U.getInt(tau + KSF_DEPTH) == TOP_DEPTH) {
                beta = tau;
                tau = find(at(U.getInt(tau + KSF_ROOT)), r);
            } else {
                int b = (int) (s >>> 32);
                beta = b == 0 ? 0 : at(b);
                tau = child(tau, r);
            }
        }
        if (tau == 0) {
            return missKsf(s, r);
        }
        long counted = tau;
        if (beta != 0) {
            counted = beta = child(beta, r);
            if (beta == 0) {
                return missKsf(s, r);
            }
        }
        increment(1L, counted + KSF_COUNT);
        if (TOP_DEPTH < 0) {
            return s; // k = 1: no upper part, each ID starts anew
        }
        return ((tau - BASE) >>> 4) | (beta == 0 ? 0 : (beta - BASE) << 28);
    }

    /** The activation's last path. */
    public static void exitKsf(long s, int r) {
        hitKsf(s, r);
    }

    private static long at(int offset) {
        return BASE + ((offset & 0xffffffffL) << 4);
    }

    private static long find(long row, int r) {
        long e = edge(row, r);
        return e == 0 ? 0 : BASE + ((U.getLong(e) >>> 32) << 4);
    }

    /** The edge of r in a hashed row; 0 = there is none. */
    private static long edge(long row, int r) {
        long table = U.getLong(row + ROW_TABLE);
        int i = (r * HASH_MUL) >>> U.getInt(row + ROW_SHIFT);
        int mask = U.getInt(table + TABLE_SLOTS) - 1;
        while (true) {
            long e = table + TABLE_BYTES + ((long) i << 4);
            int id = U.getInt(e);
            if (id == r + 1) {
                return e;
            }
            if (id == 0) {
                return 0;
            }
            i = (i + 1) & mask;
        }
    }

    private static long child(long node, int r) {
        if (TO_FRONT) {
            return childToFront(node, r);
        }
        int c = U.getInt(node + KSF_FIRST);
        while (c != 0) {
            long a = at(c);
            if (U.getInt(a + KSF_ID) == r) {
                return a;
            }
            c = U.getInt(a + KSF_SIBLING);
        }
        return 0;
    }

    /**
     * As above, in the list of search, whose front the child takes. A thread that is stopped between the stores (a stack overflow) leaves the child
     * out of the list and the list without a cycle; missKsf then finds it in the other list, which readers read and nothing relinks.
     */
    private static long childToFront(long node, int r) {
        int front = U.getInt(node + KSF_FRONT);
        long before = 0;
        for (int c = front; c != 0; ) {
            long a = at(c);
            int next = U.getInt(a + KSF_NEXT);
            if (U.getInt(a + KSF_ID) == r) {
                if (before != 0) {
                    U.putInt(before + KSF_NEXT, next);
                    U.putInt(a + KSF_NEXT, front);
                    U.putInt(node + KSF_FRONT, c);
                }
                return a;
            }
            before = a;
            c = next;
        }
        return 0;
    }

    // ---- slow paths, in the agent (crates/agent/src/probes.rs)

    /** Found by its name in the agent's library; registers the others (from inside java.base, else HotSpot prints a warning). */
    private static native void link();

    /** An exception handler of the activation was entered. */
    public static native void caught(long s);

    private static native long config(int what);

    private static native long lease(long tid, boolean shares);

    private static native long newRoot(long block, int slot);

    /** Draws how many activations come before the next chosen one, times 16, and the group of the one chosen now. */
    private static native long draw(long block);

    private static native long miss(long s, int r, boolean last);

    private static native long missRun(long s, long n, int c);

    private static native long missKsf(long s, int r);

    private static Class<?> virtualThreadClass() {
        try {
            return Class.forName("java.lang.BaseVirtualThread", false, null);
        } catch (ClassNotFoundException e) {
            return null; // before JDK 19
        }
    }
}
