import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/** A class is being loaded while an agent comes: its bytes are read, its superclass is not there yet. */
public class Half {
    public static final List<Object> KEPT = new ArrayList<>();

    public static class Above {
    }

    public static class Below extends Above implements IntConsumer {
        @Override
        public void accept(int n) {
            for (int i = 0; i < n; i++) {
                KEPT.add(new int[2]); // half
            }
        }
    }

    /** Defines `Below` itself, and finds its superclass when it is told to. */
    static class Slow extends ClassLoader {
        final BufferedReader in;

        Slow(BufferedReader in) {
            this.in = in;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            try {
                if (name.equals("Half$Above")) {
                    System.out.println("ready");
                    in.readLine();
                }
                if (name.equals("Half$Below")) {
                    try (InputStream bytes = Half.class.getResourceAsStream("Half$Below.class")) {
                        byte[] all = bytes.readAllBytes();
                        return defineClass(name, all, 0, all.length);
                    }
                }
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
            return super.loadClass(name, resolve);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        IntConsumer below = (IntConsumer) new Slow(in).loadClass("Half$Below").getDeclaredConstructor().newInstance();
        System.out.println("go: done");
        in.readLine();
        below.accept(60);
        System.out.println("on: done");
        in.readLine();
    }
}
