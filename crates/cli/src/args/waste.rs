//! Options of the waste lens.

use super::{Ending, Program};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// How much is sampled.
#[derive(Debug, Args)]
pub struct WasteOptions {
    /// Take N samples for each second of CPU time of a thread, 1 to 10000: more find more, and cost more
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Two floating-point values are the same if they differ by at most so many per cent (0 to below 100); integers must be equal
    #[arg(long, value_name = "PCT", default_value = "1", value_parser = tolerance)]
    pub tolerance: u32,
    /// Watch so many places of a thread at once, 1 to 3: the processor has four debug registers, one is needed to find the next access
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub watches: u8,
}

impl Default for WasteOptions {
    fn default() -> Self {
        WasteOptions {
            rate: 100,
            tolerance: 10_000,
            watches: 3,
        }
    }
}

/// Options of `waste`.
#[derive(Debug, Args)]
pub struct WasteArgs {
    /// How much is sampled
    #[command(flatten)]
    pub waste: WasteOptions,
    /// Where the profile goes: a new or empty directory [default: ./borescope-DATE-TIME.borescope, UTC]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// What is shown at the end
    #[command(flatten)]
    pub ending: Ending,
    /// What to run
    #[command(flatten)]
    pub program: Program,
}

/// `1`, `0.5` per cent as parts per million.
fn tolerance(text: &str) -> Result<u32, String> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent: Option<f64> = text.parse().ok().filter(|_| plain);
    percent
        .filter(|percent| (0.0..100.0).contains(percent))
        .map(|percent| ((percent * 10_000.0).round() as u32).min(999_999))
        .ok_or_else(|| {
            "a tolerance is a number of per cent from 0 to below 100, such as 1 or 0.5".into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances() {
        for (text, ppm) in [
            ("0", 0),
            ("1", 10_000),
            ("0.5", 5_000),
            ("99.99999", 999_999),
        ] {
            assert_eq!(tolerance(text), Ok(ppm));
        }
        for bad in ["", "100", "-1", "1e1", "NaN", "inf", "1 %", "1.2.3"] {
            assert!(tolerance(bad).is_err(), "{bad}");
        }
    }
}
