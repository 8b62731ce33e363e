package java.lang;

import jdk.internal.misc.Unsafe;

/**
 * Stands in for the agent's helper in a real program: counts marks, and those plain ones that meet an object that is locked, hashed or marked already. Marks
 * by a bit above the hash (markWord.hpp, no compact headers), as the agent does.
 */
public final class BorescopeSites {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static long plain;
    private static long touched;
    private static long others;
    private static int shown;

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() ->
            System.err.println("marks: " + plain + " plain, " + touched + " of them touched, " + others + " others")));
    }

    private BorescopeSites() {}

    public static void markPlain(Object o, int site) {
        plain++;
        // Age bits (3 to 6) apart, the header says unlocked, no hash.
        if ((U.getLongVolatile(o, 0L) & ~0x78L) != 1) {
            touched++;
            if (shown++ < 20) {
                System.err.println("touched: " + o.getClass() + " " + Long.toHexString(U.getLongVolatile(o, 0L)));
            }
        }
    }

    public static void mark(Object o, int site) {
        others++;
    }

    public static void markMulti(Object array, int site, int dimensions) {
        markPlain(array, site);
    }

    public static void call(int call) {}

    public static int enter() {
        return 0;
    }

    public static void leave(int saved) {}
}
