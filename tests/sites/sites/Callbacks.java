package sites;

import java.util.AbstractCollection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/** The JDK calls the program back: each allocates at its own line, and the JDK's goes on belonging to the outer call, whichever way the callback ends. */
class Callbacks {
    static int calls;

    static class Order implements Comparator<Integer> {
        @Override
        public int compare(Integer a, Integer b) {
            if (calls++ < 10) {
                Keep.it(new int[1]); // live: 10 int[]
                Keep.it(new ArrayList<Object>(5)); // live: 10 java.util.ArrayList; jdk: 10 java.lang.Object[]
            }
            return Integer.compare(a, b);
        }
    }

    static class Named implements Comparable<Named> {
        final List<Object> seen = new ArrayList<>(); // live: 30 java.util.ArrayList

        @Override
        public int compareTo(Named other) {
            seen.clear();
            seen.add(other);
            return 0;
        }

        @Override
        public String toString() {
            Keep.it(new char[1]); // live: 30 char[]
            return Keep.it(new StringBuilder(20)).append('n').toString(); // live: 30 java.lang.StringBuilder
        }
    }

    static class Three extends AbstractCollection<Object> {
        @Override
        public Iterator<Object> iterator() {
            return new ArrayList<Object>(7).iterator();
        }

        @Override
        public int size() {
            return 3;
        }

        @Override
        public Object[] toArray() {
            Keep.it(new StringBuilder(9)); // live: 1 java.lang.StringBuilder; jdk: 1 byte[]
            return Keep.it(new Object[3]); // live: 1 java.lang.Object[]
        }
    }

    static Object fails(Object x) {
        Keep.it(new HashMap<>(Map.of())); // live: 4 java.util.HashMap
        Keep.it(new ArrayList<>(3)); // live: 4 java.util.ArrayList; jdk: 4 java.lang.Object[]
        throw new IllegalStateException(); // live: 4 java.lang.IllegalStateException
    }

    static void run() {
        Map<Integer, Object> tree = Keep.it(new TreeMap<>(new Order())); // live: 1 java.util.TreeMap, 1 sites.Callbacks$Order
        for (int i = 0; i < 100; i++) {
            tree.put(i, null); // jdk: 100 java.util.TreeMap$Entry, 0 java.lang.Object[]
        }
        Map<Object, Object> map = Keep.it(new HashMap<>()); // live: 1 java.util.HashMap
        for (int i = 0; i < 50; i++) {
            map.computeIfAbsent(i % 20, // live: 1 sites.Callbacks$$Lambda; jdk: 20 java.util.HashMap$Node, 1 java.util.HashMap$Node[]
                    key -> new ArrayList<Object>(4)); // live: 20 java.util.ArrayList; jdk: 20 java.lang.Object[]
        }
        List<Named> named = Keep.it(new ArrayList<>(30)); // live: 1 java.util.ArrayList; jdk: 1 java.lang.Object[]
        for (int i = 0; i < 30; i++) {
            named.add(new Named()); // live: 30 sites.Callbacks$Named
        }
        Collections.sort(named);
        StringBuilder text = Keep.it(new StringBuilder()); // live: 1 java.lang.StringBuilder
        for (Named one : named) {
            text.append(one); // jdk: 1 byte[]
        }
        Keep.it(new ArrayList<>(new Three())); // live: 1 java.util.ArrayList; jdk: 1 java.lang.Object[]
        CompletableFuture<Object> done = CompletableFuture.completedFuture("");
        for (int i = 0; i < 4; i++) {
            Keep.it(done.thenApply(Callbacks::fails)); // live: 1 sites.Callbacks$$Lambda; jdk: 4 java.util.concurrent.CompletableFuture, 4 java.util.concurrent.CompletableFuture$AltResult
        }
        map.forEach((key, value) -> { // live: 1 sites.Callbacks$$Lambda
            Keep.it(new TreeMap<>(Map.of("k", key))); // live: 20 java.util.TreeMap; jdk: 20 java.util.TreeMap$Entry
        });
        Keep.it(Collections.nCopies(3, "x").toArray(new Object[3])); // live: 1 java.lang.Object[]
    }
}
