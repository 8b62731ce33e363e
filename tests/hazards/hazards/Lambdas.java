package hazards;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Lambda bodies are methods of the class and are counted; the classes that call them are hidden and are not. */
class Lambdas {
    static int apply(IntUnaryOperator f, int n) { // activations: 2, items: 12
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += f.applyAsInt(i); // runs: 10
        }
        return sum;
    }

    static int twice(int x) { // activations: 5
        return x * 2;
    }

    static String streams() { // activations: 1, paths: 1
        return IntStream.range(0, 20)
                // Once more than the lambda runs, for the line that makes it.
                .filter(i -> i % 3 == 0 || i % 5 == 0) // runs: 21
                .mapToObj(i -> i % 2 == 0 ? "e" + i : "o" + i) // runs: 10
                .collect(Collectors.joining(","));
    }

    static void main(String[] args) { // activations: 1
        int base = 3;
        int n = apply(x -> {
            int y = 0;
            while (y < x) {
                y += base; // runs: 5
            }
            return y; // runs: 5
        }, 5);
        n += apply(Lambdas::twice, 5);
        List<Runnable> jobs = new ArrayList<>();
        int[] cell = new int[1];
        for (int i = 0; i < 4; i++) {
            int j = i;
            jobs.add(() -> cell[0] += j); // runs: 8
        }
        jobs.forEach(Runnable::run);
        System.out.println(n + cell[0] + streams());
    }
}
