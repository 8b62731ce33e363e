package sites;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Loops that run long enough for the JIT compilers, with objects that mostly die young. */
class Hot {
    static class Point {
        final int x, y;

        Point(int x, int y) {
            this.x = x;
            this.y = y;
        }

        Point plus(Point other) {
            return new Point(x + other.x, y + other.y); // live: 1000 sites.Hot$Point
        }
    }

    static Point point(int i) {
        return new Point(i, -i); // live: 3000 sites.Hot$Point
    }

    static long sum;

    static void points() {
        Point one = Keep.it(new Point(1, 1)); // live: 1 sites.Hot$Point
        for (int i = 0; i < 1_000_000; i++) {
            Point p = point(i);
            sum += p.x;
            if (i % 500 == 0) {
                Keep.it(p);
            }
            Point q = point(i).plus(one);
            if (i % 1000 == 0) {
                Keep.it(q);
            }
            if (i % 1000 == 999) {
                Keep.it(point(i));
            }
        }
    }

    static void arrays() {
        for (int i = 0; i < 400_000; i++) {
            byte[] bytes = new byte[i % 40]; // live: 400 byte[]
            int[][] rows = new int[2][i % 3]; // live: 400 int[][], 800 int[]
            byte[] copy = bytes.clone(); // live: 400 byte[]
            sum += bytes.length + rows[1].length + copy.length;
            if (i % 1000 == 7) {
                Keep.it(bytes);
                Keep.it(rows);
                Keep.it(copy);
            }
        }
    }

    static void collections() {
        for (int i = 0; i < 100_000; i++) {
            List<Object> list = new ArrayList<>(); // live: 100 java.util.ArrayList
            Map<Object, Object> map = new HashMap<>(); // live: 100 java.util.HashMap
            for (int j = 0; j < 3; j++) {
                list.add(map); // jdk: 100 java.lang.Object[]
                map.put(j, list); // jdk: 300 java.util.HashMap$Node, 100 java.util.HashMap$Node[]
            }
            sum += list.size();
            if (i % 1000 == 13) {
                Keep.it(list);
            }
        }
    }

    static void run() {
        points();
        arrays();
        collections();
        Keep.it(sum); // live: 1 java.lang.Long
    }
}
