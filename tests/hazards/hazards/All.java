package hazards;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Runs the named targets one after another in one JVM. */
public class All {
    public static void main(String[] args) throws Throwable {
        for (String name : args) {
            System.out.print(name + ": ");
            Method main = Class.forName("hazards." + name).getDeclaredMethod("main", String[].class);
            main.setAccessible(true);
            try {
                main.invoke(null, (Object) new String[0]);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
    }
}
