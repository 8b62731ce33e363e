//! How far a sample's share can be trusted: 95 % intervals.
//!
//! A share of x of n samples estimates the share of all. The interval is Wilson's (Probable inference, the law of succession, and statistical inference,
//! 1927), that of the difference of two shares is Newcombe's from it (Interval estimation for the difference between independent proportions, method 10, 1998). Both take samples for independent.
//! Samples of one tight loop are not quite: what ticks and loop have in common shows in no interval. tests/interval.rs has the coverage, summed exactly.

/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// A share with its 95 % interval, all in 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// x/n; 0 without samples.
    pub share: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// The share of x of n.
#[must_use]
pub fn share(x: u64, n: u64) -> Share {
    if n == 0 {
        return Share {
            share: 0.0,
            lo: 0.0,
            hi: 1.0,
        };
    }
    let (x, n) = (x.min(n) as f64, n as f64);
    let p = x / n;
    let z2 = Z * Z / n;
    let middle = (p + z2 / 2.0) / (1.0 + z2);
    let half = (p * (1.0 - p) * z2 + z2 * z2 / 4.0).max(0.0).sqrt() / (1.0 + z2);
    // At the ends rounding would miss the exact 0 and 1 by a little.
    Share {
        share: p,
        lo: if x == 0.0 {
            0.0
        } else {
            (middle - half).clamp(0.0, p)
        },
        hi: if x == n {
            1.0
        } else {
            (middle + half).clamp(p, 1.0)
        },
    }
}

/// Share b less share a, with its 95 % interval: what a change of the program changed. No change is excluded if 0 is not in it.
#[must_use]
pub fn difference(a: (u64, u64), b: (u64, u64)) -> Share {
    let (a, b) = (share(a.0, a.1), share(b.0, b.1));
    let d = b.share - a.share;
    let reach = |x: f64, y: f64| (x * x + y * y).sqrt();
    Share {
        share: d,
        lo: (d - reach(b.share - b.lo, a.hi - a.share)).max(-1.0),
        hi: (d + reach(b.hi - b.share, a.share - a.lo)).min(1.0),
    }
}
