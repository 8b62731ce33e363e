//! Exports by the command line: where they go, which lens they are made of, and what is refused. What is in them is tested in the report crate.

mod common;

use borescope_spool::meta::Record;
use borescope_spool::sites::Cause;
use borescope_spool::testing::sites::{shop, shop_heap};
use common::World;
use std::fs;

/// A world with a profile of paths or of sites in `out`.
fn world(sites: bool) -> World {
    let w = World::new();
    if sites {
        fs::remove_file(w.path("template/counters.bin")).unwrap();
        let mut heap = shop(&w.path("template"));
        heap.snapshot(Cause::Interval, &shop_heap(10), false)
            .snapshot(Cause::Exit, &shop_heap(90), false)
            .record(&Record::Ended {
                at_ms: 1_764_457_300_000,
            });
    }
    w.java(0);
    let lens = if sites { "sites" } else { "paths" };
    let ran = w.run(&[lens, "-q", "-o", "out", "--", "java"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    w
}

#[test]
fn every_format_goes_to_a_file_or_to_standard_output() {
    for (sites, formats) in [
        (false, &["collapsed", "csv", "lcov", "sarif"][..]),
        (true, &["collapsed", "csv", "sarif"]),
    ] {
        let w = world(sites);
        for format in formats {
            let report = ["report", "out", "--format", format];
            let printed = w.run(&report);
            assert_eq!(
                (printed.code, &*printed.stderr),
                (Some(0), ""),
                "{printed:?}"
            );
            assert!(printed.stdout.lines().count() >= 3, "{printed:?}");
            let dash = w.run(&[&report[..], &["--out", "-"]].concat());
            assert_eq!(dash.stdout, printed.stdout);
            let file = w.run(&[&report[..], &["--out", "file"]].concat());
            assert_eq!((file.code, &*file.stdout), (Some(0), ""), "{file:?}");
            assert_eq!(fs::read_to_string(w.path("file")).unwrap(), printed.stdout);
        }
        let ran = w.run(&["report", "out", "--format", "pprof", "--out", "file"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
        assert_eq!(fs::read(w.path("file")).unwrap()[..2], [0x1f, 0x8b]);
        assert!(!w.path("-").exists());
    }
}

#[test]
fn a_snapshot_is_chosen() {
    let w = world(true);
    let stacks = |arguments: &[&str]| {
        let ran = w.run(&[&["report", "out", "--format", "collapsed"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    assert_eq!(stacks(&[]), stacks(&["--snapshot", "2"]));
    assert_ne!(stacks(&[]), stacks(&["--snapshot", "1"]));
    w.run(&["report", "out", "--format", "csv", "--snapshot", "7"])
        .fails(1, &["no snapshot 7", "it has 1, 2"]);
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_no_file() {
    let w = world(false);
    let before = w.list(".");
    for (arguments, words) in [
        (
            &["--format", "csv", "--top", "3"][..],
            &["--top", "csv"][..],
        ),
        (&["--format", "sarif", "--skipped"], &["--skipped", "sarif"]),
        (
            &["--snapshot", "1"],
            &["--snapshot", "pprof, collapsed or csv", "text"],
        ),
        (
            &["--format", "csv", "--snapshot", "1"],
            &["only profiles of sites have snapshots"],
        ),
        (
            &["--format", "hprof"],
            &["pprof, collapsed, csv, lcov, sarif"],
        ),
    ] {
        let all = [&["report", "out", "--out", "file"], arguments].concat();
        w.run(&all).fails(1, words);
    }
    assert_eq!(w.list("."), before, "nothing was made");

    let w = world(true);
    w.run(&["report", "out", "--format", "lcov", "--out", "file"])
        .fails(1, &["a profile of sites", "lcov", "`borescope paths`"]);
    assert!(!w.path("file").exists());
}
