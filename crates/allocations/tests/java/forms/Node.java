package forms;

/** An object that can be told from others. */
public class Node {
    private static int count;
    final Object a;
    final int id = ++count;

    Node() {
        a = null;
    }

    Node(Object a) {
        this.a = a;
    }

    Node(long x, Object a, double y) {
        this(a);
    }

    static Node at(Node node) {
        return node;
    }

    @Override
    public String toString() {
        return "Node" + id;
    }
}
