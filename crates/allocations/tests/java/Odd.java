/** Methods whose code the test replaces by what no Java compiler makes; each gives its new object, or null. */
public class Odd {
    private static int count;
    final int id = ++count;

    static Object below1(Object o) {
        return null;
    }

    static Object below2(Object o) {
        return null;
    }

    static Object below2ints(Object o) {
        return null;
    }

    static Object inLocal(Object o) {
        return null;
    }

    static Object deep(Object o) {
        return null;
    }

    static Object gone(Object o) {
        return null;
    }

    static Object unfinished(Object o) {
        return null;
    }

    static Object two(Object o) {
        return null;
    }

    @Override
    public String toString() {
        return "Odd" + id;
    }

    public static void main(String[] args) {
        System.out.println("below1 " + below1(null));
        System.out.println("below2 " + below2(null));
        System.out.println("below2ints " + below2ints(null));
        System.out.println("inLocal " + inLocal(null));
        System.out.println("deep " + deep(null));
        System.out.println("gone " + gone(null));
        System.out.println("unfinished " + unfinished(null));
        System.out.println("two " + two(null));
    }
}
