//! From simulated streams to a profile and back: every n-gram equals the brute-force count, and what was lost is never made up.

mod common;

use std::collections::HashMap;

use borescope_paths::stream::brute_force;
use borescope_profile::{EdgeKind, Error, Merged, MethodDetail, Profile, StartKind};
use borescope_spool::counters::Counters;
use borescope_spool::layout::{self, Engine, Stop};
use borescope_spool::meta::{Counting, Method, Record};
use borescope_spool::testing::{Builder, Item};
use common::{
    CASES, LEAF, MERGED, NEVER, Run, WORKED, counted, counters, log, records, run_loops, sealed,
};
use proptest::collection::vec;
use proptest::prelude::*;

type Grams = HashMap<Vec<u32>, u64>;

fn grams(detail: &MethodDetail) -> Grams {
    (1..=detail.kipf.k())
        .flat_map(|n| detail.kipf.level(n))
        .collect()
}

fn activations(runs: &[Run], method: u32) -> Vec<Vec<u32>> {
    runs.iter()
        .filter(|run| run.1 == method)
        .flat_map(|run| run.2.clone())
        .collect()
}

/// Two methods with loops, some of whose IDs repeat, and one without on private arenas and a shared one.
fn runs(longest: usize) -> impl Strategy<Value = Vec<Run>> {
    let arena = prop::sample::select(vec![0, 1, 1000]);
    let method = prop::sample::select(vec![(WORKED, 8u32), (CASES, 40), (LEAF, 9), (MERGED, 4)]);
    let run = (arena, method).prop_flat_map(move |(arena, (method, paths))| {
        let most = if method == LEAF { 2 } else { longest };
        let repeats = prop_oneof![2 => Just(1), 1 => 1..20usize];
        let ids = vec((0..paths, repeats), 0..most).prop_map(move |runs| {
            let ids = runs.into_iter().flat_map(|(id, n)| vec![id; n]);
            ids.take(most - 1).collect()
        });
        (Just(arena), Just(method), vec(ids, 0..5))
    });
    vec(run, 0..5)
}

fn engine() -> impl Strategy<Value = (Engine, u32)> {
    let k = || prop::sample::select(vec![1u32, 2, 4, 16]);
    prop_oneof![
        k().prop_map(|k| (Engine::Automaton, k)),
        k().prop_map(|k| (Engine::Ksf, k)),
        k().prop_map(|k| (Engine::KsfMtf, k)),
        Just((Engine::BlppHash, 1)),
        Just((Engine::BlppDense, 1)),
    ]
}

