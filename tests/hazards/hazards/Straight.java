package hazards;

/** No branch at all: one path a method, also for an empty one. */
class Straight {
    static int square(int x) { // activations: 5, paths: 1, items: 5, unfinished: 0
        return x * x; // runs: 5
    }

    static void nothing() { // activations: 1, paths: 1, items: 1
    }

    static void main(String[] args) { // activations: 1, paths: 1
        nothing();
        System.out.println(square(1) + square(2) + square(3) + square(4) + square(5));
    }
}
