package waste;

/** Pairs whose two accesses are in methods of different classes. */
final class Classes {
    static final All.Program[] SURE = {
        Classes::dead100, Classes::silentStore100, Classes::silentStore0, Classes::silentLoad100, Classes::silentLoad0,
    };
    static final All.Program[] HALF = {Classes::dead50};

    static final class Cell {
        int value;
    }

    static long dead100(int rounds) {
        Cell a = new Cell();
        for (int i = 0; i < rounds; i++) {
            Writer.overwritten(a, i);
            Overwriter.over(a, i + 1);
        }
        return a.value;
    }

    static long dead50(int rounds) {
        Cell a = new Cell();
        Cell c = new Cell();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            Writer.halfRead(a, i);
            sum += Reader.halfReader((i & 1) == 0 ? a : c);
            Overwriter.afterHalf(a, i + 1);
            // So that each store of Writer is the only one whose question is open to chance.
            sum += Reader.between(a);
        }
        return sum;
    }

    static long silentStore100(int rounds) {
        Cell a = new Cell();
        for (int i = 0; i < rounds; i++) {
            Writer.same(a, i);
            Overwriter.sameAgain(a, i);
        }
        return a.value;
    }

    static long silentStore0(int rounds) {
        Cell a = new Cell();
        for (int i = 0; i < rounds; i++) {
            Writer.other(a, i);
            Overwriter.another(a, ~i);
        }
        return a.value;
    }

    static long silentLoad100(int rounds) {
        Cell a = new Cell();
        a.value = 3;
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += Reader.again(a) + OtherReader.onceMore(a);
        }
        return sum;
    }

    static long silentLoad0(int rounds) {
        Cell a = new Cell();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            Writer.change(a, i);
            sum += Reader.changed(a);
            Overwriter.changeBack(a, ~i);
            sum += OtherReader.changedBack(a);
        }
        return sum;
    }
}

final class Writer {
    // dead_store 100: Writer.overwritten -> Overwriter.over
    static void overwritten(Classes.Cell cell, int value) {
        cell.value = value;
    }

    // dead_store 50: Writer.halfRead -> Overwriter.afterHalf
    static void halfRead(Classes.Cell cell, int value) {
        cell.value = value;
    }

    // silent_store 100: Writer.same -> Overwriter.sameAgain
    static void same(Classes.Cell cell, int value) {
        cell.value = value;
    }

    // silent_store 0: Writer.other -> Overwriter.another
    static void other(Classes.Cell cell, int value) {
        cell.value = value;
    }

    static void change(Classes.Cell cell, int value) {
        cell.value = value;
    }
}

final class Overwriter {
    static void over(Classes.Cell cell, int value) {
        cell.value = value;
    }

    static void afterHalf(Classes.Cell cell, int value) {
        cell.value = value;
    }

    static void sameAgain(Classes.Cell cell, int value) {
        cell.value = value;
    }

    static void another(Classes.Cell cell, int value) {
        cell.value = value;
    }

    static void changeBack(Classes.Cell cell, int value) {
        cell.value = value;
    }
}

final class Reader {
    static int halfReader(Classes.Cell cell) {
        return cell.value;
    }

    static int between(Classes.Cell cell) {
        return cell.value;
    }

    // silent_load 100: Reader.again -> OtherReader.onceMore
    static int again(Classes.Cell cell) {
        return cell.value;
    }

    // silent_load 0: Reader.changed -> OtherReader.changedBack
    static int changed(Classes.Cell cell) {
        return cell.value;
    }
}

final class OtherReader {
    static int onceMore(Classes.Cell cell) {
        return cell.value;
    }

    static int changedBack(Classes.Cell cell) {
        return cell.value;
    }
}
