//! Modified UTF-8 (JVMS 4.4.7): U+0000 in two bytes, characters beyond U+FFFF as two surrogates of three bytes each.

use std::borrow::Cow;

/// Decodes; what is malformed and lone surrogates become U+FFFD. Borrows where plain UTF-8 has the same bytes.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (unit, len) = match (first, tail) {
            (0..=0x7f, _) => (u16::from(*first), 1),
            (0xc0..=0xdf, [b @ 0x80..=0xbf, ..]) => {
                ((u16::from(first & 0x1f) << 6) | u16::from(b & 0x3f), 2)
            }
            (0xe0..=0xef, [b @ 0x80..=0xbf, c @ 0x80..=0xbf, ..]) => {
                let high = (u16::from(first & 0xf) << 12) | (u16::from(b & 0x3f) << 6);
                (high | u16::from(c & 0x3f), 3)
            }
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = &rest[len..];
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// Encodes. Borrows where plain UTF-8 has the same bytes.
pub(crate) fn encode(text: &str) -> Cow<'_, [u8]> {
    if text.bytes().all(|byte| (1..0xf0).contains(&byte)) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() + 4);
    for unit in text.encode_utf16() {
        let low = |shift: u16| (0x80 | ((unit >> shift) & 0x3f)) as u8;
        match unit {
            1..=0x7f => bytes.push(unit as u8),
            0 | 0x80..=0x7ff => bytes.extend([(0xc0 | (unit >> 6)) as u8, low(0)]),
            _ => bytes.extend([(0xe0 | (unit >> 12)) as u8, low(6), low(0)]),
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn nul_surrogates_and_malformed_bytes() {
        assert_eq!(decode(b"a\xc0\x80b"), "a\0b");
        assert_eq!(decode(b"\xed\xa0\xbd\xed\xb8\x80!"), "\u{1f600}!");
        assert_eq!(decode(b"\xed\xa0\xbdx"), "\u{fffd}x");
        assert_eq!(decode(b"\xe2\x82"), "\u{fffd}\u{fffd}");
        for text in ["a\0b", "\u{1f600}!", "é€", "plain"] {
            assert_eq!(decode(&encode(text)), text);
        }
        assert_eq!(*encode("\0\u{1f600}"), *b"\xc0\x80\xed\xa0\xbd\xed\xb8\x80");
        assert_eq!(decode("é€".as_bytes()), "é€");
    }
}
