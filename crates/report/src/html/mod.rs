//! One page for a browser: a file that holds its style, its script and the report's data, and loads nothing.
//!
//! In: the same values that the text and JSON reports are made of. Out: HTML of at most [`MOST_BYTES`], however big the profile; what is left
//! out is said on the page. What must never happen here: a name of the profiled program that becomes markup or script, a figure that the
//! other reports do not have.
//!
//! `page.html` is the frame, `style.css` and `script/` are what the browser runs; there is no build step. The policy in the page allows exactly this style and
//! this script, by their digests.

mod around;
mod budget;
mod digest;
mod flow;
mod paths;
mod tree;

use std::io::Write;

use borescope_profile::Profile;

pub(crate) use around::Around;
pub(crate) use budget::{List, cut};

use self::budget::Data;
use crate::page::Page;
use crate::{Error, MethodGlob, Sources, words};

/// A page has at most so many bytes.
pub const MOST_BYTES: usize = 5_000_000;

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(
    include_str!("script/base.js"),
    include_str!("script/state.js"),
    include_str!("script/source.js"),
    include_str!("script/flow.js"),
    include_str!("script/tree.js"),
    include_str!("script/paths.js"),
    include_str!("script/treemap.js"),
    include_str!("script/plot.js"),
    include_str!("script/sites.js"),
    include_str!("script/flame.js"),
    include_str!("script/waste.js"),
    include_str!("script/search.js"),
    include_str!("script/main.js"),
);

/// Columns of a paragraph that the browser breaks.
const WIDE: usize = 1 << 16;
/// Characters of a paragraph.
const PARAGRAPH: usize = 2_000;
/// Paragraphs of a kind.
const PARAGRAPHS: usize = 60;

/// What the page shows.
#[derive(Clone, Debug, Default)]
pub struct HtmlOptions {
    /// At most so many methods in detail, or so many lines of the application; `None` = as many as there is room for.
    pub top: Option<usize>,
    /// Only these methods.
    pub method: Option<MethodGlob>,
    /// Where source files are looked for.
    pub source: Sources,
}

/// Writes a profile of paths as a page.
pub fn html(profile: &Profile, options: &HtmlOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let data = paths::data(profile, options)?;
        write(&profile.manifest().target.command, &data, out)
    })
}

/// The data of a page as far as every lens has the same: `about` is what the text report begins with, of which the first paragraph is the command.
pub(crate) fn begun(lens: &str, borescope: &str, about: &[String]) -> Result<Data, Error> {
    let mut data = Data::new();
    data.field("lens", &lens)?;
    data.field("borescope", &borescope)?;
    data.field("command", &about.first())?;
    data.field("about", &about.get(1..))?;
    Ok(data)
}

/// Puts the parts together. `data` is JSON without `<`.
pub(crate) fn write(command: &str, data: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'",
        digest::source(SCRIPT),
        digest::source(STYLE)
    );
    let title = match command {
        "" => "borescope".to_owned(),
        _ => format!("{} - borescope", words::keep_start(command, 80)),
    };
    let mut rest = FRAME;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.write_all(before.as_bytes())?;
        match name {
            "policy" => out.write_all(policy.as_bytes())?,
            "title" => out.write_all(escaped(&title).as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "data" => out.write_all(data)?,
            _ => out.write_all(SCRIPT.as_bytes())?,
        }
        rest = after;
    }
    Ok(out.write_all(rest.as_bytes())?)
}

/// Text between tags. Control characters, which HTML does not allow, are replaced.
fn escaped(text: &str) -> String {
    words::plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// What the text report says: its paragraphs, without marks of lists. Long and many ones are cut.
pub(crate) fn said(write: impl FnOnce(&mut Page)) -> Vec<String> {
    let mut page = Page::new(WIDE, false);
    write(&mut page);
    let text = page.take();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut said: Vec<String> = lines
        .by_ref()
        .take(PARAGRAPHS)
        .map(|line| cut(line.strip_prefix("- ").unwrap_or(line), PARAGRAPH))
        .collect();
    match lines.count() {
        0 => {}
        rest => said.push(format!(
            "... and {}",
            words::plain(&words::plural(rest as u64, "more", "more"))
        )),
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        let mut out = Vec::new();
        write("</title><b>&\u{1b}", b"{}", &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("<title>&lt;/title&gt;&lt;b&gt;&amp;\u{fffd} - borescope</title>"));
        assert!(!page.contains("{{"));
        assert!(
            !STYLE.contains("</style") && !SCRIPT.contains("</script") && !SCRIPT.contains("<!--")
        );
        for outside in [
            "http://",
            "https://",
            "innerHTML",
            "eval(",
            "url(",
            "@import",
        ] {
            let mine = [FRAME, STYLE, SCRIPT].map(|part| {
                part.replace("http://www.w3.org/2000/svg", "")
                    .replace("url(#", "")
            });
            assert!(mine.iter().all(|part| !part.contains(outside)), "{outside}");
        }
    }

    #[test]
    fn paragraphs_are_cut() {
        let long = "x ".repeat(PARAGRAPH);
        let said = said(|page| {
            (0..PARAGRAPHS + 3).for_each(|_| page.para(crate::page::Look::Plain, "  - ", &long));
        });
        assert_eq!(said.len(), PARAGRAPHS + 1);
        assert!(said[0].starts_with("x x") && said[0].chars().count() == PARAGRAPH);
        assert_eq!(said[PARAGRAPHS], "... and 3 more");
    }
}
