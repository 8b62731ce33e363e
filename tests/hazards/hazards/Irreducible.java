package hazards;

import java.util.function.IntUnaryOperator;
import tools.Asm;
import tools.Loader;

/** Loops with several entries: a jump into the middle, and the shape of a coroutine, a loop entered through a switch. */
class Irreducible {
    // expect applyAsInt: activations: 16, unfinished: 0
    static IntUnaryOperator jumpIntoMiddle() { // activations: 1
        Asm asm = Loader.operator(49, "hazards.Middle", "Irreducible.java");
        asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 2)
                .op(27, 4, 126).jump(153, "b")
                .label("a").op(132, 1, 255)
                .label("b").op(132, 1, 254).op(27).jump(157, "a")
                .op(27, 172);
        return Loader.load("hazards.Middle", asm.build());
    }

    static IntUnaryOperator coroutine(int major) { // activations: 2
        Asm asm = Loader.operator(major, "hazards.Coroutine" + major, "Irreducible.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 2, 2);
        code.op(27, 6, 126).tableswitch(0, "out", "first", "second", "third");
        String[] labels = {"first", "second", "third"};
        for (int i = 0; i < 3; i++) {
            (major > 50 ? code.frame(labels[i]) : code.label(labels[i])).op(132, 1, 255 - i);
        }
        code.op(27).jump(157, "first");
        (major > 50 ? code.frame("out") : code.label("out")).op(27, 172);
        return Loader.load("hazards.Coroutine" + major, asm.build());
    }

    static void main(String[] args) { // activations: 1
        int n = 0;
        IntUnaryOperator middle = jumpIntoMiddle();
        IntUnaryOperator old = coroutine(49);
        IntUnaryOperator young = coroutine(52);
        for (int i = 20; i < 24; i++) {
            n += middle.applyAsInt(i) + middle.applyAsInt(1) + old.applyAsInt(i) + young.applyAsInt(i); // runs: 4
        }
        System.out.println(n);
    }
}
