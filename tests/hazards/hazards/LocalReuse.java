package hazards;

/**
 * More than twenty locals that mix one and two slots, slots reused with other types, nested loops: full frames with holes, behind which the
 * profiler's own locals must be declared.
 */
class LocalReuse {
    static double mix(int n) { // activations: 1, unfinished: 0
        double total = 0;
        int a = 1;
        long b = 2;
        float c = 3;
        double d = 4;
        int e = 5;
        for (int i = 0; i < n; i++) {
            double x = i * d;
            int y = (int) x;
            if (y % 2 == 0) {
                long z = y + b;
                String s = "s" + z;
                total += s.length(); // runs: 10
            } else {
                int z = y - a;
                double w = z * 0.5;
                total -= w;
            }
            for (int j = 0; j < 2; j++) {
                long p = (long) j * e;
                double q = p + c;
                int r = (int) q;
                total += r; // runs: 20
            }
            {
                int p = e + i;
                total += p; // runs: 10
            }
        }
        {
            Object o = "late";
            total += o.hashCode() % 7;
        }
        double f = 1;
        int g = 2;
        double h = 3;
        int k = 4;
        double l = 5;
        int m = 6;
        double o = 7;
        int p = 8;
        double q = 9;
        int r = 10;
        for (int i = 0; i < 3; i++) {
            double s = f + h + l + o + q;
            int t = g + k + m + p + r;
            total += s * t; // runs: 3
        }
        return total;
    }

    static long onlyIfAssigned(boolean flag, int n) { // activations: 2, items: 5
        long sum = 0;
        int late;
        if (flag) {
            late = 3; // runs: 1
            sum += late;
        }
        while (n-- > 0) {
            long twice = n * 2L;
            sum += twice; // runs: 3
        }
        return sum;
    }

    static void main(String[] args) { // activations: 1
        System.out.println(mix(10) + onlyIfAssigned(true, 1) + onlyIfAssigned(false, 2));
    }
}
