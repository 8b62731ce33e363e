package sites;

/** Chains of constructors: an object is its `new`'s alone, whatever the constructors above do. */
class Inherited {
    static class Base {
        final Object part;
        int[] state = {1, 2}; // live: 21 int[]

        Base() {
            this(new Object()); // live: 20 java.lang.Object
        }

        Base(Object part) {
            this.part = part;
            prepare();
        }

        void prepare() {
        }
    }

    static class Middle extends Base {
        Object extra;

        Middle(int n) {
            super();
            if (n > 0) {
                extra = new long[n]; // live: 11 long[]
            }
        }
    }

    static class Leaf extends Middle {
        Object early;
        Object late = new short[1]; // live: 9 short[]

        Leaf(int n) {
            super(n % 2 == 0 ? n : -n);
        }

        @Override
        void prepare() {
            early = new byte[1]; // live: 9 byte[]
        }
    }

    static class Builder<T extends Base> {
        T make(int n) {
            @SuppressWarnings("unchecked")
            T made = (T) (n < 3 ? new Leaf(n) : new Middle(n)); // live: 3 sites.Inherited$Leaf, 7 sites.Inherited$Middle
            return made;
        }
    }

    interface Maker {
        default Object make() {
            return new Base(); // live: 2 sites.Inherited$Base
        }

        static Object other() {
            return new Base(null); // live: 1 sites.Inherited$Base
        }
    }

    static class Recursive {
        final Recursive next;

        Recursive(int depth) {
            next = depth == 0 ? null : new Recursive(depth - 1); // live: 4 sites.Inherited$Recursive
        }
    }

    static void run() {
        for (int i = 0; i < 6; i++) {
            Keep.it(new Leaf(i + 1)); // live: 6 sites.Inherited$Leaf
        }
        Builder<Base> builder = new Builder<>(); // live: 0 sites.Inherited$Builder
        for (int i = 0; i < 10; i++) {
            Keep.it(builder.make(i));
        }
        Maker maker = new Maker() { // live: 1 sites.Inherited$1
        };
        Keep.it(maker);
        Keep.it(maker.make());
        Keep.it(maker.make());
        Keep.it(Maker.other());
        Keep.it(new Recursive(4)); // live: 1 sites.Inherited$Recursive
        Keep.it(new Base() { // live: 1 sites.Inherited$2
        });
        Keep.it(new Base()); // live: 1 sites.Inherited$Base
    }
}
