package forms;

import java.util.Comparator;
import java.util.function.Supplier;

/** Plays the JDK: what it allocates leads to the line of {@link Forms} that called. */
public class Lib {
    private Object kept;

    public static Object make() {
        return new Object();
    }

    /** One object before and one after a callback. */
    public static int twice(Runnable callback) {
        Object first = make();
        callback.run();
        return first == make() ? 1 : 2;
    }

    public static int caught(Runnable callback) {
        try {
            callback.run();
        } catch (IllegalStateException e) {
            return make() == null ? 1 : 2;
        }
        return 3;
    }

    public static <T> T supplied(Supplier<T> supplier) {
        T made = supplier.get();
        make();
        return made;
    }

    public static int compared(Comparator<String> comparator) {
        int result = comparator.compare("a", "b");
        make();
        return result;
    }

    /** The JDK has methods of these names and descriptors that can be inherited. */
    public Object get() {
        return kept = new int[1];
    }

    public Lib() {
        kept = make();
    }
}
