package jdkclasses;

import java.util.StringTokenizer;
import java.util.TreeMap;

/** Uses JDK classes: as many calls of StringTokenizer.nextToken as the argument says. */
public class Tokens {
    public static void main(String[] args) {
        int n = Integer.parseInt(args[0]);
        StringTokenizer words = new StringTokenizer("to be ".repeat(n / 2));
        TreeMap<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < n; i++) {
            counts.merge(words.nextToken(), 1, Integer::sum);
        }
        System.out.println(counts);
    }
}
