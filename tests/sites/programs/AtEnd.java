/**
 * Another program, then a collection and a wait for a line of input, so that its end can be looked at from outside: {@code AtEnd MAIN ARGUMENT...}. Prints the
 * process id and the bytes of heap in use.
 */
public final class AtEnd {
    public static void main(String[] args) throws Exception {
        String[] rest = java.util.Arrays.copyOfRange(args, 1, args.length);
        Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
        // References are cleared by the first collection, what they led to may go in the second.
        System.gc();
        System.gc();
        Runtime vm = Runtime.getRuntime();
        System.out.println("end " + ProcessHandle.current().pid() + " " + (vm.totalMemory() - vm.freeMemory()));
        System.in.read();
    }
}
