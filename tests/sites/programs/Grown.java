import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.eclipse.jdt.internal.compiler.CompilationResult;
import org.eclipse.jdt.internal.compiler.DefaultErrorHandlingPolicies;
import org.eclipse.jdt.internal.compiler.ast.CompilationUnitDeclaration;
import org.eclipse.jdt.internal.compiler.batch.CompilationUnit;
import org.eclipse.jdt.internal.compiler.impl.CompilerOptions;
import org.eclipse.jdt.internal.compiler.parser.Parser;
import org.eclipse.jdt.internal.compiler.problem.DefaultProblemFactory;
import org.eclipse.jdt.internal.compiler.problem.ProblemReporter;

/**
 * Libraries that hold much at once, and hold it to the end: {@code Grown h2 ROWS} has a table in memory, {@code Grown lucene DOCUMENTS} a writer with an index and what it buffers,
 * {@code Grown ecj TIMES JAR} the syntax trees of a jar of sources.
 */
public final class Grown {
    private static Object kept;

    public static void main(String[] args) throws Exception {
        int size = Integer.parseInt(args[1]);
        switch (args[0]) {
            case "h2" -> kept = table(size);
            case "lucene" -> kept = index(size);
            case "ecj" -> kept = trees(size, args[2]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println(kept != null);
    }

    private static Connection table(int rows) throws Exception {
        // The database would be closed by a shutdown hook, before the last snapshot.
        Connection connection = DriverManager.getConnection("jdbc:h2:mem:grown;DB_CLOSE_ON_EXIT=FALSE");
        try (Statement s = connection.createStatement()) {
            s.execute("create table account (id int primary key, owner varchar(40), branch int, balance decimal(20, 2), opened timestamp)");
            s.execute("create index by_owner on account (owner)");
        }
        try (PreparedStatement s = connection.prepareStatement("insert into account values (?, ?, ?, ?, dateadd('second', ?, timestamp '2020-01-01 00:00:00'))")) {
            for (int i = 0; i < rows; i++) {
                s.setInt(1, i);
                s.setString(2, "owner " + i * 7919L % rows);
                s.setInt(3, i % 50);
                s.setBigDecimal(4, java.math.BigDecimal.valueOf(i * 7919L, 2));
                s.setInt(5, i);
                s.execute();
            }
        }
        return connection;
    }

    private static IndexWriter index(int documents) throws IOException {
        Logger.getLogger("org.apache.lucene").setLevel(Level.OFF);
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setMergeScheduler(new SerialMergeScheduler());
        IndexWriter writer = new IndexWriter(new ByteBuffersDirectory(), config.setRAMBufferSizeMB(96));
        for (int i = 0; i < documents; i++) {
            Document document = new Document();
            document.add(new StringField("id", "d" + i, Field.Store.YES));
            document.add(new TextField("text", "w" + i % 97 + " w" + i % 89 + " w" + i * 31L % 100_000 + " of document " + i, Field.Store.YES));
            document.add(new NumericDocValuesField("rank", i * 7919L % 100_000));
            writer.addDocument(document);
        }
        return writer;
    }

    private static List<CompilationUnitDeclaration> trees(int times, String jar) throws IOException {
        CompilerOptions options = new CompilerOptions(Map.of(CompilerOptions.OPTION_Source, "17", CompilerOptions.OPTION_Compliance, "17"));
        Parser parser = new Parser(new ProblemReporter(DefaultErrorHandlingPolicies.proceedWithAllProblems(), options, new DefaultProblemFactory()), true);
        List<CompilationUnitDeclaration> trees = new ArrayList<>();
        for (int i = 0; i < times; i++) {
            try (ZipFile sources = new ZipFile(jar)) {
                for (ZipEntry entry : (Iterable<ZipEntry>) sources.stream().<ZipEntry>map(e -> e)::iterator) {
                    if (entry.getName().endsWith(".java")) {
                        char[] text = new String(sources.getInputStream(entry).readAllBytes(), StandardCharsets.UTF_8).toCharArray();
                        CompilationUnit unit = new CompilationUnit(text, entry.getName(), "UTF-8");
                        trees.add(parser.parse(unit, new CompilationResult(unit, 0, 1, options.maxProblemsPerUnit)));
                    }
                }
            }
        }
        return trees;
    }
}
