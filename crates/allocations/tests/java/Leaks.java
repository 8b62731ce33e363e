import java.util.ArrayList;
import java.util.List;

/** Constructors: the comment on each says whether it lets go of the new object. */
public class Leaks {
    static Object sink;
    static final List<Object> ALL = new ArrayList<>();

    static class Fields {
        int a;
        Object b;

        Fields() { // safe
            a = 1;
            b = new Object();
        }

        Fields(Object b) { // safe
            this.b = b;
            if (b != null) {
                a = compute(2) + own();
            }
        }

        Fields(Object[] all) { // leaks
            all[0] = this;
        }

        Fields(long x) { // leaks
            sink = this;
        }

        Fields(Fields other) { // leaks
            other.b = this;
        }

        Fields(String s) { // leaks
            ALL.add(this);
        }

        Fields(float f) { // leaks
            synchronized (this) {
                a = 2;
            }
        }

        Fields(double d) { // leaks
            a = hashCode();
        }

        Fields(char c) { // leaks
            a = System.identityHashCode(this);
        }

        Fields(byte b) { // leaks
            locked();
        }

        Fields(short s) { // leaks
            Object other = this;
            for (int i = 0; i < 3; i++) {
                other = i == 1 ? ALL : other;
            }
            sink = other;
        }

        Fields(boolean b) { // leaks
            Runnable r = () -> a++;
            r.run();
        }

        Fields(int[] numbers) { // leaks
            throw new IllegalStateException(toString());
        }

        Fields(long[] numbers) { // safe
            if (getClass() == Fields.class && this != sink) {
                a = numbers.length;
            }
            hook();
        }

        static int compute(int x) {
            return x * 2;
        }

        private int own() {
            return a + 1;
        }

        synchronized void locked() {}

        void hook() {
            a++;
        }
    }

    static class Quiet extends Fields {
        Quiet() {} // safe

        Quiet(long[] numbers) { // safe
            super(numbers);
        }

        Quiet(String s) { // leaks
            super(s);
        }
    }

    static class Loud extends Fields {
        Loud() {} // safe

        Loud(long[] numbers) { // leaks
            super(numbers);
        }

        @Override
        void hook() {
            sink = this;
        }
    }

    static class Recursive {
        int depth;

        Recursive(int depth) { // safe
            this.depth = depth;
            down();
        }

        void down() {
            if (depth-- > 0) {
                up();
            }
        }

        void up() {
            down();
        }
    }

    static class Finalized {
        Finalized() {} // leaks

        @Override
        @SuppressWarnings("removal")
        protected void finalize() {
            sink = this;
        }
    }

    static class BelowFinalized extends Finalized {
        BelowFinalized() {} // leaks
    }

    static class Failure extends RuntimeException {
        Failure() {} // leaks
    }

    static class Longer extends ArrayList<Object> {
        Longer() {} // safe

        Longer(int size) { // leaks
            super(size);
            add(null);
        }
    }

    class Inner {
        Inner() {} // safe

        Inner(Object o) { // safe
            sink = Leaks.this;
        }

        Inner(int n) { // leaks
            new Inner(this).getClass();
            sink = new Object[] {this};
        }
    }

    static native void nothing();

    static class Native {
        Native() { // leaks
            touch();
        }

        native void touch();
    }

    abstract static class Base {
        Base() { // leaks
            hook();
        }

        abstract void hook();
    }

    static class Hooked extends Base {
        int a;

        Hooked() {} // leaks

        @Override
        void hook() {
            a++;
        }
    }
}
