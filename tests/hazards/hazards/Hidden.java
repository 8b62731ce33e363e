package hazards;

import java.lang.invoke.MethodHandles;
import java.util.function.IntUnaryOperator;
import tools.Asm;
import tools.Loader;

/** A hidden class: no agent ever sees its bytes, so it is not counted; its host is. */
class Hidden {
    static int host(int n) { // activations: 3, items: 9
        int sum = 0;
        while (n-- > 0) {
            sum += n; // runs: 6
        }
        return sum;
    }

    static void main(String[] args) throws Exception { // activations: 1
        Asm asm = Loader.operator(49, "hazards.Ghost", "Hidden.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 1, 2);
        code.label("top").op(132, 1, 255).op(27).jump(157, "top");
        code.op(27, 184).u2(asm.methodref("hazards/Hidden", "host", "(I)I")).op(172);
        Class<?> ghost = MethodHandles.lookup().defineHiddenClass(asm.build(), true).lookupClass();
        IntUnaryOperator operator = (IntUnaryOperator) ghost.getDeclaredConstructor().newInstance();
        System.out.println(operator.applyAsInt(4) + host(3) + host(3));
    }
}
