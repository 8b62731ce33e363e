import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import kotlin.Pair;
import kotlin.collections.CollectionsKt;
import kotlin.collections.MapsKt;
import kotlin.random.Random;
import kotlin.random.RandomKt;
import kotlin.ranges.IntRange;
import kotlin.sequences.Sequence;
import kotlin.sequences.SequencesKt;
import kotlin.text.Regex;
import kotlin.text.StringsKt;

/**
 * Works the Kotlin standard library, which the Kotlin compiler made: {@code KotlinDriver ROUNDS}. Windowed sequences run coroutines
 * (state machines with loops that a switch enters); plainly called functions and lambdas do the rest.
 */
public final class KotlinDriver {
    public static void main(String[] args) {
        Check check = new Check();
        Random random = RandomKt.Random(11);
        for (int round = 0; round < Integer.parseInt(args[0]); round++) {
            List<Integer> numbers = new ArrayList<>();
            for (int i = 0; i < 400; i++) {
                numbers.add(random.nextInt(0, 1000));
            }
            Sequence<Integer> sequence = CollectionsKt.asSequence(numbers);
            Sequence<Integer> evens = SequencesKt.filter(sequence, n -> n % 2 == 0);
            int sum = 0;
            for (List<Integer> window : SequencesKt.toList(SequencesKt.windowed(evens, 5, 2, true))) {
                sum += CollectionsKt.sumOfInt(window) * window.size();
            }
            check.add(sum);
            check.add(SequencesKt.joinToString(SequencesKt.distinct(SequencesKt.map(sequence, n -> n % 17)), ",", "<", ">", 9, "...", null));
            Map<Integer, List<Integer>> groups = MapsKt.toSortedMap(groupByDigit(numbers));
            check.add(groups);
            check.add(CollectionsKt.zipWithNext(CollectionsKt.sorted(numbers)).hashCode());
            check.add(CollectionsKt.chunked(CollectionsKt.shuffled(numbers, new java.util.Random(round)), 7).hashCode());
            String text = StringsKt.repeat("alpha-" + round + " beta_" + sum + "; ", 20);
            check.add(StringsKt.split(text, new String[] {"; ", "-"}, false, 0).size());
            check.add(new Regex("([a-z]+)[-_](\\d+)").replace(text, m -> m.getGroupValues().get(2) + ":" + StringsKt.reversed(m.getGroupValues().get(1))));
            check.add(StringsKt.commonPrefixWith(text, "alpha-" + round + " gamma", false) + StringsKt.padStart(Integer.toString(round), 6, '0'));
            check.add(new IntRange(round, round + 50).getLast() + CollectionsKt.binarySearch(CollectionsKt.sorted(numbers), 500, 0, 400));
            try {
                CollectionsKt.first(CollectionsKt.drop(numbers, 1000));
            } catch (java.util.NoSuchElementException e) {
                check.add(e.getMessage());
            }
        }
        check.print("kotlin");
    }

    private static Map<Integer, List<Integer>> groupByDigit(List<Integer> numbers) {
        List<Pair<Integer, List<Integer>>> pairs = new ArrayList<>();
        for (int digit = 0; digit < 10; digit++) {
            int d = digit;
            pairs.add(new Pair<>(d, CollectionsKt.takeLast(CollectionsKt.filterNotNull(numbers).stream().filter(n -> n % 10 == d).toList(), 5)));
        }
        return MapsKt.toMap(pairs);
    }
}
