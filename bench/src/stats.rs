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
