//! Every engine against the brute-force n-gram counter, and the k-IPF's invariants (seed, figures 3, 6 and 7).

mod common;

use borescope_paths::automaton::Automaton;
use borescope_paths::blpp::{BlppDense, BlppHash};
use borescope_paths::kipf::Builder;
use borescope_paths::ksf::Ksf;
use borescope_paths::stream::{activations, brute_force, parse};
use borescope_paths::{Engine, Error, KIpf};
use common::{activations as streams, ks};
use proptest::prelude::*;
use std::collections::HashMap;
use std::hash::RandomState;

fn ngrams(forest: &KIpf) -> HashMap<Vec<u32>, u64> {
    (1..=forest.k())
        .flat_map(|n| forest.level(n).collect::<Vec<_>>())
        .collect()
}

fn num_paths(stream: &[Vec<u32>]) -> u32 {
    stream.iter().flatten().max().map_or(1, |m| m + 1)
}

fn fed<E: Engine>(mut engine: E, stream: &[Vec<u32>]) -> E {
    engine.feed(stream);
    engine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn engines_count_all_ngrams(stream in streams(), k in ks()) {
        let truth = brute_force(&stream, k);
        let automaton = fed(Automaton::new(k, num_paths(&stream)).unwrap(), &stream);
        let forest = automaton.k_ipf();
        prop_assert_eq!(&ngrams(&forest), &truth);
        prop_assert_eq!(forest.check(), Ok(()));
        prop_assert_eq!(forest.len(), truth.len());
        let hashed = fed(Automaton::with_rows(k, None).unwrap(), &stream);
        prop_assert!(hashed.k_ipf() == forest);
        if num_paths(&stream) <= 60 {
            prop_assert!(fed(Automaton::with_rows(k, Some(60)).unwrap(), &stream).k_ipf() == forest);
        }
        let ksf = fed(Ksf::new(k).unwrap(), &stream);
        prop_assert!(ksf.k_ipf() == forest);
        let moved = fed(Ksf::with_move_to_front(k).unwrap(), &stream);
        prop_assert!(moved.k_ipf() == forest);

        // paths.md: edges <= k-SF nodes and <= k-IPF nodes.
        let stats = automaton.stats();
        prop_assert_eq!(stats.counters, automaton.edges().count() as u64);
        prop_assert!(stats.counters <= ksf.stats().counters && stats.counters <= forest.len() as u64);
        // One look-up for each distinct edge, none for k = 1.
        prop_assert_eq!(stats.hash_lookups, if k == 1 { 0 } else { stats.counters });
    }

    #[test]
    fn level_one_is_the_ball_larus_profile(stream in streams(), k in ks()) {
        let forest = fed(Automaton::new(k, num_paths(&stream)).unwrap(), &stream).k_ipf();
        let plain = forest.truncated(1).unwrap();
        prop_assert!(fed(BlppHash::<RandomState>::new(), &stream).k_ipf() == plain);
        let hash = fed(<BlppHash>::new(), &stream);
        prop_assert!(hash.k_ipf() == plain);
        let items = stream.iter().flatten().count() as u64;
        prop_assert_eq!(hash.stats().hash_lookups, items);
        prop_assert_eq!(forest.total(), items);
        if num_paths(&stream) <= 60 {
            prop_assert!(fed(BlppDense::new(60), &stream).k_ipf() == plain);
        }
    }

    #[test]
    fn k_ipf_is_contained_in_the_next(stream in streams(), k in 1u32..=16) {
        let small = fed(Automaton::with_rows(k, None).unwrap(), &stream).k_ipf();
        let large = fed(Automaton::with_rows(k + 1, None).unwrap(), &stream).k_ipf();
        prop_assert!(large.truncated(k).unwrap() == small);
    }

    #[test]
    fn edges_and_k_ipf_are_in_bijection(stream in streams(), k in ks()) {
        let automaton = fed(Automaton::with_rows(k, None).unwrap(), &stream);
        let edges: HashMap<Vec<u32>, u64> =
            automaton.edges().map(|(w, id, count)| ([w, &[id]].concat(), count)).collect();
        let forest = automaton.k_ipf();
        prop_assert_eq!(&forest.edges().collect::<HashMap<_, _>>(), &edges);

        // All ways to make a forest give the same one.
        let mut one_by_one = KIpf::new(k).unwrap();
        let mut grams = KIpf::new(k).unwrap();
        for (gram, count) in &edges {
            let (id, window) = gram.split_last().unwrap();
            one_by_one.add_edge(window, *id, *count);
        }
        for (gram, count) in ngrams(&forest) {
            grams.add_ngram(&gram, count).unwrap();
        }
        prop_assert!(one_by_one == forest && grams == forest);
        let listed = KIpf::from_nodes(k, forest.nodes().map(|e| (e.parent, e.id, e.count))).unwrap();
        prop_assert!(listed == forest);
        prop_assert!(listed.nodes().eq(forest.nodes()));
        // A k-SF node is an edge whose window is longer than needed.
        let ksf = fed(Ksf::new(k).unwrap(), &stream);
        let nodes = ksf.nodes().map(|(path, count)| (path[..path.len() - 1].to_vec(), path[path.len() - 1], count));
        prop_assert!(KIpf::from_edges(k, nodes).unwrap() == forest);
        // An item at a time, as a reader of rows does.
        let mut builder = Builder::new(k).unwrap();
        for activation in &stream {
            let mut window = builder.start();
            for &id in activation {
                window = builder.step(window, id, 1);
            }
        }
        prop_assert!(builder.finish() == forest);
    }

    #[test]
    fn forests_add(a in streams(), b in streams(), k in ks()) {
        let mut forest = fed(Automaton::with_rows(k, None).unwrap(), &a).k_ipf();
        forest.merge(&fed(Ksf::new(k).unwrap(), &b).k_ipf()).unwrap();
        let both = fed(Automaton::with_rows(k, None).unwrap(), &[a, b].concat());
        prop_assert!(forest == both.k_ipf());
    }

    #[test]
    fn ksf_increments_one_node_by_the_rule(stream in streams(), k in ks()) {
        let mut ksf = Ksf::new(k).unwrap();
        let mut bound = 0;
        for activation in &stream {
            let mut state = ksf.enter();
            for n in 0..activation.len() {
                let before: u64 = ksf.nodes().map(|v| v.1).sum();
                state = ksf.hit(state, activation[n]);
                prop_assert_eq!(ksf.nodes().map(|v| v.1).sum::<u64>(), before + 1);
                let path = ksf.counted_path(state);
                prop_assert!(path.len() >= (n + 1).min(k as usize));
                prop_assert!(path.len() <= (2 * k as usize - 2).max(1));
                prop_assert!(activation[..=n].ends_with(&path));
                if n > 8 * k as usize {
                    break;
                }
            }
            // The seed, section on figure 9: 1 + N/(k-1) hash operations; exactly one for each slab begun.
            let items = activation.len().min(8 * k as usize + 2);
            bound += items.div_ceil((k as usize - 1).max(1)) as u64;
            prop_assert_eq!(ksf.stats().hash_lookups, bound);
        }
    }

    #[test]
    fn activations_may_interleave(a in streams(), k in ks()) {
        // Recursion and threads: states are values, so activations that take turns count as if one after another.
        let mut automaton = Automaton::with_rows(k, None).unwrap();
        let mut ksf = Ksf::new(k).unwrap();
        let mut states: Vec<_> = a.iter().map(|_| (automaton.enter(), ksf.enter())).collect();
        for n in 0..a.iter().map(Vec::len).max().unwrap_or(0) {
            for (activation, state) in a.iter().zip(&mut states) {
                if let Some(&id) = activation.get(n) {
                    *state = (automaton.hit(state.0, id), ksf.hit(state.1, id));
                }
            }
        }
        let forest = fed(Automaton::with_rows(k, None).unwrap(), &a).k_ipf();
        prop_assert!(automaton.k_ipf() == forest && ksf.k_ipf() == forest);
    }

    #[test]
    fn any_edges_and_nodes_are_taken_without_panic(
        k in ks(),
        edges in prop::collection::vec((prop::collection::vec(0u32..4, 0..80), 0u32..4, any::<u64>()), 0..20),
        nodes in prop::collection::vec((prop::option::of(0u32..30), any::<u32>(), prop_oneof![0..2u64, any::<u64>()]), 0..30),
    ) {
        let forest = KIpf::from_edges(k, edges.iter().map(|(w, id, n)| (w, *id, *n))).unwrap();
        // Windows that no edge leads to are made with count 0, which the check reports.
        let _ = forest.check();
        prop_assert_eq!(forest.total(), edges.iter().fold(0u64, |sum, e| sum.saturating_add(e.2)));
        if let Ok(forest) = KIpf::from_nodes(k, nodes) {
            let _ = (forest.check(), forest.edges().count());
            prop_assert_eq!(forest.nodes().count(), forest.len());
        }
    }
}

