//! What a person reads: ranking, hints, shares, doubtful lines, collapsed stacks.

use borescope_waste::analysis::bytecode::fits;
use borescope_waste::analysis::contexts::Contexts;
use borescope_waste::analysis::hint::{Facts, Hint};
use borescope_waste::analysis::interval::{difference, share};
use borescope_waste::handler::watches::{Detail, Shape};
use borescope_waste::rank::rank;
use borescope_waste::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn frame(method: u64, bci: i32) -> Frame {
    Frame::new(method + Frame::FIRST_METHOD, bci).unwrap()
}

fn shape(kind: Kind, width: u8, element: Element) -> Shape {
    Shape {
        kind,
        width,
        element,
    }
}

/// A profile built pair by pair; counters follow.
struct Made(Profile);

impl Made {
    fn new() -> Made {
        Made(Profile::new(Source::Software))
    }

    fn pair(
        &mut self,
        waste: Waste,
        first: &[Frame],
        second: &[Frame],
        count: u64,
        change: impl Fn(&mut Pair),
    ) {
        let any = shape(Kind::Store, 8, Element::Bits);
        let mut pair = Pair {
            waste,
            wasteful: !second.is_empty(),
            first: self.0.contexts.path(first.iter().copied()),
            second: self.0.contexts.path(second.iter().copied()),
            detail: Detail {
                whole: true,
                loads_between: false,
                stores_between: false,
                others_between: false,
                initialising: false,
                first: any,
                second: any,
            },
            first_instruction: Bytes::new(&[first.len() as u8 | 0x90]).unwrap(),
            second_instruction: Bytes::new(&[second.len() as u8 | 0x90]).unwrap(),
            object: 0,
        };
        change(&mut pair);
        self.0.add(pair, count);
        let words: Vec<_> = (0..handler::tally::WORDS)
            .map(|_| std::sync::atomic::AtomicU64::new(0))
            .collect();
        let tally = Tally::new(&words).unwrap();
        let answer = if pair.wasteful {
            Counter::Wasteful(waste)
        } else {
            Counter::Useful(waste)
        };
        tally.add_many(answer, count);
        self.0
            .accounts
            .add(&analysis::accounts::Accounts::of(&tally));
    }
}

#[test]
fn what_could_be_saved_comes_first() {
    let (main, a, b, c) = (frame(0, 1), frame(1, 2), frame(2, 3), frame(3, 4));
    let mut made = Made::new();
    // A loop that reloads, from two callers; a dead store, rarer but worth more; a silent load of two lines; what initialises.
    made.pair(Waste::SilentLoad, &[main, a], &[main, a], 60, |_| {});
    made.pair(Waste::SilentLoad, &[main, b, a], &[main, b, a], 20, |p| {
        p.object = 5
    });
    made.pair(Waste::SilentLoad, &[main, b], &[main, c], 90, |p| {
        p.detail.whole = false
    });
    made.pair(Waste::SilentLoad, &[a], &[], 20, |_| {});
    made.pair(Waste::DeadStore, &[main, b], &[main, c], 50, |_| {});
    made.pair(Waste::DeadStore, &[main, b], &[main, c], 500, |p| {
        p.detail.initialising = true
    });
    made.pair(Waste::DeadStore, &[b], &[], 50, |_| {});
    let ranking = rank(&made.0);
    let order: Vec<_> = ranking
        .pairs
        .iter()
        .map(|p| (p.hint, p.count, p.saving))
        .collect();
    assert_eq!(
        order,
        [
            (Hint::Overwritten, 50, 50.0),
            (Hint::ReloadedInEachTurn, 80, 40.0),
            (Hint::LoadedTwice, 90, 22.5)
        ]
    );
    let reload = &ranking.pairs[1];
    assert_eq!((reload.first, reload.second, reload.of_first), (a, a, 100));
    assert_eq!(reload.objects, [(0, 60), (5, 20)]);
    assert_eq!(
        reload.contexts.iter().map(|c| c.count).collect::<Vec<_>>(),
        [60, 20]
    );
    let tree = &made.0.contexts;
    assert_eq!(
        tree.frames(reload.contexts[1].first).collect::<Vec<_>>(),
        [a, b, main]
    );
    let two = &ranking.pairs[2];
    assert_eq!(tree.leaf(two.contexts[0].meeting), Some(main));
    assert_eq!((two.partial, two.cut), (90, 0));
    // 80 of 190 loads, 60 % and 550 of 600 stores.
    assert_eq!((reload.share.share * 190.0).round(), 80.0);
    assert_eq!(
        ranking.kinds.map(|k| (k.wasteful, k.completed)),
        [(550, 600), (0, 0), (170, 190)]
    );
    let initialising = &ranking.initialising;
    assert_eq!(
        (
            initialising.len(),
            initialising[0].count,
            initialising[0].hint
        ),
        (1, 500, Hint::Initialised)
    );
}

