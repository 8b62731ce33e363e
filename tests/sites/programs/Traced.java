import java.lang.reflect.Array;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * What a trace must say of each line of main's class that allocates, in a comment behind it: {@code trace: TYPE OBJECTS HASHED}, where HASHED is
 * {@code none}, {@code all} or {@code every N}: the first of each N objects of the line is hashed. Prints nothing that depends on hashes.
 */
public final class Traced {
    static final int N = 30_000;

    static class Plain {
    }

    static final class Heir extends Plain {
    }

    /** Has a hash of its own. */
    static final class Own {
        final int value;

        Own(int value) {
            this.value = value;
        }

        @Override
        public int hashCode() {
            return value;
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof Own own && own.value == value;
        }
    }

    /** Its own hash is made of the other one. */
    static final class Derived {
        @Override
        public int hashCode() {
            return 31 * super.hashCode();
        }
    }

    static final class Task implements Runnable {
        @Override
        public void run() {
            count++;
        }
    }

    static int count;
    static int hashes;
    static Object kept;

    static void direct() {
        for (int i = 0; i < N; i++) {
            Plain plain = new Plain(); // trace: Traced$Plain 30000 every 3
            if (i % 3 == 0) {
                hashes += System.identityHashCode(plain);
                hashes += plain.hashCode();
            }
            Own own = new Own(i); // trace: Traced$Own 30000 every 5
            hashes += own.hashCode();
            if (i % 5 == 0) {
                hashes += System.identityHashCode(own);
            }
            Runnable task = new Task(); // trace: Traced$Task 30000 every 7
            task.run();
            if (i % 7 == 0) {
                hashes += task.hashCode();
            }
            Derived derived = new Derived(); // trace: Traced$Derived 30000 every 2
            if (i % 2 == 0) {
                hashes += derived.hashCode();
            }
            hashes += Objects.hash(new Heir()); // trace: Traced$Heir 30000 all; java.lang.Object[] 30000 none
            hashes += new Plain().hashCode(); // trace: Traced$Plain 30000 all
            Plain shown = new Plain(); // trace: Traced$Plain 30000 none
            count += shown.toString().isEmpty() ? 1 : 0; // Object asks itself: that is not seen.
            Plain locked = new Plain(); // trace: Traced$Plain 30000 none
            kept = locked;
            synchronized (locked) {
                hashes += System.identityHashCode(locked);
            }
        }
    }

    static void others() {
        for (int i = 0; i < N; i++) {
            int[] numbers = new int[3]; // trace: int[] 30000 every 4
            if (i % 4 == 0) {
                hashes += numbers.hashCode();
            }
            Object copy = numbers.clone(); // trace: int[] 30000 every 6
            if (i % 6 == 0) {
                hashes += copy.hashCode();
            }
            int[][] grid = new int[2][3]; // trace: int[][] 30000 all; int[] 60000 every 2
            hashes += grid.hashCode() + grid[0].hashCode();
            int add = i;
            Runnable capturing = () -> count += add; // trace: Traced$$Lambda 30000 every 3
            capturing.run();
            if (i % 3 == 0) {
                hashes += capturing.hashCode();
            }
            Runnable same = () -> count++; // trace: Traced$$Lambda 1 all
            same.run();
            hashes += same.hashCode();
            Integer box = 1000 + i; // trace: java.lang.Integer 30000 every 10
            kept = box;
            hashes += box.hashCode();
            if (i % 10 == 0) {
                hashes += System.identityHashCode(kept);
            }
            Object reflected = Array.newInstance(int.class, 2); // trace: int[] 30000 every 9
            if (i % 9 == 0) {
                hashes += reflected.hashCode();
            }
        }
    }

    static void inMaps() {
        Map<Object, Object> map = new HashMap<>(); // trace: java.util.HashMap 1 none
        Map<Object, Object> identity = new IdentityHashMap<>(); // trace: java.util.IdentityHashMap 1 none
        Set<Object> set = new HashSet<>(); // trace: java.util.HashSet 1 none
        for (int i = 0; i < N; i++) {
            Plain key = new Plain(); // trace: Traced$Plain 30000 every 8
            if (i % 8 == 0) {
                map.put(key, key);
                map.get(key);
            }
            Own own = new Own(i); // trace: Traced$Own 30000 none
            map.put(own, own);
            String text = new String("abc"); // trace: java.lang.String 30000 every 11
            if (i % 11 == 0) {
                identity.put(text, text);
            }
            set.add(text);
            Heir heir = new Heir(); // trace: Traced$Heir 30000 all
            set.add(heir);
        }
        System.out.println(map.size());
        System.out.println(identity.size());
        System.out.println(set.size());
    }

    static void inThreads() throws InterruptedException {
        Thread[] threads = new Thread[4]; // trace: java.lang.Thread[] 1 none
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(Traced::allocate); // trace: java.lang.Thread 4 none; Traced$$Lambda 1 none
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void allocate() {
        for (int i = 0; i < N; i++) {
            Plain plain = new Plain(); // trace: Traced$Plain 120000 all
            if (plain.hashCode() != System.identityHashCode(plain)) {
                throw new AssertionError();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        direct();
        others();
        inMaps();
        inThreads();
        System.out.println(count);
    }
}
