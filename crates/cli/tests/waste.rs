//! The commands of the waste lens, without a JVM: a script leaves a spool as an agent would.

mod common;

use borescope_spool::testing::waste::{Samples, ledger, ledger_methods, software, spool};
use borescope_waste::handler::table::Capacity;
use borescope_waste::{Miss, Source};
use common::World;
use serde_json::Value;
use std::fs;

/// A world whose agent leaves the spool of a ledger with so many dead stores.
fn world(dead: usize) -> World {
    let w = World::new();
    fs::remove_file(w.path("template/counters.bin")).unwrap();
    ledger(&w.path("template"), dead);
    w
}

#[test]
fn the_program_runs_and_the_answer_is_shown() {
    let w = world(40);
    w.script(
        "java",
        r#"agent "$1"; printf '%s\0' "$@"; echo "out of the program" >&2; exit 7"#,
    );
    let ran = w.run(&[
        "waste",
        "--rate",
        "1000",
        "--tolerance",
        "0.5",
        "--watches",
        "2",
        "-o",
        "out",
        "--",
        "java",
        "-jar",
        "a b",
    ]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let agent = format!(
        "-agentpath:{}=lens=waste,out={},rate=1000,tolerance=0.005000,watches=2",
        w.path("agent.so").display(),
        w.path("out").display()
    );
    let words: Vec<&str> = ran.stdout.split_terminator('\0').collect();
    assert_eq!(words, [&agent, "-jar", "a b"]);
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said[0], "out of the program");
    assert!(said[1].contains("profile in ") && said[1].contains("`borescope report "));
    assert!(
        ran.stderr.contains("acme.Ledger.post (Ledger.java:41)"),
        "{ran:?}"
    );
    assert_eq!(
        w.list("out"),
        [
            "contexts.parquet",
            "manifest.json",
            "pairs.parquet",
            "skipped.parquet"
        ]
    );
}

#[test]
fn an_agent_that_cannot_work_leaves_the_code_2_to_a_program_that_ended_well() {
    let w = world(0);
    // As the agent does: a line with cause and remedy, and no spool.
    let refused =
        "echo 'borescope: perf_event_open is denied; set kernel.perf_event_paranoid to 2' >&2";
    for (code, expected) in [(0, 2), (5, 5)] {
        w.script("java", &format!("{refused}; echo hello; exit {code}"));
        let ran = w.run(&["waste", "-o", "out", "--", "java"]);
        assert_eq!(ran.code, Some(expected), "{ran:?}");
        assert_eq!(ran.stdout, "hello\n");
        assert!(ran.stderr.contains("perf_event_paranoid"), "{ran:?}");
        assert!(!w.path("out").exists());
    }
    // Also in a directory that was there.
    fs::create_dir(w.path("there")).unwrap();
    w.script("java", "mkdir there/.spool");
    assert_eq!(w.run(&["waste", "-o", "there", "--", "java"]).code, Some(2));
}

#[test]
fn reports_and_differences() {
    let w = world(400);
    w.java(0);
    w.run(&["waste", "-q", "-o", "one", "--", "java"]);
    ledger(&w.path("template"), 0);
    w.run(&["waste", "-q", "-o", "two", "--", "java"]);
    let report = w.run(&["report", "one", "--contexts"]);
    assert_eq!((report.code, report.stderr.as_str()), (Some(0), ""));
    assert!(
        report.stdout.contains("acme.Main.main (Main.java:10)"),
        "{report:?}"
    );
    let json = w.run(&["report", "one", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["waste"]["pairs"][0]["count"], 400);
    let stacks = w.run(&["report", "one", "--format", "collapsed"]);
    assert!(stacks.stdout.contains(";[dead_store];"), "{stacks:?}");
    let page = w.run(&["report", "one", "--format", "html"]);
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(page.stdout.starts_with("<!doctype html>"), "{page:?}");
    let diff = w.run(&["diff", "one", "two"]);
    assert_eq!((diff.code, diff.stderr.as_str()), (Some(0), ""));
    assert!(diff.stdout.contains("gone, dead store"), "{diff:?}");
    let diff = w.run(&["diff", "one", "two", "--format", "json", "--top", "1"]);
    let diff: Value = serde_json::from_str(&diff.stdout).unwrap();
    assert_eq!(diff["pairs"].as_array().unwrap().len(), 1);
    // What makes no sense is one line.
    w.run(&["diff", "one"]).fails(1, &["a second one"]);
    w.run(&["diff", "one", "two", "--from", "1"])
        .fails(1, &["--from"]);
    for format in ["pprof", "csv", "lcov", "sarif"] {
        w.run(&["report", "one", "--format", format, "--out", "file"])
            .fails(1, &["profile of waste", "text, json and collapsed"]);
    }
    w.run(&["report", "one", "--format", "collapsed", "--snapshot", "1"])
        .fails(1, &["only profiles of sites have snapshots"]);
    for (option, value) in [
        ("--rate", "0"),
        ("--rate", "10001"),
        ("--watches", "4"),
        ("--tolerance", "100"),
    ] {
        w.run(&["waste", option, value, "--", "java"])
            .fails(1, &[option]);
    }
    w.run(&["waste"]).fails(1, &["after `--`"]);
}

#[test]
fn an_empty_profile_is_told() {
    let w = world(0);
    let mut samples = Samples::new(Capacity::new(16, 8).unwrap(), Source::Software);
    samples.missed(Miss::NotCompiled, 50);
    spool(&w.path("template"), software(), &ledger_methods(), &samples);
    w.java(0);
    let ran = w.run(&["waste", "-o", "one", "--", "java"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("no pair of accesses was completed in 50 ticks"),
        "{ran:?}"
    );
    let report = w.run(&["report", "one"]);
    assert_eq!(report.code, Some(3));
    assert!(report.stdout.contains("-Xint"), "{report:?}");
}
