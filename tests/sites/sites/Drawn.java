package sites;

import java.lang.reflect.Field;
import sun.misc.Unsafe;

/** Many objects whose hash the JVM has drawn before they could be marked, or that nobody marks, of a class with many busy lines: none of these gets one of them. */
class Drawn {
    static class Item {
        Item(boolean asks) {
            if (asks) {
                System.identityHashCode(this);
            }
        }
    }

    static Item item(int line) {
        switch (line) {
            case 0: return new Item(false); // live: 100 sites.Drawn$Item
            case 1: return new Item(false); // live: 100 sites.Drawn$Item
            case 2: return new Item(false); // live: 100 sites.Drawn$Item
            case 3: return new Item(false); // live: 100 sites.Drawn$Item
            case 4: return new Item(false); // live: 100 sites.Drawn$Item
            case 5: return new Item(false); // live: 100 sites.Drawn$Item
            case 6: return new Item(false); // live: 100 sites.Drawn$Item
            case 7: return new Item(false); // live: 100 sites.Drawn$Item
            case 8: return new Item(false); // live: 100 sites.Drawn$Item
            case 9: return new Item(false); // live: 100 sites.Drawn$Item
            case 10: return new Item(false); // live: 100 sites.Drawn$Item
            case 11: return new Item(false); // live: 100 sites.Drawn$Item
            case 12: return new Item(false); // live: 100 sites.Drawn$Item
            case 13: return new Item(false); // live: 100 sites.Drawn$Item
            case 14: return new Item(false); // live: 100 sites.Drawn$Item
            case 15: return new Item(false); // live: 100 sites.Drawn$Item
            case 16: return new Item(false); // live: 100 sites.Drawn$Item
            case 17: return new Item(false); // live: 100 sites.Drawn$Item
            case 18: return new Item(false); // live: 100 sites.Drawn$Item
            case 19: return new Item(false); // live: 100 sites.Drawn$Item
            case 20: return new Item(false); // live: 100 sites.Drawn$Item
            case 21: return new Item(false); // live: 100 sites.Drawn$Item
            case 22: return new Item(false); // live: 100 sites.Drawn$Item
            case 23: return new Item(false); // live: 100 sites.Drawn$Item
            default: throw new AssertionError(line);
        }
    }

    static void run() throws Exception {
        for (int i = 0; i < 24 * 4000; i++) {
            Item item = item(i % 24);
            if (i / 24 % 40 == 0) {
                Keep.it(item);
            }
        }
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe unsafe = (Unsafe) field.get(null);
        for (int i = 0; i < 100_000; i++) {
            Keep.it(new Item(true)); // unknown: 300000 sites.Drawn$Item
            for (int j = 0; j < 2; j++) {
                System.identityHashCode(Keep.it(unsafe.allocateInstance(Item.class)));
            }
        }
    }
}
