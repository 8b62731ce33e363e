import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Links, so verifies, classes without initialising any, as they are and as they were rewritten. {@code Link JOBS...}: a job is a file of
 * lines: the jar, the jar of rewritten classes, the class path of both (one line, empty for the JDK's own), then for each class a line with its entry in both
 * jars. Prints {@code entry TAB error as it is TAB error when rewritten} for each class that fails rewritten (- for no error),
 * then {@code linked TAB classes TAB classes that fail in both TAB rewritten classes}. {@code Link --modules JAR} writes the JDK's own classes to a jar.
 */
public final class Link {
    public static void main(String[] args) throws IOException {
        if (args[0].equals("--modules")) {
            modules(Path.of(args[1]));
            return;
        }
        for (String job : args) {
            link(Files.readAllLines(Path.of(job)));
        }
    }

    private static void link(List<String> job) throws IOException {
        Map<String, ZipFile> open = new HashMap<>();
        ZipFile original = new ZipFile(job.get(0));
        ZipFile rewritten = new ZipFile(job.get(1));
        // Other versions of a class (META-INF/versions) come one group after another: a loader knows a name once.
        int linked = 0;
        int failing = 0;
        int changed = 0;
        Loader before = null;
        Loader after = null;
        String group = null;
        for (String entry : job.subList(3, job.size())) {
            String prefix = prefix(entry);
            if (!prefix.equals(group)) {
                group = prefix;
                before = new Loader(prefix, null, original, job.get(2), open);
                after = new Loader(prefix, rewritten, original, job.get(2), open);
            }
            String name = entry.substring(prefix.length(), entry.length() - 6).replace('/', '.');
            String errorBefore = error(before, name);
            String errorAfter = error(after, name);
            linked++;
            // Not so for java.*, which only the JDK's own loader may define.
            if (rewritten.getEntry(entry) != null && !name.startsWith("java.")) {
                changed++;
            }
            if (errorAfter != null) {
                if (errorBefore != null && kind(errorBefore).equals(kind(errorAfter))) {
                    failing++;
                } else {
                    System.out.println(entry + "\t" + (errorBefore == null ? "-" : errorBefore) + "\t" + errorAfter);
                }
            }
        }
        System.out.println("linked\t" + linked + "\t" + failing + "\t" + changed);
        for (ZipFile zip : open.values()) {
            zip.close();
        }
        original.close();
        rewritten.close();
    }

    /** {@code META-INF/versions/N/} or nothing. */
    private static String prefix(String entry) {
        return entry.startsWith("META-INF/versions/") ? entry.substring(0, entry.indexOf('/', 18) + 1) : "";
    }

    private static String error(Loader loader, String name) {
        try {
            // HotSpot links a class before it lists its methods (JVM_GetClassDeclaredMethods); for interfaces too, which have no constructors.
            Class.forName(name, false, loader).getDeclaredMethods();
            return null;
        } catch (Throwable e) {
            return e.getClass().getName() + ": " + String.valueOf(e.getMessage()).lines().limit(3).reduce("", (a, b) -> a + " | " + b.strip());
        }
    }

    private static String kind(String error) {
        return error.substring(0, error.indexOf(':'));
    }

    /** Loads from the rewritten classes first, then from the jar, then from the class path. Signatures of jars are not looked at. */
    private static final class Loader extends ClassLoader {
        private final String prefix;
        private final ZipFile rewritten;
        private final ZipFile original;
        private final String[] path;
        private final Map<String, ZipFile> open;

        Loader(String prefix, ZipFile rewritten, ZipFile original, String path, Map<String, ZipFile> open) {
            super(ClassLoader.getPlatformClassLoader());
            this.prefix = prefix;
            this.rewritten = rewritten;
            this.original = original;
            this.path = path.split(":");
            this.open = open;
        }

        /** The JDK's own classes (no class path) are to be defined once more, by this loader; otherwise the JDK comes first as usual. */
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!path[0].isEmpty() || name.startsWith("java.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> c = findLoadedClass(name);
                return c != null ? c : findClass(name);
            }
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            try {
                byte[] bytes = find(name.replace('.', '/') + ".class");
                if (bytes == null) {
                    throw new ClassNotFoundException(name);
                }
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }

        private byte[] find(String file) throws IOException {
            for (String entry : prefix.isEmpty() ? new String[] {file} : new String[] {prefix + file, file}) {
                byte[] bytes = rewritten == null ? null : read(rewritten, entry);
                if (bytes == null) {
                    bytes = read(original, entry);
                }
                if (bytes != null) {
                    return bytes;
                }
            }
            for (String jar : path) {
                if (!jar.isEmpty()) {
                    ZipFile zip = open.get(jar);
                    if (zip == null) {
                        open.put(jar, zip = new ZipFile(jar));
                    }
                    byte[] bytes = read(zip, file);
                    if (bytes != null) {
                        return bytes;
                    }
                }
            }
            return null;
        }

        private static byte[] read(ZipFile zip, String entry) throws IOException {
            ZipEntry e = zip.getEntry(entry);
            if (e == null) {
                return null;
            }
            try (InputStream in = zip.getInputStream(e)) {
                return in.readAllBytes();
            }
        }
    }

    private static void modules(Path jar) throws IOException {
        FileSystem runtime = FileSystems.getFileSystem(URI.create("jrt:/"));
        try (OutputStream file = Files.newOutputStream(jar); ZipOutputStream zip = new ZipOutputStream(file);
                Stream<Path> modules = Files.list(runtime.getPath("/modules"))) {
            zip.setMethod(ZipOutputStream.STORED);
            for (Path module : (Iterable<Path>) modules.sorted()::iterator) {
                try (Stream<Path> files = Files.walk(module)) {
                    for (Path f : (Iterable<Path>) files.filter(p -> p.toString().endsWith(".class") && !p.endsWith("module-info.class")).sorted()::iterator) {
                        byte[] bytes = Files.readAllBytes(f);
                        ZipEntry entry = new ZipEntry(module.relativize(f).toString());
                        CRC32 crc = new CRC32();
                        crc.update(bytes);
                        entry.setCrc(crc.getValue());
                        entry.setSize(bytes.length);
                        zip.putNextEntry(entry);
                        zip.write(bytes);
                        zip.closeEntry();
                    }
                }
            }
        }
    }
}
