package hazards;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Two classes, each of which extends the other: the JVM finds the circle while it loads one for the other. */
class Circular {
    static class P extends Q {}

    static class Q {}

    /** Defines Circular$P, and for Circular$Q the same with the two names exchanged. */
    static final class Circle extends ClassLoader {
        int asked;

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("hazards.Circular$")) {
                return super.loadClass(name, resolve);
            }
            asked++;
            byte[] bytes = bytes();
            if (name.endsWith("Q")) {
                exchange(bytes);
            }
            return defineClass(name, bytes, 0, bytes.length);
        }

        private static byte[] bytes() throws ClassNotFoundException {
            try (InputStream in = Circular.class.getResourceAsStream("Circular$P.class")) {
                return in.readAllBytes();
            } catch (IOException e) {
                throw new ClassNotFoundException("Circular$P", e);
            }
        }

        private static void exchange(byte[] bytes) {
            byte[] name = "Circular$".getBytes(StandardCharsets.US_ASCII);
            for (int i = 0; i + name.length < bytes.length; i++) {
                int same = 0;
                while (same < name.length && bytes[i + same] == name[same]) {
                    same++;
                }
                if (same == name.length) {
                    int last = i + same;
                    bytes[last] = bytes[last] == 'P' ? (byte) 'Q' : bytes[last] == 'Q' ? (byte) 'P' : bytes[last];
                }
            }
        }
    }

    static void main(String[] args) { // activations: 1
        Circle circle = new Circle();
        for (String name : new String[] {"P", "Q"}) {
            try {
                System.out.println(circle.loadClass("hazards.Circular$" + name)); // runs: 0
            } catch (ClassNotFoundException | LinkageError e) {
                System.out.println(e.getClass().getName() + " " + e.getMessage()); // runs: 2
            }
        }
        System.out.println(circle.asked);
    }
}
