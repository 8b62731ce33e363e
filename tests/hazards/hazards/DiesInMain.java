package hazards;

/** An exception nobody catches: standard error and exit code are the program's. */
class DiesInMain {
    static int fall(int n) { // activations: 4, items: 1, unfinished: 3
        if (n == 0) {
            throw new IllegalStateException("at the bottom"); // runs: 1
        }
        return fall(n - 1); // runs: 0
    }

    static void main(String[] args) { // activations: 1, items: 0, unfinished: 1
        System.out.println(fall(3));
    }
}
