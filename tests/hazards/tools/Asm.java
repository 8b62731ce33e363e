package tools;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * A class-file assembler for what no compiler of today emits: subroutines, irreducible loops, dead code, methods near the size limit, old
 * versions. Frames (needed from version 51 on) can only say "locals as at entry, empty stack".
 */
public final class Asm {
    public static final int PUBLIC = 1;
    public static final int STATIC = 8;

    private final int major;
    private final int minor;
    private final String name;
    private final String source;
    private final ByteArrayOutputStream pool = new ByteArrayOutputStream();
    private final Map<String, Integer> constants = new HashMap<>();
    private final List<Code> methods = new ArrayList<>();
    private final List<Integer> interfaces = new ArrayList<>();
    private int next = 1;

    /** A public class with a constructor without parameters. */
    public Asm(int major, String name, String source) {
        this(major, 0, name, source);
    }

    public Asm(int major, int minor, String name, String source) {
        this.major = major;
        this.minor = minor;
        this.name = name;
        this.source = source;
        Code init = method(PUBLIC, "<init>", "()V", 1, 1);
        init.op(42, 183).u2(methodref("java/lang/Object", "<init>", "()V")).op(177);
    }

    public Asm implement(String type) {
        interfaces.add(type(type));
        return this;
    }

    private interface Body {
        void write(DataOutputStream out) throws IOException;
    }

    private static byte[] bytes(Body body) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            body.write(new DataOutputStream(bytes));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private int constant(String key, Body body) {
        Integer known = constants.get(key);
        if (known != null) {
            return known;
        }
        pool.writeBytes(bytes(body));
        constants.put(key, next);
        return next++;
    }

    public int utf8(String text) {
        return constant("utf8 " + text, out -> {
            out.writeByte(1);
            out.writeUTF(text);
        });
    }

    public int type(String type) {
        int text = utf8(type);
        return constant("type " + type, out -> {
            out.writeByte(7);
            out.writeShort(text);
        });
    }

    public int methodref(String owner, String method, String descriptor) {
        int type = type(owner);
        int nameText = utf8(method);
        int descriptorText = utf8(descriptor);
        int both = constant("both " + method + descriptor, out -> {
            out.writeByte(12);
            out.writeShort(nameText);
            out.writeShort(descriptorText);
        });
        return constant("method " + owner + "." + method + descriptor, out -> {
            out.writeByte(10);
            out.writeShort(type);
            out.writeShort(both);
        });
    }

    public Code method(int access, String method, String descriptor, int stack, int locals) {
        Code code = new Code(access, utf8(method), utf8(descriptor), stack, locals);
        methods.add(code);
        return code;
    }

    public byte[] build() {
        int self = type(name);
        int parent = type("java/lang/Object");
        int sourceAttribute = utf8("SourceFile");
        int sourceText = utf8(source);
        List<byte[]> built = new ArrayList<>();
        for (Code method : methods) {
            built.add(method.build());
        }
        return bytes(out -> {
            out.writeInt(0xCAFEBABE);
            out.writeShort(minor);
            out.writeShort(major);
            out.writeShort(next);
            out.write(pool.toByteArray());
            out.writeShort(0x21);
            out.writeShort(self);
            out.writeShort(parent);
            out.writeShort(interfaces.size());
            for (int type : interfaces) {
                out.writeShort(type);
            }
            out.writeShort(0);
            out.writeShort(built.size());
            for (byte[] method : built) {
                out.write(method);
            }
            out.writeShort(1);
            out.writeShort(sourceAttribute);
            out.writeInt(2);
            out.writeShort(sourceText);
        });
    }

    /** The code of a method. */
    public final class Code {
        private record Fix(int at, int from, String label, boolean wide) {
        }

        private record Handler(String start, String end, String target, int type) {
        }

        private final int access;
        private final int method;
        private final int descriptor;
        private final int stack;
        private final int locals;
        private final ByteArrayOutputStream body = new ByteArrayOutputStream();
        private final Map<String, Integer> labels = new LinkedHashMap<>();
        private final TreeSet<Integer> frames = new TreeSet<>();
        private final List<Fix> fixes = new ArrayList<>();
        private final List<Handler> handlers = new ArrayList<>();

        private Code(int access, int method, int descriptor, int stack, int locals) {
            this.access = access;
            this.method = method;
            this.descriptor = descriptor;
            this.stack = stack;
            this.locals = locals;
        }

        /** Opcodes and one-byte operands. */
        public Code op(int... opcodes) {
            for (int opcode : opcodes) {
                body.write(opcode);
            }
            return this;
        }

        public Code u2(int value) {
            return op(value >> 8 & 255, value & 255);
        }

        public int size() {
            return body.size();
        }

        public Code label(String label) {
            labels.put(label, body.size());
            return this;
        }

        /** A label with a stack map frame: locals as at entry, empty stack. */
        public Code frame(String label) {
            frames.add(body.size());
            return label(label);
        }

        /** A branch with a 16-bit offset. */
        public Code jump(int opcode, String label) {
            fixes.add(new Fix(body.size() + 1, body.size(), label, false));
            return op(opcode).u2(0);
        }

        public Code tableswitch(int low, String other, String... targets) {
            int from = body.size();
            op(170);
            while (body.size() % 4 != 0) {
                op(0);
            }
            wide(from, other).u2(low >> 16).u2(low).u2(low + targets.length - 1 >> 16).u2(low + targets.length - 1);
            for (String target : targets) {
                wide(from, target);
            }
            return this;
        }

        private Code wide(int from, String label) {
            fixes.add(new Fix(body.size(), from, label, true));
            return u2(0).u2(0);
        }

        /** Catches a type, or everything if it is null. */
        public Code handler(String start, String end, String target, String caught) {
            handlers.add(new Handler(start, end, target, caught == null ? 0 : type(caught)));
            return this;
        }

        private byte[] build() {
            byte[] code = body.toByteArray();
            for (Fix fix : fixes) {
                int offset = labels.get(fix.label) - fix.from;
                if (!fix.wide && offset != (short) offset) {
                    throw new IllegalStateException("branch too far: " + offset);
                }
                for (int i = fix.wide ? 24 : 8, at = fix.at; i >= 0; i -= 8) {
                    code[at++] = (byte) (offset >> i);
                }
            }
            int attribute = utf8("Code");
            int mapAttribute = utf8("StackMapTable");
            byte[] map = bytes(out -> {
                out.writeShort(frames.size());
                int last = -1;
                for (int at : frames) {
                    out.writeByte(251);
                    out.writeShort(at - last - 1);
                    last = at;
                }
            });
            byte[] content = bytes(out -> {
                out.writeShort(stack);
                out.writeShort(locals);
                out.writeInt(code.length);
                out.write(code);
                out.writeShort(handlers.size());
                for (Handler handler : handlers) {
                    out.writeShort(labels.get(handler.start));
                    out.writeShort(labels.get(handler.end));
                    out.writeShort(labels.get(handler.target));
                    out.writeShort(handler.type);
                }
                out.writeShort(frames.isEmpty() ? 0 : 1);
                if (!frames.isEmpty()) {
                    out.writeShort(mapAttribute);
                    out.writeInt(map.length);
                    out.write(map);
                }
            });
            return bytes(out -> {
                out.writeShort(access);
                out.writeShort(method);
                out.writeShort(descriptor);
                out.writeShort(1);
                out.writeShort(attribute);
                out.writeInt(content.length);
                out.write(content);
            });
        }
    }
}
