//! Spools made without a JVM.

use std::fs;
use std::path::Path;

use borescope_cfg::flow::Flow;
use borescope_profile::{Error, Existing, Manifest, Profile, seal};
use borescope_spool::layout::Engine;
use borescope_spool::meta::{Class, Counting, Method, Record, Skipped, Target};
use borescope_spool::testing::{Builder, merged_example, switch, switch_loop, worked_example};

/// Activations of one method on one arena.
pub type Run = (u32, u32, Vec<Vec<u32>>);

/// Method indices of the classes that [`log`] describes: the worked example (8 paths), a loop over 40 cases, one that never runs, one without
/// a loop (9 paths) that is counted in slots, and one with a branch whose ways are not told apart (4 paths).
pub const WORKED: u32 = 4;
pub const CASES: u32 = 12;
pub const NEVER: u32 = 60;
pub const LEAF: u32 = 70;
pub const MERGED: u32 = 80;
/// Turns of the worked example and of the cases that count as run loops.
const RUN_LOOPS: [(u32, &[u32]); 3] = [(WORKED, &[4, 6]), (CASES, &[0, 3, 30]), (MERGED, &[2])];

fn method(index: u32, name: &str, flow: Flow) -> Method {
    let lines = (0..8).map(|at| (at * 3, 10 + at)).collect();
    Method {
        index,
        counting: Counting::Rows,
        name: name.into(),
        descriptor: "(I)V".into(),
        lines,
        flow,
    }
}

/// The records of the log.
pub fn records() -> Vec<Record> {
    vec![
        Record::Target(Target {
            pid: 42,
            jdk: "17.0.15".into(),
            vm: "OpenJDK 64-Bit Server VM 17.0.15+6".into(),
            collector: "G1".into(),
            command: "acme.Main --fast".into(),
            started: 1_764_457_000_000,
            include: vec!["acme.*".into()],
            exclude: vec![],
            merge: true,
            straight_line: false,
            one_in: 0,
        }),
        Record::Class(Class {
            name: "acme/Main$Loop".into(),
            loader: "jdk/internal/loader/ClassLoaders$AppClassLoader".into(),
            hash: 0x0123_4567_89ab_cdef,
            source_file: Some("Main.java".into()),
            methods: vec![
                method(WORKED, "example", worked_example()),
                method(CASES, "cases", switch_loop(40)),
            ],
            straight_line: 3,
        }),
        Record::Skipped(Skipped {
            class: "acme/Big".into(),
            method: "huge".into(),
            descriptor: "()V".into(),
            reason: "would exceed 65535 bytes".into(),
        }),
        Record::Class(Class {
            name: "acme/Idle".into(),
            loader: "boot".into(),
            hash: 7,
            source_file: None,
            methods: vec![
                Method {
                    lines: vec![],
                    ..method(NEVER, "never", switch_loop(1))
                },
                Method {
                    counting: Counting::Slots,
                    ..method(LEAF, "leaf", switch(9))
                },
                method(MERGED, "merged", merged_example()),
            ],
            straight_line: 0,
        }),
        Record::Notice("hidden classes are not visible".into()),
    ]
}

/// The bytes of the log.
pub fn log() -> Vec<u8> {
    records().iter().flat_map(Record::encode).collect()
}

/// An image of the counters after these runs.
pub fn counters(engine: Engine, k: u32, runs: &[Run]) -> Builder {
    run_loops(Builder::new(engine, k), runs)
}

/// Counts these runs in `builder`, some in run slots.
pub fn run_loops(mut builder: Builder, runs: &[Run]) -> Builder {
    for (method, ids) in RUN_LOOPS {
        builder.run_loops(method, ids);
    }
    // The turns whose ID is the start value of the loop's head, after what leads there.
    let back: Vec<u32> = (0..38).collect();
    builder
        .short_runs(WORKED, 4, &[0, 2, 4, 6])
        .short_runs(CASES, 0, &back)
        .short_runs(MERGED, 2, &[0, 2]);
    counted(builder, runs)
}

/// Counts these runs in `builder`.
pub fn counted(mut builder: Builder, runs: &[Run]) -> Builder {
    builder
        .method(WORKED, 8)
        .method(CASES, 40)
        .method(MERGED, 4)
        .slots(LEAF);
    for (arena, method, activations) in runs {
        builder.run(*arena, *method, activations);
    }
    builder
}

/// Writes a spool into `dir` and seals it into `dir/p`.
pub fn sealed(dir: &Path, counters: &[u8], log: &[u8]) -> Result<(Manifest, Profile), Error> {
    let spool = dir.join("spool");
    fs::create_dir_all(&spool).unwrap();
    fs::write(spool.join("counters.bin"), counters).unwrap();
    fs::write(spool.join("meta.log"), log).unwrap();
    let out = dir.join("p");
    let manifest = seal(&spool, &out, Existing::Replace, &mut |_| ())?;
    let profile = Profile::open(&out)?;
    assert_eq!(profile.manifest(), &manifest);
    Ok((manifest, profile))
}
