//! The tree against the seed: figure 7 done literally, node by node, and the x/y example of figure 6.

mod common;

use borescope_sites::{Number, Tree};
use common::figure7::Figure7;
use proptest::prelude::*;
use std::collections::HashMap;

/// A search with the numbers that the site holds.
fn search(tree: &mut Tree<u8>, site: u8, current: Number, len: u8) -> Option<(Number, u64)> {
    let own: Vec<Number> = tree.iter().filter(|h| h.1 == site).map(|h| h.0).collect();
    tree.search(site, current, len, &own)
}

fn number(text: &str) -> Number {
    let bits = u32::from_str_radix(text, 2).unwrap_or(0);
    Number::new(bits, text.len() as u8).unwrap()
}

#[test]
fn the_x_y_example_bit_by_bit() {
    let mut tree = Tree::new(5);
    let mut figure = Figure7::default();
    let (x, y) = (b'x', b'y');
    let mut current: HashMap<u8, Number> = HashMap::new();
    // Figure 6A, (a) to (g).
    let steps = [
        (x, "00000"),
        (y, "00001"),
        (x, "0001"),
        (x, "001"),
        (y, "0100"),
        (y, "010"),
        (x, "10"),
    ];
    for (site, expected) in steps {
        let got = match current.get(&site) {
            None => {
                assert!(figure.first(site, 5));
                tree.first_free().unwrap()
            }
            Some(&old) => {
                assert!(figure.search(site, expected.len()));
                search(&mut tree, site, old, expected.len() as u8)
                    .unwrap()
                    .0
            }
        };
        assert_eq!(got.to_string(), expected);
        assert_eq!(figure.current[&site], expected);
        tree.give(site, got).unwrap();
        current.insert(site, got);
    }
    let held: Vec<_> = tree
        .iter()
        .map(|(n, s)| (n.to_string(), char::from(s)))
        .collect();
    let expected = [
        ("00000", 'x'),
        ("00001", 'y'),
        ("0001", 'x'),
        ("001", 'x'),
        ("010", 'y'),
        ("10", 'x'),
    ];
    assert_eq!(
        held,
        expected.map(|(n, s)| (n.to_owned(), s)),
        "0100 is one with 010"
    );
    // Old objects keep their numbers and decode; 011 and 11 are nobody's.
    for leaf in 0..32u32 {
        let site = tree.find(leaf).map(|(_, s)| s);
        assert_eq!(site, figure.decode(&format!("{leaf:05b}")));
        let expected = match leaf {
            0b00001 | 0b01000..=0b01011 => Some(y),
            0b00000 | 0b00010..=0b00111 | 0b10000..=0b10111 => Some(x),
            _ => None,
        };
        assert_eq!(site, expected, "{leaf:05b}");
    }
    // The seed's decoding example: of hash 1011, node 10 names the site.
    assert_eq!(tree.find(0b10110), Some((number("10"), x)));
    // x can take 1 (only x is below), then no more: y is below the root.
    let one = search(&mut tree, x, current[&x], 1).unwrap().0;
    assert_eq!(one.to_string(), "1");
    tree.give(x, one).unwrap();
    assert_eq!(search(&mut tree, x, one, 0), None);
    assert!(figure.search(x, 1) && !figure.search(x, 0));
}

#[test]
fn a_lone_site_reaches_the_root() {
    let mut tree = Tree::new(3);
    let first = tree.first_free().unwrap();
    tree.give(1, first).unwrap();
    let root = search(&mut tree, 1, first, 0).unwrap();
    assert_eq!((root.0.to_string(), root.1), ("-".to_owned(), 7));
    tree.give(1, root.0).unwrap();
    assert_eq!((tree.free_leaves(), tree.first_free()), (0, None));
    assert_eq!(tree.find(7), Some((root.0, 1)));
}

#[test]
fn the_leftmost_of_ones_own_nodes_also_where_nothing_is_wholly_free() {
    let mut tree = Tree::new(3);
    tree.give(1, number("000")).unwrap();
    tree.give(1, number("010")).unwrap();
    // Another site's search goes through 00 and 01 and remembers so.
    let other = search(&mut tree, 2, number("000"), 2).unwrap();
    assert_eq!(other, (number("10"), 2));
    tree.give(2, other.0).unwrap();
    assert_eq!(
        search(&mut tree, 1, number("000"), 2),
        Some((number("00"), 1))
    );
    assert_eq!(
        search(&mut tree, 1, number("010"), 2),
        Some((number("01"), 1))
    );
    assert_eq!(
        search(&mut tree, 1, number("011"), 2),
        Some((number("01"), 1))
    );
    assert_eq!(
        search(&mut tree, 1, number("100"), 2),
        Some((number("11"), 2))
    );
}

