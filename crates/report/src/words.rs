//! Numbers, ranges, names and paragraphs as a person reads them: in go raw values, out come strings that never claim more than
//! the values say (a share is `100 %` only when it is all of it, `0 %` only when it is nothing).

use std::fmt::Write as _;

use borescope_profile::{Interval, Method};

/// Space that [`wrap`] does not break at; printed as an ordinary space.
const STICKY: char = '\u{a0}';

/// `12345678` as `12,345,678`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `part` of `whole` in whole per cent: `66 %`, `< 1 %`, `> 99 %`; `100 %` and `0 %` are literal.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return format!("0{STICKY}%");
    }
    if part >= whole {
        return format!("100{STICKY}%");
    }
    let rounded = (u128::from(part) * 200 + u128::from(whole)) / (u128::from(whole) * 2);
    match rounded {
        0 => format!("<{STICKY}1{STICKY}%"),
        100 => format!(">{STICKY}99{STICKY}%"),
        p => format!("{p}{STICKY}%"),
    }
}

/// The same rounded down, for lower bounds: the true share is at least this.
pub(crate) fn percent_floor(part: u64, whole: u64) -> String {
    let p = if whole == 0 {
        0
    } else {
        u128::from(part.min(whole)) * 100 / u128::from(whole)
    };
    format!("{p}{STICKY}%")
}

/// `part` for each of `whole`: `4.5`, `1,024` (rounded down; one decimal below 100).
pub(crate) fn mean(part: u64, whole: u64) -> String {
    let tenths = part.saturating_mul(10).checked_div(whole).unwrap_or(0);
    if tenths < 1_000 {
        format!("{}.{}", tenths / 10, tenths % 10)
    } else {
        thousands(tenths / 10)
    }
}

/// `1 path`, `3 paths`.
pub(crate) fn plural(n: u64, one: &str, many: &str) -> String {
    format!(
        "{}{STICKY}{}",
        thousands(n),
        if n == 1 { one } else { many }
    )
}

/// An estimate: no more digits than it can have, `~1,230`, `~45,600`, `~1.23 M`.
pub(crate) fn about(n: u64) -> String {
    format!("~{}", rounded(n))
}

/// Three digits that say something.
pub(crate) fn rounded(n: u64) -> String {
    let digits = n.checked_ilog10().unwrap_or(0) + 1;
    let unit = 10u64.pow(digits.saturating_sub(3));
    let short = n / unit + u64::from(n % unit >= unit.div_ceil(2) && unit > 1);
    let whole = short.saturating_mul(unit);
    match whole {
        0..1_000_000 => thousands(whole),
        1_000_000..10_000_000 => millions(whole, 2),
        10_000_000..100_000_000 => millions(whole, 1),
        _ => format!("{}{STICKY}M", thousands(whole / 1_000_000)),
    }
}

fn millions(n: u64, decimals: u32) -> String {
    let part = n % 1_000_000 / 10u64.pow(6 - decimals);
    let width = decimals as usize;
    format!("{}.{part:0width$}{STICKY}M", n / 1_000_000)
}

/// A 95 % interval: `(1.10 M to 1.35 M)`.
pub(crate) fn interval(of: Interval) -> String {
    match of.hi {
        Some(hi) => format!("({}{STICKY}to{STICKY}{})", rounded(of.lo), rounded(hi)),
        None => format!("(from{STICKY}{}{STICKY}on)", rounded(of.lo)),
    }
}

/// A number of a method: as counted, or an estimate.
pub(crate) fn number(method: &Method, n: u64) -> String {
    match method.estimate {
        Some(_) => about(n),
        None => thousands(n),
    }
}

/// A count of a method: exact, a lower bound, or an estimate.
pub(crate) fn count(method: &Method, n: u64) -> String {
    let lower_bound = method.estimate.is_none() && !method.paths_exact;
    format!(
        "{}{}",
        if lower_bound { ">= " } else { "" },
        number(method, n)
    )
}

/// An estimate with its 95 % interval.
pub(crate) fn estimate(n: u64, of: Interval) -> String {
    format!("{} {}", about(n), interval(of))
}

/// Milliseconds as `350 ms`, `12.4 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Bytes as `376 B`, `1.5 KiB`, `640 MiB` (rounded down; one decimal below 100).
pub fn size(bytes: u64) -> String {
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    if unit == 0 {
        return format!("{bytes}{STICKY}B");
    }
    let name = ["KiB", "MiB", "GiB", "TiB"][unit as usize - 1];
    let tenths = (u128::from(bytes) * 10) >> (10 * unit);
    match tenths {
        0..1_000 => format!("{}.{}{STICKY}{name}", tenths / 10, tenths % 10),
        _ => format!("{}{STICKY}{name}", thousands((tenths / 10) as u64)),
    }
}

