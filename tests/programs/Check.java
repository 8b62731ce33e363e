import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;

/** A running digest of everything a driver produces: drivers print it so that one line stands for all results. */
final class Check {
    private final MessageDigest digest;
    private long lines;

    Check() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    Check add(Object value) {
        return add((String.valueOf(value) + '\n').getBytes(StandardCharsets.UTF_8));
    }

    Check add(byte[] bytes) {
        digest.update(bytes);
        lines++;
        return this;
    }

    /** Prints {@code name: <results> results, <SHA-256>}. */
    void print(String name) {
        System.out.println(name + ": " + lines + " results, " + HexFormat.of().formatHex(digest.digest()));
    }
}
