package hazards;

/** Loaded by a second agent before the profiler sees classes, and changed by it: the method below gets another name (tools.Rewriter). */
class Early {
    static int loop(int n) { // activations: 2, items: 9
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i * i; // runs: 7
        }
        return sum;
    }

    static void nameAAAA() {}

    static void main(String[] args) { // activations: 1
        System.out.println(loop(3) + " " + loop(4));
        for (java.lang.reflect.Method m : Early.class.getDeclaredMethods()) {
            if (m.getName().startsWith("name")) {
                System.out.println(m.getName());
            }
        }
    }
}
