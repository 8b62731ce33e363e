package hazards;

/** Many threads run the same methods, several at once, and die: counts move with their arenas, none is lost. */
class Threads {
    static int work(int n) { // activations: 240, items: 2244, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            if (i % 3 == 0) {
                sum += i; // runs: 748
            } else {
                sum -= i; // runs: 1256
            }
        }
        return sum;
    }

    static void dies(int n) { // activations: 20, unfinished: 20
        int[] cells = new int[n];
        for (int i = 0; ; i++) {
            cells[i] = i; // runs: 190
        }
    }

    static void run(int id) { // activations: 240, paths: 1, items: 220, unfinished: 20
        work(id % 18);
        if (id % 12 == 11) {
            dies(id / 12);
        }
    }

    static void main(String[] args) throws Exception { // activations: 1
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> { });
        for (int wave = 0; wave < 30; wave++) {
            Thread[] threads = new Thread[8];
            for (int i = 0; i < 8; i++) {
                int id = wave * 8 + i;
                threads[i] = new Thread(() -> run(id));
                threads[i].start(); // runs: 240
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        Thread.setDefaultUncaughtExceptionHandler(null);
        System.out.println("joined");
    }
}
