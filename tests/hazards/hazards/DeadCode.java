package hazards;

import tools.Asm;
import tools.Loader;

/** Instructions that nothing reaches, a handler among them, before and after a loop: no path, no probe, no harm. */
class DeadCode {
    // expect applyAsInt: activations: 2, paths: 6, items: 9, unfinished: 0
    static int with(int major) { // activations: 2
        Asm asm = Loader.operator(major, "hazards.Dead" + major, "DeadCode.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 1, 2).jump(167, "top");
        boolean frames = major > 50;
        (frames ? code.frame("dead") : code.label("dead")).op(132, 1, 7).jump(167, "dead").label("dead end");
        (frames ? code.frame("top") : code.label("top")).op(132, 1, 255).op(27).jump(157, "top");
        code.op(27, 172);
        (frames ? code.frame("later") : code.label("later")).op(3, 172);
        return Loader.load("hazards.Dead" + major, asm.build()).applyAsInt(major == 49 ? 4 : 5);
    }

    static void main(String[] args) { // activations: 1
        System.out.println(with(49) + with(52));
    }
}
