/** As little as a program can do. */
public final class Hello {
    public static void main(String[] args) {
        System.out.println("hello");
    }
}
