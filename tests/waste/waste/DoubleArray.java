package waste;

/** Elements of an array of double, one after the other; values that differ do so by far more than the tolerance. */
final class DoubleArray {
    static final All.Program[] SURE = {
        DoubleArray::dead100, DoubleArray::dead0, DoubleArray::silentStore100, DoubleArray::silentStore0, DoubleArray::silentLoad100, DoubleArray::silentLoad0,
    };
    static final All.Program[] HALF = {DoubleArray::dead50, DoubleArray::silentStore50, DoubleArray::silentLoad50};

    static double value(int i) {
        return (i % 7) * 10.0 + 1.0;
    }

    // dead_store 100: DoubleArray.overwritten -> DoubleArray.over
    static void overwritten(double[] array, int k, double value) {
        array[k] = value;
    }

    static void over(double[] array, int k, double value) {
        array[k] = value;
    }

    static long dead100(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            overwritten(a, i & 7, value(i));
            over(a, i & 7, value(i + 1));
        }
        return (long) sum;
    }

    // dead_store 0: DoubleArray.read -> DoubleArray.read
    static void read(double[] array, int k, double value) {
        array[k] = value;
    }

    static double reader(double[] array, int k) {
        return array[k];
    }

    static long dead0(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            read(a, i & 7, value(i));
            sum += reader(a, i & 7);
        }
        return (long) sum;
    }

    // dead_store 50: DoubleArray.halfRead -> DoubleArray.halfRead
    static void halfRead(double[] array, int k, double value) {
        array[k] = value;
    }

    static double halfReader(double[] array, int k) {
        return array[k];
    }

    static long dead50(int rounds) {
        double[] a = new double[8];
        double[] c = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfRead(a, i & 7, value(i));
            sum += halfReader(((i >> 3) & 1) == 0 ? a : c, i & 7);
        }
        return (long) sum;
    }

    // silent_store 100: DoubleArray.same -> DoubleArray.same
    static void same(double[] array, int k, double value) {
        array[k] = value;
    }

    static long silentStore100(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            same(a, i & 7, value(7));
        }
        return (long) sum;
    }

    // silent_store 0: DoubleArray.new_ -> DoubleArray.new_
    static void new_(double[] array, int k, double value) {
        array[k] = value;
    }

    static long silentStore0(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            new_(a, i & 7, value((i >> 3)));
        }
        return (long) sum;
    }

    // silent_store 50: DoubleArray.halfSame -> DoubleArray.halfSame
    static void halfSame(double[] array, int k, double value) {
        array[k] = value;
    }

    static long silentStore50(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfSame(a, i & 7, value((i >> 3) >> 1));
        }
        return (long) sum;
    }

    // silent_load 100: DoubleArray.again -> DoubleArray.again
    static double again(double[] array, int k) {
        return array[k];
    }

    static long silentLoad100(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += again(a, i & 7);
        }
        return (long) sum;
    }

    // silent_load 0: DoubleArray.changed -> DoubleArray.changed
    static double changed(double[] array, int k) {
        return array[k];
    }

    static void change(double[] array, int k, double value) {
        array[k] = value;
    }

    static long silentLoad0(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            change(a, i & 7, value((i >> 3)));
            sum += changed(a, i & 7);
        }
        return (long) sum;
    }

    // silent_load 50: DoubleArray.halfChanged -> DoubleArray.halfChanged
    static double halfChanged(double[] array, int k) {
        return array[k];
    }

    static void halfChange(double[] array, int k, double value) {
        array[k] = value;
    }

    static long silentLoad50(int rounds) {
        double[] a = new double[8];
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfChange(a, i & 7, value((i >> 3) >> 1));
            sum += halfChanged(a, i & 7);
        }
        return (long) sum;
    }
}
