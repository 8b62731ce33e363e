import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Has many objects of one class hashed while no agent is there, and many made by a few busy lines while one is. Answers each line of input with a line. */
public class Hashed {
    static class Item {
    }

    static final List<Object> KEPT = new ArrayList<>();

    static Item item(int line) {
        switch (line) {
            case 0: return new Item(); // line 0
            case 1: return new Item(); // line 1
            case 2: return new Item(); // line 2
            case 3: return new Item(); // line 3
            case 4: return new Item(); // line 4
            case 5: return new Item(); // line 5
            case 6: return new Item(); // line 6
            case 7: return new Item(); // line 7
            case 8: return new Item(); // line 8
            case 9: return new Item(); // line 9
            case 10: return new Item(); // line 10
            case 11: return new Item(); // line 11
            case 12: return new Item(); // line 12
            case 13: return new Item(); // line 13
            case 14: return new Item(); // line 14
            case 15: return new Item(); // line 15
            case 16: return new Item(); // line 16
            case 17: return new Item(); // line 17
            case 18: return new Item(); // line 18
            case 19: return new Item(); // line 19
            case 20: return new Item(); // line 20
            case 21: return new Item(); // line 21
            case 22: return new Item(); // line 22
            case 23: return new Item(); // line 23
            default: throw new AssertionError(line);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            switch (line) {
                case "hash" -> hash();
                case "make" -> make();
                default -> throw new AssertionError(line);
            }
            System.out.println(line + ": done");
        }
    }

    static void hash() {
        for (int i = 0; i < 300_000; i++) {
            Item item = new Item(); // hashed
            System.identityHashCode(item);
            KEPT.add(item);
        }
    }

    static void make() {
        for (int i = 0; i < 24 * 4000; i++) {
            Item item = item(i % 24);
            if (i / 24 % 40 == 0) {
                KEPT.add(item);
            }
        }
    }
}
