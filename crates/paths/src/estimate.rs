//! What a count of activations chosen at random says of the count of all: an estimate and its 95 % interval.
//!
//! In burst mode each activation is chosen with probability p = 1/N, independently of the others, and counts in one of G groups, at random.
//! A count X of the chosen ones (of a path, or of a sequence) estimates N * X. What is random is which activations are chosen, and one
//! activation may hold one occurrence or a million; so the variance is that of a sum of clusters, and Poisson's would be far too small. The
//! group totals show it: v = (1 - p) * G/(G-1) * sum over g of (x_g - X/G)^2 estimates the variance of X. Two things are known beside it: v is at least
//! (1 - p) * X^2/n where n activations were chosen (Cauchy and Schwarz: equal clusters vary least), and at least (1 - p) * X.
//!
//! The interval is that of Fay and Feuer (Confidence intervals for directly standardized rates, Statistics in Medicine 16, 1997): a
//! gamma distribution of mean X and variance v for the lower end, and one with one more cluster w for the upper end. It is skewed as
//! such counts are, never below 0, and with equal clusters it is the exact Poisson interval. Our choices, by simulation (tests/estimate.rs):
//!
//! - v from groups is itself random; it is taken (t_{0.975, G-1} / z_{0.975})^2 times;
//! - w = 3 v/X, three times the size of the cluster that an occurrence lies in on average: what was not chosen may be larger than what was;
//! - quantiles by Wilson and Hilferty (1931), which are within 1 % but for the lowest ones of very few clusters, where they are too low.
//!
//! Coverage of the interval, with 5 to 1,000 chosen activations and N = 2 and 64: 97 to 99 % for activations of equal size, 95 to 99 % for sizes that
//! vary by their mean or a bit more (geometric, lognormal with sigma = 1, Pareto with exponent 2.5), 93 to 96 % for a standard deviation of three
//! means (lognormal, sigma = 1.5). It is worse where nearly all lies in activations so rare that perhaps none was chosen: nothing that was counted shows
//! them. With a standard deviation of seven means (lognormal, sigma = 2) it is 75 to 92 %, and when one in a hundred activations holds half of all, 40 to 98 %
//! until several of these were chosen; then the truth lies above.

/// What is said of a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The estimate.
    pub count: u64,
    /// Lower end of the 95 % interval.
    pub lo: u64,
    /// Upper end of the 95 % interval.
    pub hi: u64,
}

/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;
/// Clusters of average size (by occurrence) that the upper end allows for beside what was counted.
const MORE_CLUSTERS: f64 = 3.0;

/// Estimates a count of all activations. `groups`: what the chosen ones counted in each group, of which there are two at least; `chosen`: how many were
/// chosen, if known, else 0; one in `one_in` was.
#[must_use]
pub fn estimate(one_in: u32, groups: &[u64], chosen: u64) -> Estimate {
    let total = groups.iter().fold(0u64, |sum, x| sum.saturating_add(*x));
    let n = f64::from(one_in.max(1));
    let x = total as f64;
    let count = total.saturating_mul(one_in.into());
    if total == 0 || one_in <= 1 {
        return Estimate {
            count,
            lo: total,
            hi: count,
        };
    }
    let unchosen = 1.0 - 1.0 / n;
    let among = groups.len().max(2) as f64;
    let mean = x / among;
    let squares: f64 = groups.iter().map(|&g| (g as f64 - mean).powi(2)).sum();
    let spread = squares * among / (among - 1.0) * (student(among - 1.0) / Z).powi(2);
    let least = x.max(x * x / if chosen == 0 { x } else { chosen as f64 });
    let v = spread.max(least) * unchosen;
    let w = MORE_CLUSTERS * v / x;
    let lo = gamma_quantile(x, v, -Z);
    let hi = gamma_quantile(x + w, v + w * w, Z);
    // What was counted is there, whatever the interval says; and u64's end is as good as any.
    let lo = ((lo * n).floor() as u64).clamp(total, count.max(total));
    let hi = ((hi * n).ceil() as u64).max(count);
    Estimate { count, lo, hi }
}

/// The quantile of a gamma distribution that is at `z` in the standard normal one.
fn gamma_quantile(mean: f64, variance: f64, z: f64) -> f64 {
    let a = variance / (9.0 * mean * mean);
    mean * (1.0 - a + z * a.sqrt()).max(0.0).powi(3)
}

/// 97.5 % quantile of Student's distribution (Cornish and Fisher's expansion; within 0.1 % from 7 degrees of freedom on).
fn student(degrees: f64) -> f64 {
    let (z, d) = (Z, degrees);
    z + (z.powi(3) + z) / (4.0 * d)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * d * d)
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * d.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Chi-square with 10 and 100 degrees of freedom: half of it is gamma distributed with mean and variance 5 and 50.
        for (half, lower, upper) in [(5.0, 3.247, 20.483), (50.0, 74.222, 129.561)] {
            let close = |q: f64, table: f64| (q * 2.0 / table - 1.0).abs() < 0.01;
            assert!(close(gamma_quantile(half, half, -Z), lower));
            assert!(close(gamma_quantile(half, half, Z), upper));
        }
        for (degrees, table) in [(7.0, 2.3646), (15.0, 2.1314), (100.0, 1.9840)] {
            assert!((student(degrees) - table).abs() < 0.003, "{degrees}");
        }
    }

    #[test]
    fn ends_of_the_range() {
        let none = estimate(64, &[0; 16], 3);
        assert_eq!((none.count, none.lo, none.hi), (0, 0, 0));
        let most = estimate(65536, &[u64::MAX; 16], 3);
        assert_eq!((most.count, most.hi), (u64::MAX, u64::MAX));
        let mut one = [0; 16];
        one[3] = 1;
        let one = estimate(64, &one, 1);
        assert!(
            one.lo >= 1 && one.lo < 8 && one.count == 64 && one.hi > 300,
            "{one:?}"
        );
        // All of it chosen: nothing is estimated.
        assert_eq!(
            estimate(1, &[5, 6], 2),
            Estimate {
                count: 11,
                lo: 11,
                hi: 11
            }
        );
    }
}
