import java.io.StringReader;
import java.io.StringWriter;
import java.util.Random;
import javax.xml.transform.Templates;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/**
 * Transforms generated XML: {@code XalanDriver ITEMS ROUNDS}, once with Xalan's interpreter and once with its compiler, which makes
 * Java classes from the stylesheet and loads them.
 */
public final class XalanDriver {
    private static final String SHEET = """
        <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
          <xsl:output method="xml" indent="yes"/>
          <xsl:key name="by-kind" match="item" use="@kind"/>
          <xsl:template match="/list">
            <report count="{count(item)}" sum="{sum(item/price)}">
              <xsl:for-each select="item[generate-id() = generate-id(key('by-kind', @kind)[1])]">
                <xsl:sort select="@kind" data-type="number"/>
                <kind name="{@kind}" total="{format-number(sum(key('by-kind', @kind)/price), '#,##0.00')}">
                  <xsl:apply-templates select="key('by-kind', @kind)"><xsl:sort select="price" data-type="number" order="descending"/></xsl:apply-templates>
                </kind>
              </xsl:for-each>
            </report>
          </xsl:template>
          <xsl:template match="item">
            <xsl:choose>
              <xsl:when test="price &gt; 500"><dear><xsl:value-of select="translate(name, 'abcdef', 'ABCDEF')"/></dear></xsl:when>
              <xsl:when test="position() mod 2 = 0"><even><xsl:value-of select="concat(name, '-', string-length(name))"/></even></xsl:when>
              <xsl:otherwise><xsl:call-template name="stars"><xsl:with-param name="n" select="floor(price div 100)"/></xsl:call-template></xsl:otherwise>
            </xsl:choose>
          </xsl:template>
          <xsl:template name="stars">
            <xsl:param name="n"/>
            <xsl:if test="$n &gt; 0"><star/><xsl:call-template name="stars"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template></xsl:if>
          </xsl:template>
        </xsl:stylesheet>
        """;

    public static void main(String[] args) throws Exception {
        Random random = new Random(42);
        StringBuilder xml = new StringBuilder("<list>");
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            xml.append("<item kind='").append(random.nextInt(9)).append("'><name>").append(Integer.toString(random.nextInt(1 << 28), 36))
                    .append("</name><price>").append(random.nextInt(100_000) / 100.0).append("</price></item>");
        }
        xml.append("</list>");
        for (String factory : new String[] {"org.apache.xalan.processor.TransformerFactoryImpl", "org.apache.xalan.xsltc.trax.TransformerFactoryImpl"}) {
            Templates templates = TransformerFactory.newInstance(factory, null).newTemplates(new StreamSource(new StringReader(SHEET)));
            Check check = new Check();
            for (int i = 0; i < Integer.parseInt(args[1]); i++) {
                StringWriter out = new StringWriter();
                Transformer transformer = templates.newTransformer();
                transformer.transform(new StreamSource(new StringReader(xml.toString())), new StreamResult(out));
                check.add(out);
            }
            check.print(factory);
        }
    }
}
