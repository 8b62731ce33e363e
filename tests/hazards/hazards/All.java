package hazards;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Runs the named targets one after another in one JVM; NAME:ARGUMENT gives a target an argument. */
public class All {
    public static void main(String[] args) throws Throwable {
        for (String target : args) {
            System.out.print(target + ": ");
            String[] words = target.split(":");
            Method main = Class.forName("hazards." + words[0]).getDeclaredMethod("main", String[].class);
            main.setAccessible(true);
            try {
                main.invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
    }
}
