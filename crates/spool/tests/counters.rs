//! `counters.bin`: what simulated engines count is what the reader gives, and no damage makes it panic, loop or invent rows.

use std::collections::HashMap;

use borescope_spool::counters::{Counters, Damage, Piece, Run};
use borescope_spool::layout::{self, Engine, HEADER_BYTES, Stop};
use borescope_spool::source::{FileSource, Source};
use borescope_spool::testing::{Builder, Item};
use proptest::collection::vec;
use proptest::prelude::*;

type Edges = HashMap<(u32, Vec<u32>, u32), u64>;

/// The definition: the edge (window of the last k - 1 IDs, ID) of each item. With `method` in front.
fn expected(runs: &[(u32, u32, Vec<Vec<u32>>)], k: usize) -> Edges {
    let mut edges = Edges::new();
    for (_, method, activations) in runs {
        for ids in activations {
            // Slots tell nothing of what came before.
            let longest = if SLOTTED.contains(method) { 0 } else { k - 1 };
            for (at, &id) in ids.iter().enumerate() {
                let window = ids[at.saturating_sub(longest)..at].to_vec();
                *edges.entry((*method, window, id)).or_default() += 1;
            }
        }
    }
    edges
}

/// Methods that are counted in slots, 9 each: in the first piece, at its end, and in the second one.
const SLOTTED: [u32; 3] = [4, 2039, 2052];
const SLOTS: u32 = 9;

fn build(engine: Engine, k: u32, runs: &[(u32, u32, Vec<Vec<u32>>)]) -> Vec<u8> {
    fill(Builder::new(engine, k), runs).finish(Some(7))
}

fn fill(mut builder: Builder, runs: &[(u32, u32, Vec<Vec<u32>>)]) -> Builder {
    builder.method(0, 5).method(1, 40);
    builder.run_loops(0, &[1, 3]).run_loops(1, &[0, 2, 39]);
    for method in SLOTTED {
        builder.slots(method);
    }
    for (arena, method, activations) in runs {
        builder.run(*arena, *method, activations);
    }
    builder
}

fn read<S: Source>(counters: &Counters<S>) -> (Edges, Damage) {
    let mut edges = Edges::new();
    let mut rows = counters.rows();
    let slots = counters.slots();
    let mut broken = slots.damage().clone();
    for method in SLOTTED {
        for (id, &count) in (0..).zip(slots.counts(method, SLOTS).unwrap()) {
            edges.insert((method, vec![], id), count);
        }
    }
    for row in rows.by_ref() {
        if counters.header().engine.is_ksf() {
            counters.ksf(&row, &mut broken, |path, count| {
                let (&id, window) = path.split_last().unwrap();
                let window = &window[window
                    .len()
                    .saturating_sub(counters.header().k as usize - 1)..];
                *edges.entry((row.method, window.to_vec(), id)).or_default() += count;
            });
            continue;
        }
        let window = counters.window(&row);
        if !window.whole {
            broken.add(row.offset, "window");
        }
        match counters.edges(&row) {
            Ok(of_row) => {
                for edge in of_row.filter(|edge| edge.count > 0) {
                    let entry = edges
                        .entry((row.method, window.ids.clone(), edge.id))
                        .or_default();
                    *entry = entry.saturating_add(edge.count);
                }
            }
            Err(reason) => broken.add(row.offset, reason),
        }
        if let Some(run) = row.run {
            add_run(
                &mut edges,
                counters.header().k,
                row.method,
                window.ids,
                run,
                &mut broken,
            );
        }
    }
    edges.retain(|_, count| *count > 0);
    let mut damage = rows.damage().clone();
    damage.places += broken.places;
    damage.first = damage.first.or(broken.first);
    (edges, damage)
}

