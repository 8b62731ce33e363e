import java.util.Arrays;
import java.util.Random;

/** Compresses generated text after Lempel, Ziv and Welch, and restores it: {@code Lzw KILOBYTES ROUNDS}. */
public final class Lzw {
    private static final int FIRST_BITS = 9;
    private static final int MAX_BITS = 16;
    private static final int CLEAR = 256;
    private static final int FIRST_CODE = 257;

    /** A growing array of bits. */
    private static final class Bits {
        private byte[] bytes = new byte[1024];
        private int buffered;
        private int free = 8;
        private int length;

        void put(int code, int bits) {
            while (bits > 0) {
                int now = Math.min(bits, free);
                bits -= now;
                free -= now;
                buffered |= (code >>> bits & (1 << now) - 1) << free;
                if (free == 0) {
                    flush();
                }
            }
        }

        void flush() {
            if (length == bytes.length) {
                bytes = Arrays.copyOf(bytes, 2 * length);
            }
            bytes[length++] = (byte) buffered;
            buffered = 0;
            free = 8;
        }

        byte[] toBytes() {
            if (free < 8) {
                flush();
            }
            return Arrays.copyOf(bytes, length);
        }
    }

    /** Reads what {@link Bits} wrote. */
    private static final class BitReader {
        private final byte[] bytes;
        private long at;

        BitReader(byte[] bytes) {
            this.bytes = bytes;
        }

        int get(int bits) {
            int code = 0;
            for (int i = 0; i < bits; i++, at++) {
                code = code << 1 | bytes[(int) (at >> 3)] >> (7 - (at & 7)) & 1;
            }
            return code;
        }
    }

    /** Strings as (code of the prefix, last byte), found by hash. */
    private static final class Dictionary {
        private final int[] keys = new int[1 << MAX_BITS + 1];
        private final int[] codes = new int[keys.length];
        private int next;

        Dictionary() {
            clear();
        }

        void clear() {
            Arrays.fill(keys, -1);
            next = FIRST_CODE;
        }

        boolean isFull() {
            return next == 1 << MAX_BITS;
        }

        /** The code of a string, or -1 after it was added. */
        int findOrAdd(int prefix, int last) {
            int key = prefix << 8 | last;
            int slot = key * 0x9E3779B1 >>> 32 - MAX_BITS - 1;
            while (keys[slot] != -1) {
                if (keys[slot] == key) {
                    return codes[slot];
                }
                slot = slot + 1 & keys.length - 1;
            }
            keys[slot] = key;
            codes[slot] = next++;
            return -1;
        }

        int bits() {
            return Math.max(FIRST_BITS, 32 - Integer.numberOfLeadingZeros(next - 1));
        }
    }

    static byte[] compress(byte[] text) {
        Bits out = new Bits();
        Dictionary dictionary = new Dictionary();
        int prefix = text[0] & 0xff;
        for (int i = 1; i < text.length; i++) {
            int last = text[i] & 0xff;
            int bits = dictionary.bits();
            if (dictionary.isFull()) {
                out.put(prefix, bits);
                out.put(CLEAR, bits);
                dictionary.clear();
                prefix = last;
                continue;
            }
            int code = dictionary.findOrAdd(prefix, last);
            if (code >= 0) {
                prefix = code;
            } else {
                out.put(prefix, bits);
                prefix = last;
            }
        }
        out.put(prefix, dictionary.bits());
        return out.toBytes();
    }

    static byte[] restore(byte[] packed, int length) {
        BitReader in = new BitReader(packed);
        int[] prefixes = new int[1 << MAX_BITS];
        byte[] lasts = new byte[1 << MAX_BITS];
        byte[] out = new byte[length];
        byte[] string = new byte[1 << MAX_BITS];
        int at = 0;
        int next = FIRST_CODE;
        int previous = -1;
        while (at < length) {
            int largest = previous < 0 ? next - 1 : Math.min(next, (1 << MAX_BITS) - 1);
            int code = in.get(Math.max(FIRST_BITS, 32 - Integer.numberOfLeadingZeros(largest)));
            if (code == CLEAR) {
                next = FIRST_CODE;
                previous = -1;
                continue;
            }
            // The string of the code, backwards. The one code that is not known yet is the string before and its own first byte.
            int n = 0;
            int c = code;
            if (code == next && previous >= 0) {
                n = 1;
                c = previous;
            }
            while (c > CLEAR) {
                string[n++] = lasts[c];
                c = prefixes[c];
            }
            string[n++] = (byte) c;
            if (code == next && previous >= 0) {
                string[0] = (byte) c;
            }
            for (int i = n - 1; i >= 0; i--) {
                out[at++] = string[i];
            }
            if (previous >= 0) {
                prefixes[next] = previous;
                lasts[next] = (byte) c;
                next++;
            }
            previous = code;
        }
        return out;
    }

    private static byte[] text(int length) {
        Random random = new Random(77);
        byte[][] words = new byte[2000][];
        for (int i = 0; i < words.length; i++) {
            words[i] = (Integer.toString(random.nextInt(1 << 2 + random.nextInt(28)), 36) + " ").getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        }
        byte[] text = new byte[length];
        int at = 0;
        while (at < length) {
            double x = random.nextDouble();
            byte[] word = words[(int) (x * x * x * words.length)];
            int n = Math.min(word.length, length - at);
            System.arraycopy(word, 0, text, at, n);
            at += n;
        }
        return text;
    }

    public static void main(String[] args) {
        byte[] text = text(Integer.parseInt(args[0]) * 1024);
        Check check = new Check();
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            byte[] packed = compress(text);
            if (!Arrays.equals(text, restore(packed, text.length))) {
                throw new IllegalStateException("not what was compressed");
            }
            check.add(packed);
            text[round % text.length]++;
        }
        check.print("lzw");
    }
}
