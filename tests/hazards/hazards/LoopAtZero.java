package hazards;

import java.util.Iterator;
import java.util.List;

/** The loop head is the method's first instruction: its stack map frame has offset 0, and the entry is a loop head too. */
class LoopAtZero {
    static void drain(Iterator<?> it) { // activations: 2, paths: 2, items: 7, unfinished: 0
        while (it.hasNext()) {
            it.next(); // runs: 5
        }
    }

    static int spin(int n) { // activations: 1, paths: 2, items: 4
        do {
            n--; // runs: 4
        } while (n > 0);
        return n;
    }

    static void main(String[] args) { // activations: 1
        drain(List.of(1, 2, 3, 4, 5).iterator());
        drain(List.of().iterator());
        System.out.println(spin(4));
    }
}
