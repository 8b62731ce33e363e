//! Figures 11 and 12: by hand on small traces, and against a simulator that does everything the long way.

mod common;

use borescope_sites::rng::Rng;
use borescope_sites::simulate::{
    ClassRow, Collisions, Hashing, collisions, figure_12, sites_per_class,
};
use borescope_sites::trace::{Step, Trace, TraceSite};
use borescope_sites::*;
use common::figure7::Figure7;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn trace(sites: &[u32], steps: &[Step]) -> Trace {
    let classes = sites.iter().max().map_or(0, |m| m + 1);
    let site = |&class| TraceSite {
        class,
        method: 0,
        label: String::new(),
    };
    Trace {
        classes: (0..classes).map(|c| format!("C{c}")).collect(),
        sites: sites.iter().map(site).collect(),
        steps: steps.to_vec(),
    }
}

fn allocate(site: u32, count: u64) -> Step {
    Step::Allocate { site, count }
}

fn hash(site: u32, nth: u64) -> Step {
    Step::Hash { site, nth }
}

fn only_static(width: u8) -> Hashing {
    let mode = Mode::Static { number_bits: width };
    Hashing::Numbers(Scheme::new(mode, width, Policy::SEED, 1).unwrap())
}

#[test]
fn figure_11_by_hand() {
    let trace = trace(
        &[0, 1, 1, 1, 2, 2, 2],
        &[
            allocate(1, 5),
            allocate(1, 1),
            hash(1, 2),
            hash(1, 2),
            hash(1, 5),
            allocate(4, 9),
        ],
    );
    let row = |class: &str, sites, allocating, objects, hashed| ClassRow {
        class: class.into(),
        sites,
        allocating,
        objects,
        hashed,
    };
    let expected = [
        row("C1", 3, 1, 6, 2),
        row("C2", 3, 1, 9, 0),
        row("C0", 1, 0, 0, 0),
    ];
    assert_eq!(sites_per_class(&trace).unwrap(), expected);
}

#[test]
fn static_numbers_as_hashes_by_hand() {
    // Class 0: sites with 3, 1 and 0 hashed objects; class 1: one with 2.
    let trace = trace(
        &[0, 0, 0, 1],
        &[
            allocate(0, 10),
            allocate(1, 10),
            allocate(2, 10),
            allocate(3, 10),
            hash(0, 0),
            hash(0, 9),
            hash(0, 0),
            hash(0, 4),
            hash(1, 1),
            hash(3, 1),
            hash(3, 2),
        ],
    );
    for width in [3, 14, 15, 31] {
        let outcome = collisions(&trace, only_static(width), 9).unwrap();
        let total = Collisions {
            objects: 6,
            values: 3,
            max: 3,
            squares: 14,
        };
        assert_eq!(outcome.total, total);
        assert_eq!((total.average(), total.average_met()), (2.0, 14.0 / 6.0));
        assert_eq!(outcome.classes[0].1.max, 3);
        assert_eq!(
            (outcome.classes[1].0, outcome.classes[1].1.average()),
            (1, 2.0)
        );
        assert_eq!((outcome.exact, outcome.shared, outcome.unmarked), (6, 0, 0));
    }
    // 1 bit: one number a class that is not 0, so site 1 gets none and takes a random bit, never 0 either.
    let outcome = collisions(&trace, only_static(1), 9).unwrap();
    assert_eq!((outcome.exact, outcome.unmarked), (5, 1));
    assert_eq!((outcome.total.values, outcome.total.max), (2, 4));
}

#[test]
fn random_hashes_by_hand() {
    let trace = trace(
        &[0, 1],
        &[
            allocate(0, 1 << 40),
            allocate(1, 5),
            hash(0, 7),
            hash(0, 8),
            hash(0, 9),
            hash(1, 0),
        ],
    );
    // One bit, never 0: all of a class collide.
    let outcome = collisions(&trace, Hashing::Random(1), 3).unwrap();
    assert_eq!(
        (outcome.total.max, outcome.total.values, outcome.unmarked),
        (3, 2, 4)
    );
    let empty = collisions(&Trace::default(), Hashing::Random(15), 3).unwrap();
    assert_eq!((empty.total.average(), empty.total.max), (0.0, 0));
}

#[test]
fn random_hashes_collide_as_they_should() {
    // 20,000 objects in 2^15 - 1 values (0 counts as 1): the expectation of distinct values is m (1 - (1 - 1/m)^n).
    let steps: Vec<Step> = std::iter::once(allocate(0, 20_000))
        .chain((0..20_000).map(|n| hash(0, n)))
        .collect();
    let outcome = collisions(&trace(&[0], &steps), Hashing::Random(15), 5).unwrap();
    let m = 32_767f64;
    let expected = m * (1.0 - (1.0 - 1.0 / m).powi(20_000));
    assert!((outcome.total.values as f64 / expected - 1.0).abs() < 0.02);
}