#[test]
fn numbers_cut_and_print() {
    assert_eq!(Number::new(4, 2), None);
    assert_eq!(Number::new(0, 32), None);
    assert_eq!(number("0101").cut(2), number("01"));
    assert!(number("01").is_prefix_of(number("0101")));
    assert!(!number("11").is_prefix_of(number("0101")));
    assert!(number("").is_prefix_of(number("1")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Same numbers, same failures, same decoding as figure 7 done literally.
    #[test]
    fn equals_figure_7(max_len in 1usize..8, ops in prop::collection::vec((0u8..12, 1usize..4), 1..120)) {
        let mut tree = Tree::new(max_len as u8);
        let mut figure = Figure7::default();
        let mut current: HashMap<u8, Number> = HashMap::new();
        for (site, drop) in ops {
            let got = match current.get(&site) {
                None => {
                    let got = tree.first_free();
                    prop_assert_eq!(figure.first(site, max_len), got.is_some());
                    got
                }
                Some(old) => {
                    let Some(len) = usize::from(old.len()).checked_sub(drop) else { continue };
                    let got = search(&mut tree, site, *old, len as u8).map(|(n, _)| n);
                    prop_assert_eq!(figure.search(site, len), got.is_some());
                    got
                }
            };
            if let Some(got) = got {
                prop_assert_eq!(&figure.current[&site], &if got.len() == 0 { String::new() } else { got.to_string() });
                let free = tree.free_leaves();
                let cost = current.get(&site).and_then(|old| search(&mut tree, site, *old, got.len())).map_or(1, |(_, cost)| cost);
                prop_assert!(tree.give(site, got).is_some());
                prop_assert_eq!(tree.free_leaves(), free - cost);
                current.insert(site, got);
            }
            for leaf in 0..1u32 << max_len {
                let literal = figure.decode(&format!("{leaf:0max_len$b}"));
                prop_assert_eq!(tree.find(leaf).map(|(_, s)| s), literal);
            }
        }
    }

    /// With numbers given at will and taken back, and leaves blocked, against an array of leaves.
    #[test]
    fn gives_only_what_is_free(max_len in 0u8..7, ops in prop::collection::vec((0u8..5, 0u8..5, any::<u32>(), 0u8..8), 1..80)) {
        let mut tree = Tree::new(max_len);
        let leaves = 1usize << max_len;
        let mut model: Vec<Option<(Number, u8)>> = vec![None; leaves];
        let mut blocked = vec![false; leaves];
        for (what, site, bits, len) in ops {
            let below = |n: Number| {
                let size = leaves >> n.len();
                n.bits() as usize * size..(n.bits() as usize + 1) * size
            };
            if len > max_len {
                let number = Number::new(bits & ((1 << len) - 1), len).unwrap();
                prop_assert!(tree.give(site, number).is_none() && tree.release(number).is_none());
                continue;
            }
            let number = Number::new((u64::from(bits) & ((1u64 << len) - 1)) as u32, len).unwrap();
            if what == 0 {
                let some: Vec<u32> = [bits, bits >> 8, bits >> 16].map(|bits| bits % leaves as u32).to_vec();
                let held: Vec<bool> = some.iter().map(|&leaf| model[leaf as usize].is_some()).collect();
                for (&leaf, &held) in some.iter().zip(&held) {
                    blocked[leaf as usize] |= !held;
                }
                prop_assert_eq!(tree.block(some), held.iter().filter(|h| **h).count() as u64);
            } else if what < 3 {
                let free = !blocked[below(number)].contains(&true)
                    && model[below(number)].iter().all(|h| h.is_none_or(|(n, s)| s == site && n.len() > len));
                let absorbed = tree.give(site, number);
                prop_assert_eq!(absorbed.is_some(), free);
                if free {
                    let mut old: Vec<Number> = model[below(number)].iter().flatten().map(|(n, _)| *n).collect();
                    old.dedup();
                    prop_assert_eq!(absorbed.unwrap(), old);
                    model[below(number)].fill(Some((number, site)));
                }
            } else {
                // Aim at what is held: a random number seldom is.
                let number = model[bits as usize % leaves].map_or(number, |(n, _)| n);
                let held = model[below(number)].iter().flatten().find(|(n, _)| *n == number).map(|(_, s)| *s);
                prop_assert_eq!(tree.holder(number), held);
                prop_assert_eq!(tree.release(number), held);
                if held.is_some() {
                    model[below(number)].fill(None);
                }
            }
            for (leaf, held) in model.iter().enumerate() {
                prop_assert_eq!(tree.find(leaf as u32), *held);
            }
            // A search from anywhere finds the first node of its length on the right that is free for the site.
            let wanted = number.len().saturating_sub(bits as u8 % 3);
            let expected = (number.cut(wanted).bits()..1 << wanted)
                .filter_map(|bits| Number::new(bits, wanted))
                .find(|&n| !blocked[below(n)].contains(&true) && model[below(n)].iter().all(|h| h.is_none_or(|(held, s)| s == site && held.len() > wanted)));
            prop_assert_eq!(search(&mut tree, site, number, wanted).map(|(n, _)| n), expected);
            let mut free = (0..leaves).filter(|&i| model[i].is_none() && !blocked[i]);
            prop_assert_eq!(tree.free_leaves(), free.clone().count() as u64);
            let first = free.next().map(|i| i as u32);
            prop_assert_eq!(tree.first_free().map(|n| n.bits()), first);
        }
    }
}
