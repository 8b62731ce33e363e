package waste;

/**
 * Programs whose share of useless loads and stores is known. Run with -XX:CompileCommand=dontinline,waste.*::* so that each access stands in compiled code of its own, and C2
 * cannot see that it is useless. A comment {@code // KIND PERCENT: Class.method -> Class.method} says: of the accesses of this kind that the first method makes,
 * so many per cent are waste, and the second method makes the other access of the pair.
 *
 * <p>Where half of the accesses are waste, both halves take the same way through the code, so that they take the same time.
 */
public final class All {
    /** Something that runs for a number of rounds and returns what it computed. */
    interface Program {
        long run(int rounds);
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        Program[][] sure = {LongField.SURE, DoubleArray.SURE, IntLoop.SURE, ByteArray.SURE, Reference.SURE, Classes.SURE};
        Program[][] half = {LongField.HALF, DoubleArray.HALF, IntLoop.HALF, ByteArray.HALF, Reference.HALF, Classes.HALF};
        // A share of one half takes more samples to know than one of nothing or all.
        System.out.println(run(sure, rounds * 3) * 31 + run(half, rounds * 8));
    }

    private static long run(Program[][] suites, int rounds) {
        long sum = 0;
        for (Program[] suite : suites) {
            for (Program program : suite) {
                sum = sum * 31 + program.run(rounds);
            }
        }
        return sum;
    }
}