fn detail(profile: &Profile, index: u32) -> MethodDetail {
    profile.detail(index).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn n_grams_equal_brute_force((engine, k) in engine(), runs in runs(40)) {
        let dir = tempfile::tempdir().unwrap();
        let (manifest, profile) = sealed(dir.path(), &counters(engine, k, &runs).finish(Some(5)), &log()).unwrap();
        prop_assert_eq!(manifest.k, k);
        prop_assert_eq!((&manifest.counters_torn, &manifest.log_torn), (&None, &None));
        let mut ids = 0;
        for method in profile.methods() {
            let activations = activations(&runs, method.index);
            let detail = detail(&profile, method.index);
            prop_assert_eq!(grams(&detail), brute_force(&activations, k));
            prop_assert_eq!(detail.kipf.check(), Ok(()));
            let paths: Grams = detail.paths.iter().map(|path| (vec![path.id], path.count)).collect();
            prop_assert_eq!(paths, brute_force(&activations, 1));
            prop_assert!(detail.paths.is_sorted_by_key(|path| (std::cmp::Reverse(path.count), path.id)));
            prop_assert!(method.exact);
            prop_assert_eq!(method.ids, activations.iter().map(|ids| ids.len() as u64).sum::<u64>());
            let left: u64 = detail.paths.iter().filter(|path| path.ends != EdgeKind::Back).map(|path| path.count).sum();
            if method.index == LEAF {
                prop_assert_eq!((method.activations, method.unfinished), (method.ids, None));
            } else {
                prop_assert_eq!(method.activations, activations.len() as u64);
                prop_assert_eq!(method.unfinished, Some(method.activations.saturating_sub(left)));
            }
            ids += method.ids;
        }
        prop_assert_eq!(manifest.totals.ids, ids);
    }

    /// Run slots are another way to write the same edges down.
    #[test]
    fn runs_count_what_edges_count(k in prop::sample::select(vec![2u32, 3, 4, 7, 16]), runs in runs(60)) {
        let forest = |builder: Builder| {
            let dir = tempfile::tempdir().unwrap();
            let (_, profile) = sealed(dir.path(), &builder.finish(Some(5)), &log()).unwrap();
            profile.methods().iter().map(|m| (m.clone(), grams(&detail(&profile, m.index)))).collect::<Vec<_>>()
        };
        let engine = Engine::Automaton;
        prop_assert_eq!(forest(counters(engine, k, &runs)), forest(counted(Builder::new(engine, k), &runs)));
    }

    /// A limit of rows: paths stay exact, and the true count of each sequence lies within its bounds, also of those that have no node.
    #[test]
    fn truncated_rows_give_bounds(k in prop::sample::select(vec![2u32, 3, 4, 7]), limit in 0..10usize, runs in runs(60), lost in prop::bool::ANY) {
        let mut builder = Builder::new(Engine::Automaton, k);
        builder.row_limit(limit);
        let mut builder = run_loops(builder, &runs);
        if lost {
            builder.stop(Stop::No, 3);
        }
        let dir = tempfile::tempdir().unwrap();
        let (manifest, profile) = sealed(dir.path(), &builder.finish(Some(5)), &log()).unwrap();
        prop_assert_eq!(&manifest.counters_torn, &None);
        for method in profile.methods() {
            let truth = brute_force(&activations(&runs, method.index), k);
            let detail = detail(&profile, method.index);
            // Rows lose, slots never do.
            let lost = lost && method.unfinished.is_some();
            prop_assert_eq!(method.paths_exact, !lost);
            prop_assert_eq!(method.exact, !lost && detail.kipf.is_exact());
            if method.exact {
                prop_assert_eq!(grams(&detail), truth);
                continue;
            }
            let level1: Grams = detail.kipf.level(1).collect();
            prop_assert_eq!(level1, brute_force(&activations(&runs, method.index), 1));
            for (gram, count) in truth {
                let lo = detail.kipf.count(&gram);
                prop_assert!(lo <= count, "{gram:?}: {lo} > {count}");
                // Where IDs were lost only what was counted is bounded.
                if lost && detail.kipf.find(&gram).is_none() {
                    continue;
                }
                if let Some(hi) = manifest.upper(method, detail.kipf.upper_of(&gram)) {
                    prop_assert!(count <= hi, "{gram:?}: {count} > {hi}");
                }
            }
            prop_assert_eq!(detail.kipf.check(), Ok(()));
        }
    }

    /// Whatever the end of either file: no panic, no count above the true one, and the profile says that it may be too low.
    #[test]
    fn cut_files_give_lower_bounds(
        (engine, k) in engine(),
        runs in runs(12),
        cut in prop_oneof![(0..20_000usize, Just(usize::MAX)), (Just(usize::MAX), 0..1000usize)],
    ) {
        let image = counters(engine, k, &runs).finish(None);
        let log = log();
        let (image_end, log_end) = (cut.0.min(image.len()), cut.1.min(log.len()));
        let dir = tempfile::tempdir().unwrap();
        let (manifest, profile) = match sealed(dir.path(), &image[..image_end], &log[..log_end]) {
            Err(Error::NotASpool { path, .. }) => {
                prop_assert!(image_end < 4096 && path.ends_with("counters.bin"));
                return Ok(());
            }
            other => other.unwrap(),
        };
        prop_assert!(manifest.target.sealed_after_crash);
        prop_assert_eq!(manifest.counters_torn.is_some(), image_end < image.len());
        for method in profile.methods() {
            prop_assert_eq!(method.exact, image_end == image.len());
            let truth = brute_force(&activations(&runs, method.index), k);
            for (gram, count) in grams(&detail(&profile, method.index)) {
                prop_assert!(count <= truth.get(&gram).copied().unwrap_or(0), "{gram:?} {count}");
            }
        }
        let mut end = 0;
        let ends: Vec<usize> = records().iter().map(|record| { end += record.encode().len(); end }).collect();
        prop_assert_eq!(manifest.log_torn.is_some(), log_end != 0 && !ends.contains(&log_end));
        prop_assert_eq!(manifest.target.pid, if log_end >= ends[0] { 42 } else { 0 });
    }

    /// Counters with any bytes changed seal or are refused.
    #[test]
    fn changed_counters_never_panic(
        (engine, k) in engine(),
        runs in runs(12),
        limit in prop_oneof![Just(usize::MAX), 0..6usize],
        changes in vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(255)]), 1..10),
    ) {
        let mut builder = Builder::new(engine, k);
        builder.row_limit(limit);
        let mut image = run_loops(builder, &runs).finish(None);
        for (at, value) in changes {
            // The header's fields lie in its first 64 bytes; the rest of its page is empty.
            let at = at.index(image.len() - 4032);
            image[if at < 64 { at } else { at + 4032 }] = value;
        }
        let dir = tempfile::tempdir().unwrap();
        if let Ok((_, profile)) = sealed(dir.path(), &image, &log()) {
            for method in profile.methods() {
                let _ = grams(&detail(&profile, method.index));
            }
        }
    }
}

