//! The counters' slow paths against brute force: any streams, any engine, any k, several threads, private and shared arenas; read
//! back from the file as the sealer does.

use borescope::memory::{Counters, Setup, add64};
use borescope_paths::{kipf, kipf::KIpf, stream};
use borescope_spool::counters::{Counters as Reader, Damage};
use borescope_spool::layout::{self, Engine};
use proptest::prelude::*;
use std::collections::HashMap;

/// One activation: (thread, method, path IDs).
type Activation = (u64, usize, Vec<u32>);

/// Numbers of paths: dense and hashed under the automaton.
const PATHS: [u32; 3] = [3, 40, 1 << 29];

/// As in a real numbering, an ID either ends an activation or never does: here the highest one does.
fn activation() -> impl Strategy<Value = Activation> {
    // Thread 0 stands for a virtual thread: a shared arena.
    (0..4u64, 0..PATHS.len(), any::<bool>()).prop_flat_map(|(thread, method, returns)| {
        let last = PATHS[method] - 1;
        let id = prop_oneof![3 => 0..last.min(4), 1 => 0..last];
        let ids = prop::collection::vec(id, 0..40).prop_map(move |mut ids| {
            ids.extend(returns.then_some(last));
            ids
        });
        (Just(thread), Just(method), ids)
    })
}

fn engine() -> impl Strategy<Value = Engine> {
    prop_oneof![
        Just(Engine::Automaton),
        Just(Engine::Ksf),
        Just(Engine::KsfMtf),
        Just(Engine::BlppHash),
        Just(Engine::BlppDense)
    ]
}

/// The automaton with k = 4 and any number of rows.
fn automaton(memory: u64) -> Setup {
    Setup {
        engine: Engine::Automaton,
        k: 4,
        memory,
        rows: u32::MAX,
        burst: None,
    }
}

/// Counters on an empty file, for methods of these numbers of paths.
fn counters(file: &tempfile::NamedTempFile, setup: Setup, paths: &[u32]) -> Counters {
    let c = Counters::new(file.reopen().unwrap(), &setup).unwrap();
    for (method, paths) in methods(&c, paths.len()).into_iter().zip(paths) {
        c.set_method(method, *paths, true);
    }
    c
}

/// Their indices: the same for each set of counters, as nothing else takes slots.
fn methods(c: &Counters, count: usize) -> Vec<u32> {
    c.reserve(&vec![1; count]).unwrap()
}

/// The first of these indices.
const FIRST: u32 = borescope_spool::layout::HEADER_SLOTS as u32;

/// Runs the activations, thread by thread interleaved as they come, and returns the file's bytes.
fn run(engine: Engine, k: u32, rows: u32, activations: &[Activation]) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let c = counters(
        &file,
        Setup {
            engine,
            k,
            memory: 64 << 20,
            rows,
            burst: None,
        },
        &PATHS,
    );
    let mut blocks = HashMap::new();
    for (n, (thread, method, ids)) in activations.iter().enumerate() {
        let block = *blocks
            .entry(*thread)
            .or_insert_with(|| (c.lease(*thread, *thread == 0) as i64).unsigned_abs());
        let mut s = c.new_root(block, FIRST + *method as u32);
        if engine.is_ksf() {
            s = (s - c.base()) >> 4;
        }
        let mut at = 0;
        while let Some(&id) = ids.get(at) {
            let same = ids[at..].iter().take_while(|i| **i == id).count();
            let last = id == PATHS[*method] - 1;
            // Every other stretch of one ID goes as a run.
            s = if engine.is_ksf() {
                c.miss_ksf(s, id)
            } else if (n + at) % 2 == 0 || last {
                c.miss(s, id, last)
            } else {
                at += same - 1;
                c.miss_run(s, same as u64, id)
            };
            at += 1;
        }
        if n % 5 == 4 && *thread != 0 {
            // The thread dies; another takes over its arena.
            c.threads.release(*thread);
            blocks.remove(thread);
        }
    }
    c.end(1);
    std::fs::read(file.path()).unwrap()
}

