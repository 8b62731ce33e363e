package hazards;

/** Monitors: the catch-all handler of a synchronized block covers itself, and locking must stay balanced whatever is inserted. */
class Synced {
    private int value;
    private boolean turn;

    int block(int n) { // activations: 2, unfinished: 1
        synchronized (this) {
            value += 10 / n;
        }
        return value; // runs: 1
    }

    synchronized int method(int n) { // activations: 2, paths: 2, items: 2, unfinished: 0
        if (n < 0) {
            throw new IllegalArgumentException(); // runs: 1
        }
        return value += n; // runs: 1
    }

    static synchronized int ofClass(int n) { // activations: 1, paths: 3, items: 6
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 5
        }
        return sum;
    }

    int loop(int n) { // activations: 1, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            synchronized (this) {
                if (i % 2 == 0) {
                    continue; // runs: 4
                }
                synchronized (Synced.class) {
                    sum += i; // runs: 3
                }
            }
        }
        return sum;
    }

    // Two threads in turn: how often each wakes for nothing is not fixed, so only the calls are counted here.
    synchronized void pass(boolean mine) throws InterruptedException { // activations: 40, varies
        while (turn != mine) {
            wait();
        }
        turn = !mine;
        notifyAll();
    }

    void play(boolean mine) { // activations: 2, paths: 3, items: 42, unfinished: 0
        try {
            for (int i = 0; i < 20; i++) {
                pass(mine); // runs: 40
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e); // runs: 0
        }
    }

    static void main(String[] args) throws Exception { // activations: 1
        Synced s = new Synced();
        int n = s.block(5);
        try {
            s.block(0);
        } catch (ArithmeticException e) {
            n += 1;
        }
        try {
            n += s.method(3);
            s.method(-1);
        } catch (IllegalArgumentException e) {
            n += 1;
        }
        Thread other = new Thread(() -> s.play(true));
        other.start();
        s.play(false);
        other.join();
        System.out.println(n + ofClass(5) + s.loop(7));
    }
}
