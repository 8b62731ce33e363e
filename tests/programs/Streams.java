import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/**
 * What a launcher must not touch: {@code Streams exit|throw|halt|hook}. Reads standard input to its end, writes to both output
 * streams, then leaves in the way named.
 */
public final class Streams {
    public static void main(String[] args) throws IOException {
        long sum = 0;
        int lines = 0;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            lines++;
            for (int i = 0; i < line.length(); i++) {
                sum = sum * 31 + line.charAt(i);
            }
            if (lines % 1000 == 0) {
                System.err.println("seen " + lines);
            }
        }
        System.out.println("lines " + lines + ", sum " + sum);
        switch (args[0]) {
            case "exit" -> System.exit(3);
            case "throw" -> throw new IllegalStateException("on purpose");
            case "halt" -> Runtime.getRuntime().halt(42);
            case "hook" -> {
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    System.out.println("hook ran");
                    Runtime.getRuntime().halt(7);
                }));
                System.exit(0);
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
    }
}
