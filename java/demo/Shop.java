package demo;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A shop whose cache nobody empties: the leak of README and docs/sites.md. What `borescope demo sites` profiles. */
public class Shop {
    static final Map<String, Entry> CACHE = new HashMap<>();

    record Entry(String key, byte[] page) {}

    static byte[] load(int n) {
        return new byte[1000 + n % 7];
    }

    static void put(int n) {
        Entry entry = new Entry("request " + n, load(n));
        CACHE.put(entry.key(), entry);
    }

    static int serve(int n) {
        List<Integer> list = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            list.add(n + i);
        }
        if (n % 2 == 0) {
            put(n);
        }
        return list.hashCode();
    }

    /** As many rounds as it is told to, one for each line of input. */
    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        int hash = 0;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < 4000; i++) {
                hash += serve(round * 4000 + i);
            }
            System.out.println(round + " " + (hash != 0));
            if (System.in.read() < 0) {
                break;
            }
        }
    }
}
