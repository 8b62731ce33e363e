package hazards;

/** The stack overflows, perhaps inside a probe; how deep differs with frame size, but everything else must be counted as ever. */
class StackOverflow {
    static int down(int n) { // varies
        return down(n + 1) + n;
    }

    static int counted(int n) { // activations: 8, items: 48, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 40
        }
        return sum;
    }

    static int attempt() { // activations: 4, unfinished: 4
        try {
            return down(0); // runs: 0
        } catch (StackOverflowError e) {
            return counted(5); // runs: 4
        }
    }

    static void all(int[] result) { // activations: 1, items: 5
        for (int i = 0; i < 4; i++) {
            result[0] += attempt() + counted(5); // runs: 4
        }
    }

    static void main(String[] args) throws Exception { // activations: 1
        int[] result = new int[1];
        // A small stack: the witness is slow on deep ones.
        Thread thread = new Thread(null, () -> all(result), "small", 256 << 10);
        thread.start();
        thread.join();
        System.out.println(result[0]);
    }
}
