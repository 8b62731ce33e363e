package hazards;

/** Forward branches: if, if/else, nested, conditional expressions, short circuits, an if that does nothing. */
class Branches {
    static int sign(int x) { // activations: 6, paths: 3, items: 6, unfinished: 0
        if (x < 0) {
            return -1; // runs: 2
        } else if (x > 0) {
            return 1; // runs: 3
        }
        return 0; // runs: 1
    }

    static int pick(boolean a, boolean b) { // activations: 4, paths: 3, items: 4
        // Three ways: a and b; a but not b; not a.
        return a && b ? 1 : 2;
    }

    static int diamonds(int x) { // activations: 8, paths: 8, items: 8
        int n = 0;
        if ((x & 1) != 0) {
            n += 1; // runs: 4
        }
        if ((x & 2) != 0) {
            n += 2; // runs: 4
        } else {
            n -= 2; // runs: 4
        }
        n += (x & 4) != 0 ? 4 : 40; // runs: 8
        return n;
    }

    static int nulls(Object o, String s) { // activations: 4, paths: 4, items: 4
        int n = o == null ? 1 : 2;
        return s != null ? n + s.length() : n;
    }

    static int compares(long l, double d) { // activations: 4, paths: 3
        return l > 10L ? (d < 0.5 ? 1 : 2) : 3;
    }

    static void main(String[] args) { // activations: 1
        int n = sign(-1) + sign(-2) + sign(0) + sign(1) + sign(2) + sign(3);
        n += pick(true, true) + pick(true, false) + pick(false, true) + pick(false, false);
        for (int i = 0; i < 8; i++) {
            n += diamonds(i); // runs: 8
        }
        n += nulls(null, null) + nulls(null, "a") + nulls("b", null) + nulls("b", "abc");
        n += compares(1, 0) + compares(11, 0) + compares(11, 1) + compares(12, Double.NaN);
        System.out.println(n);
    }
}
