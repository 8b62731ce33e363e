import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.fop.apps.FOUserAgent;
import org.apache.fop.apps.Fop;
import org.apache.fop.apps.FopFactory;
import org.apache.fop.apps.MimeConstants;

/** Renders generated formatting objects to PDF: {@code FopDriver SECTIONS ROUNDS}. */
public final class FopDriver {
    public static void main(String[] args) throws Exception {
        // FOP logs progress with times; the results are what counts here.
        java.util.logging.Logger.getLogger("org.apache.fop").setLevel(java.util.logging.Level.SEVERE);
        StringBuilder fo = new StringBuilder("""
            <fo:root xmlns:fo="http://www.w3.org/1999/XSL/Format"><fo:layout-master-set>
            <fo:simple-page-master master-name="a4" page-height="29.7cm" page-width="21cm" margin="2cm"><fo:region-body/></fo:simple-page-master>
            </fo:layout-master-set><fo:page-sequence master-reference="a4"><fo:flow flow-name="xsl-region-body">
            """);
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            fo.append("<fo:block font-size='14pt' space-before='8pt' keep-with-next='always'>Section ").append(i).append("</fo:block>")
                    .append("<fo:block text-align='justify' hyphenate='false'>")
                    .append("The quick brown fox jumps over the lazy dog while paths of a method follow one another. ".repeat(1 + i % 7))
                    .append("</fo:block><fo:table table-layout='fixed' width='100%'><fo:table-body>");
            for (int row = 0; row < 1 + i % 4; row++) {
                fo.append("<fo:table-row>");
                for (int column = 0; column < 3; column++) {
                    fo.append("<fo:table-cell border='0.5pt solid black' padding='2pt'><fo:block>").append(i * row + column).append("</fo:block></fo:table-cell>");
                }
                fo.append("</fo:table-row>");
            }
            fo.append("</fo:table-body></fo:table>");
        }
        fo.append("</fo:flow></fo:page-sequence></fo:root>");

        FopFactory factory = FopFactory.newInstance(new File(".").toURI());
        Check check = new Check();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            FOUserAgent agent = factory.newFOUserAgent();
            agent.setCreationDate(new Date(0));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            Fop fop = factory.newFop(MimeConstants.MIME_PDF, agent, out);
            TransformerFactory.newInstance().newTransformer().transform(new StreamSource(new StringReader(fo.toString())), new SAXResult(fop.getDefaultHandler()));
            // The file identifier is random by design, and one date is always now.
            String pdf = out.toString(StandardCharsets.ISO_8859_1).replaceAll("/ID \\[[^]]*]", "/ID []")
                    .replaceAll("<xmp:MetadataDate>[^<]*", "<xmp:MetadataDate>");
            check.add(pdf.getBytes(StandardCharsets.ISO_8859_1));
            System.out.println("pages " + fop.getResults().getPageCount() + ", bytes " + pdf.length());
        }
        check.print("fop");
    }
}
