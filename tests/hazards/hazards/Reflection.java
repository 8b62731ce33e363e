package hazards;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;

/** What the program sees of itself is what it sees without the profiler: members, modifiers, stack traces and their lines. */
class Reflection {
    private int field;
    static final long CONSTANT = 7;

    interface Face {
        int face();
    }

    static String trace() { // activations: 1, paths: 1
        StackTraceElement[] trace = new Throwable().getStackTrace();
        return trace[0] + " " + trace[1].getLineNumber() + " " + trace[1].getMethodName();
    }

    static String frames() { // activations: 1
        return StackWalker.getInstance().walk(s -> s.limit(2).map(f -> f.getMethodName() + f.getLineNumber()).toList()).toString();
    }

    static String failing(Object o) { // activations: 1, unfinished: 1
        try {
            return o.toString();
        } catch (NullPointerException e) {
            return e.getMessage() + " " + e.getStackTrace()[0].getLineNumber(); // runs: 1
        }
    }

    static void main(String[] args) { // activations: 1
        for (Class<?> type : new Class<?>[] {Reflection.class, Face.class}) {
            String[] fields = Arrays.stream(type.getDeclaredFields()).map(Field::toGenericString).sorted().toArray(String[]::new);
            String[] methods = Arrays.stream(type.getDeclaredMethods()).map(Method::toGenericString).sorted().toArray(String[]::new);
            System.out.println(type + Arrays.toString(fields) + Arrays.toString(methods)
                    + Arrays.toString(type.getDeclaredConstructors()) + Arrays.toString(type.getDeclaredClasses())
                    + Arrays.toString(type.getInterfaces()) + type.getModifiers());
        }
        System.out.println(trace() + frames() + failing(null));
    }
}