fn forests(bytes: &[u8], k: u32, engine: Engine) -> (Vec<KIpf>, Vec<u64>) {
    let reader = Reader::new(bytes).unwrap();
    let mut forests: Vec<KIpf> = PATHS.iter().map(|_| KIpf::new(k).unwrap()).collect();
    let mut enters = vec![0; PATHS.len()];
    let mut damage = Damage::default();
    let mut nodes: Vec<Vec<(Vec<u32>, u64)>> = vec![Vec::new(); PATHS.len()];
    for row in reader.rows() {
        let m = (row.method - FIRST) as usize;
        enters[m] += row.enters;
        if engine.is_ksf() {
            reader.ksf(&row, &mut damage, |ids, count| {
                nodes[m].push((ids.to_vec(), count))
            });
            continue;
        }
        let window = reader.window(&row);
        assert!(window.whole);
        for edge in reader.edges(&row).unwrap() {
            forests[m].add_edge(&window.ids, edge.id, edge.count);
        }
    }
    assert_eq!(damage, Damage::default());
    // make_k_ipf: a node counts for every suffix of its path, up to k long.
    for (m, nodes) in nodes.into_iter().enumerate() {
        for (path, count) in nodes {
            let (id, above) = path.split_last().unwrap();
            forests[m].add_edge(
                &above[above.len().saturating_sub(k as usize - 1)..],
                *id,
                count,
            );
        }
    }
    (forests, enters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn counts_equal_brute_force(engine in engine(), k in 1..=16u32, activations in prop::collection::vec(activation(), 0..60)) {
        let k = if matches!(engine, Engine::BlppHash | Engine::BlppDense) { 1 } else { k };
        let bytes = run(engine, k, u32::MAX, &activations);
        let (forests, enters) = forests(&bytes, k, engine);
        for m in 0..PATHS.len() {
            let ids: Vec<Vec<u32>> = activations.iter().filter(|a| a.1 == m).map(|a| a.2.clone()).collect();
            prop_assert_eq!(enters[m], ids.len() as u64);
            let expected = stream::brute_force(&ids, k);
            let got: HashMap<Vec<u32>, u64> = (1..=k).flat_map(|n| forests[m].level(n).collect::<Vec<_>>()).collect();
            prop_assert_eq!(got, expected);
        }
    }
}

/// What the sealer makes of the rows of an automaton: edges of short runs and windows cut short by the limit of rows included.
fn bounded_forests(bytes: &[u8], k: u32) -> Vec<KIpf> {
    let reader = Reader::new(bytes).unwrap();
    let mut forests: Vec<kipf::Builder> = PATHS
        .iter()
        .map(|_| kipf::Builder::new(k).unwrap())
        .collect();
    for row in reader.rows() {
        let m = (row.method - FIRST) as usize;
        let window = reader.window(&row);
        assert!(window.whole);
        // A run slot or the edge of a short run has no count yet: only the probes' fast path counts there.
        assert!(row.run.is_none_or(|run| run.count == 0));
        for edge in reader.edges(&row).unwrap() {
            if edge.id >= PATHS[m] {
                assert_eq!(edge.count, 0);
            } else if window.truncated {
                forests[m].truncated_edge(&window.ids, edge.id, edge.count);
            } else {
                forests[m].edge(&window.ids, edge.id, edge.count);
            }
        }
    }
    forests.into_iter().map(kipf::Builder::finish).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Beyond the limit of rows counts are bounds, and single paths stay exact.
    #[test]
    fn few_rows_give_true_bounds(k in 2..=8u32, rows in 2..40u32, activations in prop::collection::vec(activation(), 20..80)) {
        let bytes = run(Engine::Automaton, k, rows, &activations);
        let made = Reader::new(&bytes[..]).unwrap().rows().count();
        // Four arenas; in each a root and a truncated root beside the rows of a method.
        prop_assert!(made <= 4 * PATHS.len() * (rows as usize + 2));
        for (m, forest) in bounded_forests(&bytes, k).iter().enumerate() {
            let ids: Vec<Vec<u32>> = activations.iter().filter(|a| a.1 == m).map(|a| a.2.clone()).collect();
            for (gram, count) in stream::brute_force(&ids, k) {
                prop_assert!(forest.count(&gram) <= count && count <= forest.upper_of(&gram), "{:?}", gram);
                if gram.len() == 1 {
                    prop_assert_eq!(forest.count(&gram), count);
                }
            }
        }
    }
}

#[test]
fn where_memory_ends_windows_are_cut_short_and_nothing_is_lost() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let c = counters(
        &file,
        Setup {
            engine: Engine::Automaton,
            k: 16,
            memory: 1 << 20,
            rows: u32::MAX,
            burst: None,
        },
        &[16],
    );
    let block = c.lease(7, false);
    let mut x = 1u32;
    for _ in 0..200 {
        let mut s = c.new_root(block, FIRST);
        for _ in 0..200 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            s = c.miss(s, x >> 28, false);
        }
    }
    let bytes = std::fs::read(file.path()).unwrap();
    let reader = Reader::new(&bytes[..]).unwrap();
    assert!(bytes.len() <= 1 << 20);
    assert_eq!(reader.header().stop, layout::Stop::Memory);
    let counted: u64 = reader
        .rows()
        .map(|r| reader.edges(&r).unwrap().map(|e| e.count).sum::<u64>())
        .sum();
    let cut = reader.rows().filter(|row| row.truncated.is_some()).count();
    assert!(cut > 0, "windows were cut short");
    assert_eq!(
        (counted, reader.header().lost),
        (200 * 200, 0),
        "each item is counted all the same"
    );
}

