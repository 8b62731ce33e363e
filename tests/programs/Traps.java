/** A loop whose paths soon have all come, in ever other orders: its probes take their slow paths when C2 has compiled it. {@code Traps ROUNDS}. */
public final class Traps {
    private static int rows(int[][] rows, int[] order) {
        int sum = 0;
        for (int r = 0; r < rows.length; r++) {
            int[] row = rows[r];
            for (int i = 0; i < row.length; i++) {
                sum += row[i] ^ i;
            }
            if (order[r] == 0) {
                rows[r][0] += sum % 31;
            } else if (order[r] == 1) {
                rows[r][1] -= sum % 37;
            } else {
                sum = sum * 31 + sum / 7;
                rows[r][2]++;
            }
        }
        return sum;
    }

    /** Ways without an order: they show the helper's profile slow paths. */
    private static int noise(int turns) {
        int x = 1;
        int sum = 0;
        for (int i = 0; i < turns; i++) {
            x = x * 1103515245 + 12345;
            switch (x >>> 28) {
                case 0 -> sum += x / 3;
                case 1 -> sum -= x / 5;
                case 2, 3 -> sum ^= x / 7;
                case 4, 5 -> sum += x % 11;
                case 6, 7 -> sum -= x % 13;
                default -> sum ^= x % 17;
            }
        }
        return sum;
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        int[][] rows = new int[240][];
        for (int r = 0; r < rows.length; r++) {
            rows[r] = new int[r / 60 % 2 == 0 ? 5 : 9];
        }
        int[][] orders = {{0, 1, 2}, {0, 0, 1, 1, 2, 2}, {2, 1, 0}, {0, 0, 0, 0, 1, 2, 1, 2, 2, 2, 2}};
        int[] order = new int[rows.length];
        int sum = noise(rounds);
        for (int i = 0; i < rounds; i++) {
            int[] now = orders[i * orders.length / rounds];
            for (int r = 0; r < order.length; r++) {
                order[r] = now[r % now.length];
            }
            sum += rows(rows, order);
        }
        System.out.println(sum);
    }
}