/// A difference: `+1.5 KiB`, `-3`, `0`, of what `magnitude` says in words.
pub(crate) fn signed(n: i128, magnitude: impl Fn(u64) -> String) -> String {
    let sign = match n {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    let n = u64::try_from(n.unsigned_abs()).unwrap_or(u64::MAX);
    format!("{sign}{}", magnitude(n))
}

/// Sorted distinct numbers as ranges: `12-15, 18`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut rest = numbers;
    while let [first, ..] = rest {
        let run = rest
            .windows(2)
            .take_while(|w| w[1] == w[0].saturating_add(1))
            .count();
        if !out.is_empty() {
            out.push_str(", ");
        }
        let _ = match run {
            0 => write!(out, "{first}"),
            _ => write!(out, "{first}-{}", rest[run]),
        };
        rest = &rest[run + 1..];
    }
    out
}

/// `line 12`, `lines 12-15, 18`; `None` when no line is known. A long list keeps its ends: `lines 12-15, 18, ... 90-92`.
pub(crate) fn lines(numbers: &[u32]) -> Option<String> {
    match numbers {
        [] => None,
        [one] => Some(format!("line{STICKY}{one}")),
        _ => {
            let all = ranges(numbers);
            let parts: Vec<&str> = all.split(", ").collect();
            Some(match parts.as_slice() {
                [a, b, c, d, .., z] if parts.len() > 6 => {
                    format!("lines{STICKY}{a}, {b}, {c}, {d}, ...{STICKY}{z}")
                }
                _ => format!("lines{STICKY}{all}"),
            })
        }
    }
}

/// `java/util/Map$Entry` as `java.util.Map$Entry`.
pub(crate) fn java_name(class: &str) -> String {
    class.replace('/', ".")
}

/// The parameters of a descriptor with simple names: `(int[], String)`. A descriptor that is none is shown as it is.
pub(crate) fn parameters(descriptor: &str) -> String {
    parse_parameters(descriptor).unwrap_or_else(|| descriptor.to_owned())
}

fn parse_parameters(descriptor: &str) -> Option<String> {
    let mut rest = descriptor.strip_prefix('(')?;
    let mut out = String::from("(");
    while !rest.starts_with(')') {
        let dims = rest.len() - rest.trim_start_matches('[').len();
        rest = rest.get(dims..)?;
        if out.len() > 1 {
            out.push_str(", ");
        }
        let base = rest.chars().next()?;
        rest = rest.get(base.len_utf8()..)?;
        out.push_str(match base {
            'B' => "byte",
            'C' => "char",
            'D' => "double",
            'F' => "float",
            'I' => "int",
            'J' => "long",
            'S' => "short",
            'Z' => "boolean",
            'L' => {
                let (name, after) = rest.split_once(';')?;
                rest = after;
                name.rsplit(['/', '$']).next()?
            }
            _ => return None,
        });
        for _ in 0..dims {
            out.push_str("[]");
        }
    }
    out.push(')');
    Some(out)
}

/// Characters as a terminal shows them: sticky spaces plain, control characters (a profile is untrusted input) replaced.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            STICKY => ' ',
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Breaks `text` at spaces into lines of at most `width` characters; a word longer than that stands alone.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut len = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let n = word.chars().count();
        match out.last_mut() {
            Some(line) if len + 1 + n <= width => {
                line.push(' ');
                line.push_str(word);
                len += 1 + n;
            }
            _ => {
                out.push(word.to_owned());
                len = n;
            }
        }
    }
    out.iter().map(|line| plain(line)).collect()
}

/// `lead` and `text` in `width` characters, the end of the text kept.
pub(crate) fn keep_end_after(lead: &str, text: &str, width: usize) -> String {
    format!(
        "{lead}{}",
        keep_end(text, width.saturating_sub(lead.chars().count()))
    )
}

/// `text` cut to `width` characters, the end kept: `...util.Scanner.next`.
pub(crate) fn keep_end(text: &str, width: usize) -> String {
    let n = text.chars().count();
    if n <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(3);
    let tail: String = text.chars().skip(n - kept).collect();
    format!("...{tail}")
}

