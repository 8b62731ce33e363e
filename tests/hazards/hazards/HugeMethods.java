package hazards;

import java.util.function.IntUnaryOperator;
import tools.Asm;
import tools.Loader;

/** Methods at the limits: near 64 KB, and with branches that reach 32 KB before any code is inserted. */
class HugeMethods {
    // expect applyAsInt: plain
    // expect small: activations: 2, items: 4
    static IntUnaryOperator nearLimit() { // activations: 1
        Asm asm = Loader.operator(52, "hazards.NearLimit", "HugeMethods.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 2);
        code.op(27, 184).u2(asm.methodref("hazards/NearLimit", "small", "(I)I")).op(60);
        for (int i = 0; code.size() < 65_500; i++) {
            code.op(27, 4, 126).jump(153, "skip" + i).op(132, 1, 3);
            for (int j = 0; j < 300 && code.size() < 65_500; j++) {
                code.op(132, 1, 1);
            }
            code.frame("skip" + i);
        }
        code.op(27, 172);
        asm.method(Asm.PUBLIC | Asm.STATIC, "small", "(I)I", 1, 1).op(26).jump(158, "no").frame("top").op(132, 0, 255).op(26)
                .jump(157, "top").frame("no").op(26, 172);
        return Loader.load("hazards.NearLimit", asm.build());
    }

    static void main(String[] args) { // activations: 1
        IntUnaryOperator near = nearLimit();
        System.out.println(near.applyAsInt(3) + near.applyAsInt(0));
    }
}
