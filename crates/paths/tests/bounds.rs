//! Bounds of profiles with bounded memory against the brute-force n-gram counter.

mod common;

use borescope_paths::bounded::{Bounded, Growth};
use borescope_paths::kipf::{Bounds, Builder};
use borescope_paths::stream::brute_force;
use borescope_paths::{Engine, KIpf};
use common::{activations as streams, ks};
use proptest::prelude::*;
use std::collections::HashMap;

/// The forest of a stream of which some items (by `dropped`, in turn) keep only a part of their window.
fn partly(stream: &[Vec<u32>], k: u32, dropped: &[Option<usize>]) -> KIpf {
    let mut builder = Builder::new(k).unwrap();
    let mut dropped = dropped.iter().cycle();
    for activation in stream {
        for (n, &id) in activation.iter().enumerate() {
            let window = &activation[n - n.min(k as usize - 1)..n];
            match dropped.next().unwrap() {
                Some(kept) => {
                    builder.truncated_edge(&window[window.len() - window.len().min(*kept)..], id, 1)
                }
                None => builder.edge(window, id, 1),
            }
        }
    }
    builder.finish()
}

fn dropped() -> impl Strategy<Value = Vec<Option<usize>>> {
    prop::collection::vec(
        prop_oneof![3 => Just(None), 2 => (0usize..6).prop_map(Some)],
        1..80,
    )
}

