//! Reports of the waste lens, from spools as an agent leaves them: whole texts in golden/ (see text.rs), and JSON against what was put in.

use std::path::Path;

use borescope_profile::Existing;
use borescope_profile::waste::{Profile, seal};
use borescope_report::waste::{collapsed, diff_json, diff_text, json, text};
use borescope_report::{Error, JsonOptions, MethodGlob, Sources, TextOptions};
use borescope_spool::meta::Record;
use borescope_spool::testing::waste::{Samples, ledger, ledger_methods, software, spool};
use borescope_spool::waste::Waste as SetUp;
use borescope_waste::handler::table::Capacity;
use borescope_waste::{Miss, Source};
use serde_json::{Value, json};

fn sealed(dir: &Path) -> Profile {
    let out = dir.join("p");
    seal(&dir.join("spool"), &out, Existing::Replace).unwrap();
    Profile::open(&out).unwrap()
}

/// A ledger with so many dead stores.
fn ledger_of(dead: usize) -> (tempfile::TempDir, Profile) {
    let tmp = tempfile::tempdir().unwrap();
    ledger(&tmp.path().join("spool"), dead);
    let profile = sealed(tmp.path());
    (tmp, profile)
}

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> Result<(), Error>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn golden(name: &str, got: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, got).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(got == want, "{name} differs:\n{got}");
    for line in got.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_ledger_with_source_and_contexts() {
    let (tmp, profile) = ledger_of(40);
    let dir = tmp.path().join("src/acme");
    std::fs::create_dir_all(&dir).unwrap();
    let source: String = (1..60)
        .map(|line| match line {
            41 => "        this.balance = 0;\n",
            43 => "        this.balance = read();\n",
            52 => "            sum += values[i];\n",
            _ => "\n",
        })
        .collect();
    std::fs::write(dir.join("Ledger.java"), source).unwrap();
    let options = TextOptions {
        source: Sources::open(&[tmp.path().join("src")]).unwrap(),
        contexts: true,
        ..TextOptions::default()
    };
    let report = written(|out| text(&profile, &options, out));
    golden("waste-ledger.txt", &report);
    // The planted pair is the first that the report names.
    let first = report
        .lines()
        .find(|line| line.starts_with("  - "))
        .unwrap();
    assert!(
        first.contains("acme.Ledger.post (Ledger.java:41)"),
        "{first}"
    );
}

#[test]
fn parts_of_a_report() {
    let (_tmp, profile) = ledger_of(40);
    let options = TextOptions {
        top: 1,
        method: Some(MethodGlob::new("*.sum")),
        ..TextOptions::default()
    };
    let report = written(|out| text(&profile, &options, out));
    assert!(report.contains("1. silent load, double"), "{report}");
    assert!(!report.contains("Ledger.post"), "{report}");
    assert!(
        report.contains("1 more pair of lines (--top N shows more)"),
        "{report}"
    );
    let options = TextOptions {
        method: Some(MethodGlob::new("Nobody")),
        ..TextOptions::default()
    };
    let report = written(|out| text(&profile, &options, out));
    assert!(
        report.contains("No wasteful pair has a line that matches Nobody."),
        "{report}"
    );
    for width in [0, 30, 300] {
        let options = TextOptions {
            width,
            contexts: true,
            ..TextOptions::default()
        };
        written(|out| text(&profile, &options, out));
    }
}

#[test]
fn nothing_completed_is_explained() {
    let tmp = tempfile::tempdir().unwrap();
    for (miss, words) in [
        (Miss::NotCompiled, "-Xint"),
        (Miss::LeftCode, "No watched place was accessed again"),
    ] {
        let mut samples = Samples::new(Capacity::new(16, 8).unwrap(), Source::Software);
        samples.missed(miss, 50);
        spool(
            &tmp.path().join("spool"),
            software(),
            &ledger_methods(),
            &samples,
        );
        let report = written(|out| text(&sealed(tmp.path()), &TextOptions::default(), out));
        assert!(
            report.contains("No pair of accesses was completed."),
            "{report}"
        );
        assert!(report.contains(words), "{report}");
    }
}

#[test]
fn a_source_without_tests_on_hardware_says_so_first() {
    let tmp = tempfile::tempdir().unwrap();
    let samples = Samples::new(Capacity::new(16, 8).unwrap(), Source::Ibs);
    let set_up = SetUp {
        source: Source::Ibs,
        ..software()
    };
    let records = [Record::Notice("n".into())];
    spool(&tmp.path().join("spool"), set_up, &records, &samples);
    let report = written(|out| text(&sealed(tmp.path()), &TextOptions::default(), out));
    let second = report.lines().nth(1).unwrap();
    assert!(second.contains("not tested on hardware"), "{report}");
}

