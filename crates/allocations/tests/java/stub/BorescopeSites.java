package java.lang;

import jdk.internal.misc.Unsafe;

/** Stands in for the agent's helper: prints what instrumented code tells it. One thread only. */
public final class BorescopeSites {
    private static int word;

    private BorescopeSites() {}

    public static void mark(Object o, int site) {
        System.out.println("mark " + site + " " + name(o));
    }

    public static void markPlain(Object o, int site) {
        System.out.println("mark " + site + " " + name(o) + neutral(o));
    }

    public static void markIn(Object o, int site) {
        System.out.println("in " + site + " " + word + " " + o.getClass().getName());
    }

    public static void markInPlain(Object o, int site) {
        System.out.println("in " + site + " " + word + " " + o.getClass().getName() + neutral(o));
    }

    public static void markMulti(Object array, int site, int dimensions) {
        System.out.println("mark " + site + " " + array.getClass().getName() + "/" + dimensions);
    }

    public static void markMultiIn(Object array, int site, int dimensions) {
        System.out.println("in " + site + " " + word + " " + array.getClass().getName() + "/" + dimensions);
    }

    public static void call(int call) {
        word = call;
    }

    public static int enter() {
        return word;
    }

    public static void leave(int saved) {
        word = saved;
    }

    /** Hidden classes of lambdas have names of no interest. */
    private static String name(Object o) {
        Class<?> type = o.getClass();
        return type.isHidden() ? "lambda" : type.getName().equals("forms.Node") || type.getName().equals("Odd") ? o.toString() : type.getName();
    }

    /** Nobody has locked it or asked for its hash, and no collection has passed (markWord.hpp, without compact headers). */
    private static String neutral(Object o) {
        return Unsafe.getUnsafe().getLong(o, 0L) == 1 ? "" : " NOT NEUTRAL";
    }
}
