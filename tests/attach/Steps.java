import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Member;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** Does a step for each line of input, so that an agent can come and go between them. Answers each with a line. */
public class Steps {
    static class Kept {
        final Object[] parts = new Object[2];
    }

    static final List<Object> KEPT = new ArrayList<>();
    static final Map<Object, Integer> HASHES = new java.util.IdentityHashMap<>();
    static final List<Map<Integer, Integer>> MAPS = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            int n = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            // In the frame of main, which is older than any agent that is attached: never marked.
            for (int i = 0; words[0].equals("here") && i < n; i++) {
                KEPT.add(new Kept());
            }
            step(words[0], n);
            System.out.println(line + ": done");
        }
    }

    static void step(String what, int n) {
        for (int i = 0; i < n; i++) {
            switch (what) {
                case "first" -> KEPT.add(new Kept());  // first
                case "second" -> KEPT.add(new Kept()); // second
                case "third" -> KEPT.add(new Kept());  // third
                case "fourth" -> KEPT.add(new Kept()); // fourth
                default -> { }
            }
        }
        switch (what) {
            case "map" -> map(n);
            case "hash" -> KEPT.forEach(o -> HASHES.put(o, System.identityHashCode(o)));
            case "check" -> check();
            case "members" -> members();
            default -> { }
        }
    }

    static void map(int n) {
        Map<Integer, Integer> map = new HashMap<>();
        for (int i = 0; i < n; i++) {
            map.put(i, i); // map
        }
        MAPS.add(map);
    }

    /** Hashes stay as they are. */
    static void check() {
        for (Map.Entry<Object, Integer> e : HASHES.entrySet()) {
            if (System.identityHashCode(e.getKey()) != e.getValue()) {
                System.out.println("another hash");
            }
        }
        System.out.println(HASHES.size() + " hashes");
    }

    /** What reflection shows. */
    static void members() {
        TreeSet<String> all = new TreeSet<>();
        for (Class<?> c : List.of(Steps.class, Kept.class, HashMap.class, ArrayList.class, String.class)) {
            for (Member[] members : new Member[][] {c.getDeclaredFields(), c.getDeclaredMethods(), c.getDeclaredConstructors()}) {
                Arrays.stream(members).forEach(m -> all.add(m.toString()));
            }
        }
        all.removeIf(m -> m.contains("lambda$") || m.contains("$SwitchMap"));
        System.out.println(all.size() + " members, " + all.hashCode());
    }
}
