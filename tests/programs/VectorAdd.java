/** Adds vectors: {@code VectorAdd LENGTH ROUNDS}. The inner loop is one that JIT compilers turn into vector instructions. */
public final class VectorAdd {
    private static void add(float[] sum, float[] a, float[] b) {
        for (int i = 0; i < sum.length; i++) {
            sum[i] = a[i] + b[i];
        }
    }

    public static void main(String[] args) {
        int length = Integer.parseInt(args[0]);
        float[] a = new float[length];
        float[] b = new float[length];
        float[] sum = new float[length];
        for (int i = 0; i < length; i++) {
            a[i] = i;
            b[i] = 2 * i + 1;
        }
        for (int round = Integer.parseInt(args[1]); round > 0; round--) {
            add(sum, a, b);
            a[round % length] += 1;
        }
        Check check = new Check();
        for (float f : sum) {
            check.add(f);
        }
        check.print("add");
    }
}
