//! Hashes that the VM counts: none that it has drawn passes for ours, however it is sampled.

use borescope_sites::drawn::{Drawn, MARGIN};
use proptest::prelude::*;

const OURS: u32 = 1 << 30;
/// Most draws from one sample to the next.
const MOST: u64 = (1 << 31) - 3 * MARGIN as u64;

/// What the VM does between two samples.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It draws so many.
    Draw(u64),
    /// A thread puts the counter back by so many.
    Back(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let some = prop_oneof![0u64..1000, 0..1u64 << 24, 0..1u64 << 29];
    let step = prop_oneof![
        4 => some.prop_map(Step::Draw),
        1 => (0..u64::from(MARGIN)).prop_map(Step::Back),
    ];
    prop::collection::vec(step, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn none_that_was_drawn_is_ours(start in 1u64..1 << 31, rounds in prop::collection::vec(steps(), 1..12)) {
        let (mut counter, mut highest) = (start, start);
        let hash = |counter: u64| (counter & 0x7FFF_FFFF) as u32;
        let within = u64::from(MARGIN) - 1;
        let mut drawn = Drawn::new(hash(counter), OURS);
        // From where to where it has counted.
        let mut ranges: Vec<(u64, u64)> = vec![(counter, counter)];
        for round in rounds {
            let mut left = MOST;
            for step in round {
                match step {
                    Step::Draw(n) => {
                        let n = n.min(left);
                        left -= n;
                        ranges.push((counter, counter + n));
                        counter += n;
                        highest = highest.max(counter);
                    }
                    Step::Back(n) => counter = (counter - n.min(counter)).max(highest.saturating_sub(within)).max(1),
                }
            }
            drawn.see(hash(counter));
            // What it draws before the next walk is over.
            ranges.push((counter, counter + within));
            for &(from, to) in &ranges {
                let all = to - from >= 1 << 31;
                let highest = match hash(from) <= hash(to) && !all {
                    true => hash(to),
                    false => (1 << 31) - 1,
                };
                prop_assert!(!drawn.is_ours(highest), "{:?} of {} to {}", drawn, from, to);
            }
        }
        for below in [0, 1, OURS - 1] {
            prop_assert!(!drawn.is_ours(below));
        }
        // As long as it has drawn few, all of ours are.
        let most = ranges.iter().map(|r| r.1).max().unwrap_or(0);
        if most < u64::from(OURS - MARGIN) {
            prop_assert!(drawn.is_ours(OURS) && drawn.is_ours((1 << 31) - 1));
        }
    }
}

#[test]
fn what_it_may_have_reached_is_ours_no_longer() {
    let mut drawn = Drawn::new(7, OURS);
    assert!(drawn.is_ours(OURS) && !drawn.is_ours(OURS - 1));
    drawn.see(OURS + 5);
    assert!(!drawn.is_ours(OURS + 5 + MARGIN - 1) && drawn.is_ours(OURS + 5 + MARGIN));
    drawn.see(OURS + 4);
    assert!(drawn.is_ours(OURS + 5 + MARGIN));
    drawn.see(9);
    assert!(!drawn.is_ours((1 << 31) - 1));
}
