package sites;

import java.io.InputStream;

/** The same class in several loaders: a line is a line. */
class Loaders {
    static class Own extends ClassLoader {
        Own() {
            super(Loaders.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("sites.Loaded")) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) { // upto: 9 java.lang.String
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    // ClassLoader's constructor asks for its hash.
    // unknown: 3 sites.Loaders$Own
    static void run() throws Exception {
        for (int i = 1; i <= 3; i++) {
            Own loader = Keep.it(new Own()); // live: 0 sites.Loaders$Own
            loader.loadClass("sites.Loaded").getMethod("make", int.class).invoke(null, i);
        }
        Loaded.make(3);
    }
}
