package hazards;

import tools.Asm;
import tools.Loader;

/** A class loaded again and again in throw-away loaders: unloaded classes keep their counts, and equal classes share a table. */
class Unloading {
    // expect applyAsInt: activations: 300, paths: 2, items: 1500, unfinished: 0
    static byte[] build() { // activations: 1
        Asm asm = Loader.operator(49, "hazards.Thrown", "Unloading.java");
        asm.method(Asm.PUBLIC, "applyAsInt", "(I)I", 1, 2).label("top").op(132, 1, 255).op(27).jump(157, "top").op(27, 172);
        return asm.build();
    }

    static void main(String[] args) { // activations: 1
        int times = args.length > 0 ? Integer.parseInt(args[0]) : 300;
        byte[] bytes = build();
        int n = 0;
        for (int i = 0; i < times; i++) {
            n += Loader.load("hazards.Thrown", bytes).applyAsInt(5); // runs: 300
            if (i % 100 == 99) {
                System.gc(); // runs: 3
            }
        }
        System.out.println(n);
    }
}
