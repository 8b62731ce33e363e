//! The table: what is written is what is read, by many threads at once, when it is full, and when its bytes are anything.

use borescope_waste::analysis::accounts::Accounts;
use borescope_waste::handler::table::{BUSY, CONTEXT, Context, HEADER, MAGIC, PAIR};
use borescope_waste::handler::tally::WORDS;
use borescope_waste::handler::watches::{Detail, Shape};
use borescope_waste::profile::snapshot;
use borescope_waste::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn words(capacity: Capacity) -> Vec<AtomicU64> {
    (0..capacity.words()).map(|_| AtomicU64::new(0)).collect()
}

fn frame(method: u64, bci: i32) -> Frame {
    Frame::new(method + Frame::FIRST_METHOD, bci).unwrap()
}

fn shape(width: u8, kind: Kind, element: Element) -> Shape {
    Shape {
        kind,
        width,
        element,
    }
}

fn pair(waste: Waste, first: u32, second: u32, object: u64) -> Pair {
    let store = shape(8, Kind::Store, Element::F64);
    Pair {
        waste,
        wasteful: second != 0,
        first,
        second,
        detail: Detail {
            whole: true,
            loads_between: false,
            stores_between: true,
            others_between: false,
            initialising: false,
            first: store,
            second: shape(4, Kind::Load, Element::Bits),
        },
        first_instruction: Bytes::new(&[0x48, 0x89, 0x08]).unwrap(),
        second_instruction: Bytes::new(&[0x8B, 0x00]).unwrap(),
        object,
    }
}

/// A profile's pairs with their contexts spelled out.
fn spelled(profile: &Profile) -> BTreeMap<(Vec<Frame>, Vec<Frame>, Waste, u64), u64> {
    let frames = |node| profile.contexts.frames(node).collect::<Vec<_>>();
    let mut spelled = BTreeMap::new();
    for (pair, count) in &profile.pairs {
        let key = (
            frames(pair.first),
            frames(pair.second),
            pair.waste,
            pair.object,
        );
        *spelled.entry(key).or_insert(0) += count;
    }
    spelled
}

/// Stacks from the outermost in, over few methods, so that they share callers.
fn stacks() -> impl Strategy<Value = Vec<(Vec<Frame>, Vec<Frame>, Waste, u64)>> {
    let stack = || prop::collection::vec((0u64..4, 0i32..3).prop_map(|(m, b)| frame(m, b)), 1..8);
    let waste = prop_oneof![
        Just(Waste::DeadStore),
        Just(Waste::SilentStore),
        Just(Waste::SilentLoad)
    ];
    prop::collection::vec((stack(), stack(), waste, 0u64..3), 0..60)
}

fn write(table: &Table<'_>, stacks: &[(Vec<Frame>, Vec<Frame>, Waste, u64)]) {
    for (first, second, waste, object) in stacks {
        let first = table.context(first.iter().copied()).unwrap();
        let second = table.context(second.iter().copied()).unwrap();
        table.record(&pair(*waste, first.node, second.node, *object));
    }
}

fn expected<'a>(
    all: impl Iterator<Item = &'a (Vec<Frame>, Vec<Frame>, Waste, u64)>,
) -> BTreeMap<(Vec<Frame>, Vec<Frame>, Waste, u64), u64> {
    let mut expected = BTreeMap::new();
    for (first, second, waste, object) in all {
        let inside_out = |s: &[Frame]| s.iter().rev().copied().collect::<Vec<_>>();
        let key = (inside_out(first), inside_out(second), *waste, *object);
        *expected.entry(key).or_insert(0) += 1;
    }
    expected
}

