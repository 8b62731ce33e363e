package sites;

/** Defined by several loaders; see {@link Loaders}. */
public class Loaded {
    static class Part {
    }

    public static void make(int n) {
        for (int i = 0; i < n; i++) {
            Keep.it(new Loaded()); // live: 9 sites.Loaded
            Keep.it(new Part[1]); // live: 9 sites.Loaded$Part[]
        }
    }
}
