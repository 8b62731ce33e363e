package hazards;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.IntUnaryOperator;

/** More than sixteen calls through reflection: the JVM makes an accessor class whose loader must not need to see the probes. */
class Reflective {
    static int target(int n) { // activations: 60, items: 240
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i; // runs: 180
        }
        return sum;
    }

    final int value;

    Reflective(Integer value) { // activations: 40, paths: 1
        this.value = value;
    }

    static void main(String[] args) throws Throwable { // activations: 1
        Method method = Reflective.class.getDeclaredMethod("target", int.class);
        Constructor<Reflective> constructor = Reflective.class.getDeclaredConstructor(Integer.class);
        int n = 0;
        for (int i = 0; i < 40; i++) {
            n += (int) method.invoke(null, 3) + constructor.newInstance(i).value; // runs: 40
        }
        MethodHandle handle = MethodHandles.lookup().findStatic(Reflective.class, "target", MethodType.methodType(int.class, int.class));
        for (int i = 0; i < 20; i++) {
            n += (int) handle.invokeExact(3); // runs: 20
        }
        IntUnaryOperator proxy = (IntUnaryOperator) Proxy.newProxyInstance(Reflective.class.getClassLoader(),
                new Class<?>[] {IntUnaryOperator.class}, (self, called, values) -> (int) values[0] + 1); // runs: 1
        System.out.println(n + proxy.applyAsInt(1));
    }
}