/// As `layout::run` says.
fn add_run(
    edges: &mut Edges,
    k: u32,
    method: u32,
    mut ids: Vec<u32>,
    run: Run,
    broken: &mut Damage,
) {
    let Some(beyond) = run.beyond(k) else {
        return broken.add(0, "run");
    };
    for i in 0..k {
        let window = ids[ids.len().saturating_sub(k as usize - 1)..].to_vec();
        let entry = edges.entry((method, window, run.id)).or_default();
        *entry = entry.saturating_add(if i < k - 1 { run.count } else { beyond });
        ids.push(run.id);
    }
}

fn enters<S: Source>(counters: &Counters<S>) -> u64 {
    counters
        .rows()
        .filter(|row| row.id.is_none())
        .map(|row| row.enters)
        .sum()
}

/// Runs of two methods (5 and 40 paths, some of them whole turns of run loops) and of those in slots, in private arenas 0 and 1 and in the
/// shared arena 1000.
fn runs() -> impl Strategy<Value = Vec<(u32, u32, Vec<Vec<u32>>)>> {
    let arena = prop::sample::select(vec![0, 1, 1000]);
    let method = prop_oneof![3 => 0..2u32, 1 => prop::sample::select(SLOTTED.to_vec())];
    let run = (arena, method).prop_flat_map(|(arena, method)| {
        let id = 0..match method {
            0 => 5u32,
            1 => 40,
            _ => SLOTS,
        };
        let repeats = prop_oneof![2 => Just(1), 1 => 1..40usize];
        let ids = vec((id, repeats), 0..20).prop_map(|runs| {
            let repeated = runs.into_iter().map(|(id, n)| vec![id; n]);
            repeated.flatten().collect()
        });
        (Just(arena), Just(method), vec(ids, 0..6))
    });
    vec(run, 0..6)
}

fn unslotted(runs: &[(u32, u32, Vec<Vec<u32>>)]) -> u64 {
    let in_rows = runs.iter().filter(|run| !SLOTTED.contains(&run.1));
    in_rows.map(|run| run.2.len() as u64).sum()
}

fn engine() -> impl Strategy<Value = (Engine, u32)> {
    prop_oneof![
        prop::sample::select(vec![1u32, 2, 3, 4, 16]).prop_map(|k| (Engine::Automaton, k)),
        prop::sample::select(vec![1u32, 2, 3, 4, 16]).prop_map(|k| (Engine::Ksf, k)),
        prop::sample::select(vec![1u32, 2, 3, 4, 16]).prop_map(|k| (Engine::KsfMtf, k)),
        Just((Engine::BlppHash, 1)),
        Just((Engine::BlppDense, 1)),
    ]
}

