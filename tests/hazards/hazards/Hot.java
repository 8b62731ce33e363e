package hazards;

/** Hot enough to be compiled while it runs: on-stack replacement, inlining, and a branch that is first taken in compiled code (deoptimization). */
class Hot {
    static int loop(int n, int late) { // activations: 1, paths: 5, items: 70001, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            if (i >= late) {
                sum ^= i; // runs: 1000
            } else if ((i & 1) == 0) {
                sum += i; // runs: 34500
            } else {
                sum -= 3; // runs: 34500
            }
        }
        return sum;
    }

    static int length(Object o) { // activations: 20000, paths: 3, items: 20000, unfinished: 0
        if (o instanceof String) {
            return ((String) o).length(); // runs: 19000
        }
        return o instanceof Integer ? 4 : 8; // runs: 1000
    }

    static int calls(int n) { // activations: 1, items: 20001
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += length(i < 19000 ? "abc" : i % 2 == 0 ? (Object) i : (Object) 1L); // runs: 20000
        }
        return sum;
    }

    static int caughtWhenHot(int n) { // activations: 1, unfinished: 25
        int caught = 0;
        int[] cells = new int[7];
        for (int i = 0; i < n; i++) {
            try {
                cells[i % 400 == 399 ? 7 : i % 7] += i;
            } catch (ArrayIndexOutOfBoundsException e) {
                caught++; // runs: 25
            }
        }
        return caught;
    }

    static void main(String[] args) { // activations: 1
        System.out.println(loop(70_000, 69_000) + calls(20_000) + caughtWhenHot(10_000));
    }
}
