package waste;

/** A field that refers to one of two objects. Collectors that load a field before they store to it have no dead stores to references. */
final class Reference {
    static final All.Program[] SURE = {Reference::dead100, Reference::silentLoad100};
    static final All.Program[] HALF = {Reference::silentStore50, Reference::silentLoad50};

    static final class Box {
        Object to;
    }

    static final Object[] TWO = {"one", "two"};

    // dead_store 100: Reference.overwritten -> Reference.over
    static void overwritten(Box box, Object to) {
        box.to = to;
    }

    static void over(Box box, Object to) {
        box.to = to;
    }

    static long dead100(int rounds) {
        Box a = new Box();
        for (int i = 0; i < rounds; i++) {
            overwritten(a, TWO[i & 1]);
            over(a, TWO[i + 1 & 1]);
        }
        return a.to == TWO[0] ? 1 : 2;
    }

    // silent_store 50: Reference.halfSame -> Reference.halfSame
    static void halfSame(Box box, Object to) {
        box.to = to;
    }

    static long silentStore50(int rounds) {
        Box a = new Box();
        for (int i = 0; i < rounds; i++) {
            halfSame(a, TWO[i >> 1 & 1]);
        }
        return a.to == TWO[0] ? 1 : 2;
    }

    // silent_load 100: Reference.again -> Reference.again
    static Object again(Box box) {
        return box.to;
    }

    static long silentLoad100(int rounds) {
        Box a = new Box();
        a.to = TWO[1];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += again(a) == TWO[0] ? 1 : 2;
        }
        return sum;
    }

    // silent_load 50: Reference.halfChanged -> Reference.halfChanged
    static Object halfChanged(Box box) {
        return box.to;
    }

    static void halfChange(Box box, Object to) {
        box.to = to;
    }

    static long silentLoad50(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfChange(a, TWO[i >> 1 & 1]);
            sum += halfChanged(a) == TWO[0] ? 1 : 2;
        }
        return sum;
    }
}
