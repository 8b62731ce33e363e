package hazards;

import tools.Asm;
import tools.Loader;

/** One loop in class files of every age: without frames (up to 49), without frames by fallback (50), with frames (51 and on). */
class OldVersions {
    // expect applyAsInt: activations: 9, paths: 27, items: 36, unfinished: 0
    static void main(String[] args) { // activations: 1, unfinished: 0
        int n = 0;
        for (int major : new int[] {45, 46, 47, 48, 49, 50, 51, 52, 61}) {
            Asm asm = new Asm(major, major == 45 ? 3 : 0, "hazards/Version" + major, "OldVersions.java")
                    .implement("java/util/function/IntUnaryOperator");
            Asm.Code code = asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 1, 2).op(132, 1, 1);
            (major > 50 ? code.frame("top") : code.label("top")).op(132, 1, 255).op(27).jump(157, "top").op(27, 172);
            n += Loader.load("hazards.Version" + major, asm.build()).applyAsInt(3); // runs: 9
        }
        System.out.println(n);
    }
}
