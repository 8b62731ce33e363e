import java.io.IOException;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * Prints name and descriptor of each instance method that an application's class can inherit from a class or interface that this JDK exports, in order; those
 * that it can also override first, then a line {@code final}, then the others.
 */
public final class JdkMethods {
    public static void main(String[] args) throws IOException {
        SortedSet<String> overridable = new TreeSet<>();
        SortedSet<String> inherited = new TreeSet<>();
        FileSystem runtime = FileSystems.getFileSystem(URI.create("jrt:/"));
        for (Module module : ModuleLayer.boot().modules()) {
            for (String name : module.getPackages()) {
                Path folder = runtime.getPath("/modules/" + module.getName() + "/" + name.replace('.', '/'));
                if (!module.isExported(name) || !Files.exists(folder)) {
                    continue;
                }
                try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*.class")) {
                    for (Path file : files) {
                        String simple = file.getFileName().toString().replace(".class", "");
                        if (!simple.endsWith("-info")) {
                            collect(name + "." + simple, overridable, inherited);
                        }
                    }
                }
            }
        }
        inherited.removeAll(overridable);
        overridable.forEach(System.out::println);
        System.out.println("final");
        inherited.forEach(System.out::println);
    }

    private static void collect(String name, SortedSet<String> overridable, SortedSet<String> inherited) {
        Method[] methods;
        try {
            Class<?> type = Class.forName(name, false, ClassLoader.getSystemClassLoader());
            if (!extensible(type)) {
                return;
            }
            methods = type.getDeclaredMethods();
        } catch (ClassNotFoundException | LinkageError e) {
            return; // of a module that this image lacks a dependency of
        }
        for (Method method : methods) {
            int modifiers = method.getModifiers();
            if (!Modifier.isStatic(modifiers) && visible(modifiers)) {
                MethodType type = MethodType.methodType(method.getReturnType(), method.getParameterTypes());
                (Modifier.isFinal(modifiers) ? inherited : overridable).add(method.getName() + type.toMethodDescriptorString());
            }
        }
    }

    /** Whether an application's class can extend or implement it. */
    private static boolean extensible(Class<?> type) {
        boolean extensible = !Modifier.isFinal(type.getModifiers());
        for (Class<?> c = type; c != null; c = c.getDeclaringClass()) {
            extensible &= visible(c.getModifiers());
        }
        return extensible;
    }

    private static boolean visible(int modifiers) {
        return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
    }
}