proptest! {
    #[test]
    fn what_is_written_is_read(a in stacks(), b in stacks(), c in stacks()) {
        let capacity = Capacity::new(4096, 1024).unwrap();
        let read = |stacks: &[(Vec<Frame>, Vec<Frame>, Waste, u64)]| {
            let words = words(capacity);
            let table = Table::make(&words, capacity, Source::Software.code()).unwrap();
            write(&table, stacks);
            Profile::read(&snapshot(&words)).unwrap()
        };
        let [mut x, y, z] = [read(&a), read(&b), read(&c)];
        prop_assert_eq!(spelled(&x), expected(a.iter()));
        prop_assert_eq!(x.accounts.get(Counter::Recorded), a.len() as u64);
        // Each context once.
        let mut contexts: Vec<Vec<Frame>> = (1..x.contexts.len() as u32).map(|n| x.contexts.frames(n).collect()).collect();
        contexts.sort();
        let all = contexts.len();
        contexts.dedup();
        prop_assert_eq!(contexts.len(), all);
        // Merging adds, in any order.
        let mut other = z.clone();
        other.merge(&y).unwrap();
        other.merge(&x).unwrap();
        x.merge(&y).unwrap();
        x.merge(&z).unwrap();
        prop_assert_eq!(spelled(&x), expected(a.iter().chain(&b).chain(&c)));
        prop_assert_eq!(spelled(&x), spelled(&other));
        prop_assert_eq!(x.accounts, other.accounts);
        prop_assert_eq!(x.contexts.len(), other.contexts.len());
    }

    /// A table that is too small loses pairs, says how many, and never invents one.
    #[test]
    fn a_full_table_says_so(stacks in stacks(), contexts in 3u32..7, pairs in 3u32..5) {
        let capacity = Capacity::new(1 << contexts, 1 << pairs).unwrap();
        let words = words(capacity);
        let table = Table::make(&words, capacity, 0).unwrap();
        let (mut recorded, mut cut) = (0, 0);
        for (first, second, waste, object) in &stacks {
            let node = |frames: &[Frame]| table.context(frames.iter().copied());
            let (first, second) = (node(first), node(second));
            cut += [first, second].iter().filter(|c| c.is_none_or(|c| c.cut)).count() as u64;
            let node = |context: Option<Context>| context.map_or(0, |c| c.node);
            let mut pair = pair(*waste, node(first), node(second), *object);
            pair.wasteful = true;
            recorded += u64::from(table.record(&pair));
        }
        let profile = Profile::read(&snapshot(&words)).unwrap();
        let sum: u64 = profile.pairs.values().sum();
        prop_assert_eq!(sum, recorded);
        prop_assert_eq!(profile.accounts.get(Counter::Recorded), recorded);
        prop_assert_eq!(profile.accounts.get(Counter::NoRoom), stacks.len() as u64 - recorded);
        prop_assert_eq!(profile.accounts.get(Counter::ContextCut), cut);
        // Each pair is one of those written, with all callers or with CUT in their place.
        let written = expected(stacks.iter());
        for (first, second, waste, object) in spelled(&profile).keys() {
            let is = |mine: &[Frame], theirs: &[Frame]| {
                mine == theirs || (mine.len() == 2 && mine[0] == theirs[0] && mine[1] == Frame::CUT)
            };
            prop_assert!(written.keys().any(|w| is(first, &w.0) && is(second, &w.1) && *waste == w.2 && *object == w.3));
        }
    }

    /// Nothing in a table is trusted.
    #[test]
    fn any_words(changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u64>(), 0u64..40, (0u64..20, 0u64..20).prop_map(|(a, b)| a << 32 | b), Just(BUSY)]), 1..12), stacks in stacks(), cut in any::<prop::sample::Index>()) {
        let capacity = Capacity::new(256, 64).unwrap();
        let words = words(capacity);
        let table = Table::make(&words, capacity, 1).unwrap();
        write(&table, &stacks);
        let mut copy = snapshot(&words);
        for (at, value) in changes {
            let at = at.index(copy.len());
            copy[at] = value;
        }
        let _ = Profile::read(&copy).map(|profile| {
            rank::rank(&profile);
            profile.collapsed(|f| format!("{f:?}"));
            profile.accounts.check(true)
        });
        let _ = Profile::read(&copy[..cut.index(copy.len())]);
    }

    #[test]
    fn pairs_survive_their_packing(bits in any::<[bool; 6]>(), widths in (1u8..=64, 1u8..=64), kinds in (0usize..4, 0usize..4), elements in (0usize..3, 0usize..3), instruction in prop::collection::vec(any::<u8>(), 1..16), object in any::<u64>(), nodes in (1u32.., 1u32..), waste in 0usize..3) {
        let kind = |n| [Kind::Load, Kind::Store, Kind::Both, Kind::CompareExchange][n];
        let element = |n| [Element::Bits, Element::F32, Element::F64][n];
        let [wasteful, whole, loads_between, stores_between, others_between, initialising] = bits;
        let pair = Pair {
            waste: Waste::ALL[waste],
            wasteful,
            // Real nodes, since the profile looks them up.
            first: 1 + nodes.0 % 3,
            second: if wasteful { 1 + nodes.1 % 3 } else { 0 },
            detail: Detail {
                whole, loads_between, stores_between, others_between, initialising,
                first: shape(widths.0, kind(kinds.0), element(elements.0)),
                second: shape(widths.1, kind(kinds.1), element(elements.1)),
            },
            first_instruction: Bytes::new(&instruction).unwrap(),
            second_instruction: Bytes::default(),
            object,
        };
        let capacity = Capacity::new(16, 8).unwrap();
        let words = words(capacity);
        let table = Table::make(&words, capacity, 2).unwrap();
        let nodes = [0, 1, 2].map(|n| table.line(frame(n, 0)).unwrap());
        let of = |n: u32| if n == 0 { 0 } else { nodes[n as usize - 1] };
        let written = Pair { first: of(pair.first), second: of(pair.second), ..pair };
        prop_assert!(table.record(&written) && table.record(&written));
        let profile = Profile::read(&snapshot(&words)).unwrap();
        let (read, count) = profile.pairs.first_key_value().unwrap();
        prop_assert_eq!(*count, 2);
        prop_assert_eq!(Pair { first: pair.first, second: pair.second, ..*read }, pair);
        prop_assert_eq!(profile.contexts.leaf(read.first), Some(frame(u64::from(pair.first) - 1, 0)));
    }
}

