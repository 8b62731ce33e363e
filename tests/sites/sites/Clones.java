package sites;

import java.util.ArrayList;

/** A clone is the call's that made it, whatever mark the original has. */
class Clones {
    static class Sheep implements Cloneable {
        int[] wool = {1}; // live: 1 int[]

        @Override
        public Sheep clone() {
            try {
                Sheep copy = (Sheep) super.clone(); // live: 5 sites.Clones$Sheep
                copy.wool = wool.clone(); // live: 5 int[]
                return copy;
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Lamb extends Sheep {
    }

    static class NotCloneable {
        Object copy() throws CloneNotSupportedException {
            return super.clone();
        }
    }

    enum Few { // live: 3 sites.Clones$Few[]
        ONE, TWO // live: 2 sites.Clones$Few
    }

    static void run() {
        Sheep first = Keep.it(new Sheep()); // live: 1 sites.Clones$Sheep
        System.identityHashCode(first);
        for (int i = 0; i < 5; i++) {
            Keep.it(first.clone());
        }
        Lamb lamb = new Lamb(); // live: 0 sites.Clones$Lamb
        lamb.clone();
        int[] ints = new int[3]; // live: 0 int[]
        Keep.it(ints.clone()); // live: 1 int[]
        Keep.it(new Object[2].clone()); // live: 1 java.lang.Object[]
        Keep.it(new long[2][2].clone()); // live: 1 long[][], 2 long[]
        Keep.it(new String[] {"a"}.clone()); // live: 1 java.lang.String[]
        for (int i = 0; i < 40; i++) {
            byte[] copy = new byte[i].clone(); // live: 20 byte[]
            if (i % 2 == 0) {
                Keep.it(copy);
            }
        }
        Keep.it(Few.values());
        Keep.it(Few.values());
        ArrayList<String> list = new ArrayList<>(); // live: 0 java.util.ArrayList
        list.add("x");
        Keep.it(list.clone()); // jdk: 1 java.util.ArrayList, 1 java.lang.Object[]
        try {
            Keep.it(new NotCloneable().copy()); // live: 0 sites.Clones$NotCloneable
        } catch (CloneNotSupportedException e) {
            Keep.it(new char[1]); // live: 1 char[]
        }
    }
}
