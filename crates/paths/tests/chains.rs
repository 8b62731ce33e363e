//! Hot chains on streams whose right answer is known, and their claims against the streams themselves.

mod common;

use borescope_paths::chains::{
    Chain, Options, chains, covered, followed_by_itself, successors, tree,
};
use borescope_paths::{Engine, KIpf, automaton::Automaton};
use common::{activations as streams, ks};
use proptest::prelude::*;

fn forest(k: u32, stream: &[Vec<u32>]) -> KIpf {
    let mut automaton = Automaton::with_rows(k, None).unwrap();
    automaton.feed(stream);
    automaton.k_ipf()
}

fn find(k: u32, stream: &[Vec<u32>]) -> Vec<Chain> {
    let forest = forest(k, stream);
    chains(&forest, forest.total(), |_| true, &Options::default())
}

fn ids(chains: &[Chain]) -> Vec<&[u32]> {
    chains.iter().map(|c| &c.ids[..]).collect()
}

fn times(n: usize, parts: &[u32]) -> Vec<u32> {
    parts.repeat(n)
}

/// A small generator of noise with a fixed seed (xorshift), so that no run differs from another.
fn noise(n: usize, mut seed: u64, mut id: impl FnMut(u64) -> u32) -> Vec<u32> {
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed >> 11
    };
    (0..n).map(|_| id(next())).collect()
}

/// By definition: mark the IDs inside occurrences, and count those followed by another.
fn by_hand(stream: &[Vec<u32>], gram: &[u32]) -> (u64, u64) {
    let (mut marked, mut followed) = (0, 0);
    for activation in stream {
        let mut marks = vec![false; activation.len()];
        for at in 0..activation.len() {
            if activation[at..].starts_with(gram) {
                marks[at..at + gram.len()].fill(true);
                followed += u64::from(activation[at + gram.len()..].starts_with(gram));
            }
        }
        marked += marks.iter().filter(|m| **m).count() as u64;
    }
    (marked, followed)
}

#[test]
fn nested_loop_of_the_seeds_figure_4() {
    // checkTaskTag of the seed: mostly 38 86 86 86 755 again and again; sometimes 38 87 755.
    let mut stream = Vec::new();
    for n in 0..200 {
        let mut activation = vec![5];
        for i in 0..20 {
            activation.extend(if (n + i) % 4 == 3 {
                vec![38, 87, 755]
            } else {
                vec![38, 86, 86, 86, 755]
            });
        }
        activation.push(9);
        stream.push(activation);
    }
    let found = find(11, &stream);
    assert_eq!(found[0].ids, [38, 86, 86, 86, 755]);
    assert!(found[0].repeats);
    assert_eq!(found[0].count, 3000);
    assert_eq!(found[0].covered, 15000);
    assert_eq!(found[0].then, [(86, 0.75), (87, 0.25)]);
    assert_eq!(found[0].iterations, 5);
    assert_eq!(
        ids(&found[1..]),
        [[38, 87, 755]],
        "the other way, and no rotation or piece of either"
    );
    let forest = forest(11, &stream);
    assert_eq!(successors(&forest, &[38, 86]), [(86, 1.0)]);
    let tree = tree(&forest, 38, 0.1).unwrap();
    assert_eq!((tree.count, tree.children.len()), (4000, 2));
    let mut node = &tree.children[0];
    for id in [86, 86, 86, 755] {
        assert_eq!((node.id, node.share), (id, 0.75));
        node = &node.children[0];
    }
    // Half of all 38 are <38 86 86 86 755 38 86 86 86 755>: two of four rounds are followed by one of the same kind.
    let again = forest.count(&times(2, &[38, 86, 86, 86, 755])) as f64 / 4000.0;
    assert!((0.45..0.55).contains(&again), "{again}");
}

#[test]
fn window_shorter_than_the_pattern() {
    // k = 4 sees no 5-gram: the four-part piece that begins outermost is named and covers 4/5.
    let stream = vec![times(1000, &[38, 86, 86, 86, 755])];
    let found = find(4, &stream);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].ids.len(), 4);
    assert!((found[0].share - 0.8).abs() < 0.01);
    // For k = 5 the whole pattern, and that it repeats, although no window holds two of them.
    let found = find(5, &stream);
    assert_eq!(ids(&found), [[38, 86, 86, 86, 755]]);
    assert!(found[0].repeats);
    assert_eq!(found[0].share, 1.0);
}

#[test]
fn worked_example() {
    let found = find(4, &[vec![6, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 3]]);
    assert_eq!(ids(&found), [[2, 0, 0, 2]]);
    assert_eq!(
        (found[0].count, found[0].covered, found[0].repeats),
        (3, 12, true)
    );
}

