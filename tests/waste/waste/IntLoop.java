package waste;

/** Loops over an array of int, which the compiler unrolls, makes vectors of, or replaces by a stub. */
final class IntLoop {
    static final All.Program[] SURE = {
        IntLoop::dead100, IntLoop::dead0, IntLoop::silentStore100, IntLoop::silentStore0, IntLoop::silentLoad100, IntLoop::silentLoad0,
    };
    static final All.Program[] HALF = {IntLoop::dead50, IntLoop::silentStore50, IntLoop::silentLoad50};

    // dead_store 100: IntLoop.overwritten -> IntLoop.over
    static void overwritten(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static void over(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static long dead100(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            overwritten(a, i);
            over(a, i + 1);
        }
        return (long) sum;
    }

    // dead_store 0: IntLoop.read -> IntLoop.read
    static void read(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static int reader(int[] array) {
        int sum = 0;
        for (int k = 0; k < array.length; k++) {
            sum += array[k];
        }
        return sum;
    }

    static long dead0(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            read(a, i);
            sum += reader(a);
        }
        return (long) sum;
    }

    // dead_store 50: IntLoop.halfRead -> IntLoop.halfRead
    static void halfRead(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static int halfReader(int[] array) {
        int sum = 0;
        for (int k = 0; k < array.length; k++) {
            sum += array[k];
        }
        return sum;
    }

    static long dead50(int rounds) {
        int[] a = new int[64];
        int[] c = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfRead(a, i);
            sum += halfReader((i & 1) == 0 ? a : c);
        }
        return (long) sum;
    }

    // silent_store 100: IntLoop.same -> IntLoop.same
    static void same(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static long silentStore100(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            same(a, 7);
        }
        return (long) sum;
    }

    // silent_store 0: IntLoop.new_ -> IntLoop.new_
    static void new_(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static long silentStore0(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            new_(a, i);
        }
        return (long) sum;
    }

    // silent_store 50: IntLoop.halfSame -> IntLoop.halfSame
    static void halfSame(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static long silentStore50(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfSame(a, i >> 1);
        }
        return (long) sum;
    }

    // silent_load 100: IntLoop.again -> IntLoop.again
    static int again(int[] array) {
        int sum = 0;
        for (int k = 0; k < array.length; k++) {
            sum += array[k];
        }
        return sum;
    }

    static long silentLoad100(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += again(a);
        }
        return (long) sum;
    }

    // silent_load 0: IntLoop.changed -> IntLoop.changed
    static int changed(int[] array) {
        int sum = 0;
        for (int k = 0; k < array.length; k++) {
            sum += array[k];
        }
        return sum;
    }

    static void change(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static long silentLoad0(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            change(a, i);
            sum += changed(a);
        }
        return (long) sum;
    }

    // silent_load 50: IntLoop.halfChanged -> IntLoop.halfChanged
    static int halfChanged(int[] array) {
        int sum = 0;
        for (int k = 0; k < array.length; k++) {
            sum += array[k];
        }
        return sum;
    }

    static void halfChange(int[] array, int value) {
        for (int k = 0; k < array.length; k++) {
            array[k] = value;
        }
    }

    static long silentLoad50(int rounds) {
        int[] a = new int[64];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfChange(a, i >> 1);
            sum += halfChanged(a);
        }
        return (long) sum;
    }
}