#[test]
fn json_has_every_pair() {
    let (_tmp, profile) = ledger_of(40);
    let report = written(|out| json(&profile, &JsonOptions::default(), out));
    let report: Value = serde_json::from_str(&report).unwrap();
    let waste = &report["waste"];
    assert_eq!(
        (&waste["source"], &waste["weight"]),
        (&json!("software"), &json!("cpu-time"))
    );
    for name in [
        "ticks",
        "armed",
        "completed",
        "lost_to_gc",
        "replaced",
        "step_limit",
        "no_stack",
    ] {
        assert!(waste["samples"][name].is_u64(), "{name}");
    }
    assert_eq!(
        waste["kinds"]["dead_store"],
        json!({"asked": 50, "completed": 50, "wasteful": 40, "unanswered": 0, "fraction": 0.8})
    );
    let pairs = waste["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 5);
    let first = &pairs[0];
    for (name, value) in [
        ("kind", json!("dead_store")),
        ("count", json!(40)),
        ("share", json!(0.8)),
        ("type", json!("long")),
        ("rank", json!(1)),
        ("first_instruction", json!("mov [rax+0x10], rcx")),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
    assert!(first["hint"].as_str().unwrap().contains("overwrites"));
    let frame = &first["second"][0];
    assert_eq!(
        (
            &frame["class"],
            &frame["method"],
            &frame["line"],
            &frame["bci"],
            &frame["doubtful"]
        ),
        (
            &json!("acme.Ledger"),
            &json!("post"),
            &json!(43),
            &json!(12),
            &json!(false)
        )
    );
    assert_eq!(first["second"][2]["method"], "main");
    // Pairs of new objects come last.
    assert_eq!(pairs[4]["initialising"], true);
    let doubtful: Vec<bool> = pairs
        .iter()
        .map(|pair| pair["first"][0]["doubtful"] == true)
        .collect();
    assert_eq!(doubtful.iter().filter(|yes| **yes).count(), 1);
    let lines = waste["lines"].as_array().unwrap();
    let of_store = lines
        .iter()
        .find(|line| line["kind"] == "dead_store")
        .unwrap();
    assert_eq!(
        (&of_store["completed"], &of_store["wasteful"]),
        (&json!(50), &json!(40))
    );

    let options = JsonOptions {
        top: Some(1),
        method: Some(MethodGlob::new("*.sum")),
    };
    let report = written(|out| json(&profile, &options, out));
    let report: Value = serde_json::from_str(&report).unwrap();
    let pairs = report["waste"]["pairs"].as_array().unwrap();
    assert_eq!((pairs.len(), &pairs[0]["kind"]), (1, &json!("silent_load")));
}

#[test]
fn collapsed_stacks() {
    let (_tmp, profile) = ledger_of(40);
    let all = written(|out| collapsed(&profile, None, out));
    let dead = "acme.Main.main:10;acme.Main.run:20;acme.Ledger.post:41;[dead_store];acme.Ledger.post:43;acme.Main.run:20;acme.Main.main:10 40";
    assert!(all.lines().any(|line| line == dead), "{all}");
    assert_eq!(all.lines().count(), 5, "{all}");
    let glob = MethodGlob::new("*.post");
    let part = written(|out| collapsed(&profile, Some(&glob), out));
    assert_eq!(part.lines().count(), 3, "{part}");
}

#[test]
fn a_fix_is_told() {
    let (_kept, before) = ledger_of(400);
    let (_kept_too, after) = ledger_of(0);
    let options = TextOptions::default();
    let report = written(|out| diff_text(&before, &after, &options, out));
    golden("waste-fixed.txt", &report);
    assert!(report.contains("gone, dead store"), "{report}");
    let same = written(|out| diff_text(&before, &before, &options, out));
    assert!(
        same.contains("0 pairs of methods changed for sure"),
        "{same}"
    );
    let report = written(|out| diff_json(&before, &after, &JsonOptions::default(), out));
    let report: Value = serde_json::from_str(&report).unwrap();
    let first = &report["pairs"][0];
    for (name, value) in [
        ("verdict", json!("gone")),
        ("kind", json!("dead_store")),
        ("first", json!("acme.Ledger.post")),
        ("before_count", json!(400)),
        ("after_count", json!(0)),
        ("after_completed", json!(10)),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
    let sure = report["pairs"].as_array().unwrap().iter();
    assert_eq!(
        sure.filter(|pair| pair["verdict"] != "no clear change")
            .count(),
        1
    );
}
