package hazards;

import java.util.List;

/** Every loop statement. A path ends at the back edge; the next begins at the loop head. */
class Loops {
    static int forLoop(int n) { // activations: 3, paths: 4, items: 15, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 12
        }
        return sum; // runs: 3
    }

    // The loop head is the first instruction: entering and going round start the same paths.
    static int whileLoop(int n) { // activations: 1, paths: 2, items: 8
        while (n > 1) {
            n = n / 2; // runs: 7
        }
        return n; // runs: 1
    }

    static int doLoop(int n) { // activations: 2, paths: 4, items: 6
        int rounds = 0;
        do {
            rounds++; // runs: 6
            n -= 3;
        } while (n > 0);
        return rounds;
    }

    static int each(List<Integer> list) { // activations: 1, paths: 3, items: 5
        int sum = 0;
        for (int x : list) {
            sum += x; // runs: 4
        }
        return sum;
    }

    static int foreverUntil(int n) { // activations: 1, paths: 3, items: 6
        int i = 0;
        for (;;) {
            if (i * i >= n) {
                break; // runs: 1
            }
            i++; // runs: 5
        }
        return i;
    }

    static int evensAndOdds(int n) { // activations: 1, paths: 4, items: 11
        int x = 0;
        for (int i = 0; i < n; i++) {
            if (i % 2 == 0) {
                x += i; // runs: 5
            } else {
                x -= i; // runs: 5
            }
        }
        return x;
    }

    static void main(String[] args) { // activations: 1
        System.out.println(forLoop(0) + forLoop(2) + forLoop(10) + whileLoop(128) + doLoop(1) + doLoop(15)
                + each(List.of(1, 2, 3, 4)) + foreverUntil(25) + evensAndOdds(10));
    }
}
