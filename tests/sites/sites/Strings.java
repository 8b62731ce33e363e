package sites;

/** Strings of the program and the arrays behind them, boxes, and what the JDK caches. */
class Strings {
    static String concat(Object a, int b) {
        return a + "-" + b; // least: 20 java.lang.String
    }

    static void run() {
        for (int i = 0; i < 20; i++) {
            Keep.it(concat("part", i));
        }
        for (int i = 0; i < 6; i++) {
            Keep.it(Integer.toString(1000 + i)); // jdk: 6 java.lang.String
            Keep.it("0123456789".substring(i, i + 3)); // jdk: 6 java.lang.String
            Keep.it(new String(new char[] {'a', (char) ('a' + i)})); // live: 6 java.lang.String
            Keep.it(String.valueOf(i + 0.5)); // jdk: 6 java.lang.String
            StringBuilder builder = new StringBuilder(100); // live: 0 java.lang.StringBuilder
            Keep.it(builder.append("x").append(i).toString()); // jdk: 6 java.lang.String
            Keep.it("none".concat("" + i)); // jdk: 6 java.lang.String
            Keep.it("a,b".toUpperCase()); // jdk: 6 java.lang.String
        }
        String[] parts = "1,2,3".split(","); // jdk: 3 java.lang.String, 1 java.lang.String[]
        Keep.it(parts);
        for (int i = 0; i < 100; i++) {
            Keep.it(Integer.valueOf(i)); // jdk: 0 java.lang.Integer
            Keep.it((Integer) (1000 + i)); // jdk: 100 java.lang.Integer
            Keep.it((Long) (5000L + i)); // jdk: 100 java.lang.Long
            Keep.it((Double) (0.5 * i)); // jdk: 100 java.lang.Double
            Keep.it((Character) (char) (300 + i)); // jdk: 100 java.lang.Character
        }
    }
}
