import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An application on H2 with a cache of query results that never has a hit, as its key contains the time of the request: {@code CacheLeak ROWS REQUESTS}. Waits
 * for a line of input between the first tenth of the requests and the rest.
 */
public final class CacheLeak {
    private static final class Account {
        final int id;
        final String owner;
        final int branch;
        final long balance;

        Account(int id, String owner, int branch, long balance) {
            this.id = id;
            this.owner = owner;
            this.branch = branch;
            this.balance = balance;
        }
    }

    private static final class Request {
        final int branch;
        final long time;

        Request(int branch, long time) {
            this.branch = branch;
            this.time = time;
        }

        @Override
        public int hashCode() {
            return branch * 31 + Long.hashCode(time);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Request r && r.branch == branch && r.time == time;
        }
    }

    private final Map<Request, List<Account>> cache = new HashMap<>();
    private final Connection connection;

    private CacheLeak(Connection connection) {
        this.connection = connection;
    }

    private List<Account> accounts(Request request) throws SQLException {
        List<Account> known = cache.get(request);
        if (known != null) {
            return known;
        }
        List<Account> found = new ArrayList<>();
        try (PreparedStatement s = connection.prepareStatement("select id, owner, branch, balance from account where branch = ?")) {
            s.setInt(1, request.branch);
            try (ResultSet rows = s.executeQuery()) {
                while (rows.next()) {
                    found.add(new Account(rows.getInt(1), rows.getString(2), rows.getInt(3), rows.getLong(4))); // leak
                }
            }
        }
        cache.put(request, found);
        return found;
    }

    /** Alive to the end, as in a server. */
    private static CacheLeak application;

    public static void main(String[] args) throws Exception {
        int rows = Integer.parseInt(args[0]);
        int requests = Integer.parseInt(args[1]);
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:leak")) {
            try (Statement s = connection.createStatement()) {
                s.execute("create table account (id int primary key, owner varchar(40), branch int, balance bigint)");
                s.execute("create index by_branch on account (branch)");
            }
            try (PreparedStatement s = connection.prepareStatement("insert into account values (?, ?, ?, ?)")) {
                for (int i = 0; i < rows; i++) {
                    s.setInt(1, i);
                    s.setString(2, "owner " + i);
                    s.setInt(3, i % 50);
                    s.setLong(4, i * 7919L % 100_000);
                    s.execute();
                }
            }
            application = new CacheLeak(connection);
            long sum = 0;
            for (int i = 0; i < requests; i++) {
                if (i == requests / 10) {
                    System.out.println("warm");
                    System.in.read();
                }
                for (Account account : application.accounts(new Request(i % 50, i))) {
                    sum += account.balance + account.id - account.branch + account.owner.length();
                }
            }
            System.out.println(sum + " " + application.cache.size());
        }
    }
}