/// Seed 000: 14 IDs, of which <2,0,0,2> occurs three times; here in the numbering of `worked_example`.
#[test]
fn the_worked_example() {
    // 6 2 0 0 2 2 0 0 2 2 0 0 2 3 of the seed.
    let of_seed = |id| match id {
        0 => 6,
        1 => 7,
        2 => 4,
        3 => 5,
        4 => 2,
        5 => 3,
        6 => 0,
        _ => 1,
    };
    let stream: Vec<u32> = [6, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 3]
        .map(of_seed)
        .into();
    for engine in [Engine::Automaton, Engine::Ksf] {
        let dir = tempfile::tempdir().unwrap();
        let image = counters(engine, 4, &[(0, WORKED, vec![stream.clone()])])
            .finish(Some(1_764_457_009_000));
        let (manifest, profile) = sealed(dir.path(), &image, &log()).unwrap();
        let detail = detail(&profile, WORKED);
        assert_eq!(detail.kipf.count(&[2, 0, 0, 2].map(of_seed)), 3);
        assert_eq!(manifest.target.ended, Some(1_764_457_009_000));
        assert!(!manifest.target.sealed_after_crash);
        let [example, cases, never, leaf, merged] = profile.methods() else {
            panic!("five methods")
        };
        assert_eq!(
            [
                example.index,
                cases.index,
                never.index,
                leaf.index,
                merged.index
            ],
            [WORKED, CASES, NEVER, LEAF, MERGED]
        );
        assert_eq!(example.class, "acme.Main$Loop");
        assert_eq!(
            example.loader,
            "jdk.internal.loader.ClassLoaders$AppClassLoader"
        );
        assert_eq!(
            (example.activations, example.unfinished, example.ids),
            (1, Some(0), 14)
        );
        assert_eq!(
            (
                example.num_paths.as_str(),
                example.numbered_paths,
                example.paths
            ),
            ("8", 8, 4)
        );
        assert_eq!(example.lines, Some((10, 17)));
        assert_eq!(
            (never.activations, never.lines, &never.source_file),
            (0, None, &None)
        );
        assert_eq!(profile.skipped()[0].class, "acme.Big");
        assert_eq!(manifest.notices, ["hidden classes are not visible"]);
        assert_eq!(
            (
                manifest.totals.methods,
                manifest.totals.methods_executed,
                manifest.totals.classes
            ),
            (5, 1, 2)
        );
        assert_eq!(
            (
                manifest.branches.as_str(),
                manifest.straight_line,
                manifest.totals.straight_line
            ),
            ("merge", false, 3)
        );
        // B D E back: 6 here, 0 in the seed. B is at 3, D at 9, E at 12: one line for each three bytes, from 10.
        let path = detail.paths.iter().find(|path| path.id == 6).unwrap();
        assert_eq!(
            (path.count, &path.bcis[..], &path.lines[..]),
            (6, &[(3, 6), (9, 15)][..], &[11, 13, 14][..])
        );
        assert_eq!(
            path.starts,
            StartKind {
                loop_head: true,
                ..StartKind::default()
            }
        );
        assert_eq!(path.ends, EdgeKind::Back);
        // B C E F: returns.
        let path = detail.paths.iter().find(|path| path.id == 5).unwrap();
        assert_eq!(
            (path.count, &path.bcis[..], path.ends),
            (1, &[(3, 9), (12, 18)][..], EdgeKind::Return)
        );
        assert!(matches!(profile.detail(77), Err(Error::NoMethod(77))));
    }
}

