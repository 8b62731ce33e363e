package sites;

/** What the targets keep alive. Nothing here allocates but one array: an ArrayList would add objects of its own. */
public final class Keep {
    private static final Object[] ALL = new Object[1 << 20]; // live: 1 java.lang.Object[]
    private static int used;

    public static synchronized <T> T it(T object) {
        ALL[used++] = object;
        return object;
    }

    private Keep() {
    }
}
