package waste;

/** Single bytes of an array. */
final class ByteArray {
    static final All.Program[] SURE = {};
    static final All.Program[] HALF = {ByteArray::dead50, ByteArray::silentStore50, ByteArray::silentLoad50};

    // dead_store 50: ByteArray.halfRead -> ByteArray.halfRead
    static void halfRead(byte[] array, int k, byte value) {
        array[k] = value;
    }

    static byte halfReader(byte[] array, int k) {
        return array[k];
    }

    static long dead50(int rounds) {
        byte[] a = new byte[16];
        byte[] c = new byte[16];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfRead(a, 5, (byte) i);
            sum += halfReader((i & 1) == 0 ? a : c, 5);
        }
        return sum;
    }

    // silent_store 50: ByteArray.halfSame -> ByteArray.halfSame
    static void halfSame(byte[] array, int k, byte value) {
        array[k] = value;
    }

    static long silentStore50(int rounds) {
        byte[] a = new byte[16];
        for (int i = 0; i < rounds; i++) {
            halfSame(a, 5, (byte) (i >> 1));
        }
        return a[5];
    }

    // silent_load 50: ByteArray.halfChanged -> ByteArray.halfChanged
    static byte halfChanged(byte[] array, int k) {
        return array[k];
    }

    static void halfChange(byte[] array, int k, byte value) {
        array[k] = value;
    }

    static long silentLoad50(int rounds) {
        byte[] a = new byte[16];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            halfChange(a, 5, (byte) (i >> 1));
            sum += halfChanged(a, 5);
        }
        return sum;
    }
}