/// lo <= true <= hi for all n-grams of the stream, for all of the forest, and for others that lie near.
fn check(forest: &KIpf, stream: &[Vec<u32>]) -> Result<(), TestCaseError> {
    let k = forest.k();
    let truth = brute_force(stream, k + 1);
    let bounded = |gram: &[u32]| {
        let count = truth.get(gram).copied().unwrap_or(0);
        let (lower, upper) = (forest.count(gram), forest.upper_of(gram));
        prop_assert!(
            lower <= count && count <= upper,
            "{gram:?}: {lower} <= {count} <= {upper}"
        );
        if gram.len() == 1 {
            prop_assert!(lower == count && count == upper);
        }
        Ok(())
    };
    for gram in truth.keys() {
        bounded(gram)?;
        if gram.len() > 12 {
            continue;
        }
        // Most of these never occur.
        let mut near = gram.clone();
        near.reverse();
        bounded(&near)?;
        near.truncate(k as usize - 1);
        near.push(gram[0]);
        bounded(&near)?;
        near[0] = near[0].wrapping_add(1);
        bounded(&near)?;
    }
    for (entry, bounds) in forest.bounded_nodes() {
        prop_assert!(entry.count <= bounds.upper);
    }
    for n in 1..=k {
        for (gram, lower) in forest.level(n) {
            bounded(&gram)?;
            let node = forest.find(&gram).unwrap();
            prop_assert_eq!(lower, forest.node_count(node));
            prop_assert_eq!(forest.upper(node), forest.upper_of(&gram));
        }
    }
    prop_assert_eq!(forest.check(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bounds_hold_whatever_was_dropped(stream in streams(), k in ks(), dropped in dropped()) {
        let forest = partly(&stream, k, &dropped);
        check(&forest, &stream)?;
        // What was kept whole is exact.
        let whole = partly(&stream, k, &[None]);
        prop_assert!(whole.is_exact());
        if dropped.iter().all(Option::is_none) {
            prop_assert!(forest == whole);
        }
        if forest.is_exact() {
            let counts = brute_force(&stream, k);
            for (gram, count) in &counts {
                prop_assert_eq!(forest.count(gram), *count);
            }
            prop_assert_eq!(forest.len(), counts.len());
        }
    }

    #[test]
    fn bounds_hold_after_merging(
        a in streams(), b in streams(), k in ks(), da in dropped(), db in dropped(), exact in any::<bool>(),
    ) {
        let mut forest = partly(&a, k, &da);
        forest.merge(&partly(&b, k, if exact { &[None] } else { &db })).unwrap();
        check(&forest, &[a, b].concat())?;
    }

    #[test]
    fn listings_and_levels_keep_the_bounds(stream in streams(), k in 1u32..=16, dropped in dropped()) {
        let forest = partly(&stream, k, &dropped);
        let nodes = forest.bounded_nodes().map(|(e, bounds)| (e.parent, e.id, e.count, bounds));
        let listed = KIpf::from_bounded_nodes(k, nodes).unwrap();
        prop_assert!(listed == forest);
        prop_assert_eq!(listed.is_exact(), forest.is_exact());
        check(&listed, &stream)?;
        for gram in brute_force(&stream, k + 2).keys() {
            prop_assert_eq!(listed.upper_of(gram), forest.upper_of(gram));
        }
        let smaller = forest.truncated((k / 2).max(1)).unwrap();
        check(&smaller, &stream)?;
    }

    #[test]
    fn more_can_be_added(stream in streams(), k in ks(), dropped in dropped(), more in prop::collection::vec(0u32..4, 1..20)) {
        let mut forest = partly(&stream, k, &dropped);
        for (n, &id) in more.iter().enumerate() {
            forest.add_edge(&more[..n], id, 1);
        }
        check(&forest, &[stream, vec![more]].concat())?;
    }

    #[test]
    fn bounds_hold_for_any_limit_and_any_sweeps(
        stream in streams(),
        k in ks(),
        growth in prop_oneof![Just(Growth::Whole), (0u64..5, any::<bool>()).prop_map(|(price, rising)| Growth::Earned { price, rising })],
        limit in prop_oneof![0usize..4, 0usize..40, Just(usize::MAX)],
        sweeps in prop::collection::vec(prop::option::weighted(0.1, 0usize..20), 1..200),
    ) {
        // The activations take turns, so that sweeps find rows that activations are in.
        let mut engine = Bounded::new(k, limit, growth).unwrap();
        let mut states: Vec<u32> = stream.iter().map(|_| engine.enter()).collect();
        let mut sweeps = sweeps.iter().cycle();
        let (mut most, mut swept) = (0, false);
        for n in 0..stream.iter().map(Vec::len).max().unwrap_or(0) {
            for (activation, state) in stream.iter().zip(0..) {
                let Some(&id) = activation.get(n) else { continue };
                states[state] = engine.hit(states[state], id);
                prop_assert!(engine.rows() <= limit);
                most = most.max(engine.rows());
                if let Some(keep) = sweeps.next().unwrap() {
                    engine.sweep(*keep, &states);
                    swept = true;
                    prop_assert!(engine.rows() <= (*keep).max(states.len()));
                }
            }
        }
        let forest = engine.k_ipf();
        check(&forest, &stream)?;
        if !swept && most < limit.div_ceil(2) {
            prop_assert!(forest.is_exact());
            prop_assert!(forest == partly(&stream, k, &[None]));
        }
    }

    #[test]
    fn any_edges_and_listings_are_taken_without_panic(
        k in ks(),
        edges in prop::collection::vec((prop::collection::vec(0u32..4, 0..80), 0u32..4, any::<u64>(), any::<bool>()), 0..20),
        nodes in prop::collection::vec((prop::option::of(0u32..30), 0u32..4, any::<u64>(), any::<u64>(), any::<u64>()), 0..30),
        gram in prop::collection::vec(0u32..4, 0..80),
    ) {
        let mut builder = Builder::new(k).unwrap();
        for (window, id, count, truncated) in &edges {
            match truncated {
                true => builder.truncated_edge(window, *id, *count),
                false => builder.edge(window, *id, *count),
            }
        }
        let mut forest = builder.finish();
        prop_assert!(forest.upper_of(&gram) >= forest.count(&gram));
        let nodes = nodes.iter().map(|&(p, id, n, upper, truncated)| (p, id, n, Bounds { upper, truncated, below: 0 }));
        if let Ok(other) = KIpf::from_bounded_nodes(k, nodes) {
            prop_assert!(other.upper_of(&gram) >= other.count(&gram));
            forest.merge(&other).unwrap();
            forest.add_ngram(&[1], 1).unwrap();
            prop_assert!(forest.upper_of(&gram) >= forest.count(&gram));
        }
    }
}

#[test]
fn a_bound_by_hand() {
    // <1 2 3> three times whole; twice only <2 3> is known, once only <3>.
    let mut builder = Builder::new(3).unwrap();
    for (window, id, count) in [(&[][..], 1, 6), (&[1], 2, 5), (&[9], 2, 1), (&[1, 2], 3, 3)] {
        builder.edge(window, id, count);
    }
    builder.edge(&[], 9, 1);
    builder.truncated_edge(&[2], 3, 2);
    builder.truncated_edge(&[], 3, 1);
    // With a window of k-1 IDs nothing is unknown.
    builder.truncated_edge(&[2, 3], 3, 1);
    let forest = builder.finish();
    let bounds: HashMap<Vec<u32>, (u64, u64)> = [
        &[3][..],
        &[2, 3],
        &[1, 2, 3],
        &[9, 2, 3],
        &[3, 3],
        &[2, 3, 3],
        &[1, 1, 3],
        &[7, 3],
    ]
    .into_iter()
    .map(|gram| (gram.to_vec(), (forest.count(gram), forest.upper_of(gram))))
    .collect();
    let expected = HashMap::from([
        (vec![3], (7, 7)),
        // One of the seven came after an unknown ID.
        (vec![2, 3], (5, 6)),
        // Of the 6 times <2>, 5 came after <1> and 5 before <3>: 4 at least are both.
        (vec![1, 2, 3], (4, 5)),
        // <9 2> came once.
        (vec![9, 2, 3], (0, 1)),
        (vec![3, 3], (1, 2)),
        (vec![2, 3, 3], (1, 2)),
        (vec![1, 1, 3], (0, 0)),
        (vec![7, 3], (0, 0)),
    ]);
    assert_eq!(bounds, expected);
    assert!(!forest.is_exact());
}