/// An activation that a callee's exception ends, one that catches it, one that is running.
#[test]
fn unfinished_paths() {
    let mut builder = Builder::new(Engine::Automaton, 2);
    builder.method(CASES, 40);
    let cases = |item: &[Item], builder: &mut Builder| {
        let mut activation = builder.enter(0, CASES);
        item.iter()
            .for_each(|&item| builder.item(&mut activation, item));
    };
    // Case 39 returns, 38 throws, the others go back (testing::switch_loop).
    cases(&[Item::Id(1), Item::Id(39)], &mut builder);
    cases(&[Item::Id(1)], &mut builder); // left by a callee's exception
    cases(&[Item::Id(1), Item::Caught, Item::Id(39)], &mut builder); // a callee's exception, caught
    cases(&[Item::Id(38), Item::Caught, Item::Id(39)], &mut builder); // an athrow, caught
    cases(&[Item::Id(38)], &mut builder); // an athrow that leaves
    let dir = tempfile::tempdir().unwrap();
    let (_, profile) = sealed(dir.path(), &builder.finish(Some(1)), &log()).unwrap();
    let method = &profile.methods()[1];
    assert_eq!((method.activations, method.unfinished), (5, Some(2)));
    // The window goes on across a handler (ARCHITECTURE.md).
    assert_eq!(detail(&profile, CASES).kipf.count(&[38, 39]), 1);
}

#[test]
fn stopped_counting_is_a_lower_bound() {
    for (stop, lost, word) in [
        (Stop::Memory, 2, "memory"),
        (Stop::DiskFull, 1, "disk"),
        (Stop::No, 3, ""),
        (Stop::Memory, 0, "memory"),
    ] {
        let mut builder = counters(Engine::Automaton, 2, &[(0, WORKED, vec![vec![0, 5]])]);
        let image = builder.stop(stop, lost).finish(Some(1));
        let dir = tempfile::tempdir().unwrap();
        let (manifest, profile) = sealed(dir.path(), &image, &log()).unwrap();
        assert!(
            manifest
                .stopped
                .as_ref()
                .map_or("", |text| text)
                .contains(word)
        );
        assert_eq!(
            (manifest.stopped.is_some(), manifest.lost),
            (stop != Stop::No, lost)
        );
        // Where nothing was lost, what had no room shows in the rows, and here there is nothing such.
        let rows = |method: &&borescope_profile::Method| method.unfinished.is_some();
        assert!(profile.methods().iter().filter(rows).count() > 0);
        for method in profile.methods() {
            assert_eq!(
                method.exact,
                lost == 0 || !rows(&method),
                "{}",
                method.method
            );
        }
    }
}