#[test]
fn a_hot_site_is_spread_as_well_as_random() {
    // The shape of figure 12: many hashed objects at few sites. Static numbers collide without end, dynamic ones hardly.
    let mut steps = Vec::new();
    for site in 0..40 {
        let count = if site < 3 { 3_000 } else { 5 };
        steps.push(allocate(site, count));
        steps.extend((0..count).map(|n| hash(site, n)));
    }
    let trace = trace(&[0; 40], &steps);
    let rows = figure_12(&trace, &[14, 31], 11).unwrap();
    let names: Vec<_> = rows.iter().map(|r| (r.hashing, r.width)).collect();
    let six = [
        "random",
        "static",
        "dynamic (seed)",
        "dynamic",
        "hybrid (seed)",
        "hybrid",
    ];
    let expected: Vec<_> = [("random", 15)]
        .into_iter()
        .chain([14, 31].into_iter().flat_map(|w| six.map(|n| (n, w))))
        .collect();
    assert_eq!(names, expected);
    for row in &rows {
        let total = &row.outcome.total;
        assert_eq!(total.objects, 9_185);
        match (row.hashing, row.width) {
            ("static", _) => assert_eq!((total.values, total.max), (40, 3_000)),
            ("dynamic" | "hybrid", 31) => {
                assert!(total.average() < 1.01 && total.max <= 3, "{row:?}");
                assert_eq!(row.outcome.exact, 9_185);
            }
            ("dynamic" | "hybrid", _) => {
                assert!(total.average() < 4.0, "{row:?}");
                assert_eq!(row.outcome.exact + row.outcome.shared, 9_185);
            }
            // The seed's policy gives the first site the whole tree; those after it get no number.
            ("dynamic (seed)" | "hybrid (seed)", 14) => {
                assert!(row.outcome.unmarked > 0, "{row:?}")
            }
            _ => assert!(total.max < 10, "{row:?}"),
        }
    }
    assert_eq!(
        figure_12(&trace, &[14, 31], 11).unwrap(),
        rows,
        "same seed, same figures"
    );
}

/// Everything the long way: one object after another, numbers by figure 7 done literally, values as text.
fn brute_force(trace: &Trace, scheme: &Scheme, seed: u64) -> (HashMap<(u32, u32), u64>, u64) {
    let hybrid = scheme.mode() == Mode::Hybrid;
    let payload = usize::from(scheme.payload());
    let mut rng = Rng::new(seed);
    let seeds: Vec<u64> = trace.sites.iter().map(|_| rng.next_u64()).collect();
    let mut trees: HashMap<u32, Figure7> = HashMap::new();
    let mut fields: HashMap<(u32, u64), Option<u32>> = HashMap::new();
    let mut allocated = vec![0u64; trace.sites.len()];
    let mut mark = |site: u32, nth: u64| {
        if fields.contains_key(&(site, nth)) {
            return;
        }
        let class = trace.sites[site as usize].class;
        let tree = trees.entry(class).or_default();
        let key = site as u8;
        let mut random = Rng::new(seeds[site as usize]);
        (0..nth).for_each(|_| _ = random.next_u32());
        let random = format!("{:032b}", random.next_u32());
        if !tree.current.contains_key(&key) && !tree.first(key, payload - 4) {
            fields.insert((site, nth), None);
            return;
        }
        let number = tree.current[&key].clone();
        let id = random[32 - (payload - number.len())..].to_owned();
        let raw = u32::from_str_radix(&(number.clone() + &id), 2).unwrap()
            ^ scheme.class_hash(ClassId(class));
        let flag = if hybrid { 1 << payload } else { 0 };
        fields.insert((site, nth), Some((raw | flag).max(1)));
        let lower_half = &id[id.len() - id.len() / 2..];
        if !number.is_empty() && !lower_half.contains('1') {
            tree.search(key, number.len() - 1);
        }
    };
    let mut wanted = HashSet::new();
    for &step in &trace.steps {
        match step {
            Step::Allocate { site, count } => {
                for _ in 0..count {
                    if !hybrid {
                        mark(site, allocated[site as usize]);
                    }
                    allocated[site as usize] += 1;
                }
            }
            Step::Hash { site, nth } => {
                wanted.insert((site, nth));
                if hybrid {
                    mark(site, nth);
                }
            }
        }
    }
    let mut wanted: Vec<_> = wanted.into_iter().collect();
    wanted.sort_unstable();
    let (mut counts, mut unmarked) = (HashMap::new(), 0);
    for key in wanted {
        let field = fields[&key].unwrap_or_else(|| {
            unmarked += 1;
            ((rng.next_u64() & ((1 << scheme.width()) - 1)) as u32).max(1)
        });
        *counts
            .entry((trace.sites[key.0 as usize].class, field))
            .or_default() += 1;
    }
    (counts, unmarked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn equals_the_long_way(
        sites in prop::collection::vec(0u32..2, 1..5),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 1u64..40, any::<Option<prop::sample::Index>>()), 1..60),
        width in 7u8..13,
        hybrid in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut allocated = vec![0u64; sites.len()];
        let mut all = Vec::new();
        for (site, count, nth) in steps {
            let site = site.index(sites.len());
            match nth {
                Some(nth) if allocated[site] > 0 => {
                    // A run of references, so that numbers get short.
                    let from = nth.index(allocated[site] as usize) as u64;
                    all.extend((from..allocated[site].min(from + 20)).map(|n| hash(site as u32, n)));
                }
                _ => {
                    allocated[site] += count;
                    all.push(allocate(site as u32, count));
                }
            }
        }
        let trace = trace(&sites, &all);
        let mode = if hybrid { Mode::Hybrid } else { Mode::Dynamic };
        let scheme = Scheme::new(mode, width, Policy::SEED, seed ^ 1).unwrap();
        let outcome = collisions(&trace, Hashing::Numbers(scheme), seed).unwrap();
        let (counts, unmarked) = brute_force(&trace, &scheme, seed);
        prop_assert_eq!(outcome.unmarked, unmarked);
        prop_assert_eq!(outcome.total.objects, counts.values().sum::<u64>());
        prop_assert_eq!(outcome.total.values, counts.len() as u64);
        prop_assert_eq!(outcome.total.max, counts.values().copied().max().unwrap_or(0));
        prop_assert_eq!(outcome.total.squares, counts.values().map(|c| c * c).sum::<u64>());
        prop_assert_eq!(outcome.exact, outcome.total.objects - unmarked);
    }
}
