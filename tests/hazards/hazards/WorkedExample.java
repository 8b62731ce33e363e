package hazards;

/**
 * The worked example: A to B, B to C or D, both to E, E to B or F. The trace's 14 paths are 6 2 0 0 2 2 0 0 2 2 0 0 2 3, so the four
 * paths C D D C follow one another three times.
 */
class WorkedExample {
    static int trace(String choices) { // activations: 1, paths: 4, items: 14, unfinished: 0
        int at = 0; // runs: 1
        int sum = 0;
        do {
            if (choices.charAt(at) == 'C') {
                sum += 1; // runs: 8
            } else {
                sum += 100; // runs: 6
            }
            at++; // runs: 14
        } while (at < choices.length());
        return sum; // runs: 1
    }

    static void main(String[] args) { // activations: 1
        System.out.println(trace("CCDDCCDDCCDDCC"));
    }
}