/// More rows than a row group: methods are found and whole wherever the groups end.
#[test]
fn many_rows() {
    let stream = |seed: u32| -> Vec<u32> {
        let mut state = seed;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % 40
        })
        .take(20_000)
        .collect()
    };
    let runs = [
        (0, CASES, vec![stream(1)]),
        (1, CASES, vec![stream(2)]),
        (0, WORKED, vec![vec![0, 4, 5]]),
    ];
    let dir = tempfile::tempdir().unwrap();
    let (manifest, profile) = sealed(
        dir.path(),
        &counters(Engine::Automaton, 4, &runs).finish(None),
        &log(),
    )
    .unwrap();
    assert!(manifest.totals.kipf_nodes > 50_000);
    for method in [WORKED, CASES, NEVER, LEAF, MERGED] {
        assert_eq!(
            grams(&detail(&profile, method)),
            brute_force(&activations(&runs, method), 4)
        );
    }
}

/// At k = 1 methods with loops are counted in slots too: calls are the paths that leave.
#[test]
fn slots_of_a_loop() {
    let mut records = records();
    for record in &mut records {
        if let Record::Class(class) = record {
            for method in &mut class.methods {
                method.counting = Counting::Slots;
            }
        }
    }
    let log: Vec<u8> = records.iter().flat_map(Record::encode).collect();
    let mut builder = Builder::new(Engine::Automaton, 1);
    for method in [WORKED, CASES, LEAF] {
        builder.slots(method);
    }
    // Case 39 returns, 38 throws, the others go back (testing::switch_loop). The last call did not end.
    let calls = [vec![1, 1, 2, 39], vec![38], vec![1, 39], vec![3]];
    for arena in [0, 1] {
        builder.run(arena, CASES, &calls);
    }
    let dir = tempfile::tempdir().unwrap();
    let (manifest, profile) = sealed(dir.path(), &builder.finish(Some(1)), &log).unwrap();
    let method = &profile.methods()[1];
    assert_eq!(
        (method.activations, method.unfinished, method.ids),
        (6, None, 16)
    );
    assert!(method.exact);
    assert_eq!(
        grams(&detail(&profile, CASES)),
        brute_force(&[&calls[..], &calls].concat(), 1)
    );
    assert_eq!(
        (manifest.totals.unfinished, manifest.totals.activations),
        (0, 6)
    );
    // Slots are there before any probe, whatever rows find.
    let dir = tempfile::tempdir().unwrap();
    let image = builder.stop(Stop::Memory, 9).finish(Some(1));
    let (manifest, profile) = sealed(dir.path(), &image, &log).unwrap();
    let method = &profile.methods()[1];
    assert_eq!((method.exact, manifest.upper(method, 5)), (true, Some(5)));
}

/// A run that is too short for a run slot has an edge of its own, which the sealer takes apart.
#[test]
fn short_runs_are_taken_apart() {
    let calls = vec![
        vec![0, 4, 4, 4, 5],
        vec![0, 4, 7],
        vec![0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5],
    ];
    let runs = [(0, WORKED, calls.clone())];
    let image = counters(Engine::Automaton, 8, &runs).finish(Some(1));
    let read = Counters::new(&image[..]).unwrap();
    let edges = read.rows().flat_map(|row| read.edges(&row).unwrap());
    let mut short: Vec<u32> = edges
        .filter(|edge| edge.id >= 8)
        .map(|edge| edge.id)
        .collect();
    short.sort_unstable();
    assert_eq!(short, [8, 10], "once and three times");
    let dir = tempfile::tempdir().unwrap();
    let (_, profile) = sealed(dir.path(), &image, &log()).unwrap();
    assert_eq!(grams(&detail(&profile, WORKED)), brute_force(&calls, 8));
    assert!(profile.methods()[0].exact);
}