/// Many threads intern and count the same things at once: nothing is lost, nothing counted twice.
#[test]
fn threads_at_once() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 2000;
    let capacity = Capacity::new(4096, 1024).unwrap();
    let words = words(capacity);
    let table = Table::make(&words, capacity, 0).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let n = (round * 7 + thread) % 60;
                    let stack = |k: u64| (0..5).map(move |d| frame(((n * k) >> d) % 9, d));
                    let first = table.context(stack(3)).unwrap();
                    let second = table.context(stack(5)).unwrap();
                    assert!(table.record(&pair(Waste::DeadStore, first.node, second.node, n)));
                }
            });
        }
    });
    let profile = Profile::read(&snapshot(&words)).unwrap();
    let mut counts = BTreeMap::new();
    for (pair, count) in &profile.pairs {
        *counts.entry(pair.object).or_insert(0u64) += count;
    }
    let mut expected = BTreeMap::new();
    for thread in 0..THREADS {
        for round in 0..ROUNDS {
            *expected.entry((round * 7 + thread) % 60).or_insert(0u64) += 1;
        }
    }
    assert_eq!(counts, expected);
    assert_eq!(profile.pairs.len(), 60, "slots of one key are one pair");
    assert_eq!(profile.unfinished, 0);
}

#[test]
fn what_a_killed_process_leaves() {
    let capacity = Capacity::new(64, 16).unwrap();
    let words = words(capacity);
    let table = Table::make(&words, capacity, 0).unwrap();
    let [a, b] = [1, 2].map(|m| table.context([frame(0, 0), frame(m, 0)]).unwrap().node);
    table.record(&pair(Waste::SilentLoad, a, b, 0));
    let whole = snapshot(&words);
    // Killed between claiming a slot and publishing it.
    let pairs_at = capacity.words() - capacity.pairs * PAIR;
    let contexts_at = HEADER + WORDS;
    let free = |from: usize, step: usize| (from..).step_by(step).find(|&n| whole[n] == 0).unwrap();
    words[free(pairs_at, PAIR)].store(BUSY, Relaxed);
    words[free(contexts_at, CONTEXT)].store(BUSY, Relaxed);
    let profile = Profile::read(&snapshot(&words)).unwrap();
    assert_eq!((profile.pairs.len(), profile.unfinished), (1, 2));
    // The busy slots are stepped over for good.
    for n in 0..8 {
        let node = table.context([frame(0, 0), frame(n, 0)]).unwrap().node;
        assert!(table.record(&pair(Waste::SilentLoad, node, b, 0)));
    }
    assert_eq!(Profile::read(&snapshot(&words)).unwrap().pairs.len(), 8);
}

#[test]
fn damage_is_named() {
    let capacity = Capacity::new(8, 8).unwrap();
    let words = words(capacity);
    let table = Table::make(&words, capacity, 0).unwrap();
    let node = table.line(frame(0, 0)).unwrap();
    table.record(&pair(Waste::DeadStore, node, node, 0));
    let good = snapshot(&words);
    assert_eq!(good[0], MAGIC);
    let said = |change: &dyn Fn(&mut Vec<u64>)| {
        let mut words = good.clone();
        change(&mut words);
        Profile::read(&words).unwrap_err().to_string()
    };
    assert_eq!(said(&|w| w.truncate(3)), "table of pairs: too short");
    assert_eq!(
        said(&|w| w[0] += 1),
        "table of pairs: not a table, or of another version"
    );
    assert_eq!(
        said(&|w| w[1] = 7),
        "table of pairs: its capacities do not fit its size"
    );
    assert_eq!(
        said(&|w| w[2] = 1 << 30),
        "table of pairs: its capacities do not fit its size"
    );
    assert_eq!(said(&|w| w[5] = 3), "table of pairs: of an unknown source");
    let at = HEADER + WORDS + (node as usize - 1) * CONTEXT;
    assert_eq!(
        said(&|w| w[at + 1] = u64::from(node) << 32),
        "table of pairs: a context is its own caller"
    );
    assert_eq!(
        said(&|w| w[at + 1] = 9 << 32),
        "table of pairs: a context's caller is no node"
    );
    assert_eq!(
        said(&|w| w[at] = 0),
        "table of pairs: a pair's context is missing"
    );
    let mut other = Profile::new(Source::Pebs);
    let error = other.merge(&Profile::new(Source::Software)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "profiles of sources pebs and software cannot be added"
    );
    for (contexts, pairs) in [(0, 8), (12, 8), (8, 4), (1 << 32, 8)] {
        assert_eq!(Capacity::new(contexts, pairs), None);
    }
    assert!(
        Table::make(&words[1..], capacity, 0).is_none(),
        "too few words"
    );
    assert!(
        table.context([]).is_none() && Frame::new(15, 0).is_none() && Frame::new(BUSY, 0).is_none()
    );
    assert_eq!(Accounts::default().check(true), Ok(()));
}
