package acme;

/** The program of the recorded profile, whose line numbers it has; nobody runs it. */
final class Ledger {

    private final double[] values = new double[64];
    private long balance;































    /** Sets the balance twice. */
    void post(long amount) {
        this.balance = 0;
        // What was stored above is overwritten before anything reads it.
        this.balance = amount;
    }


    /** Adds up values that nobody has changed. */
    double sum() {
        double sum = 0;
        int i = 0;
        while (i < values.length) {
            sum += values[i];
            i++;
        }
        return sum;
    }
}