#[test]
fn alternation() {
    for k in [2, 3, 4, 7, 16] {
        let found = find(k, &[times(500, &[8, 3])]);
        assert_eq!(ids(&found), [[3, 8]], "k = {k}");
        assert!(found[0].repeats && found[0].share > 0.99, "k = {k}");
    }
}

#[test]
fn one_path_again_and_again() {
    for k in [2, 4, 16] {
        let found = find(k, &[times(1000, &[4])]);
        assert_eq!(ids(&found), [[4]], "k = {k}");
        assert!(found[0].repeats && found[0].share == 1.0);
    }
    // k = 1 sees no repetition, so none is claimed.
    assert_eq!(find(1, &[times(1000, &[4])]), []);
    // A long inner loop: its path repeats; the way around it is too rare to be worth a line.
    let stream = [times(50, &[&[38][..], &[86; 100], &[755]].concat())];
    assert_eq!(ids(&find(16, &stream)), [[86]]);
}

#[test]
fn straight_line() {
    // Every call runs 1 2 3: a chain that covers all and does not repeat.
    let found = find(8, &vec![vec![1, 2, 3]; 40]);
    assert_eq!(ids(&found), [[1, 2, 3]]);
    assert_eq!((found[0].share, found[0].repeats), (1.0, false));
    // Twenty paths in a row with k = 4: pieces that do not lie on top of each other.
    let found = find(4, &vec![(0..20).collect(); 40]);
    assert!((5..=7).contains(&found.len()), "{found:?}");
    for (a, b) in found
        .iter()
        .flat_map(|a| found.iter().map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
    {
        assert!(
            a.ids.iter().filter(|id| b.ids.contains(id)).count() <= 2,
            "{a:?} {b:?}"
        );
    }
    // Three rounds of the same path, then the way out.
    let found = find(8, &vec![vec![7, 7, 7, 9]; 40]);
    assert_eq!(ids(&found), [[7, 7, 7, 9]]);
}

#[test]
fn noise_has_no_chain() {
    for seed in 1..9u64 {
        for k in [2, 4, 8, 16] {
            for alphabet in [2, 3, 5, 16, 1000] {
                let stream = [noise(3000, seed * 77, |r| (r % alphabet) as u32)];
                assert_eq!(find(k, &stream), [], "{alphabet} IDs, k = {k}, seed {seed}");
            }
            // Skewed: no sequence of different IDs is claimed.
            let stream = [noise(3000, seed * 77, |r| u32::from(r % 10 == 0))];
            let found = find(k, &stream);
            assert_eq!(ids(&found), [[0]], "k = {k}, seed {seed}");
        }
    }
}

#[test]
fn inner_rounds_that_vary() {
    // 3 5{0..7} 6: the inner path repeats, and 6 is always followed by 3. Nothing longer is typical.
    let mut rounds = noise(2000, 5, |r| (r % 8) as u32).into_iter();
    let stream: Vec<Vec<u32>> = (0..20)
        .map(|_| {
            let rounds = rounds.by_ref().take(100);
            rounds
                .flat_map(|n| [&[3][..], &[5].repeat(n as usize), &[6]].concat())
                .collect()
        })
        .collect();
    for k in [3, 4, 8, 16] {
        let found = find(k, &stream);
        assert_eq!(ids(&found), [&[5][..], &[6, 3]], "k = {k}");
        assert!(found[0].repeats && !found[1].repeats);
    }
}

#[test]
fn two_loops_in_a_row() {
    // Every call: 1, thirty rounds of 2 3 4, then 5, thirty rounds of 6 7, then 8.
    let call = [
        &[1][..],
        &[2, 3, 4].repeat(30),
        &[5],
        &[6, 7].repeat(30),
        &[8],
    ]
    .concat();
    for k in [4, 8, 16] {
        let found = find(k, &vec![call.clone(); 30]);
        assert_eq!(ids(&found), [&[2, 3, 4][..], &[6, 7]], "k = {k}");
        assert!(found.iter().all(|c| c.repeats));
        assert_eq!((found[0].covered, found[1].covered), (30 * 90, 30 * 60));
    }
}

#[test]
fn patterns_that_take_turns() {
    // A loop over records of three kinds in random order: each kind's way through is a chain, none repeats.
    let kinds: [&[u32]; 3] = [&[10, 20, 21, 30], &[10, 40, 41, 42], &[11, 50, 51]];
    let order = noise(3000, 9, |r| (r % 3) as u32);
    let stream = [order
        .into_iter()
        .flat_map(|kind| kinds[kind as usize].to_vec())
        .collect()];
    for k in [4, 8] {
        let mut found = find(k, &stream);
        found.sort_by(|a, b| a.ids.cmp(&b.ids));
        assert_eq!(ids(&found), kinds, "k = {k}");
        assert!(found.iter().all(|c| !c.repeats));
    }
}

#[test]
fn cut_edges_alone_are_no_chain() {
    // 1 and 2 are halves of one acyclic path that was cut: nothing was iterated.
    let stream = vec![vec![1, 2]; 100];
    let forest = forest(4, &stream);
    assert_eq!(chains(&forest, 200, |_| false, &Options::default()), []);
    assert_eq!(
        ids(&chains(&forest, 200, |id| id == 1, &Options::default())),
        [[1, 2]]
    );
}

#[test]
fn lost_ids_lower_the_share() {
    let forest = forest(4, &[times(100, &[1, 2])]);
    let found = chains(&forest, 400, |_| true, &Options::default());
    assert_eq!((found[0].covered, found[0].share), (200, 0.5));
}

#[test]
fn a_damaged_forest_gives_no_share_above_one() {
    let nodes = [(None, 1, 2), (None, 2, 2), (Some(0), 2, 1000)];
    let forest = KIpf::from_nodes(2, nodes).unwrap();
    assert!(forest.check().is_err());
    let found = chains(&forest, 0, |_| true, &Options::default());
    assert_eq!((ids(&found), found[0].share), (vec![&[1, 2][..]], 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn claims_hold_in_the_stream(stream in streams(), k in ks()) {
        let forest = forest(k, &stream);
        let options = Options { min_share: 0.0, limit: 50 };
        for chain in chains(&forest, forest.total(), |_| true, &options) {
            let (marked, followed) = by_hand(&stream, &chain.ids);
            prop_assert!(chain.covered <= marked && chain.covered > 0, "{:?} covers {}", chain, marked);
            prop_assert!(chain.share > 0.0 && chain.share <= 1.0);
            prop_assert!(!chain.repeats || followed * 2 >= chain.count, "{:?} followed {}", chain, followed);
            prop_assert_eq!(chain.count, forest.count(&chain.ids));
            prop_assert!(chain.then.iter().map(|t| t.1).sum::<f64>() <= 1.0 + 1e-9);
            prop_assert!(chain.then.is_sorted_by(|a, b| a.1 >= b.1));
            // Primitive: no power of a shorter sequence.
            let m = chain.ids.len();
            prop_assert!((1..m).all(|d| m % d != 0 || chain.ids != chain.ids[..d].repeat(m / d)));
        }
    }

    #[test]
    fn bounds_are_sound_and_exact_where_k_sees_enough(stream in streams(), k in 2u32..=16) {
        let forest = forest(k, &stream);
        for n in 1..=k.min(7) {
            for (gram, _) in forest.level(n).take(40) {
                let (marked, followed) = by_hand(&stream, &gram);
                prop_assert!(covered(&forest, &gram) <= marked);
                prop_assert!(followed_by_itself(&forest, &gram) <= followed);
                if 2 * n <= k {
                    prop_assert_eq!(covered(&forest, &gram), marked, "{:?}", gram);
                    prop_assert_eq!(followed_by_itself(&forest, &gram), followed);
                }
            }
        }
    }

    #[test]
    fn the_pruned_tree_is_the_forest_above_a_threshold(stream in streams(), k in 1u32..=8, share in 0.0..=1.0) {
        let forest = forest(k, &stream);
        for root in forest.roots() {
            let root = forest.id(root);
            let all = forest.count(&[root]);
            let grams = (1..=k).flat_map(|n| forest.level(n));
            let mut expected: Vec<_> =
                grams.filter(|(gram, n)| gram[0] == root && *n as f64 >= share * all as f64).collect();
            let mut todo = vec![(vec![root], tree(&forest, root, share).unwrap())];
            let mut got = Vec::new();
            while let Some((ids, node)) = todo.pop() {
                todo.extend(node.children.into_iter().map(|c| ([&ids[..], &[c.id]].concat(), c)));
                got.push((ids, node.count));
            }
            got.sort();
            expected.sort();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn any_forest_is_taken_without_panic(
        k in ks(),
        nodes in prop::collection::vec((prop::option::of(0u32..30), 0u32..4, any::<u64>()), 0..30),
        total in any::<u64>(),
        min_share in prop_oneof![Just(0.0), Just(0.1), Just(f64::NAN), Just(-1.0), Just(2.0)],
    ) {
        if let Ok(forest) = KIpf::from_nodes(k, nodes) {
            for chain in chains(&forest, total, |id| id % 2 == 0, &Options { min_share, limit: 20 }) {
                prop_assert!((0.0..=1.0).contains(&chain.share));
            }
            for id in 0..4 {
                let _ = (tree(&forest, id, min_share), successors(&forest, &[id, id]));
            }
        }
    }
}
