//! How often the 95 % intervals of [`borescope_paths::estimate`] hold the true count: by simulation, with fixed seeds, over activations of
//! equal and of very unequal sizes.

use borescope_paths::estimate::estimate;
use proptest::prelude::*;

/// xorshift64* (Vigna 2016): another generator than the agent's.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// In (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

type Size = fn(&mut Random) -> u64;

/// Sizes of activations, and the coverage in per cent that the module claims at least.
const SIZES: [(&str, Size, f64); 7] = [
    ("equal", |_| 7, 95.0),
    ("one in a third", |r| u64::from(r.next() % 3 == 0), 95.0),
    ("1 to 10", |r| 1 + r.next() % 10, 95.0),
    ("geometric", |r| (r.unit().ln() / 0.9f64.ln()) as u64, 94.5),
    ("lognormal 1", |r| (10.0 * r.normal().exp()) as u64, 94.0),
    (
        "lognormal 1.5",
        |r| (10.0 * (1.5 * r.normal()).exp()) as u64,
        92.0,
    ),
    ("Pareto 2.5", |r| (10.0 * r.unit().powf(-0.4)) as u64, 94.0),
];

/// In per cent: intervals that hold the truth, and how often it lies below.
fn coverage(one_in: u32, chosen: u64, size: Size, turns: u32, random: &mut Random) -> (f64, f64) {
    let (mut held, mut below, mut all) = (0, 0, 0);
    for _ in 0..turns {
        let mut groups = [0; 16];
        let (mut n, mut truth) = (0, 0);
        for _ in 0..chosen * u64::from(one_in) {
            let size = size(random);
            truth += size;
            if random.next() >> 32 < (1 << 32) / u64::from(one_in) {
                groups[(random.next() >> 60) as usize] += size;
                n += 1;
            }
        }
        // Fewer than a handful says nothing; a count of nothing is not reported.
        if n < 3 || groups == [0; 16] {
            continue;
        }
        let e = estimate(one_in, &groups, n);
        all += 1;
        held += u32::from(e.lo <= truth && truth <= e.hi);
        below += u32::from(truth < e.lo);
    }
    let percent = |part: u32| 100.0 * f64::from(part) / f64::from(all);
    (percent(held), percent(below))
}

#[test]
fn intervals_hold_the_truth() {
    let mut random = Random(20_261_130);
    for one_in in [2, 64] {
        for chosen in [5, 20, 100, 400] {
            for (name, size, least) in SIZES {
                let turns = (1_500_000 / (chosen * u64::from(one_in))).clamp(400, 1500) as u32;
                let (held, below) = coverage(one_in, chosen, size, turns, &mut random);
                // Three standard errors of a share of `turns` for chance.
                let chance = 300.0 * (0.05 * 0.95 / f64::from(turns)).sqrt();
                let what = format!("{name}, 1 in {one_in}, about {chosen} chosen: {held} {below}");
                assert!(held > least - chance, "{what}");
                assert!(below < 2.5 + chance, "{what}");
            }
        }
    }
}

/// Not for show: with many equal activations the interval is about as wide as theory says, 2 * 1.96 standard deviations.
#[test]
fn intervals_are_not_too_wide() {
    let mut random = Random(1);
    let mut relative = 0.0;
    for _ in 0..200 {
        let mut groups = [0; 16];
        for _ in 0..1000 {
            groups[(random.next() >> 60) as usize] += 3;
        }
        let e = estimate(64, &groups, 1000);
        relative += (e.hi - e.lo) as f64 / e.count as f64 / 200.0;
    }
    let theory = 2.0 * 1.96 / 1000f64.sqrt();
    assert!(
        relative > theory && relative < 1.25 * theory,
        "{relative} {theory}"
    );
}

proptest! {
    #[test]
    fn the_estimate_lies_within(
        one_in in 2u32..=65536,
        groups in prop::collection::vec(prop_oneof![Just(0), 0..9u64, 0..1u64 << 40, any::<u64>()], 16),
        chosen in any::<u32>(),
    ) {
        let e = estimate(one_in, &groups, chosen.into());
        let counted = groups.iter().fold(0u64, |a, b| a.saturating_add(*b));
        prop_assert!(counted <= e.lo && e.lo <= e.count && e.count <= e.hi);
        prop_assert_eq!(e.count, counted.saturating_mul(one_in.into()));
        // In what order the groups come says nothing.
        let reversed: Vec<u64> = groups.into_iter().rev().collect();
        let other = estimate(one_in, &reversed, chosen.into());
        let close = |a: u64, b: u64| a.abs_diff(b) <= 1 + a / 1_000_000_000;
        prop_assert!(close(e.lo, other.lo) && close(e.hi, other.hi));
    }
}