proptest! {
    #[test]
    fn all_that_was_counted_comes_back((engine, k) in engine(), runs in runs()) {
        let image = build(engine, k, &runs);
        let counters = Counters::new(&image[..]).unwrap();
        let header = counters.header();
        prop_assert_eq!((header.engine, header.k, header.ended, header.ended_at), (engine, k, true, 7));
        let (edges, damage) = read(&counters);
        prop_assert_eq!(damage, Damage::default());
        prop_assert_eq!(edges, expected(&runs, k as usize));
        prop_assert_eq!(enters(&counters), unslotted(&runs));
    }

    /// Rows that are missing for want of room: every item is counted, with as much of its past as its edge says.
    #[test]
    fn truncated_rows_know_a_part_of_the_window(k in prop::sample::select(vec![2u32, 3, 4, 16]), limit in 0..12usize, runs in runs()) {
        let mut builder = Builder::new(Engine::Automaton, k);
        builder.row_limit(limit);
        let image = fill(builder, &runs).finish(Some(7));
        let counters = Counters::new(&image[..]).unwrap();
        let (edges, damage) = read(&counters);
        prop_assert_eq!(damage, Damage::default());
        let mut rows = HashMap::<_, usize>::new();
        for row in counters.rows() {
            let window = counters.window(&row);
            prop_assert!(!window.truncated || window.ids.len() < k as usize - 1);
            *rows.entry(row.method).or_default() += usize::from(!window.ids.is_empty());
        }
        prop_assert!(rows.values().all(|&rows| rows <= 3 * limit));
        let by_id = |edges: &Edges| {
            let mut sums = HashMap::<_, u64>::new();
            edges.iter().for_each(|((method, _, id), count)| *sums.entry((*method, *id)).or_default() += count);
            sums
        };
        let expected = expected(&runs, k as usize);
        prop_assert_eq!(by_id(&edges), by_id(&expected));
        for ((method, window, id), count) in edges {
            let most: u64 = expected
                .iter()
                .filter(|((m, w, i), _)| *m == method && *i == id && w.ends_with(&window))
                .map(|(_, count)| count)
                .sum();
            prop_assert!(count <= most, "{method} {window:?} {id}: {count} > {most}");
        }
    }

    /// A file that lost its end: what is left is right, and never more than was counted.
    #[test]
    fn a_cut_file_gives_lower_bounds((engine, k) in engine(), runs in runs(), at in any::<prop::sample::Index>()) {
        let image = build(engine, k, &runs);
        let cut = at.index(image.len() + 1);
        let expected = expected(&runs, k as usize);
        match Counters::new(&image[..cut]) {
            Err(_) => prop_assert!(cut < HEADER_BYTES as usize),
            Ok(counters) => {
                let (edges, damage) = read(&counters);
                prop_assert_eq!(damage.places > 0, cut < image.len());
                // A window cut short stands for all that end in it; so compare by the whole window where it is one.
                for ((method, window, id), count) in edges {
                    let most: u64 = expected
                        .iter()
                        .filter(|((m, w, i), _)| *m == method && *i == id && w.ends_with(&window))
                        .map(|(_, count)| count)
                        .sum();
                    prop_assert!(count <= most, "{method} {window:?} {id}: {count} > {most}");
                }
            }
        }
    }

    /// Bytes changed anywhere: the reader ends without panic, in time and memory bounded by the file's size.
    #[test]
    fn changed_bytes_never_panic(
        (engine, k) in engine(),
        runs in runs(),
        changes in vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(255)], any::<bool>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut image = build(engine, k, &runs);
        let used = 0x40;
        for (at, value, header) in changes {
            // Most of the header is empty: half of the changes go to its fields, half to the records.
            let at = if header || image.len() as u64 <= HEADER_BYTES {
                at.index(used)
            } else {
                HEADER_BYTES as usize + at.index(image.len() - HEADER_BYTES as usize)
            };
            image[at] = value;
        }
        if let Some(cut) = cut {
            image.truncate(cut.index(image.len()));
        }
        let rows_at_most = image.len() / layout::ROW_BYTES as usize;
        if let Ok(counters) = Counters::new(&image[..]) {
            prop_assert!(counters.rows().count() <= rows_at_most);
            let (edges, _) = read(&counters);
            // Each edge or slot once, and k for a run slot.
            prop_assert!(edges.len() <= image.len() / 8 + counters.header().k as usize * rows_at_most);
            if !engine.is_ksf() {
                // Trees are read through root rows; here any row is asked for one.
                let mut visits = 0;
                for row in counters.rows() {
                    counters.ksf(&row, &mut Damage::default(), |_, _| visits += 1);
                }
                prop_assert!(visits <= image.len() / 16);
            }
        }
    }

    /// The page cache gives what the slice gives, however small it is.
    #[test]
    fn files_read_like_slices((engine, k) in engine(), runs in runs()) {
        let image = build(engine, k, &runs);
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &image).unwrap();
        let by_file = Counters::new(FileSource::new(file, 0).unwrap()).unwrap();
        let by_slice = Counters::new(&image[..]).unwrap();
        prop_assert_eq!(read(&by_file), read(&by_slice));
        prop_assert!(by_file.rows().eq(by_slice.rows()));
        prop_assert!(by_file.source().take_error().is_none());
    }
}

#[test]
fn a_sparse_file_is_read_only_where_it_is_used() {
    let image = build(
        Engine::Automaton,
        4,
        &[(0, 0, vec![vec![0, 1, 2, 3, 4]; 3])],
    );
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &image).unwrap();
    file.set_len(1 << 40).unwrap();
    let counters = Counters::new(FileSource::new(file, 1 << 20).unwrap()).unwrap();
    let (edges, damage) = read(&counters);
    assert_eq!(damage, Damage::default());
    assert_eq!(edges.values().sum::<u64>(), 15);
}

