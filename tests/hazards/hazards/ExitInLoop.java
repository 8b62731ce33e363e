package hazards;

/** System.exit in a loop: main never ends, its last path stays unfinished, the exit code is the program's. */
class ExitInLoop {
    static void main(String[] args) { // activations: 1, paths: 2, items: 7, unfinished: 1
        for (int i = 0; ; i++) {
            if (i == 7) {
                System.exit(3); // runs: 0
            }
        }
    }
}
