import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Links (so: verifies) every class of a JAR or directory without initialising any, and prints one line for each that fails.
 * Arguments: the JAR or directory, then more class path elements. Run with -Xverify:all.
 */
public class LinkAll {
    public static void main(String[] args) throws IOException {
        List<URL> path = new ArrayList<>();
        for (String arg : args) path.add(Path.of(arg).toUri().toURL());
        TreeSet<String> names = new TreeSet<>();
        File first = new File(args[0]);
        if (first.isDirectory()) {
            for (String file : first.list()) names.add(file);
        } else {
            try (JarFile jar = new JarFile(first)) {
                jar.stream().map(JarEntry::getName).forEach(names::add);
            }
        }
        ClassLoader loader = new URLClassLoader(path.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
        int linked = 0;
        for (String file : names) {
            if (!file.endsWith(".class") || file.startsWith("META-INF/")) continue;
            String name = file.substring(0, file.length() - 6).replace('/', '.');
            try {
                // HotSpot links a class before it reflects on it (JVM_GetClassDeclaredConstructors).
                Class.forName(name, false, loader).getDeclaredConstructors();
                linked++;
            } catch (VerifyError | ClassFormatError e) {
                System.out.println(name + "\t" + e.getClass().getName() + "\t" + firstLine(e));
            } catch (Throwable e) {
                // Such as a superclass that is not on the class path.
                System.out.println(name + "\t" + e.getClass().getName());
            }
        }
        System.out.println("linked\t" + linked);
    }

    private static String firstLine(Throwable e) {
        String message = String.valueOf(e.getMessage());
        return message.replace("\n", " | ");
    }
}
