import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A web server of the JDK whose sessions listen to a news feed and are never taken off it: {@code ListenerLeak REQUESTS}. Its clients are in the same
 * process. Waits for a line of input between the first tenth of the requests and the rest.
 */
public final class ListenerLeak {
    private interface Listener {
        void news(String text);
    }

    private static final class Feed {
        final List<Listener> listeners = new CopyOnWriteArrayList<>();

        void tell(String text) {
            listeners.forEach(l -> l.news(text));
        }
    }

    private static final class Session implements Listener {
        private final String user;
        private final String[] last;
        private int count;

        Session(String user) {
            this.user = user;
            last = new String[200]; // leak
        }

        @Override
        public void news(String text) {
            last[count++ % last.length] = text;
        }

        String page() {
            return user + ": " + last[(count + last.length - 1) % last.length];
        }
    }

    private final Feed feed = new Feed();
    private int served;

    private synchronized void serve(HttpExchange exchange) throws IOException {
        Session session = new Session(exchange.getRequestURI().getPath().substring(1));
        feed.listeners.add(session);
        if (served++ % 100 == 0) {
            feed.tell("news " + served);
        }
        byte[] page = session.page().getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, page.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(page);
        }
    }

    private static int get(InetSocketAddress address, String path) throws IOException {
        try (Socket socket = new Socket(address.getAddress(), address.getPort())) {
            socket.getOutputStream().write(("GET " + path + " HTTP/1.0\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            int size = 0;
            while (in.readLine() != null) {
                size++;
            }
            return size;
        }
    }

    /** Alive to the end, as in a server. */
    private static ListenerLeak application;

    public static void main(String[] args) throws Exception {
        int requests = Integer.parseInt(args[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        application = new ListenerLeak();
        server.createContext("/", application::serve);
        server.start();
        int lines = 0;
        for (int i = 0; i < requests; i++) {
            if (i == requests / 10) {
                System.out.println("warm");
                System.in.read();
            }
            lines += get(server.getAddress(), "/user" + i % 10);
        }
        server.stop(0);
        System.out.println((lines > requests) + " " + application.feed.listeners.size());
    }
}