/// The branch's own line and those of its arms; the paths do not name the arms.
#[test]
fn branches_that_are_not_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let runs = [(0, MERGED, vec![vec![0, 2, 2, 3]])];
    let image = counters(Engine::Automaton, 4, &runs).finish(Some(1));
    let (_, profile) = sealed(dir.path(), &image, &log()).unwrap();
    let found = detail(&profile, MERGED);
    // B is at 3 (line 11), C at 6, D at 9, E at 12.
    let branch = Merged {
        head: (3, 6),
        arms: vec![(6, 9), (9, 12)],
        join: (12, 15),
        lines: vec![11, 12, 13],
    };
    assert_eq!(found.merged, [branch]);
    assert_eq!(profile.methods()[4].merged, 1);
    assert_eq!(
        (profile.methods()[0].merged, detail(&profile, WORKED).merged),
        (0, vec![])
    );
    let turn = found.paths.iter().find(|path| path.id == 2).unwrap();
    assert_eq!(
        (turn.count, &turn.bcis[..], &turn.lines[..]),
        (2, &[(3, 6), (12, 15)][..], &[11, 14][..])
    );
}

/// What contradicts the log is named, and leaves nothing exact that it concerns.
#[test]
fn slots_and_rows_that_do_not_fit_are_named() {
    let runs: Vec<Run> = vec![(0, LEAF, vec![vec![2]]), (0, WORKED, vec![vec![0, 5]])];
    let seal_with = |change: &dyn Fn(&mut Method), image: &[u8]| {
        let mut records = records();
        for record in &mut records {
            if let Record::Class(class) = record {
                class.methods.iter_mut().for_each(change);
            }
        }
        let log: Vec<u8> = records.iter().flat_map(Record::encode).collect();
        let dir = tempfile::tempdir().unwrap();
        sealed(dir.path(), image, &log).unwrap()
    };
    let image = counters(Engine::Automaton, 4, &runs).finish(Some(1));
    let exact = |profile: &Profile, index: u32| {
        let method = profile
            .methods()
            .iter()
            .find(|method| method.index == index);
        method.map(|method| method.exact)
    };
    // Rows of a method that is said to be counted in slots.
    let change = |method: &mut Method| {
        if method.index == WORKED {
            method.counting = Counting::Slots;
        }
    };
    let (manifest, profile) = seal_with(&change, &image);
    assert_eq!(
        [WORKED, LEAF].map(|index| exact(&profile, index)),
        [Some(false), Some(true)]
    );
    let torn = manifest.counters_torn.unwrap();
    assert!(
        torn.contains("a row of a method that is counted in slots"),
        "{torn}"
    );
    // Slots in two pieces (the first ends at 2048).
    let change = |method: &mut Method| {
        if method.index == LEAF {
            method.index = 2040;
        }
    };
    let (manifest, profile) = seal_with(&change, &image);
    assert_eq!(
        [WORKED, 2040].map(|index| exact(&profile, index)),
        [Some(true), Some(false)]
    );
    let torn = manifest.counters_torn.unwrap();
    assert!(torn.contains("slots of one method in two pieces"), "{torn}");
    // Slots that overlap those of another method, from below and from above.
    for index in [NEVER - 8, NEVER] {
        let change = |method: &mut Method| {
            if method.index == LEAF {
                method.index = index;
            }
        };
        let (manifest, profile) = seal_with(&change, &image);
        assert_eq!(profile.methods().len(), 4, "{index}");
        let left_out = format!("method index {index} is not its own: left out");
        assert!(
            manifest
                .notices
                .iter()
                .any(|notice| notice.contains(&left_out)),
            "{manifest:?}"
        );
    }
    // A run slot with more in the first k - 1 turns of its runs than in all.
    let mut image = counters(
        Engine::Automaton,
        4,
        &[(0, WORKED, vec![vec![0, 4, 4, 4, 4, 5]])],
    )
    .finish(Some(1));
    let row = {
        let counters = Counters::new(&image[..]).unwrap();
        counters.rows().find(|row| row.run.is_some()).unwrap()
    };
    assert_eq!(row.run.unwrap().total, 4);
    let count = (row.record() + layout::run::COUNT) as usize;
    image[count..count + 8].fill(255);
    let (manifest, profile) = seal_with(&|_| (), &image);
    assert_eq!(
        [WORKED, LEAF].map(|index| exact(&profile, index)),
        [Some(false), Some(true)]
    );
    let torn = manifest.counters_torn.unwrap();
    assert!(torn.contains("a run slot contradicts itself"), "{torn}");
}