#[test]
fn callers_that_found_no_room() {
    let mut made = Made::new();
    let (a, b) = (frame(1, 2), frame(2, 3));
    made.pair(
        Waste::SilentLoad,
        &[Frame::CUT, a],
        &[Frame::CUT, a],
        7,
        |_| {},
    );
    made.pair(Waste::DeadStore, &[b, a], &[Frame::UNKNOWN], 3, |_| {});
    let ranking = rank(&made.0);
    assert_eq!(
        (ranking.pairs[0].cut, ranking.pairs[0].second),
        (0, Frame::UNKNOWN)
    );
    // Whether its callers were the same is not known.
    assert_eq!(
        (ranking.pairs[1].cut, ranking.pairs[1].hint),
        (7, Hint::ReloadedByCallers)
    );
    let stacks = made.0.collapsed(|f| {
        if f == Frame::CUT {
            "(no room)".into()
        } else {
            format!("m{};", f.method)
        }
    });
    assert_eq!(
        stacks,
        "(no_room);m17_;[silent_load];m17_;(no_room) 7\nm18_;m17_;[dead_store];m3_ 3\n"
    );
}

#[test]
fn hints() {
    let facts = Facts {
        waste: Waste::DeadStore,
        same_instruction: false,
        same_method: true,
        same_callers: true,
        stores_between: false,
        others_between: false,
        initialising: false,
    };
    let hint = |change: &dyn Fn(&mut Facts)| {
        let mut facts = facts;
        change(&mut facts);
        Hint::of(&facts)
    };
    assert_eq!(hint(&|_| {}), Hint::Overwritten);
    assert_eq!(hint(&|f| f.same_instruction = true), Hint::StoredInEachTurn);
    assert_eq!(
        hint(&|f| f.waste = Waste::SilentStore),
        Hint::SameStoredTwice
    );
    assert_eq!(
        hint(&|f| (f.waste, f.same_instruction) = (Waste::SilentStore, true)),
        Hint::SameStoredInEachTurn
    );
    assert_eq!(
        hint(&|f| (f.waste, f.stores_between) = (Waste::SilentLoad, true)),
        Hint::SameAfterStore
    );
    assert_eq!(hint(&|f| f.initialising = true), Hint::Initialised);
    assert_eq!(hint(&|f| f.others_between = true), Hint::Shared);
    let reload = hint(&|f| (f.waste, f.same_instruction) = (Waste::SilentLoad, true));
    assert!(reload.words().starts_with(
        "the value is reloaded in each iteration though nothing stores to it between"
    ));
    assert!(reload.weight() > 0.0 && reload.weight() <= 1.0);
}