/// A running JVM: pages cached before a table was outgrown must not hide the one that took its place.
#[test]
fn what_grows_while_it_is_read_is_found() {
    let image = |ids: Vec<u32>| {
        Builder::new(Engine::Automaton, 1)
            .run(0, 1, &[ids])
            .finish(None)
    };
    let (small, large) = (image(vec![0]), image((0..4000).collect()));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), small).unwrap();
    let source = FileSource::new(file.reopen().unwrap(), 1 << 20).unwrap();
    let counters = Counters::new(source).unwrap();
    let row = counters.rows().next().unwrap();
    assert_eq!(
        counters
            .edges(&row)
            .unwrap()
            .map(|edge| edge.count)
            .sum::<u64>(),
        1
    );
    std::fs::write(file.path(), large).unwrap();
    assert_eq!(
        counters.row(row.offset),
        Some(row),
        "the cached copy is the old one"
    );
    assert_eq!(
        counters
            .edges(&row)
            .unwrap()
            .map(|edge| edge.count)
            .sum::<u64>(),
        4000
    );
}

/// A k-SF's new nodes lie beyond the end that the file had. Counts in the cached page are the old ones: a snapshot, not damage.
#[test]
fn trees_that_grow_while_they_are_read_are_no_damage() {
    let image = |ids: Vec<u32>| Builder::new(Engine::Ksf, 3).run(0, 1, &[ids]).finish(None);
    let ids: Vec<u32> = (0..4000).map(|at| at % 61 * (at % 7)).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image(vec![0])).unwrap();
    let source = FileSource::new(file.reopen().unwrap(), 1 << 20).unwrap();
    let counters = Counters::new(source).unwrap();
    let row = counters.rows().next().unwrap();
    std::fs::write(file.path(), image(ids)).unwrap();
    let (mut items, mut damage) = (0, Damage::default());
    counters.ksf(&row, &mut damage, |_, count| items += count);
    assert_eq!(damage, Damage::default());
    assert!((2000..=4000).contains(&items), "{items}");
}

