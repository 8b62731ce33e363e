package sites;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Runs the named targets one after another in one JVM. With `wait` as the last word it then says so and waits for the end of its input. */
public class All {
    public static void main(String[] args) throws Throwable {
        for (String target : args) {
            if (target.equals("wait")) {
                System.out.println("ready");
                System.in.read();
                continue;
            }
            Method main = Class.forName("sites." + target).getDeclaredMethod("run");
            main.setAccessible(true);
            try {
                main.invoke(null);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
            System.out.println(target);
        }
    }
}