#[test]
fn doubtful_bytecodes() {
    use Element::{Bits, F32, F64};
    use Kind::{Both, Load, Store};
    let iaload = 0x2E;
    let (faload, daload, aaload, baload) = (0x30, 0x31, 0x32, 0x33);
    let (iastore, dastore, aastore) = (0x4F, 0x52, 0x53);
    let (getfield, putfield, invoke, goto, iadd) = (0xB4, 0xB5, 0xB6, 0xA7, 0x60);
    let fit = |opcode, descriptor, kind, width, element| {
        fits(opcode, descriptor, &shape(kind, width, element))
    };
    assert!(fit(iaload, None, Load, 4, Bits) && !fit(iaload, None, Store, 4, Bits));
    assert!(fit(iaload, None, Load, 32, Bits), "a vector");
    assert!(!fit(iaload, None, Load, 1, Bits) && !fit(iaload, None, Load, 4 + 2, Bits));
    assert!(fit(baload, None, Load, 1, Bits) && fit(baload, None, Load, 4, Bits));
    assert!(
        fit(daload, None, Load, 8, F64)
            && !fit(daload, None, Load, 8, F32)
            && !fit(iaload, None, Load, 8, F64)
    );
    assert!(
        fit(faload, None, Load, 4, F32)
            && fit(aaload, None, Load, 4, Bits)
            && fit(aaload, None, Load, 8, Bits)
    );
    assert!(
        fit(iastore, None, Store, 4, Bits)
            && fit(dastore, None, Store, 16, Bits)
            && fit(dastore, None, Store, 8, F64)
    );
    assert!(fit(iastore, None, Load, 4, Bits), "the array's length");
    assert!(
        !fit(iastore, None, Load, 8, Bits) && fit(aastore, None, Load, 8, Bits),
        "a barrier"
    );
    assert!(fit(getfield, Some(b'J'), Load, 8, Bits) && !fit(getfield, Some(b'J'), Load, 4, Bits));
    assert!(!fit(getfield, Some(b'Z'), Store, 1, Bits) && fit(getfield, None, Load, 2, Bits));
    assert!(fit(putfield, Some(b'D'), Store, 8, F64) && fit(putfield, Some(b'I'), Both, 4, Bits));
    assert!(fit(putfield, Some(b'L'), Load, 8, Bits) && !fit(putfield, Some(b'I'), Load, 4, Bits));
    assert!(fit(invoke, None, Store, 8, F64));
    assert!(!fit(goto, None, Load, 4, Bits) && !fit(iadd, None, Load, 4, Bits));
    for opcode in 0..=255 {
        for kind in [Load, Store, Both, Kind::CompareExchange] {
            for width in 0..=64 {
                fit(opcode, Some(b'['), kind, width, Bits);
            }
        }
    }
}

/// Probability of each count of n trials.
fn binomial(n: u64, p: f64) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; row.len() + 1];
        for (k, q) in row.iter().enumerate() {
            next[k] += q * (1.0 - p);
            next[k + 1] += q * p;
        }
        row = next;
    }
    row
}

/// Coverage summed over all outcomes, not simulated.
#[test]
fn intervals_cover_what_they_say() {
    for n in [10u64, 30, 100, 300] {
        let mut sum = 0.0;
        let mut worst = 1.0f64;
        for percent in (2..=98).step_by(4) {
            let p = f64::from(percent) / 100.0;
            let covers = |(k, q): (usize, &f64)| {
                let s = share(k as u64, n);
                if s.lo <= p && p <= s.hi { *q } else { 0.0 }
            };
            let coverage: f64 = binomial(n, p).iter().enumerate().map(covers).sum();
            sum += coverage;
            worst = worst.min(coverage);
        }
        let mean = sum / 25.0;
        assert!(
            (0.93..0.97).contains(&mean) && worst > 0.88,
            "{n}: mean {mean}, worst {worst}"
        );
    }
    // The difference of two shares.
    for (m, n, p, q) in [(20, 30, 0.5, 0.5), (40, 40, 0.9, 0.6), (50, 25, 0.1, 0.2)] {
        let (a, b) = (binomial(m, p), binomial(n, q));
        let mut coverage = 0.0;
        for (x, u) in a.iter().enumerate() {
            for (y, v) in b.iter().enumerate() {
                let d = difference((x as u64, m), (y as u64, n));
                if d.lo <= q - p && q - p <= d.hi {
                    coverage += u * v;
                }
            }
        }
        assert!(
            (0.92..0.99).contains(&coverage),
            "{m} {n} {p} {q}: {coverage}"
        );
    }
}

