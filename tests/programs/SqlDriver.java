import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A mix of SQL on an in-memory database: {@code SqlDriver URL THREADS ROWS ROUNDS platform|virtual}. Each thread has a table and a
 * connection of its own, and results are digested in the order of the threads, so the output does not depend on scheduling.
 */
public final class SqlDriver {
    public static void main(String[] args) throws Exception {
        String url = args[0];
        int threads = Integer.parseInt(args[1]);
        int rows = Integer.parseInt(args[2]);
        int rounds = Integer.parseInt(args[3]);
        // Keeps the in-memory database alive between the other connections.
        try (Connection keep = DriverManager.getConnection(url)) {
            for (int t = 0; t < threads; t++) {
                try (Statement s = keep.createStatement()) {
                    s.execute("create table account" + t + " (id int primary key, owner varchar(40), branch int, balance decimal(14,2), opened date)");
                    s.execute("create index branch" + t + " on account" + t + " (branch)");
                }
            }
            // Virtual threads arrived after the oldest JDK that compiles this.
            ExecutorService pool = args[4].equals("virtual")
                    ? (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null)
                    : Executors.newFixedThreadPool(threads);
            List<Future<List<String>>> results = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int n = t;
                results.add(pool.submit(() -> work(url, n, rows, rounds)));
            }
            Check check = new Check();
            try {
                for (Future<List<String>> f : results) {
                    for (String line : f.get()) {
                        check.add(line);
                    }
                }
            } finally {
                pool.shutdownNow();
            }
            check.print("sql");
        }
    }

    private static List<String> work(String url, int n, int rows, int rounds) throws SQLException {
        List<String> out = new ArrayList<>();
        Random random = new Random(n * 7919L + 1);
        String table = "account" + n;
        try (Connection c = DriverManager.getConnection(url)) {
            c.setAutoCommit(false);
            try (PreparedStatement insert = c.prepareStatement("insert into " + table + " values (?, ?, ?, ?, ?)")) {
                for (int i = 0; i < rows; i++) {
                    insert.setInt(1, i);
                    insert.setString(2, "owner-" + Integer.toString(random.nextInt(1 << 20), 36));
                    insert.setInt(3, random.nextInt(50));
                    insert.setBigDecimal(4, BigDecimal.valueOf(random.nextInt(10_000_000), 2));
                    insert.setDate(5, Date.valueOf("2001-01-" + (10 + random.nextInt(18))));
                    insert.addBatch();
                    if (i % 100 == 99 || i == rows - 1) {
                        insert.executeBatch();
                    }
                }
            }
            c.commit();
            for (int round = 0; round < rounds; round++) {
                try (PreparedStatement move = c.prepareStatement("update " + table + " set balance = balance + ? where id = ?")) {
                    for (int i = 0; i < rows / 4; i++) {
                        move.setBigDecimal(1, BigDecimal.valueOf(random.nextInt(2000) - 1000, 2));
                        move.setInt(2, random.nextInt(rows));
                        move.executeUpdate();
                    }
                }
                if (round % 3 == 2) {
                    c.rollback();
                } else {
                    c.commit();
                }
                query(c, out, "select branch, count(*), sum(balance), min(owner), max(owner) from " + table + " group by branch order by branch");
                query(c, out, "select a.id, b.id, a.balance + b.balance from " + table + " a join " + table
                        + " b on a.branch = b.branch and a.id < b.id where a.id < " + (20 + round) + " order by 3 desc, 1, 2");
                query(c, out, "select id, upper(owner), opened from " + table + " where owner like '%" + (char) ('a' + round % 26)
                        + "%' and branch in (select branch from " + table + " group by branch having sum(balance) > 1000) order by owner, id");
                try {
                    query(c, out, "select balance / (branch - branch) from " + table + " where id = 1");
                } catch (SQLException e) {
                    out.add("error " + e.getSQLState());
                    c.rollback();
                }
                try (Statement s = c.createStatement()) {
                    out.add("deleted " + s.executeUpdate("delete from " + table + " where branch = " + round % 50 + " and id > " + rows / 2));
                }
                c.commit();
            }
        }
        return out;
    }

    private static void query(Connection c, List<String> out, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            int columns = r.getMetaData().getColumnCount();
            StringBuilder line = new StringBuilder();
            while (r.next()) {
                line.setLength(0);
                for (int i = 1; i <= columns; i++) {
                    line.append(r.getString(i)).append('|');
                }
                out.add(line.toString());
            }
        }
    }
}