/// `text` cut to `width` characters, the start kept.
pub(crate) fn keep_start(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let head: String = text.chars().take(width.saturating_sub(3)).collect();
    format!("{head}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(plain(&plural(1, "path", "paths")), "1 path");
        assert_eq!(plain(&plural(1_200, "path", "paths")), "1,200 paths");
    }

    #[test]
    fn estimates() {
        for (n, text) in [
            (0, "~0"),
            (64, "~64"),
            (999, "~999"),
            (1_234, "~1,230"),
            (1_235, "~1,240"),
            (99_950, "~100,000"),
            (999_499, "~999,000"),
            (999_500, "~1.00 M"),
            (1_234_567, "~1.23 M"),
            (45_678_901, "~45.7 M"),
            (456_789_012, "~457 M"),
            (12_345_678_901, "~12,300 M"),
            (u64::MAX, "~18,400,000,000,000 M"),
        ] {
            assert_eq!(plain(&about(n)), text);
        }
        let (lo, hi) = (1_100, Some(1_350_000));
        assert_eq!(plain(&interval(Interval { lo, hi })), "(1,100 to 1.35 M)");
        assert_eq!(
            plain(&interval(Interval { lo, hi: None })),
            "(from 1,100 on)"
        );
    }

    #[test]
    fn means() {
        assert_eq!(mean(9, 2), "4.5");
        assert_eq!(mean(999, 10), "99.9");
        assert_eq!(mean(10_240, 10), "1,024");
        assert_eq!(mean(7, 0), "0.0");
        assert_eq!(
            mean(u64::MAX, 1),
            "1,844,674,407,370,955,161",
            "saturates, no panic"
        );
    }

    #[test]
    fn shares_do_not_claim_more_than_they_are() {
        let p = |a, b| plain(&percent(a, b));
        assert_eq!(p(0, 0), "0 %");
        assert_eq!(p(2, 3), "67 %");
        assert_eq!(p(1, 1_000), "< 1 %");
        assert_eq!(p(999, 1_000), "> 99 %");
        assert_eq!(p(1_000, 1_000), "100 %");
        assert_eq!(p(u64::MAX - 1, u64::MAX), "> 99 %");
        assert_eq!(p(5, 1_000), "1 %");
        assert_eq!(plain(&percent_floor(2, 3)), "66 %");
        assert_eq!(plain(&percent_floor(999, 1_000)), "99 %");
        assert_eq!(plain(&percent_floor(7, 0)), "0 %");
    }

    #[test]
    fn times() {
        assert_eq!(duration(350), "350 ms");
        assert_eq!(duration(12_449), "12.4 s");
        assert_eq!(duration(200_000), "3 min 20 s");
        assert_eq!(duration(7_500_000), "2 h 5 min");
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_055, "1.0 KiB"),
            (102_399, "99.9 KiB"),
            (102_400, "100 KiB"),
            (1_048_575, "1,023 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16,777,215 TiB"),
        ] {
            assert_eq!(plain(&size(bytes)), text);
        }
        assert_eq!(plain(&signed(2_048, size)), "+2.0 KiB");
        assert_eq!(signed(-12_000, thousands), "-12,000");
        assert_eq!(signed(0, thousands), "0");
        assert_eq!(
            signed(i128::MIN, thousands),
            format!("-{}", thousands(u64::MAX))
        );
    }

    #[test]
    fn line_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[7]), "7");
        assert_eq!(ranges(&[7, 8]), "7-8");
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        assert_eq!(ranges(&[u32::MAX]), u32::MAX.to_string());
        assert_eq!(lines(&[]), None);
        assert_eq!(plain(&lines(&[4]).unwrap()), "line 4");
        assert_eq!(plain(&lines(&[4, 5, 6, 9]).unwrap()), "lines 4-6, 9");
        assert_eq!(
            plain(&lines(&[1, 3, 5, 7, 9, 11, 13]).unwrap()),
            "lines 1, 3, 5, 7, ... 13"
        );
    }

    #[test]
    fn descriptors() {
        assert_eq!(parameters("()V"), "()");
        assert_eq!(
            parameters("(I[[JLjava/lang/String;[Ljava/util/Map$Entry;Z)V"),
            "(int, long[][], String, Entry[], boolean)"
        );
        for bad in ["", "(", "(I", "(Lx", "(Q)V", "([", "(ü)V"] {
            assert_eq!(parameters(bad), bad);
        }
    }

    #[test]
    fn paragraphs() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("aa bbbbbbbbb cc", 5), ["aa", "bbbbbbbbb", "cc"]);
        assert_eq!(
            wrap(&format!("x {} y", percent(1, 2)), 4),
            ["x", "50 %", "y"]
        );
        assert_eq!(wrap("", 0), Vec::<String>::new());
        assert_eq!(wrap("a b", 0), ["a", "b"]);
        assert_eq!(wrap("\u{1b}[31m", 9), ["\u{fffd}[31m"]);
        assert_eq!(keep_end("abcdefgh", 6), "...fgh");
        assert_eq!(keep_end("abc", 0), "...");
        assert_eq!(keep_start("abcdefgh", 6), "abc...");
    }
}
