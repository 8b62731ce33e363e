//! Reservoir replacement: every sampled location is kept with the same probability. All outcomes are counted, none is left to chance.

use borescope_waste::handler::reservoir::{Choice, Draw, Random, Reservoir};
use proptest::prelude::*;

/// Draws what a script says, and notes what was asked.
struct Script {
    answers: Vec<u64>,
    asked: Vec<u64>,
}

impl Draw for Script {
    fn below(&mut self, n: u64) -> u64 {
        let answer = self.answers.get(self.asked.len()).copied().unwrap_or(0);
        self.asked.push(n);
        answer
    }
}

/// What happens, in order.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Sample,
    /// The register with this number (of those held) comes free.
    Free(usize),
}

/// One run: which samples hold the registers at the end. Also the numbers that were drawn from.
fn run(
    happenings: &[Happening],
    registers: usize,
    answers: &[u64],
) -> (Vec<Option<usize>>, Vec<u64>) {
    let mut script = Script {
        answers: answers.to_vec(),
        asked: Vec::new(),
    };
    let mut reservoir = Reservoir::new();
    let mut held: Vec<Option<usize>> = vec![None; registers];
    let mut samples = 0;
    for happening in happenings {
        match *happening {
            Happening::Sample => {
                let busy = held.iter().flatten().count();
                match reservoir.offer(busy, registers, &mut script) {
                    Choice::Free => {
                        let free = held.iter().position(Option::is_none).unwrap();
                        held[free] = Some(samples);
                    }
                    Choice::Replace(slot) => held[slot] = Some(samples),
                    Choice::PassOver => {}
                }
                samples += 1;
            }
            Happening::Free(n) => {
                let busy: Vec<usize> = (0..registers).filter(|&s| held[s].is_some()).collect();
                if !busy.is_empty() {
                    held[busy[n % busy.len()]] = None;
                }
            }
        }
    }
    (held, script.asked)
}

/// All outcomes with their probabilities as (weight, of so many): each draw of n is n outcomes.
fn outcomes(happenings: &[Happening], registers: usize) -> Vec<(u64, u64, Vec<Option<usize>>)> {
    // What is drawn from never depends on what was drawn, only on what happened.
    let (_, asked) = run(happenings, registers, &[]);
    let total: u64 = asked.iter().product();
    (0..total)
        .map(|mut number| {
            let digit = |n: &u64| {
                let digit = number % n;
                number /= n;
                digit
            };
            let answers: Vec<u64> = asked.iter().map(digit).collect();
            let (held, again) = run(happenings, registers, &answers);
            assert_eq!(again, asked);
            (1, total, held)
        })
        .collect()
}

#[test]
fn every_location_is_kept_with_the_same_probability() {
    for registers in 1..=4usize {
        for samples in registers..registers + 5 {
            let happenings = vec![Happening::Sample; samples];
            let outcomes = outcomes(&happenings, registers);
            let total = outcomes.len();
            for sample in 0..samples {
                let kept = outcomes
                    .iter()
                    .filter(|(_, _, held)| held.contains(&Some(sample)));
                // kept / total = registers / samples, exactly.
                assert_eq!(
                    kept.count() * samples,
                    total * registers,
                    "{sample} of {samples}, {registers} registers"
                );
            }
            // And no two of them keep each other company more often than others.
            if registers == 2 {
                for a in 0..samples {
                    for b in 0..a {
                        let both = outcomes.iter().filter(|(_, _, held)| {
                            held.contains(&Some(a)) && held.contains(&Some(b))
                        });
                        assert_eq!(both.count() * samples * (samples - 1), total * 2);
                    }
                }
            }
        }
    }
}

/// Registers come free at any time: from the moment when all are held again, those that hold them and those that came since are equal.
#[test]
fn after_a_register_came_free_all_are_equal_again() {
    for registers in 1..=3usize {
        for before in registers..registers + 3 {
            for freed in 0..registers {
                for after in 1..4usize {
                    let mut happenings = vec![Happening::Sample; before];
                    happenings.push(Happening::Free(freed));
                    // The first of these takes the free register and begins an epoch.
                    happenings.extend(vec![Happening::Sample; after]);
                    let start = before + 1;
                    let at_start = outcomes(&happenings[..start + 1], registers);
                    let at_end = outcomes(&happenings, registers);
                    let probability = |outcomes: &[(u64, u64, Vec<Option<usize>>)],
                                       sample: usize| {
                        let kept = outcomes
                            .iter()
                            .filter(|(_, _, held)| held.contains(&Some(sample)));
                        (kept.count() as u64, outcomes.len() as u64)
                    };
                    let seen = (registers + after - 1) as u64;
                    for sample in 0..before + after {
                        let (kept, total) = probability(&at_end, sample);
                        // Held at the epoch's start with p: kept with p * registers / seen. Came later: registers / seen.
                        let (p, of) = match sample <= before {
                            true => probability(&at_start, sample),
                            false => (1, 1),
                        };
                        assert_eq!(
                            u128::from(kept) * u128::from(of) * u128::from(seen),
                            u128::from(p) * registers as u128 * u128::from(total),
                            "sample {sample}: {before} before, {after} after, {registers} registers"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn no_registers() {
    assert_eq!(
        Reservoir::new().offer(0, 0, &mut Random::new(1)),
        Choice::PassOver
    );
}

proptest! {
    /// The seeded generator: deterministic, in range, and each number of a small range comes about as often.
    #[test]
    fn random_numbers(seed in any::<u64>(), n in 1u64..20) {
        let mut counts = vec![0u64; n as usize];
        let (mut a, mut b) = (Random::new(seed), Random::new(seed));
        for _ in 0..n * 1000 {
            let drawn = a.below(n);
            prop_assert_eq!(drawn, b.below(n));
            counts[drawn as usize] += 1;
        }
        // Seven standard deviations: a fair generator fails once in 10^11 counts.
        prop_assert!(counts.iter().all(|&c| (c as f64 - 1000.0).abs() < 7.0 * 1000f64.sqrt()), "{:?}", counts);
        prop_assert!(Random::new(seed).below(u64::MAX) < u64::MAX);
        prop_assert_eq!(Random::new(seed).below(0), 0);
    }
}
