/**
 * Allocates so many objects, hashes the first of each thousand, says so, and then ends or waits to be ended: TracedEnd OBJECTS [wait]. For traces of
 * programs that do not end well.
 */
public final class TracedEnd {
    static final class Thing {
    }

    static Object kept;
    static int hashes;

    public static void main(String[] args) throws Exception {
        int objects = Integer.parseInt(args[0]);
        for (int i = 0; i < objects; i++) {
            Thing thing = new Thing();
            kept = thing;
            if (i % 1000 == 0) {
                hashes += thing.hashCode();
            }
        }
        System.out.println("done");
        if (args.length > 1) {
            System.in.read();
        }
    }
}
