package hazards;

import tools.Asm;
import tools.Loader;

/** A loop of nearly 32 KB: inserted code takes its branches, forward and backward, past what 16 bits reach. */
class FarBranches {
    // expect applyAsInt: activations: 1, items: 4, unfinished: 0
    static void main(String[] args) { // activations: 1
        Asm asm = Loader.operator(52, "hazards.Far", "FarBranches.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 2);
        code.frame("top").op(27).jump(158, "out");
        for (int i = 0; i < 20; i++) {
            code.op(27, 16, i, 126).jump(153, "skip" + i).op(132, 1, 255);
            while (code.size() < (i + 1) * 1635) {
                code.op(0);
            }
            code.frame("skip" + i);
        }
        code.op(132, 1, 254).jump(167, "top").frame("out").op(27, 172);
        System.out.println(Loader.load("hazards.Far", asm.build()).applyAsInt(40));
    }
}
