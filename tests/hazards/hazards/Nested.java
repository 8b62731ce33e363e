package hazards;

/** Loops in loops, several back edges to one head, continue and break with labels, break out of a plain block. */
class Nested {
    static int triangle(int n) { // activations: 1, items: 16, unfinished: 0
        int sum = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++) {
                sum += i * j; // runs: 10
            }
        }
        return sum;
    }

    static int primes(int limit) { // activations: 1, unfinished: 0
        int count = 0;
        outer:
        for (int i = 2; i < limit; i++) {
            for (int j = 2; j * j <= i; j++) {
                if (i % j == 0) {
                    continue outer; // runs: 18
                }
            }
            count++; // runs: 10
        }
        return count;
    }

    static int twoBackEdges(int n) { // activations: 1, paths: 4, items: 13
        int i = 0;
        int sum = 0;
        while (i < n) {
            i++; // runs: 12
            if (i % 3 == 0) {
                continue; // runs: 4
            }
            sum += i; // runs: 8
        }
        return sum;
    }

    static int find(int[][] table, int x) { // activations: 2, unfinished: 0
        int where = -1;
        search:
        for (int i = 0; i < table.length; i++) {
            for (int j = 0; j < table[i].length; j++) {
                if (table[i][j] == x) {
                    where = i * 10 + j;
                    break search; // runs: 1
                }
            }
        }
        return where; // runs: 2
    }

    static int plainLabel(int x) { // activations: 2, paths: 2, items: 2
        block: {
            if (x > 0) {
                break block; // runs: 1
            }
            x = -x; // runs: 1
        }
        return x;
    }

    static int deep(int n) { // activations: 1, items: 121
        int hits = 0;
        for (int a = 0; a < n; a++) {
            for (int b = 0; b < n; b++) {
                for (int c = 0; c < n; c++) {
                    for (int d = 0; d < n; d++) {
                        hits++; // runs: 81
                    }
                }
            }
        }
        return hits;
    }

    static void main(String[] args) { // activations: 1
        int[][] table = {{1, 2, 3}, {4, 5, 6}};
        System.out.println(triangle(5) + primes(30) + twoBackEdges(12) + find(table, 5) + find(table, 7)
                + plainLabel(3) + plainLabel(-3) + deep(3));
    }
}
