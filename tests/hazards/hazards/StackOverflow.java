package hazards;

/** The stack overflows, perhaps inside a probe; how deep differs with frame size, but everything else must be counted as ever. */
class StackOverflow {
    static int down(int n) { // varies
        return down(n + 1) + n;
    }

    static int counted(int n) { // activations: 20, items: 120, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 100
        }
        return sum;
    }

    static int attempt() { // activations: 10, unfinished: 10
        try {
            return down(0); // runs: 0
        } catch (StackOverflowError e) {
            return counted(5); // runs: 10
        }
    }

    static void main(String[] args) { // activations: 1
        int n = 0;
        for (int i = 0; i < 10; i++) {
            n += attempt() + counted(5); // runs: 10
        }
        System.out.println(n);
    }
}
