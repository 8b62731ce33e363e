import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Small objects that live shortly: streams, boxes, collections, strings. {@code Boxes ROUNDS} does each kind so many times and prints a sum of what came of it.
 */
public final class Boxes {
    private record Order(int customer, String article, double price) {}

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        List<Order> orders = IntStream.range(0, 2_000).mapToObj(i -> new Order(i * 31 % 97, "article " + i % 53, i % 89 + 0.25)).toList();
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            sum = sum * 31 + streams(orders, round) + boxes(round) + lists(round) + strings(orders, round);
        }
        System.out.println("sum " + sum);
    }

    private static long streams(List<Order> orders, int round) {
        Map<Integer, Double> spent = orders.stream()
            .filter(order -> order.customer() % 7 != round % 7)
            .collect(Collectors.groupingBy(Order::customer, TreeMap::new, Collectors.summingDouble(Order::price)));
        List<String> best = orders.stream()
            .sorted(Comparator.comparingDouble(Order::price).thenComparing(Order::article))
            .map(Order::article)
            .distinct()
            .limit(20)
            .toList();
        long odd = IntStream.range(0, 3_000).boxed().filter(i -> (i & 1) == 1).mapToLong(Integer::longValue).sum();
        return spent.values().stream().mapToLong(Double::longValue).sum() + best.hashCode() + odd;
    }

    private static long boxes(int round) {
        Map<Long, Integer> counts = new HashMap<>();
        for (int i = 0; i < 5_000; i++) {
            counts.merge((long) (i * 7919 + round) % 1_009 + 1_000, 1, Integer::sum);
        }
        long sum = 0;
        for (Map.Entry<Long, Integer> entry : counts.entrySet()) {
            sum += entry.getKey() * entry.getValue();
        }
        return sum;
    }

    private static long lists(int round) {
        List<List<Integer>> rows = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            List<Integer> row = new ArrayList<>();
            for (int j = 0; j < 60; j++) {
                row.add(i * j + round);
            }
            rows.add(row);
        }
        long sum = 0;
        for (List<Integer> row : rows) {
            for (Integer cell : row) {
                sum += cell;
            }
        }
        return sum;
    }

    private static long strings(List<Order> orders, int round) {
        StringBuilder all = new StringBuilder();
        for (Order order : orders) {
            all.append(order.article() + ":" + (order.customer() + round)).append(';');
        }
        long sum = 0;
        for (String part : all.toString().split(";")) {
            sum += part.substring(part.indexOf(':') + 1).length() + part.hashCode();
        }
        return sum;
    }
}
