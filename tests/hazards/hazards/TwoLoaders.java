package hazards;

import java.util.function.IntUnaryOperator;
import tools.Asm;
import tools.Loader;

/** Two versions of a class under one name, in three loaders: one table for equal bytes, never one for both versions. */
class TwoLoaders {
    // Version 1 counts down in a loop, version 2 branches once. Both are in the file named here, so that the numbers add up.
    // expect applyAsInt: activations: 21, items: 61, unfinished: 0
    static byte[] version(int version) { // activations: 3, paths: 2
        Asm asm = Loader.operator(49, "hazards.Twin", "TwoLoaders.java");
        Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 1, 2);
        if (version == 1) {
            code.label("top").op(132, 1, 255).op(27).jump(157, "top").op(27, 172); // runs: 2
        } else {
            code.op(27).jump(154, "other").op(4, 172).label("other").op(5, 172); // runs: 1
        }
        return asm.build();
    }

    static int use(IntUnaryOperator twin, int times, int value) { // activations: 3
        int n = 0;
        for (int i = 0; i < times; i++) {
            n += twin.applyAsInt(value); // runs: 21
        }
        return n;
    }

    static void main(String[] args) { // activations: 1
        IntUnaryOperator a = Loader.load("hazards.Twin", version(1));
        IntUnaryOperator b = Loader.load("hazards.Twin", version(2));
        IntUnaryOperator c = Loader.load("hazards.Twin", version(1));
        System.out.println(use(a, 10, 4) + use(b, 6, 1) + use(c, 5, 3));
    }
}
