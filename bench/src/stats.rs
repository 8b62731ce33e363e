//! Medians, turns and CPU time.

use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::time::Duration;

/// The middle value, or the mean of the two middle ones; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(match sorted.len() % 2 {
        1 => upper,
        _ => (sorted[middle - 1] + upper) / 2.0,
    })
}

/// Geometric mean; `None` for no values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty())
        .then(|| (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// A mean and where the true one lies in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Geometric mean.
    pub mean: f64,
    /// Upper end.
    pub high: f64,
}

/// Of ratios, by Student's t on their logarithms; `None` for fewer than two.
pub fn interval(ratios: &[f64]) -> Option<Interval> {
    let n = ratios.len() as f64;
    let logs: Vec<f64> = ratios.iter().map(|r| r.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let squares = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>();
    (ratios.len() > 1).then(|| {
        let half = student(ratios.len() - 1) * (squares / (n - 1.0) / n).sqrt();
        Interval {
            low: (mean - half).exp(),
            mean: mean.exp(),
            high: (mean + half).exp(),
        }
    })
}

/// What Student's t of so many degrees of freedom exceeds in 5 of 200 cases: Hill's expansion (CACM algorithm 396) from 3 degrees on, where it is good to three digits.
fn student(freedom: usize) -> f64 {
    const Z: f64 = 1.959_964;
    match freedom {
        0 | 1 => return 12.706,
        2 => return 4.303,
        _ => {}
    }
    let (n, z2) = (freedom as f64, Z * Z);
    let g1 = (z2 + 1.0) / 4.0;
    let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
    Z * (1.0 + g1 / n + g2 / n.powi(2) + g3 / n.powi(3) + g4 / n.powi(4))
}

/// `median (lowest..highest)` with so many decimals; only the median of a single value. `None` for no values.
pub fn with_range(values: &[f64], decimals: usize) -> Option<String> {
    let middle = median(values)?;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(match values.len() {
        1 => format!("{middle:.decimals$}"),
        _ => format!("{middle:.decimals$} ({low:.decimals$}..{high:.decimals$})"),
    })
}

/// Measures `N` things turn by turn, each turn beginning with the next one; the values of each by turn.
pub fn interleaved<const N: usize>(
    turns: usize,
    mut measure: impl FnMut(usize) -> Result<f64>,
) -> Result<[Vec<f64>; N]> {
    let mut all = std::array::from_fn(|_| Vec::new());
    for turn in 0..turns {
        for i in 0..N {
            let i = (turn + i) % N;
            all[i].push(measure(i)?);
        }
    }
    Ok(all)
}

/// User and system time of this thread, or of the children that have ended and been waited for.
pub fn cpu(who: UsageWho) -> Result<Duration> {
    let usage = getrusage(who).context("getrusage")?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        for (freedom, t) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (9, 2.262),
            (29, 2.045),
            (1000, 1.962),
        ] {
            assert!(
                (student(freedom) - t).abs() < 0.01,
                "{freedom}: {}",
                student(freedom)
            );
        }
        assert_eq!(interval(&[1.0]), None);
        let i = interval(&[1.0, 1.0, 1.0]).unwrap();
        assert_eq!((i.low, i.mean, i.high), (1.0, 1.0, 1.0));
        // Logarithms -1, 0, 1: standard error 1 / sqrt 3.
        let e = std::f64::consts::E;
        let i = interval(&[1.0 / e, 1.0, e]).unwrap();
        assert!((i.mean - 1.0).abs() < 1e-12 && (i.high.ln() - 4.303 / 3f64.sqrt()).abs() < 1e-3);
        assert!((i.low * i.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn each_turn_begins_with_another() {
        let mut order = Vec::new();
        let values: [Vec<f64>; 3] = interleaved(2, |i| {
            order.push(i);
            Ok(order.len() as f64)
        })
        .unwrap();
        assert_eq!(order, [0, 1, 2, 1, 2, 0]);
        assert_eq!(values, [vec![1.0, 6.0], vec![2.0, 4.0], vec![3.0, 5.0]]);
    }

    #[test]
    fn ranges() {
        assert_eq!(with_range(&[], 2), None);
        assert_eq!(with_range(&[1.234], 2).unwrap(), "1.23");
        assert_eq!(with_range(&[3.0, 1.0, 2.0], 1).unwrap(), "2.0 (1.0..3.0)");
    }

    #[test]
    fn middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }
}