#[test]
fn worked_example_of_figure_3() {
    let stream = activations(&parse("* 6 2 0 0 2 2 0 0 2 2 0 0 2 3").unwrap());
    assert_eq!(stream[0].len(), 14);
    for forest in [
        fed(Automaton::new(4, 8).unwrap(), &stream).k_ipf(),
        fed(Ksf::new(4).unwrap(), &stream).k_ipf(),
    ] {
        assert_eq!(forest.count(&[2, 0, 0, 2]), 3);
        let ids = |n| forest.top(n, 100);
        assert_eq!(
            ids(1),
            [(vec![0], 6), (vec![2], 6), (vec![3], 1), (vec![6], 1)]
        );
        assert_eq!(
            ids(2),
            [
                (vec![0, 0], 3),
                (vec![0, 2], 3),
                (vec![2, 0], 3),
                (vec![2, 2], 2),
                (vec![2, 3], 1),
                (vec![6, 2], 1)
            ]
        );
        assert_eq!(
            ids(3),
            [
                (vec![0, 0, 2], 3),
                (vec![2, 0, 0], 3),
                (vec![0, 2, 2], 2),
                (vec![2, 2, 0], 2),
                (vec![0, 2, 3], 1),
                (vec![6, 2, 0], 1)
            ]
        );
        assert_eq!(
            ids(4),
            [
                (vec![2, 0, 0, 2], 3),
                (vec![0, 0, 2, 2], 2),
                (vec![0, 2, 2, 0], 2),
                (vec![2, 2, 0, 0], 2),
                (vec![0, 0, 2, 3], 1),
                (vec![6, 2, 0, 0], 1)
            ]
        );
        assert_eq!(forest.top(4, 1), [(vec![2, 0, 0, 2], 3)]);
        assert_eq!(forest.top(5, 10), []);
        let roots: Vec<u32> = forest.roots().into_iter().map(|v| forest.id(v)).collect();
        assert_eq!(
            roots,
            [0, 2, 3, 6],
            "one tree for each of the 4 IDs, the hottest first"
        );
    }
    // Five slabs of up to 3 IDs, four distinct roots.
    let ksf = fed(Ksf::new(4).unwrap(), &stream);
    assert_eq!(ksf.stats().hash_lookups, 5);
    let mut roots: Vec<u32> = ksf
        .nodes()
        .filter(|v| v.0.len() == 1)
        .map(|v| v.0[0])
        .collect();
    roots.sort_unstable();
    assert_eq!(roots, [0, 2, 6]);
}

