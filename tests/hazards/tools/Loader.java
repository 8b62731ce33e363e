package tools;

import java.util.function.IntUnaryOperator;

/** A loader that defines one class from bytes. */
public final class Loader extends ClassLoader {
    public Loader() {
        super(Loader.class.getClassLoader());
    }

    public Class<?> define(String name, byte[] bytes) {
        return defineClass(name, bytes, 0, bytes.length);
    }

    /** Defines a class in a loader of its own and makes an instance. */
    public static IntUnaryOperator load(String name, byte[] bytes) {
        try {
            return (IntUnaryOperator) new Loader().define(name, bytes).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A class that implements IntUnaryOperator: the code of applyAsInt is to be added (local 1 is the argument). */
    public static Asm operator(int major, String name, String source) {
        return new Asm(major, name.replace('.', '/'), source).implement("java/util/function/IntUnaryOperator");
    }
}
