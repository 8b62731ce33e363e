package hazards;

/** A second agent changes the constant 1234567 in this class, before or after the profiler gets it. */
class Rewritten {
    static int loop(int n) { // activations: 2, items: 9
        int sum = 1234567;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 7
        }
        return sum;
    }

    static void main(String[] args) { // activations: 1
        System.out.println(loop(3) + " " + loop(4));
    }
}
