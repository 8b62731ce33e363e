//! Burst mode: which activations are chosen. Each one is with probability 1/N, whatever the others are: the gaps between chosen activations
//! have a geometric distribution, and a gap is counted down in activations, never in time. So what a program does cannot fall in step
//! with the choice.

use borescope_spool::layout::GROUPS;

/// How activations are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// One in so many, from 2 on.
    pub one_in: u32,
    /// What all choices follow from.
    pub seed: u64,
}

/// The choices in one arena: a generator of random numbers (SplitMix64; Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014).
#[derive(Default)]
pub struct Choice {
    state: u64,
    /// 1 / ln(1 - 1/N); 0 without burst mode.
    scale: f64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Choice {
    /// The choices in an arena: other ones for each.
    pub fn new(burst: Option<Burst>, arena: u32) -> Self {
        let Some(Burst { one_in, seed }) = burst else {
            return Self::default();
        };
        // Its own output mixed, so that the sequences of two arenas are no shifts of each other.
        let mut seeds = Self {
            state: seed ^ u64::from(arena).wrapping_mul(0xD1B5_4A32_D192_ED03),
            scale: 0.0,
        };
        Self {
            state: seeds.next() ^ u64::from(arena),
            scale: (-1.0 / f64::from(one_in)).ln_1p().recip(),
        }
    }

    /// Activations to leave out before the next one that is chosen: j of them with probability (1 - 1/N)^j / N.
    pub fn gap(&mut self) -> u64 {
        // In (0, 1].
        let unit = ((self.next() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        (unit.ln() * self.scale) as u64
    }

    /// The group that a chosen activation counts in: each as likely.
    pub fn group(&mut self) -> u64 {
        self.next() >> 32 & u64::from(GROUPS - 1)
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}

const _: () = assert!(
    GROUPS == 16,
    "the probe helper takes the group from four bits"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(one_in: u32, seed: u64, arena: u32) -> Choice {
        Choice::new(Some(Burst { one_in, seed }), arena)
    }

    /// Shares of gaps of each length and groups against their probabilities, four standard deviations wide.
    #[test]
    fn gaps_are_geometric_and_groups_even() {
        for one_in in [2u32, 3, 64, 65536] {
            let mut choice = choice(one_in, 1, 5);
            let draws = 200_000;
            let (mut gaps, mut groups) = (Vec::new(), [0u32; GROUPS as usize]);
            for _ in 0..draws {
                gaps.push(choice.gap());
                groups[choice.group() as usize] += 1;
            }
            let close = |found: usize, p: f64, what: &str| {
                let (mean, sd) = (
                    p * f64::from(draws),
                    (p * (1.0 - p) * f64::from(draws)).sqrt(),
                );
                assert!(
                    (found as f64 - mean).abs() < 4.0 * sd + 1.0,
                    "{one_in} {what}: {found} {mean}"
                );
            };
            let q = 1.0 - 1.0 / f64::from(one_in);
            for at_least in [1, 2, 5, u64::from(one_in), 3 * u64::from(one_in)] {
                let found = gaps.iter().filter(|gap| **gap >= at_least).count();
                close(
                    found,
                    q.powf(at_least as f64),
                    &format!("gaps from {at_least} on"),
                );
            }
            // A gap tells nothing about the next one.
            let middle = u64::from(one_in) / 2 + 1;
            let p = q.powf(middle as f64);
            let both = gaps
                .windows(2)
                .filter(|w| w[0] >= middle && w[1] >= middle)
                .count();
            close(both, p * p, "two long gaps");
            for (group, found) in groups.into_iter().enumerate() {
                close(
                    found as usize,
                    1.0 / f64::from(GROUPS),
                    &format!("group {group}"),
                );
            }
        }
    }

    #[test]
    fn seeds_and_arenas_differ_and_repeat() {
        let gaps = |seed, arena| {
            let mut choice = choice(64, seed, arena);
            (0..50).map(|_| choice.gap()).collect::<Vec<_>>()
        };
        assert_eq!(gaps(1, 16), gaps(1, 16));
        assert_ne!(gaps(1, 16), gaps(2, 16));
        assert_ne!(gaps(1, 16), gaps(1, 17));
        assert_ne!(gaps(0, 0), gaps(0, 1));
    }
}