/// Many methods of many paths in little memory: an ID is counted, or known to be lost.
#[test]
fn where_not_even_single_paths_have_room_the_lost_ones_are_known() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let setup = automaton(1 << 20);
    let paths = vec![1 << 20; 2000];
    let c = counters(&file, setup, &paths);
    let block = c.lease(7, false);
    let mut x = 1u32;
    let mut items = 0;
    for method in 0..paths.len() as u32 {
        let mut s = c.new_root(block, FIRST + method);
        for _ in 0..100 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            s = c.miss(s, x >> 12, false);
            items += 1;
        }
    }
    let bytes = std::fs::read(file.path()).unwrap();
    let reader = Reader::new(&bytes[..]).unwrap();
    let counted: u64 = reader
        .rows()
        .map(|r| reader.edges(&r).unwrap().map(|e| e.count).sum::<u64>())
        .sum();
    assert!(reader.header().lost > 0);
    assert_eq!(counted + reader.header().lost, items);
}

#[test]
fn slots_are_found_in_the_file_at_their_index() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let setup = automaton(64 << 20);
    let c = Counters::new(file.reopen().unwrap(), &setup).unwrap();
    // One arena from the start, one from the middle, one reused; the shared one of a virtual thread; enough methods for several pieces.
    let early = c.lease(1, false);
    let mut indices = Vec::new();
    for round in 0..300 {
        let counts: Vec<u32> = (0..40).map(|i| 1 + (round * 7 + i * 13) % 64).collect();
        let firsts = c.reserve(&counts).unwrap();
        indices.extend(firsts.into_iter().zip(counts));
        if round == 150 {
            c.lease(2, false);
        }
    }
    c.threads.release(1);
    let late = c.lease(3, false);
    assert_eq!(
        early, late,
        "the arena of a dead thread serves the next one"
    );
    let shared = (c.lease(5, true) as i64).unsigned_abs();
    let middle = c.lease(4, false);
    let mut taken = std::collections::HashSet::new();
    for &(first, count) in &indices {
        for slot in first..first + count {
            assert!(taken.insert(slot), "slot {slot} is given out twice");
            for (block, n) in [(late, 3), (middle, 5), (shared, 7)] {
                add64(block + u64::from(slot) * 8, n);
            }
        }
    }
    drop(c);
    let bytes = std::fs::read(file.path()).unwrap();
    let word = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
    let mut sums: HashMap<u64, u64> = HashMap::new();
    let mut at = layout::HEADER_BYTES;
    while at < word(layout::header::ALLOCATED) {
        assert_eq!(word(at) as u32, layout::SLOTS_MAGIC, "no rows were made");
        let piece = word(at + layout::slots::PIECE);
        assert_eq!(word(at + layout::slots::BYTES), layout::piece_bytes(piece));
        for i in layout::HEADER_SLOTS..layout::FIRST_PIECE_SLOTS << piece {
            *sums.entry(layout::piece_first(piece) + i).or_default() += word(at + i * 8);
        }
        at += layout::piece_bytes(piece);
    }
    for (slot, sum) in sums {
        let expected = if taken.contains(&(slot as u32)) {
            15
        } else {
            0
        };
        assert_eq!(sum, expected, "slot {slot}");
    }
}

#[test]
fn a_full_piece_leaves_the_header_of_the_next_alone() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let setup = automaton(64 << 20);
    let c = Counters::new(file.reopen().unwrap(), &setup).unwrap();
    let room = (layout::FIRST_PIECE_SLOTS - layout::HEADER_SLOTS) as u32;
    assert_eq!(c.reserve(&[28; 73]).unwrap()[0], FIRST);
    assert_eq!(28 * 73, room, "the piece is full");
    let next = (layout::piece_first(1) + layout::HEADER_SLOTS) as u32;
    assert_eq!(c.reserve(&[1]).unwrap(), [next]);
}

#[test]
fn threads_share_where_memory_for_slots_ends() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let setup = automaton(1 << 20);
    let c = Counters::new(file.reopen().unwrap(), &setup).unwrap();
    c.reserve(&[64; 100]).unwrap();
    let blocks: Vec<i64> = (1..200).map(|tid| c.lease(tid, false) as i64).collect();
    let private = blocks.iter().filter(|b| **b > 0).count();
    assert!(private > 3 && private < 30, "{private} have their own");
    assert!(
        blocks.iter().rev().take(100).all(|b| *b < 0),
        "the others share"
    );
    assert_eq!(c.reserve(&[64; 10_000]), None, "no memory for more slots");
    assert!(c.reserve(&[64]).is_some(), "but what fits is given out");
}
