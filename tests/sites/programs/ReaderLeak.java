import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * A search service on Lucene that opens a reader after each change and forgets to close the one before; what it keeps for a reader until that is closed
 * stays for ever: {@code ReaderLeak DOCUMENTS ROUNDS}. Waits for a line of input between the first tenth of the rounds and the rest.
 */
public final class ReaderLeak {
    /** The rank of each document, computed once a reader and dropped when it is closed. */
    private static final class Ranks {
        private final Map<Object, short[]> byReader = new HashMap<>();

        short[] of(IndexReader reader) {
            IndexReader.CacheHelper helper = reader.getReaderCacheHelper();
            short[] ranks = byReader.get(helper.getKey());
            if (ranks == null) {
                helper.addClosedListener(byReader::remove);
                ranks = compute(reader);
                byReader.put(helper.getKey(), ranks);
            }
            return ranks;
        }

        private static short[] compute(IndexReader reader) {
            short[] ranks = new short[reader.maxDoc()]; // leak
            for (int i = 0; i < ranks.length; i++) {
                ranks[i] = (short) (i * 7919 % 1000);
            }
            return ranks;
        }
    }

    private final Ranks ranks = new Ranks();
    private final IndexWriter writer;
    private DirectoryReader reader;

    private ReaderLeak(IndexWriter writer) throws IOException {
        this.writer = writer;
        reader = DirectoryReader.open(writer);
    }

    /** The reader before should be closed here. */
    private void refresh() throws IOException {
        DirectoryReader newer = DirectoryReader.openIfChanged(reader, writer);
        if (newer != null) {
            reader = newer;
        }
    }

    private long search(String word) throws IOException {
        TopDocs found = new IndexSearcher(reader).search(new TermQuery(new Term("text", word)), 20);
        short[] rank = ranks.of(reader);
        long sum = found.totalHits.value;
        for (ScoreDoc hit : found.scoreDocs) {
            sum += rank[hit.doc];
        }
        return sum;
    }

    private static Document document(int i) {
        Document document = new Document();
        document.add(new StringField("id", "d" + i, Field.Store.YES));
        document.add(new TextField("text", "w" + i % 97 + " w" + i % 89 + " w" + i * 31 % 1000, Field.Store.NO));
        return document;
    }

    /** Alive to the end, as in a server. */
    private static ReaderLeak service;

    public static void main(String[] args) throws Exception {
        // It advises on vector instructions, with the time.
        Logger.getLogger("org.apache.lucene").setLevel(Level.OFF);
        int documents = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setMergeScheduler(new SerialMergeScheduler());
        try (IndexWriter writer = new IndexWriter(new ByteBuffersDirectory(), config)) {
            for (int i = 0; i < documents; i++) {
                writer.addDocument(document(i));
            }
            writer.forceMerge(1);
            service = new ReaderLeak(writer);
            long sum = 0;
            for (int i = 0; i < rounds; i++) {
                if (i == rounds / 10) {
                    System.out.println("warm");
                    System.in.read();
                }
                writer.updateDocument(new Term("id", "d" + i), document(documents + i));
                service.refresh();
                sum += service.search("w" + i % 97);
            }
            System.out.println(sum + " " + service.ranks.byReader.size());
        }
    }
}
