package hazards;

/** Switches: dense, sparse, with shared targets and fall-through, on strings and enums, in loops. Edges to one target are one edge. */
class Switches {
    static int dense(int x) { // activations: 6, paths: 4, items: 6
        switch (x) {
            case 1:
                return 10; // runs: 1
            case 2:
                return 20; // runs: 1
            case 3:
                return 30; // runs: 1
            default:
                return 0; // runs: 3
        }
    }

    static int sparse(int x) { // activations: 4, paths: 4, items: 4
        switch (x) {
            case -1000:
                return 1; // runs: 1
            case 7:
                return 2; // runs: 1
            case 1_000_000:
                return 3; // runs: 1
        }
        return 4; // runs: 1
    }

    static int shared(int x) { // activations: 8, paths: 2, items: 8
        switch (x) {
            case 1:
            case 3:
            case 5:
            case 7:
                return 1; // runs: 4
            case 0:
            default:
                return 0; // runs: 4
        }
    }

    static int fallThrough(int x) { // activations: 4, paths: 4, items: 4
        int n = 0;
        switch (x) {
            case 0:
                n += 1; // runs: 1
            case 1:
                n += 10; // runs: 2
            case 2:
                n += 100; // runs: 3
        }
        return n; // runs: 4
    }

    // Aa and BB have one hash code.
    static int strings(String s) { // activations: 4, unfinished: 0
        switch (s) {
            case "Aa":
                return 1; // runs: 1
            case "BB":
                return 2; // runs: 1
            case "other":
                return 3; // runs: 1
            default:
                return 4; // runs: 1
        }
    }

    enum Color { RED, GREEN, BLUE }

    static int enums(Color c) { // activations: 3, paths: 3, items: 3
        return switch (c) {
            case RED -> 1;
            case GREEN -> 2;
            case BLUE -> 3;
        };
    }

    static int machine(String input) { // activations: 1, items: 10
        int state = 0;
        int words = 0;
        for (int i = 0; i < input.length(); i++) {
            switch (state) {
                case 0:
                    if (input.charAt(i) == ' ') {
                        continue; // runs: 1
                    }
                    state = 1; // runs: 3
                    words++;
                    break;
                default:
                    if (input.charAt(i) == ' ') {
                        state = 0; // runs: 2
                    }
            }
        }
        return words;
    }

    static int nothing(int x) { // activations: 1, paths: 1
        switch (x) {
            default:
        }
        return x;
    }

    static void main(String[] args) throws Exception { // activations: 1
        // The witness does not see initializers that start when a field or call is resolved.
        Class.forName("hazards.Switches$Color");
        Class.forName("hazards.Switches$1");
        int n = 0;
        for (int i = 0; i < 6; i++) {
            n += dense(i);
        }
        n += sparse(-1000) + sparse(7) + sparse(1_000_000) + sparse(8);
        for (int i = 0; i < 8; i++) {
            n += shared(i);
        }
        for (int i = 0; i < 4; i++) {
            n += fallThrough(i);
        }
        n += strings("Aa") + strings("BB") + strings("other") + strings("C#");
        for (Color c : Color.values()) {
            n += enums(c);
        }
        System.out.println(n + machine("ab  c def") + nothing(5));
    }
}
