import com.sun.jdi.Bootstrap;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.LaunchingConnector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.VMDisconnectEvent;
import com.sun.jdi.request.ClassPrepareRequest;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import sun.misc.Unsafe;

/**
 * Why the agent has no hybrid mode (docs/sites-numbering.md): HotSpot reads identity hashes for itself, and leaves no trace of it. {@code HashTagged HOME OPTIONS} debugs a program on
 * the JDK in HOME: an object's header has a hash, as a static number would stand there; the debugger looks at the object; another hash takes its place, as at the first
 * reference of the hash by Java code; the debugger looks again. {@code HashTagged HOME OPTIONS keep}: the hash stays.
 */
public final class HashTagged {
    private static final int HASH_SHIFT = 11; // JDK 25
    private static Object shared;

    private static void target(boolean keep) throws ReflectiveOperationException {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe unsafe = (Unsafe) field.get(null);
        shared = new Object();
        long header = unsafe.getLong(shared, 0L) | 0x12345L << HASH_SHIFT;
        unsafe.putLong(shared, 0L, header);
        look();
        if (unsafe.getLong(shared, 0L) != header) {
            throw new AssertionError("that left a trace");
        }
        if (!keep) {
            unsafe.putLong(shared, 0L, header | 1L << (HASH_SHIFT + 30));
        }
        look();
    }

    private static void look() {
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("target")) {
            target(args.length > 1);
            return;
        }
        LaunchingConnector connector = Bootstrap.virtualMachineManager().defaultConnector();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("home").setValue(args[0]);
        arguments.get("options").setValue(args[1] + " -cp " + System.getProperty("java.class.path"));
        arguments.get("main").setValue("HashTagged target" + (args.length > 2 ? " keep" : ""));
        VirtualMachine vm = connector.launch(arguments);
        ClassPrepareRequest prepared = vm.eventRequestManager().createClassPrepareRequest();
        prepared.addClassFilter("HashTagged");
        prepared.enable();
        List<ObjectReference> seen = new ArrayList<>();
        for (boolean ended = false; !ended;) {
            EventSet events = vm.eventQueue().remove();
            for (Event event : events) {
                if (event instanceof ClassPrepareEvent) {
                    ReferenceType type = ((ClassPrepareEvent) event).referenceType();
                    vm.eventRequestManager().createBreakpointRequest(type.methodsByName("look").get(0).location()).enable();
                } else if (event instanceof BreakpointEvent) {
                    ReferenceType type = ((BreakpointEvent) event).location().declaringType();
                    seen.add((ObjectReference) type.getValue(type.fieldByName("shared")));
                }
                ended |= event instanceof VMDisconnectEvent;
            }
            events.resume();
        }
        boolean one = seen.get(0).equals(seen.get(1));
        System.out.println(seen.size() + " looks, " + (one ? "one object" : "two objects"));
    }
}