#[test]
fn the_header_is_checked() {
    let image = Builder::new(Engine::Automaton, 4)
        .stop(Stop::Memory, 9)
        .finish(None);
    let header = *Counters::new(&image[..]).unwrap().header();
    assert_eq!(
        (header.stop, header.lost, header.ended),
        (Stop::Memory, 9, false)
    );
    let with = |at: u64, value: u32| {
        let mut image = image.clone();
        image[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
        Counters::new(&image[..])
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        with(layout::header::MAGIC, 1),
        "does not begin with the magic number of this version"
    );
    assert_eq!(
        with(layout::header::ENGINE, 5),
        "impossible ENGINE 5 in the header"
    );
    assert_eq!(with(layout::header::K, 0), "impossible K 0 in the header");
    assert_eq!(with(layout::header::K, 65), "impossible K 65 in the header");
    assert_eq!(
        with(layout::header::STOP, 3),
        "impossible STOP 3 in the header"
    );
    assert_eq!(
        with(layout::header::ALLOCATED, 8),
        "impossible ALLOCATED 8 in the header"
    );
    assert_eq!(
        Counters::new(&image[..100])
            .map(|_| ())
            .unwrap_err()
            .to_string(),
        "100 bytes, the header alone has 4096"
    );
}

/// Handlers keep the window (ARCHITECTURE.md): only `caught` tells of them.
#[test]
fn caught_exceptions_stay_with_the_row() {
    let mut builder = Builder::new(Engine::Automaton, 3);
    let mut activation = builder.enter(0, 7);
    for item in [
        Item::Id(1),
        Item::Caught,
        Item::Id(2),
        Item::Caught,
        Item::Caught,
    ] {
        builder.item(&mut activation, item);
    }
    let image = builder.finish(None);
    let counters = Counters::new(&image[..]).unwrap();
    let mut caught: Vec<_> = counters
        .rows()
        .map(|row| (counters.window(&row).ids, row.caught))
        .collect();
    caught.sort();
    assert_eq!(caught, [(vec![], 0), (vec![1], 1), (vec![1, 2], 2)]);
}

/// The same stream with and without run slots, and flushed in pieces as an exception between turns does.
#[test]
fn run_slots_count_what_edges_count() {
    // Case 2 and its repeats, from windows that end in other IDs, in case 2 itself, and in nothing.
    let pieces = [
        (5, 1),
        (2, 9),
        (2, 4),
        (7, 1),
        (2, 2),
        (2, 3),
        (2, 30),
        (5, 1),
        (2, 3),
    ];
    for (k, folded) in [(1, 0), (2, 51), (3, 51), (4, 49), (16, 30)] {
        let image = |loops: &[u32], whole: bool| {
            let mut builder = Builder::new(Engine::Automaton, k);
            builder.method(7, 8).run_loops(7, loops);
            let mut activation = builder.enter(0, 7);
            for &(id, n) in &pieces {
                match whole {
                    true => builder.turns(&mut activation, id, n),
                    false => (0..n).for_each(|_| builder.item(&mut activation, Item::Id(id))),
                }
            }
            builder.finish(Some(1))
        };
        let (with, without) = (image(&[2], true), image(&[], false));
        let (with, without) = (
            Counters::new(&with[..]).unwrap(),
            Counters::new(&without[..]).unwrap(),
        );
        let in_slots: u64 = with
            .rows()
            .filter_map(|row| row.run)
            .map(|run| run.total)
            .sum();
        assert_eq!(in_slots, folded, "k = {k}");
        assert_eq!(read(&with), read(&without), "k = {k}");
    }
}

/// An image with one run slot in use, in the root row: its offset.
fn one_run() -> (Vec<u8>, usize) {
    let mut builder = Builder::new(Engine::Automaton, 3);
    builder.method(7, 8).run_loops(7, &[2]);
    builder.run(0, 7, &[vec![2; 5]]);
    let image = builder.finish(Some(1));
    let row = Counters::new(&image[..]).unwrap().rows().next().unwrap();
    let run = Run {
        id: 2,
        count: 1,
        total: 5,
    };
    assert_eq!(
        (row.run, row.record()),
        (Some(run), row.offset - layout::RUN_BYTES)
    );
    let at = row.record() as usize;
    (image, at)
}

#[test]
fn a_run_slot_is_found_with_its_row_and_damage_of_it_is_named() {
    let (image, at) = one_run();
    let counters = Counters::new(&image[..]).unwrap();
    let row = counters.rows().next().unwrap();
    assert_eq!(counters.row(row.record()), Some(row));
    assert_eq!(counters.row(row.offset).unwrap().run, None);
    assert_eq!(row.run.unwrap().beyond(3), Some(3));
    let with = |offset: u64, value: u32| {
        let mut image = image.clone();
        let at = at + offset as usize;
        image[at..at + 4].copy_from_slice(&value.to_le_bytes());
        image
    };
    let damage = |image: &[u8]| {
        let counters = Counters::new(image).unwrap();
        let mut rows = counters.rows();
        let first = rows.by_ref().next().and_then(|row| row.run);
        rows.by_ref().count();
        (first, rows.damage().first.map(|first| first.1))
    };
    assert_eq!(damage(&image), (row.run, None));
    let (first, reason) = damage(&with(layout::row::BYTES, 64));
    assert_eq!(
        (first, reason),
        (None, Some("a run slot has an impossible size"))
    );
    // A table between the run slot and the row.
    let mut lone = image.clone();
    let row_at = at + layout::RUN_BYTES as usize;
    lone[row_at..row_at + 4].copy_from_slice(&(layout::Kind::Table as u32).to_le_bytes());
    assert_eq!(damage(&lone).1, Some("no row comes after a run slot"));
    // More in its first k - 1 turns than in all.
    let run = damage(&with(layout::run::COUNT, 3)).0.unwrap();
    assert_eq!((run.count, run.beyond(3)), (3, None));
    // Not in use: nothing counted, no place to lead to.
    let mut unused = image.clone();
    unused[at + layout::run::ID as usize..at + layout::RUN_BYTES as usize].fill(0);
    assert_eq!(damage(&unused), (None, None));
}

/// The end of the used bytes between a run slot and its row.
#[test]
fn a_run_slot_at_the_end_is_named() {
    let (mut image, at) = one_run();
    let used = HEADER_BYTES as usize + layout::chunk::USED as usize;
    let bytes = at as u64 + layout::RUN_BYTES - HEADER_BYTES;
    image[used..used + 8].copy_from_slice(&bytes.to_le_bytes());
    let counters = Counters::new(&image[..]).unwrap();
    let mut rows = counters.rows();
    assert_eq!(rows.by_ref().count(), 0);
    assert_eq!(
        rows.damage().first,
        Some((at as u64, "no row comes after a run slot"))
    );
}

#[test]
fn slots_of_all_arenas_are_summed_and_damage_of_them_is_named() {
    let mut builder = Builder::new(Engine::Automaton, 2);
    builder.slots(4).slots(2052);
    for arena in [0, 1, 1000] {
        builder.run(arena, 4, &[vec![0], vec![2], vec![2]]);
    }
    builder.run(1, 2052, &[vec![8]]);
    let image = builder.finish(Some(1));
    let slots = Counters::new(&image[..]).unwrap().slots();
    assert_eq!(slots.counts(4, 4).unwrap(), [3, 0, 6, 0]);
    assert_eq!(slots.counts(2060, 2).unwrap(), [1, 0]);
    let piece = |at: usize| slots.pieces()[at];
    let first = Piece {
        arena: 0,
        piece: 0,
        offset: HEADER_BYTES,
        slots: 2048,
    };
    assert_eq!((slots.pieces().len(), piece(0)), (4, first));
    assert_eq!(
        (piece(3).arena, piece(3).piece, piece(3).slots),
        (1, 1, 4096)
    );
    // No piece of this number is there: nothing was counted.
    assert_eq!(slots.counts(6148, 100), Ok(&[][..]));
    for (first, count, reason) in [
        (3, 1, "a slot in the place of a header"),
        (2051, 1, "a slot in the place of a header"),
        (2040, 9, "slots of one method in two pieces"),
        (4, u32::MAX, "slots of one method in two pieces"),
        (u32::MAX, u32::MAX, "a slot beyond the last piece"),
    ] {
        assert_eq!(slots.counts(first, count), Err(reason));
    }
    let damaged = |at: u64, value: u32| {
        let mut image = image.clone();
        let at = (piece(1).offset + at) as usize;
        image[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let slots = Counters::new(&image[..]).unwrap().slots();
        (slots.counts(4, 4).unwrap().to_vec(), slots.damage().first)
    };
    let left = vec![2, 0, 4, 0];
    let at = piece(1).offset;
    assert_eq!(
        damaged(layout::slots::ARENA, 0),
        (left.clone(), Some((at, "a chunk of slots is there twice")))
    );
    assert_eq!(
        damaged(layout::slots::PIECE, 99),
        (
            left.clone(),
            Some((at, "a chunk of slots has an impossible number"))
        )
    );
    assert_eq!(
        damaged(layout::slots::PIECE, 1),
        (left, Some((at, "a chunk of slots has an impossible size")))
    );
    // Cut off in the last piece, before and behind the one slot in use: named by the walk over the rows.
    for (cut, counts) in [
        (piece(3).offset + 9 * 8, &[][..]),
        (piece(3).offset + 13 * 8, &[1][..]),
    ] {
        let image = &image[..cut as usize];
        let counters = Counters::new(image).unwrap();
        assert_eq!(counters.slots().counts(2060, 2).unwrap(), counts);
        assert_eq!(
            read(&counters).1.first,
            Some((cut, "the file ends before its last chunk does"))
        );
    }
}
