package tools;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/** A Java agent that replaces the integer constant 1234567 by 7654321 in the class hazards.Rewritten, whatever else the class holds. */
public final class Rewriter implements ClassFileTransformer {
    public static void premain(String options, Instrumentation instrumentation) {
        instrumentation.addTransformer(new Rewriter(), "retransform".equals(options));
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
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
