package sites;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

/** What the JDK allocates belongs to the line of the program that called it. */
class Collected {
    static class Key {
    }

    static class Held {
        private final Map<Object, Object> map = Keep.it(new HashMap<>()); // live: 1 java.util.HashMap

        void put(Object key) {
            map.put(key, this); // jdk: 1000 java.util.HashMap$Node, 1 java.util.HashMap$Node[]
        }
    }

    static void run() {
        Key[] keys = Keep.it(new Key[1000]); // live: 1 sites.Collected$Key[]
        Held held = new Held(); // live: 1 sites.Collected$Held
        for (int i = 0; i < keys.length; i++) {
            keys[i] = new Key(); // live: 1000 sites.Collected$Key
            held.put(keys[i]);
        }
        Map<Object, Object> copied = Keep.it(new HashMap<>(held.map)); // live: 1 java.util.HashMap; jdk: 1000 java.util.HashMap$Node, 1 java.util.HashMap$Node[]
        copied.size();
        Map<Object, Object> linked = Keep.it(new LinkedHashMap<>()); // live: 1 java.util.LinkedHashMap
        Map<Object, Object> concurrent = Keep.it(new ConcurrentHashMap<>()); // live: 1 java.util.concurrent.ConcurrentHashMap
        Map<Integer, Object> tree = Keep.it(new TreeMap<>()); // live: 1 java.util.TreeMap
        Set<Object> set = Keep.it(new HashSet<>()); // live: 1 java.util.HashSet; jdk: 1 java.util.HashMap
        List<Object> list = Keep.it(new ArrayList<>()); // live: 1 java.util.ArrayList
        List<Object> sized = Keep.it(new ArrayList<>(2000)); // live: 1 java.util.ArrayList; jdk: 1 java.lang.Object[]
        List<Object> chain = Keep.it(new LinkedList<>()); // live: 1 java.util.LinkedList
        ArrayDeque<Object> deque = Keep.it(new ArrayDeque<>()); // live: 1 java.util.ArrayDeque
        PriorityQueue<Integer> queue = Keep.it(new PriorityQueue<>()); // live: 1 java.util.PriorityQueue
        List<Object> onWrite = Keep.it(new CopyOnWriteArrayList<>()); // live: 1 java.util.concurrent.CopyOnWriteArrayList
        StringBuilder text = Keep.it(new StringBuilder()); // live: 1 java.lang.StringBuilder
        for (int i = 0; i < keys.length; i++) {
            linked.put(keys[i], keys); // jdk: 999 java.util.LinkedHashMap$Entry, 1 java.util.HashMap$Node[]
            concurrent.put(keys[i], keys); // jdk: 1000 java.util.concurrent.ConcurrentHashMap$Node, 1 java.util.concurrent.ConcurrentHashMap$Node[]
            tree.put(i % 100, keys); // jdk: 100 java.util.TreeMap$Entry
            set.add(keys[i]); // jdk: 1000 java.util.HashMap$Node, 1 java.util.HashMap$Node[]
            list.add(keys[i]); // jdk: 1 java.lang.Object[]
            sized.add(keys[i]); // jdk: 0 java.lang.Object[]
            chain.add(keys[i]); // jdk: 1000 java.util.LinkedList$Node
            deque.add(keys[i]); // jdk: 1 java.lang.Object[]
            queue.add(i % 100); // jdk: 1 java.lang.Object[]
            onWrite.add(keys[i]); // jdk: 1 java.lang.Object[]
            text.append(i); // jdk: 1 byte[]
        }
        Keep.it(Collections.unmodifiableList(list)); // jdk: 1 java.util.Collections$UnmodifiableRandomAccessList
        Keep.it(Collections.synchronizedMap(tree)); // jdk: 1 java.util.Collections$SynchronizedMap
        Keep.it(list.toArray()); // jdk: 1 java.lang.Object[]
        Keep.it(list.subList(1, 5)); // jdk: 1 java.util.ArrayList$SubList
        Keep.it(list.stream().filter(k -> k != null).collect(Collectors.toList())); // live: 1 sites.Collected$$Lambda; least: 1 java.lang.Object[]; upto: 1 java.util.ArrayList
        Keep.it(list.iterator()); // upto: 1 java.util.ArrayList$Itr
        linked.entrySet().removeIf(e -> e.getKey() == keys[0]); // live: 0 sites.Collected$$Lambda
        linked.put(keys[0], null); // jdk: 1 java.util.LinkedHashMap$Entry
    }
}
