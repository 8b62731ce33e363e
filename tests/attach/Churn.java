import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Threads that allocate, lock, hash and call back and forth until the input ends, and check what they did: for agents that come and go meanwhile. */
public class Churn {
    static volatile boolean stop;
    static final AtomicLong ROUNDS = new AtomicLong();
    static final Map<String, Throwable> WRONG = new ConcurrentHashMap<>();

    record Pair(int a, String b) {}

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            int seed = t;
            threads.add(new Thread(() -> work(seed), "churn-" + t));
        }
        threads.forEach(Thread::start);
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // until it is closed
        }
        stop = true;
        for (Thread t : threads) {
            t.join();
        }
        WRONG.values().forEach(Throwable::printStackTrace);
        System.out.println(WRONG.isEmpty() && ROUNDS.get() > 0 ? "right" : "wrong");
    }

    static void work(int seed) {
        try {
            for (int i = seed; !stop; i++) {
                round(i);
                ROUNDS.incrementAndGet();
            }
        } catch (Throwable e) {
            WRONG.put(Thread.currentThread().getName(), e);
        }
    }

    static void round(int seed) throws Exception {
        Map<Integer, Pair> pairs = new HashMap<>();
        Map<Object, Integer> hashes = new IdentityHashMap<>();
        for (int i = 0; i < 200; i++) {
            Pair p = new Pair(i ^ seed, "p" + i);
            pairs.put(i, p);
            if (i % 3 == 0) {
                hashes.put(p, System.identityHashCode(p));
            }
            if (i % 5 == 0) {
                synchronized (p) {
                    if (i % 25 == 0) {
                        p.wait(0, 1);
                    }
                    pairs.get(i).toString();
                }
            }
        }
        int sum = pairs.values().stream().sorted((x, y) -> Integer.compare(x.a, y.a)).mapToInt(p -> p.a ^ seed).sum();
        check(sum == IntStream.range(0, 200).sum(), "sum " + sum);
        String joined = pairs.values().stream().map(Pair::b).sorted().limit(3).collect(Collectors.joining(","));
        check(joined.equals("p0,p1,p10"), joined);
        hashes.forEach((p, h) -> check(System.identityHashCode(p) == h, "another hash"));
        int[][] grid = new int[5][7];
        Object copy = grid.clone();
        check(((int[][]) copy)[4] == grid[4] && copy.hashCode() == System.identityHashCode(copy), "clone");
        try {
            Object[] none = new String[seed & 3];
            none[seed & 3] = "";
            check(false, "no exception");
        } catch (ArrayIndexOutOfBoundsException e) {
            check(e.getStackTrace().length > 0, "no trace");
        }
    }

    static void check(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }
}
