import java.util.Random;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.IntPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.WildcardQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Indexes generated documents in memory with one thread and searches them: {@code LuceneDriver DOCUMENTS ROUNDS}. */
public final class LuceneDriver {
    private static final Logger LOG = Logger.getLogger("org.apache.lucene");

    public static void main(String[] args) throws Exception {
        // It advises on vector instructions, with the time.
        LOG.setLevel(Level.OFF);
        Random random = new Random(7);
        String[] words = new String[3000];
        for (int i = 0; i < words.length; i++) {
            words[i] = Integer.toString(random.nextInt(1 << 24), 36) + "aeiou".charAt(i % 5);
        }
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setMergeScheduler(new SerialMergeScheduler()).setMaxBufferedDocs(200);
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (int i = 0; i < Integer.parseInt(args[0]); i++) {
                StringBuilder text = new StringBuilder();
                for (int w = 20 + random.nextInt(80); w > 0; w--) {
                    // Squares make some words common and most rare, as in a language.
                    double x = random.nextDouble();
                    text.append(words[(int) (x * x * words.length)]).append(w % 9 == 0 ? ". " : " ");
                }
                Document d = new Document();
                d.add(new StringField("id", "d" + i, Field.Store.YES));
                d.add(new TextField("text", text.toString(), Field.Store.NO));
                d.add(new IntPoint("size", text.length()));
                d.add(new NumericDocValuesField("rank", random.nextInt(1000)));
                writer.addDocument(d);
                if (i % 97 == 96) {
                    writer.deleteDocuments(new Term("id", "d" + random.nextInt(i)));
                }
            }
            writer.forceMerge(2);
        }
        Check check = new Check();
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int i = 0; i < Integer.parseInt(args[1]); i++) {
                String a = words[i % 200];
                String b = words[(i * 31 + 1) % 200];
                Query[] queries = {
                    new TermQuery(new Term("text", a)),
                    new BooleanQuery.Builder().add(new TermQuery(new Term("text", a)), Occur.MUST).add(new TermQuery(new Term("text", b)), Occur.SHOULD).build(),
                    new PhraseQuery(3, "text", a, b),
                    new FuzzyQuery(new Term("text", b), 1),
                    new WildcardQuery(new Term("text", a.substring(0, 2) + "*" + a.substring(a.length() - 1))),
                    IntPoint.newRangeQuery("size", 100 + i, 300 + i),
                };
                for (Query q : queries) {
                    TopDocs top = i % 2 == 0 ? searcher.search(q, 10) : searcher.search(q, 10, new Sort(new SortField("rank", SortField.Type.INT), SortField.FIELD_DOC));
                    check.add(q + " " + top.totalHits);
                    for (ScoreDoc hit : top.scoreDocs) {
                        check.add(searcher.storedFields().document(hit.doc).get("id") + " " + hit.score);
                    }
                }
            }
        }
        check.print("lucene");
    }
}
