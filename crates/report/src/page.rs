//! Text of a given width: paragraphs with hanging indents and colour if it is wanted.

use crate::words;

/// Narrower than this nothing is readable: text is laid out as if the terminal were this wide.
const MIN_WIDTH: usize = 20;

/// How a stretch of text looks on a terminal that shows colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// As it is.
    Plain,
    /// Headings and names.
    Bold,
    /// What can be passed over.
    Dim,
    /// What to do.
    Advice,
}

/// Text under construction.
pub(crate) struct Page {
    /// Columns.
    pub(crate) width: usize,
    color: bool,
    text: String,
}

impl Page {
    pub(crate) fn new(width: usize, color: bool) -> Self {
        Self {
            width: width.max(MIN_WIDTH),
            color,
            text: String::new(),
        }
    }

    /// An empty page of the same shape.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.width, self.color)
    }

    /// What was written so far; the page is empty then.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Puts text of another page here.
    pub(crate) fn append(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// One line as it is (the caller sees to its width).
    pub(crate) fn line(&mut self, look: Look, line: &str) {
        let line = words::plain(line);
        let line = line.trim_end();
        let code = match look {
            _ if !self.color || line.is_empty() => "",
            Look::Plain => "",
            Look::Bold => "1",
            Look::Dim => "2",
            Look::Advice => "33",
        };
        if code.is_empty() {
            self.text.push_str(line);
        } else {
            let words_at = line.len() - line.trim_start().len();
            let (indent, words) = line.split_at(words_at);
            self.text
                .push_str(&format!("{indent}\u{1b}[{code}m{words}\u{1b}[0m"));
        }
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A paragraph: `first` leads its first line, blanks of the same width the others.
    pub(crate) fn para(&mut self, look: Look, first: &str, text: &str) {
        let indent = first.chars().count();
        let hang = " ".repeat(indent);
        for (i, line) in words::wrap(text, self.width.saturating_sub(indent).max(MIN_WIDTH / 2))
            .iter()
            .enumerate()
        {
            self.line(
                look,
                &format!("{}{line}", if i == 0 { first } else { &hang }),
            );
        }
    }

    /// `left`, and `right` at the end of the line if both fit, else below each other.
    pub(crate) fn both_ends(&mut self, look: Look, left: &str, right: &str) {
        let (l, r) = (left.chars().count(), right.chars().count());
        if l + r + 2 <= self.width {
            self.line(
                look,
                &format!("{left}{}{right}", " ".repeat(self.width - l - r)),
            );
        } else {
            self.line(look, &words::keep_start(left, self.width));
            self.line(
                look,
                &format!("{}{right}", " ".repeat(self.width.saturating_sub(r))),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indents_hang_and_colour_is_only_on_words() {
        let mut page = Page::new(20, true);
        page.para(Look::Bold, "  - ", "one two three four five");
        assert_eq!(
            page.take(),
            "  - \u{1b}[1mone two three\u{1b}[0m\n    \u{1b}[1mfour five\u{1b}[0m\n"
                .replace("  - \u{1b}[1m", "  \u{1b}[1m- ")
        );
        let mut page = Page::new(0, false);
        page.both_ends(Look::Advice, "left", "right");
        page.both_ends(Look::Plain, "a long long left", "and a right");
        page.para(Look::Plain, &" ".repeat(40), "deep \u{1b}[2J indent");
        page.blank();
        assert_eq!(
            page.take(),
            format!(
                "left           right\na long long left\n         and a right\n{0}deep \u{fffd}[2J\n{0}indent\n\n",
                " ".repeat(40)
            )
        );
        assert_eq!(page.take(), "");
    }
}
