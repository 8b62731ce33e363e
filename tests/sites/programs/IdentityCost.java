import java.util.IdentityHashMap;
import java.util.Map;

/**
 * An IdentityHashMap of objects of one site, filled and asked: {@code IdentityCost OBJECTS ROUNDS}. Prints the fewest milliseconds of a round: what hashes
 * that collide would make slow.
 */
public final class IdentityCost {
    private static final class Key {
    }

    public static void main(String[] args) {
        int objects = Integer.parseInt(args[0]);
        double best = Double.MAX_VALUE;
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            Key[] keys = new Key[objects];
            for (int i = 0; i < objects; i++) {
                keys[i] = new Key();
            }
            long begin = System.nanoTime();
            Map<Key, Key> map = new IdentityHashMap<>(objects);
            for (Key key : keys) {
                map.put(key, key);
            }
            for (int turn = 0; turn < 3; turn++) {
                for (Key key : keys) {
                    if (map.get(key) != key) {
                        throw new AssertionError("lost");
                    }
                }
            }
            best = Math.min(best, (System.nanoTime() - begin) / 1e6);
            if (map.size() != objects) {
                throw new AssertionError(map.size() + " of " + objects);
            }
        }
        System.out.printf("%.3f%n", best);
    }
}
