import com.sun.jdi.Bootstrap;
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
import java.util.Map;

/**
 * Tags of another agent, a debugger: {@code TagCost HOME OPTIONS OBJECTS} starts a program on the JDK in HOME that makes so many objects in one line, and asks the debugger's agent
 * in it for all of them. That tags each one (JVMTI's SetTag), and HotSpot keeps tags by identity hash. Prints how many it got, and the milliseconds.
 */
public final class TagCost {
    private static final class Item {
    }

    private static Object[] items;

    private static void target(int n) {
        items = new Object[n];
        for (int i = 0; i < n; i++) {
            items[i] = new Item();
        }
        look();
    }

    private static void look() {
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("target")) {
            target(Integer.parseInt(args[1]));
            return;
        }
        LaunchingConnector connector = Bootstrap.virtualMachineManager().defaultConnector();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("home").setValue(args[0]);
        arguments.get("options").setValue(args[1] + " -cp " + System.getProperty("java.class.path"));
        arguments.get("main").setValue("TagCost target " + args[2]);
        VirtualMachine vm = connector.launch(arguments);
        ClassPrepareRequest prepared = vm.eventRequestManager().createClassPrepareRequest();
        prepared.addClassFilter("TagCost");
        prepared.enable();
        for (boolean ended = false; !ended;) {
            EventSet events = vm.eventQueue().remove();
            for (Event event : events) {
                if (event instanceof ClassPrepareEvent) {
                    ReferenceType type = ((ClassPrepareEvent) event).referenceType();
                    vm.eventRequestManager().createBreakpointRequest(type.methodsByName("look").get(0).location()).enable();
                } else if (event instanceof BreakpointEvent) {
                    ReferenceType item = vm.classesByName("TagCost$Item").get(0);
                    long begun = System.nanoTime();
                    int found = item.instances(0).size();
                    System.out.println(found + " objects " + (System.nanoTime() - begun) / 1_000_000 + " ms");
                }
                ended |= event instanceof VMDisconnectEvent;
            }
            events.resume();
        }
    }
}
