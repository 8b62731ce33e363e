package waste;

/** A field of eight bytes. */
final class LongField {
    static final All.Program[] SURE = {
        LongField::dead100, LongField::dead0, LongField::silentStore100, LongField::silentStore0, LongField::silentLoad100, LongField::silentLoad0,
    };
    static final All.Program[] HALF = {LongField::dead50, LongField::silentStore50, LongField::silentLoad50};

    static final class Box {
        long x;
    }

    // dead_store 100: LongField.overwritten -> LongField.over
    static void overwritten(Box box, long value) {
        box.x = value;
    }

    static void over(Box box, long value) {
        box.x = value;
    }

    static long dead100(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            overwritten(a, i);
            over(a, i + 1);
        }
        return (long) sum;
    }

    // dead_store 0: LongField.read -> LongField.read
    static void read(Box box, long value) {
        box.x = value;
    }

    static long reader(Box box) {
        return box.x;
    }

    static long dead0(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            read(a, i);
            sum += reader(a);
        }
        return (long) sum;
    }

    // dead_store 50: LongField.halfRead -> LongField.halfRead
    static void halfRead(Box box, long value) {
        box.x = value;
    }

    static long halfReader(Box box) {
        return box.x;
    }

    static long dead50(int rounds) {
        Box a = new Box();
        Box c = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfRead(a, i);
            sum += halfReader((i & 1) == 0 ? a : c);
        }
        return (long) sum;
    }

    // silent_store 100: LongField.same -> LongField.same
    static void same(Box box, long value) {
        box.x = value;
    }

    static long silentStore100(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            same(a, 7);
        }
        return (long) sum;
    }

    // silent_store 0: LongField.new_ -> LongField.new_
    static void new_(Box box, long value) {
        box.x = value;
    }

    static long silentStore0(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            new_(a, i);
        }
        return (long) sum;
    }

    // silent_store 50: LongField.halfSame -> LongField.halfSame
    static void halfSame(Box box, long value) {
        box.x = value;
    }

    static long silentStore50(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfSame(a, i >> 1);
        }
        return (long) sum;
    }

    // silent_load 100: LongField.again -> LongField.again
    static long again(Box box) {
        return box.x;
    }

    static long silentLoad100(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += again(a);
        }
        return (long) sum;
    }

    // silent_load 0: LongField.changed -> LongField.changed
    static long changed(Box box) {
        return box.x;
    }

    static void change(Box box, long value) {
        box.x = value;
    }

    static long silentLoad0(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            change(a, i);
            sum += changed(a);
        }
        return (long) sum;
    }

    // silent_load 50: LongField.halfChanged -> LongField.halfChanged
    static long halfChanged(Box box) {
        return box.x;
    }

    static void halfChange(Box box, long value) {
        box.x = value;
    }

    static long silentLoad50(int rounds) {
        Box a = new Box();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfChange(a, i >> 1);
            sum += halfChanged(a);
        }
        return (long) sum;
    }
}