#[test]
fn intervals_of_the_tables() {
    // Wilson's interval of 15 of 50, and Newcombe's example (56 of 70 and 48 of 80: 0.2, from 0.0524 to 0.3339).
    let s = share(15, 50);
    assert!(
        (s.lo - 0.1910).abs() < 1e-4 && (s.hi - 0.4375).abs() < 1e-4,
        "{s:?}"
    );
    let d = difference((48, 80), (56, 70));
    assert!(
        (d.lo - 0.0524).abs() < 1e-4 && (d.hi - 0.3339).abs() < 1e-4,
        "{d:?}"
    );
    assert_eq!((share(0, 0).lo, share(0, 0).hi), (0.0, 1.0));
    assert_eq!(
        (share(0, 9).lo, share(9, 9).hi, share(12, 9).share),
        (0.0, 1.0, 1.0)
    );
}

proptest! {
    #[test]
    fn intervals_hold_together(x in any::<u64>(), n in any::<u64>(), y in 0u64..1000, m in 0u64..1000) {
        for (x, n) in [(x, n), (y, m)] {
            let s = share(x, n);
            prop_assert!(0.0 <= s.lo && s.lo <= s.share && s.share <= s.hi && s.hi <= 1.0);
        }
        let (a, b) = (difference((x, n), (y, m)), difference((y, m), (x, n)));
        prop_assert!(-1.0 <= a.lo && a.lo <= a.share && a.share <= a.hi && a.hi <= 1.0);
        prop_assert!((a.share + b.share).abs() < 1e-12 && (a.lo + b.hi).abs() < 1e-9);
    }

    /// The tree against lists of frames.
    #[test]
    fn contexts_are_paths(stacks in prop::collection::vec(prop::collection::vec(0u64..4, 0..7), 1..40), pick in any::<(prop::sample::Index, prop::sample::Index)>()) {
        let mut tree = Contexts::default();
        let mut nodes = HashMap::new();
        for stack in &stacks {
            let node = tree.path(stack.iter().map(|&m| frame(m, 0)));
            prop_assert_eq!(*nodes.entry(stack.clone()).or_insert(node), node);
            let mut frames: Vec<u64> = tree.frames(node).map(|f| f.method - Frame::FIRST_METHOD).collect();
            frames.reverse();
            prop_assert_eq!(&frames, stack);
            prop_assert_eq!(tree.depth(node), stack.len());
        }
        // Where two meet: their longest common beginning.
        let (a, b) = (pick.0.get(&stacks), pick.1.get(&stacks));
        let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let meeting = tree.meeting(nodes[a], nodes[b]);
        prop_assert_eq!(meeting, tree.path(a[..common].iter().map(|&m| frame(m, 0))));
        // Unknown nodes are the root.
        prop_assert_eq!(tree.intern(u32::MAX, frame(9, 9)), tree.intern(0, frame(9, 9)));
        prop_assert_eq!(tree.frames(u32::MAX).count(), 0);
    }

    /// Ranking depends on what was counted, not on the order.
    #[test]
    fn the_order_of_counting_does_not_matter(pairs in prop::collection::vec((0usize..3, 0u64..3, 0u64..3, 0u64..3, 1u64..5, any::<bool>()), 1..30)) {
        let make = |pairs: &[(usize, u64, u64, u64, u64, bool)]| {
            let mut made = Made::new();
            for &(waste, a, b, c, count, initialising) in pairs {
                let (first, second) = ([frame(c, 0), frame(a, 0)], [frame(c, 1), frame(b, 0)]);
                made.pair(Waste::ALL[waste], &first, &second, count, |p| p.detail.initialising = initialising);
            }
            let ranking = rank(&made.0);
            let total: u64 = ranking.pairs.iter().chain(&ranking.initialising).map(|p| p.count).sum();
            assert_eq!(total, pairs.iter().map(|p| p.4).sum::<u64>());
            for leaf in ranking.pairs.iter().chain(&ranking.initialising) {
                assert_eq!(leaf.contexts.iter().map(|c| c.count).sum::<u64>(), leaf.count);
                assert_eq!(leaf.objects.iter().map(|o| o.1).sum::<u64>(), leaf.count);
                assert!(leaf.count <= leaf.of_first);
            }
            let list = ranking.pairs.iter().chain(&ranking.initialising);
            list.map(|p| (p.waste, p.first, p.second, p.count, p.hint)).collect::<Vec<_>>()
        };
        let mut turned = pairs.clone();
        turned.reverse();
        prop_assert_eq!(make(&pairs), make(&turned));
    }
}
