//! Options of `attach` and `detach`.

use super::SiteOptions;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// What an agent looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lens {
    /// Which line allocated each live object
    Sites,
    /// Which paths methods take; not in a JVM that runs already, in this version
    Paths,
}

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// What to look at
    #[arg(long, value_enum, default_value_t = Lens::Sites)]
    pub lens: Lens,
    /// Stay so long, such as 90s, 10m or 2h (Ctrl-C ends it earlier); then take a snapshot, detach and show the report [default: stay
    /// until the program ends, or `borescope detach`]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Wait at most so many seconds for the JVM to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub timeout: u64,
    /// What to mark
    #[command(flatten)]
    pub sites: SiteOptions,
    /// Where the profile goes: a new or empty directory that the JVM's user may write to [default: ./borescope-DATE-TIME.borescope, UTC]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Say only where the profile is
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `detach`.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
}

/// `90s`, `10m`, `2h`; a number alone is seconds.
fn time(text: &str) -> Result<Duration, String> {
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
