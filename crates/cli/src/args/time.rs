//! Spans of time on the command line.

use std::time::Duration;

/// `90s`, `10m`, `2h`; a number alone is seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3_600),
        _ => (text, 1),
    };
    let number = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    match number.and_then(|n: u64| n.checked_mul(unit)) {
        Some(seconds @ 1..=31_536_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("a time is a number and s, m or h, such as 90s, 10m or 2h; at most a year".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("10m", 600),
            ("2h", 7_200),
            ("8760h", 31_536_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "s",
            "0",
            "0m",
            "-1s",
            "+5",
            "1.5h",
            "10 m",
            "1d",
            "8761h",
            "99999999999999999999h",
            "5ms",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
