import jnt.scimark2.FFT;
import jnt.scimark2.LU;
import jnt.scimark2.MonteCarlo;
import jnt.scimark2.Random;
import jnt.scimark2.SOR;
import jnt.scimark2.SparseCompRow;

/**
 * One kernel of SciMark 2.0 a fixed number of times: {@code SciMarkDriver fft|sor|montecarlo|sparse|lu CYCLES}. The benchmark's own
 * main runs for a fixed time, so its work would depend on the speed of the machine. Sizes are its defaults.
 */
public final class SciMarkDriver {
    public static void main(String[] args) {
        int cycles = Integer.parseInt(args[1]);
        Random random = new Random(101010);
        Check check = new Check();
        switch (args[0]) {
            case "fft" -> {
                double[] x = vector(random, 2 * 1024);
                for (int i = 0; i < cycles; i++) {
                    FFT.transform(x);
                    FFT.inverse(x);
                }
                for (double d : x) {
                    check.add(d);
                }
            }
            case "sor" -> {
                double[][] g = matrix(random, 100, 100);
                SOR.execute(1.25, g, cycles);
                for (double[] row : g) {
                    check.add(java.util.Arrays.toString(row));
                }
            }
            case "montecarlo" -> check.add(MonteCarlo.integrate(cycles));
            case "sparse" -> {
                int n = 1000;
                int nonZero = 5000;
                double[] x = vector(random, n);
                double[] y = new double[n];
                double[] value = vector(random, nonZero);
                int perRow = nonZero / n;
                int[] column = new int[nonZero];
                int[] row = new int[n + 1];
                for (int r = 0; r < n; r++) {
                    row[r + 1] = row[r] + perRow;
                    int step = Math.max(1, r / perRow);
                    for (int i = 0; i < perRow; i++) {
                        column[row[r] + i] = i * step;
                    }
                }
                SparseCompRow.matmult(y, value, row, column, x, cycles);
                check.add(java.util.Arrays.toString(y));
            }
            case "lu" -> {
                double[][] a = matrix(random, 100, 100);
                double[][] lu = new double[100][100];
                int[] pivot = new int[100];
                for (int i = 0; i < cycles; i++) {
                    for (int r = 0; r < 100; r++) {
                        System.arraycopy(a[r], 0, lu[r], 0, 100);
                    }
                    LU.factor(lu, pivot);
                }
                check.add(java.util.Arrays.deepToString(lu)).add(java.util.Arrays.toString(pivot));
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
        check.print(args[0]);
    }

    private static double[][] matrix(Random random, int rows, int columns) {
        double[][] m = new double[rows][];
        for (int r = 0; r < rows; r++) {
            m[r] = vector(random, columns);
        }
        return m;
    }

    private static double[] vector(Random random, int n) {
        double[] x = new double[n];
        random.nextDoubles(x);
        return x;
    }
}
