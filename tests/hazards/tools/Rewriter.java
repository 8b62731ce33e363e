package tools;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;

/**
 * A Java agent that replaces the integer constant 1234567 by 7654321 in the class hazards.Rewritten, whatever else the class holds. With
 * an option that begins with "schema" it loads the class hazards.Early at once, and gives its method nameAAAA the name nameBBBB; where that class
 * is transformed again, nameCCCC, which the JVM refuses.
 */
public final class Rewriter implements ClassFileTransformer {
    public static void premain(String options, Instrumentation instrumentation) throws ClassNotFoundException {
        instrumentation.addTransformer(new Rewriter(), options.endsWith("retransform"));
        if (options.startsWith("schema")) {
            Class.forName("hazards.Early");
        }
    }

    private static byte[] renamed(byte[] bytes, char letter) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1).replaceAll("name[AB]{4}", "name" + String.valueOf(letter).repeat(4));
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if ("hazards/Early".equals(name)) {
            return renamed(bytes, redefined == null ? 'B' : 'C');
        }
        if (!"hazards/Rewritten".equals(name)) {
            return null;
        }
        byte[] out = bytes.clone();
        for (int i = 0; i + 5 <= out.length; i++) {
            if (out[i] == 3 && out[i + 1] == 0 && out[i + 2] == 0x12 && out[i + 3] == (byte) 0xD6 && out[i + 4] == (byte) 0x87) {
                out[i + 2] = 0x74;
                out[i + 3] = (byte) 0xCB;
                out[i + 4] = (byte) 0xB1;
            }
        }
        return out;
    }
}