#[test]
fn nothing_joins_two_activations() {
    // With tau left as it was at `*`, <1, 2> would be counted.
    let stream = vec![vec![1], vec![2]];
    let forest = fed(Ksf::new(2).unwrap(), &stream).k_ipf();
    assert_eq!(forest.count(&[1, 2]), 0);
    assert_eq!((forest.count(&[1]), forest.count(&[2])), (1, 1));
}

#[test]
fn move_to_front_scans_less_on_a_skewed_stream() {
    // 50 cold siblings made last stand in front of the hot one in the published list.
    let activation: Vec<u32> = (1..=50)
        .chain(std::iter::repeat_n(1, 1000))
        .flat_map(|id| [0, id])
        .collect();
    let plain = fed(Ksf::new(3).unwrap(), std::slice::from_ref(&activation));
    let moved = fed(Ksf::with_move_to_front(3).unwrap(), &[activation]);
    assert!(plain.k_ipf() == moved.k_ipf());
    assert!(
        moved.scans() * 5 < plain.scans(),
        "{} against {}",
        moved.scans(),
        plain.scans()
    );
}

#[test]
fn limits_are_errors_or_lost() {
    assert_eq!(Ksf::new(0).unwrap_err(), Error::K(0));
    assert_eq!(Automaton::new(65, 3).unwrap_err(), Error::K(65));
    assert_eq!(
        KIpf::new(2).unwrap().add_ngram(&[1, 2, 3], 1),
        Err(Error::Length(3, 2))
    );
    assert_eq!(
        KIpf::new(2).unwrap().add_ngram(&[], 1),
        Err(Error::Length(0, 2))
    );
    assert_eq!(
        KIpf::new(2).unwrap().merge(&KIpf::new(3).unwrap()),
        Err(Error::Merge(2, 3))
    );
    assert_eq!(
        KIpf::from_nodes(3, [(Some(0), 1, 1)]),
        Err(Error::Parent(0, 0))
    );
    assert_eq!(
        KIpf::from_nodes(1, [(None, 1, 1), (Some(0), 1, 1)]),
        Err(Error::Length(2, 1))
    );
    assert_eq!(
        KIpf::from_nodes(
            2,
            [(None, 1, 0), (Some(0), 2, 1), (None, 2, 1), (Some(0), 3, 0)]
        ),
        Err(Error::Never(3))
    );
    // 1 2 occurred, but 2 did not.
    assert_eq!(
        KIpf::from_nodes(2, [(None, 1, 1), (Some(0), 2, 1)]),
        Err(Error::Never(1))
    );
    let stream = [vec![1, 7, 1, u32::MAX]];
    let dense = fed(Automaton::with_rows(2, Some(2)).unwrap(), &stream);
    assert_eq!((dense.stats().lost, dense.k_ipf().count(&[1, 1])), (2, 1));
    let hashed = fed(Automaton::with_rows(2, None).unwrap(), &stream);
    assert_eq!((hashed.stats().lost, hashed.k_ipf().total()), (1, 3));
    let blpp = fed(BlppDense::new(2), &stream);
    assert_eq!((blpp.stats().lost, blpp.k_ipf().total()), (2, 2));
}

#[test]
fn check_finds_what_no_stream_can_give() {
    let mut forest = KIpf::new(2).unwrap();
    forest.add_ngram(&[1], 3).unwrap();
    forest.add_ngram(&[2], 5).unwrap();
    forest.add_ngram(&[1, 2], 4).unwrap();
    assert_eq!(
        forest.check(),
        Err(Error::Invariant {
            gram: vec![1],
            count: 3,
            sum: 4,
            side: "children"
        })
    );
    forest.add_ngram(&[1], 1).unwrap();
    assert_eq!(forest.check(), Ok(()));
    forest.add_ngram(&[2, 2], 2).unwrap();
    assert_eq!(
        forest.check(),
        Err(Error::Invariant {
            gram: vec![2],
            count: 5,
            sum: 6,
            side: "left extensions"
        })
    );
}
