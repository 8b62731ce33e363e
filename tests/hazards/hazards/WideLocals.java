package hazards;

import tools.Asm;
import tools.Loader;

/** More than 255 locals, so that the profiler's own need wide loads, stores and increments; the method has a wide iinc itself. */
class WideLocals {
    // expect applyAsInt: activations: 2, paths: 6, items: 10, unfinished: 0
    static int with(int major) { // activations: 2
        Asm asm = Loader.operator(major, "hazards.Wide" + major, "WideLocals.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 300);
        (major > 50 ? code.frame("top") : code.label("top"))
                .op(27, 196, 54).u2(299).op(196, 132).u2(299).u2(1000).op(196, 132).u2(1).u2(65535)
                .op(27).op(5, 126).jump(153, "even").op(196, 21).u2(299).op(87);
        (major > 50 ? code.frame("even") : code.label("even")).op(27).jump(157, "top").op(27, 172);
        return Loader.load("hazards.Wide" + major, asm.build()).applyAsInt(5);
    }

    static void main(String[] args) { // activations: 1
        System.out.println(with(49) + with(52));
    }
}
