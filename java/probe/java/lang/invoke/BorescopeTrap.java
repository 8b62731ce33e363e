package java.lang.invoke;

import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Stable;

/**
 * Makes an uncommon trap of a probe's slow path in C2's code. A call there, however rare, costs the loop around it its registers: HotSpot's calling
 * convention keeps none, and C2 reloads what it spilled inside the hot loop. A branch never seen taken would do, but the probes share the
 * profile of their helper, and each site takes its slow path at first.
 *
 * C2 makes of profileBoolean(x, counts), which is there for method handles with a guard, a trap where x has the value that counts has never
 * seen, if counts is a constant. So {@code SEEN} says true 0 times until a site has trapped {@link #MOST} times: from then on it is compiled with the call. The
 * interpreter goes on at profileBoolean, and nothing that stands before it happens again. It adds 1 to the count of true.
 *
 * HotSpot gives up compiling the method that a trap stands in after 200 of them at one place (PerBytecodeRecompilationCutoff): that would be
 * {@link #known}, which is then not inlined into the slow paths; these are calls again.
 *
 * Lives in this package since MethodHandleImpl is private to it.
 */
public final class BorescopeTrap {
    private static final int SITES = 1024; // crates/agent/src/instrument.rs, TRAP_SITES
    private static final int MOST = 2;

    /** By site, how often false and true were seen, for C2. */
    @Stable
    private static final int[][] SEEN = new int[SITES][];
    /** By site, traps. Stores of two threads at once may lose one. */
    private static final byte[] TRAPS = new byte[SITES];

    static {
        SEEN[0] = new int[] {1, 1};
        for (int i = 1; i < SITES; i++) {
            SEEN[i] = new int[] {1, 0};
        }
        // Where a JDK has no such methods, this class cannot be initialised, and the agent does without.
        MethodHandleImpl.profileBoolean(MethodHandleImpl.isCompileConstant(SEEN), SEEN[0]);
    }

    private BorescopeTrap() {}

    /** A slow path begins. Does nothing but where C2 has inlined it and so knows the site. Site 0 has no traps. */
    @ForceInline
    public static void rare(int site) {
        known(site, SEEN[site]);
    }

    @ForceInline
    private static void known(int site, int[] seen) {
        if (MethodHandleImpl.isCompileConstant(seen)) {
            byte traps = TRAPS[site];
            if (traps < MOST) {
                TRAPS[site] = (byte) (traps + 1);
            }
            MethodHandleImpl.profileBoolean(true, seen);
            if (TRAPS[site] < MOST) {
                seen[1] = 0;
            }
        }
    }
}
