import java.util.Random;

/** Sorts generated numbers on a binary heap: {@code HeapSort ELEMENTS ROUNDS}. */
public final class HeapSort {
    /** A heap with the largest element on top. */
    private static final class Heap {
        private final int[] items;
        private int size;

        Heap(int[] items) {
            this.items = items;
            size = items.length;
            for (int i = size / 2 - 1; i >= 0; i--) {
                sink(i);
            }
        }

        /** Moves the largest of the remaining elements behind them. */
        void removeTop() {
            size--;
            swap(0, size);
            sink(0);
        }

        boolean isEmpty() {
            return size == 0;
        }

        private void sink(int at) {
            while (true) {
                int child = 2 * at + 1;
                if (child >= size) {
                    return;
                }
                if (child + 1 < size && items[child + 1] > items[child]) {
                    child++;
                }
                if (items[at] >= items[child]) {
                    return;
                }
                swap(at, child);
                at = child;
            }
        }

        private void swap(int a, int b) {
            int item = items[a];
            items[a] = items[b];
            items[b] = item;
        }
    }

    public static void main(String[] args) {
        int elements = Integer.parseInt(args[0]);
        Random random = new Random(2013);
        Check check = new Check();
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            int[] numbers = random.ints(elements).toArray();
            Heap heap = new Heap(numbers);
            while (!heap.isEmpty()) {
                heap.removeTop();
            }
            long sum = 0;
            for (int i = 0; i < elements; i++) {
                if (i > 0 && numbers[i - 1] > numbers[i]) {
                    throw new IllegalStateException("not sorted at " + i);
                }
                sum = sum * 31 + numbers[i];
            }
            check.add(sum);
        }
        check.print("heapsort");
    }
}
