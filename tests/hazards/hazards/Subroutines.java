package hazards;

import tools.Asm;
import tools.Loader;

/** jsr and ret, as compilers emitted for finally until version 48: such methods stay plain and are named. */
class Subroutines {
    // expect applyAsInt: plain
    // expect simple: activations: 2, items: 2
    static void main(String[] args) { // activations: 1
        Asm asm = Loader.operator(48, "hazards.Jsr", "Subroutines.java");
        asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 4)
                .label("top").jump(168, "sub").op(27).jump(157, "top").jump(168, "sub")
                .op(27, 184).u2(asm.methodref("hazards/Jsr", "simple", "(I)I")).op(172)
                .label("sub").op(77).op(132, 1, 255).op(169, 2);
        asm.method(Asm.PUBLIC | Asm.STATIC, "simple", "(I)I", 1, 1)
                .label("top").op(132, 0, 1).op(26).jump(155, "top").op(26, 172);
        var operator = Loader.load("hazards.Jsr", asm.build());
        System.out.println(operator.applyAsInt(3) + operator.applyAsInt(6));
    }
}
