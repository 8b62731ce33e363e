import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** {@code JdkClasses DIRECTORY CLASS...}: writes the class files of these classes of java.base (names with slashes), of their superclasses and of Throwable. */
public final class JdkClasses {
    public static void main(String[] args) throws IOException, ClassNotFoundException {
        Path out = Path.of(args[0]);
        write(out, Throwable.class);
        for (int i = 1; i < args.length; i++) {
            for (Class<?> c = Class.forName(args[i].replace('/', '.'), false, null); c != null; c = c.getSuperclass()) {
                write(out, c);
            }
        }
    }

    private static void write(Path out, Class<?> c) throws IOException {
        String file = c.getName().replace('.', '/') + ".class";
        try (InputStream in = ClassLoader.getSystemResourceAsStream(file)) {
            Files.write(out.resolve(c.getName() + ".class"), in.readAllBytes());
        }
    }
}
