package sites;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.Arrays;

/** Objects that no bytecode of the program's own allocates. */
class Reflections {
    static class Made {
        Object part = new short[1]; // live: 62 short[]
    }

    static class Handled {
    }

    static class Stored implements Serializable {
        private static final long serialVersionUID = 1;
        final Stored next;

        Stored(Stored next) {
            this.next = next;
        }
    }

    // unknown: 5 sites.Reflections$Handled
    // either: 3 sites.Reflections$Stored
    static void run() throws Throwable {
        Constructor<Made> constructor = Made.class.getDeclaredConstructor();
        for (int i = 0; i < 40; i++) {
            Keep.it(constructor.newInstance()); // live: 40 sites.Reflections$Made
        }
        for (int i = 0; i < 20; i++) {
            @SuppressWarnings("deprecation")
            Made made = Made.class.newInstance(); // live: 20 sites.Reflections$Made
            Keep.it(made);
        }
        Keep.it(new Made()); // live: 1 sites.Reflections$Made
        Keep.it((Object) Made.class.getDeclaredConstructor().newInstance()); // live: 1 sites.Reflections$Made
        Keep.it(Array.newInstance(Made.class, 3)); // live: 1 sites.Reflections$Made[]
        Keep.it(Array.newInstance(int.class, 3)); // live: 1 int[]
        Keep.it(Array.newInstance(long.class, 2, 3)); // live: 1 long[][]
        Keep.it(Arrays.copyOf(new Made[2], 5)); // live: 1 sites.Reflections$Made[]
        Keep.it(Arrays.copyOf(new char[2], 5)); // jdk: 1 char[]
        Keep.it(Arrays.copyOfRange(new int[9], 2, 5)); // jdk: 1 int[]
        MethodHandle handle = MethodHandles.lookup().findConstructor(Handled.class, MethodType.methodType(void.class));
        for (int i = 0; i < 5; i++) {
            Keep.it((Handled) handle.invokeExact());
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(new Stored(new Stored(new Stored(null)))); // live: 0 sites.Reflections$Stored
        Keep.it(new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject()); // upto: 3 sites.Reflections$Stored
    }
}
