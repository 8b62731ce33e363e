package demo;

/**
 * What `borescope demo paths` profiles: a reader of settings such as "width = 42;" and two loops to compare it with.
 *
 * <ul>
 * <li>{@link #parse}: one loop over tokens. Its four hot paths each take about a quarter of the iterations, so a profile of single
 *     paths says "all alike". Across iterations they follow one another in one fixed order: name, equals sign, number, semicolon.
 *     Whoever sees that can read a whole setting in one go.
 * <li>{@link #balance}: two paths, half of the iterations each, in no order at all: there is nothing to gain from longer sequences.
 * <li>{@link #checksum}: the most iterations, one path: hot but flat.
 * </ul>
 */
public final class Settings {
    private static final int RECORDS = 2_000;

    private final byte[] text;
    private int position;
    private long seed = 42;

    private Settings() {
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < RECORDS; i++) {
            if (random(50) == 0) {
                all.append("# a comment\n");
            }
            all.append("width").append((char) ('a' + random(26))).append('=').append(random(100_000)).append(";\n");
        }
        text = new byte[all.length()];
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) all.charAt(i);
        }
    }

    public static void main(String[] args) {
        int rounds = args.length > 0 ? Integer.parseInt(args[0]) : 10_000;
        Settings settings = new Settings();
        long result = 0;
        for (int round = 0; round < rounds; round++) {
            result = result * 31 + settings.parse();
            result += settings.balance(2_000);
            result ^= settings.checksum();
        }
        System.out.printf("demo: read %d settings, result %x%n", (long) rounds * RECORDS, result);
    }

    /** Reads all settings; returns the sum of name hash times number. */
    private long parse() {
        long sum = 0;
        int name = 0;
        int number = 0;
        position = 0;
        while (position < text.length) {
            int c = text[position];
            if (c >= 'a') {
                name = readName();
            } else if (c == '=') {
                number = 0;
                position++;
            } else if (c >= '0' && c <= '9') {
                number = readNumber();
            } else if (c == ';') {
                sum += (long) name * number;
                position += 2;
            } else {
                skipLine();
            }
        }
        return sum;
    }

    private int readName() {
        int hash = 0;
        while (text[position] >= 'a') {
            hash = hash * 31 + text[position++];
        }
        return hash;
    }

    private int readNumber() {
        int value = 0;
        while (text[position] >= '0' && text[position] <= '9') {
            value = value * 10 + text[position++] - '0';
        }
        return value;
    }

    private void skipLine() {
        while (text[position] != '\n') {
            position++;
        }
        position++;
    }

    /** Counts up or down as a random bit says. */
    private int balance(int steps) {
        int up = 0;
        int down = 0;
        for (int i = 0; i < steps; i++) {
            if (random(2) == 0) {
                up++;
            } else {
                down += 2;
            }
        }
        return up - down;
    }

    /** Adler-like sum of the text: one path. */
    private int checksum() {
        int a = 1;
        int b = 0;
        for (int i = 0; i < text.length; i++) {
            a += text[i];
            b += a;
        }
        return a ^ b;
    }

    /** The next pseudo-random number below bound (Knuth's MMIX constants): the same in every run. */
    private int random(int bound) {
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        return (int) ((seed >>> 33) % bound);
    }
}
