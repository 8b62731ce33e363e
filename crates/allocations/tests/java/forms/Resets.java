package forms;

/** Calls of {@link Lib} from code that is instrumented and from code that is not. */
public class Resets {
    static class Unseen {
        static Object make() {
            return Lib.make();
        }
    }

    public static void main(String[] args) {
        Lib.make();
        Unseen.make();
        Unseen.make().equals(new Forms.Own().get());
        Unseen.make();
        Lib.twice(() -> {
            Lib.make();
            Unseen.make();
        });
    }
}
