package sites;

import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** A capturing lambda is a new object each time; one that captures nothing is made once, where it is first met. What hidden classes allocate is not seen. */
class Lambdas {
    static class Made {
    }

    static class Body {
    }

    final int mine;

    Lambdas(int mine) {
        this.mine = mine;
    }

    int plus(int x) {
        return mine + x;
    }

    static Supplier<Object> capturing(int n) {
        return () -> n; // live: 10 sites.Lambdas$$Lambda
    }

    static Supplier<Object> body() {
        return () -> new Body(); // live: 1 sites.Lambdas$$Lambda, 7 sites.Lambdas$Body
    }

    // unknown: 5 sites.Lambdas$Made
    static void run() {
        for (int i = 0; i < 10; i++) {
            Keep.it(capturing(i));
        }
        for (int i = 0; i < 7; i++) {
            Supplier<Object> supplier = body();
            Keep.it(supplier);
            Keep.it(supplier.get());
        }
        Lambdas outer = new Lambdas(3); // live: 1 sites.Lambdas
        for (int i = 0; i < 4; i++) {
            Function<Integer, Integer> bound = outer::plus; // live: 4 sites.Lambdas$$Lambda
            Keep.it(bound);
            Function<Lambdas, Integer> free = l -> l.mine; // live: 1 sites.Lambdas$$Lambda
            Keep.it(free);
        }
        // The lambda's own class, which is hidden, allocates what a constructor reference makes. (javac makes a method of ours of an array's.)
        Supplier<Made> maker = Made::new; // live: 1 sites.Lambdas$$Lambda
        for (int i = 0; i < 5; i++) {
            Keep.it(maker.get());
        }
        IntFunction<Made[]> arrays = Made[]::new; // live: 1 sites.Lambdas$$Lambda, 2 sites.Lambdas$Made[]
        for (int i = 0; i < 2; i++) {
            Keep.it(arrays.apply(i));
        }
        Runnable[] runnables = new Runnable[3]; // live: 1 java.lang.Runnable[]
        for (int i = 0; i < runnables.length; i++) {
            int[] cell = {i}; // live: 3 int[]
            runnables[i] = () -> cell[0]++; // live: 3 sites.Lambdas$$Lambda
            runnables[i].run();
        }
        Keep.it(runnables);
    }
}
