//! The page's data: a JSON object that is written up to a number of bytes, and holds nothing that could end the element it stands in.

use serde::Serialize;

use crate::Error;

/// A JSON object under construction.
pub(crate) struct Data(Vec<u8>);

impl Data {
    pub(crate) fn new() -> Self {
        Self(b"{".to_vec())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.extend(b",\n");
        }
        self.0.extend(format!("\"{name}\":").as_bytes());
    }

    /// A field, whatever its length: for what is known to be short.
    pub(crate) fn field(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let value = encoded(value)?;
        self.name(name);
        self.0.extend(value);
        Ok(())
    }

    /// A field with a list of those items that fit into `most` bytes, up to the first one that does not; the number of them.
    pub(crate) fn list(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = impl Serialize>,
        most: usize,
    ) -> Result<usize, Error> {
        let mut list = List::new(most);
        for item in items {
            if !list.push(&item)? {
                break;
            }
        }
        Ok(self.finished(name, list))
    }

    /// A field with a list made elsewhere; the number of its items.
    pub(crate) fn finished(&mut self, name: &str, list: List) -> usize {
        self.name(name);
        self.0.push(b'[');
        self.0.extend(list.text);
        self.0.push(b']');
        list.items
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// A JSON list of limited length.
pub(crate) struct List {
    text: Vec<u8>,
    items: usize,
    left: usize,
}

impl List {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            text: Vec::new(),
            items: 0,
            left: most,
        }
    }

    /// Bytes for which there is room.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Adds an item, if there is room for it.
    pub(crate) fn push(&mut self, item: &impl Serialize) -> Result<bool, Error> {
        let item = encoded(item)?;
        let Some(left) = self.left.checked_sub(item.len() + 2) else {
            return Ok(false);
        };
        self.left = left;
        if self.items > 0 {
            self.text.extend(b",\n");
        }
        self.text.extend(item);
        self.items += 1;
        Ok(true)
    }
}

/// JSON in which the characters that mean something in HTML are written as numbers (outside of strings JSON has none of them).
fn encoded(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let plain = serde_json::to_vec(value)?;
    let mut out = Vec::with_capacity(plain.len());
    for byte in plain {
        match byte {
            b'<' => out.extend(b"\\u003c"),
            b'>' => out.extend(b"\\u003e"),
            b'&' => out.extend(b"\\u0026"),
            byte => out.push(byte),
        }
    }
    Ok(out)
}

/// The first `most` characters, with dots if that is not all.
pub(crate) fn cut(text: &str, most: usize) -> String {
    crate::words::keep_start(text, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_where_there_is_no_room() {
        let mut data = Data::new();
        data.field("a", &"</script>&").unwrap();
        assert_eq!(data.list("b", [10, 20, 30, 40], 12).unwrap(), 3);
        assert_eq!(data.list("c", ["long"], 3).unwrap(), 0);
        let text = String::from_utf8(data.finish()).unwrap();
        assert_eq!(
            text,
            "{\"a\":\"\\u003c/script\\u003e\\u0026\",\n\"b\":[10,\n20,\n30],\n\"c\":[]}"
        );
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["a"], "</script>&");
        assert_eq!(cut("abcdef", 5), "ab...");
    }
}
