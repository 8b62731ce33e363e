package hazards;

/** Runtime.halt: no shutdown hook runs, but the JVM still ends in order. */
class Halt {
    static void hook() { // activations: 0
        System.out.println("must not run");
    }

    static int work(int n) { // activations: 1, items: 6
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 5
        }
        return sum;
    }

    static void main(String[] args) { // activations: 1, items: 0, unfinished: 1
        Runtime.getRuntime().addShutdownHook(new Thread(Halt::hook));
        System.out.println(work(5));
        System.out.flush();
        Runtime.getRuntime().halt(4);
    }
}
