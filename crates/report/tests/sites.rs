//! Reports of the sites lens, from spools as an agent leaves them: whole texts in golden/ (see text.rs), and JSON against what was put in.

use std::collections::BTreeMap;
use std::path::Path;

use borescope_profile::Existing;
use borescope_profile::sites::{Profile, seal};
use borescope_report::sites::{At, diff_json, diff_text, json, text};
use borescope_report::{Error, JsonOptions, MethodGlob, Sources, TextOptions};
use borescope_spool::meta::Record;
use borescope_spool::sites::{Cause, Sites};
use borescope_spool::snapshot::Origin;
use borescope_spool::testing::sites::{Heap, Live, shop, shop_heap, spare, target};
use serde_json::{Value, json};

fn sealed(dir: &Path, heap: &mut Heap) -> Profile {
    heap.record(&Record::Ended {
        at_ms: target().started + 200_000,
    });
    let out = dir.join("p");
    seal(&dir.join("spool"), &out, Existing::Replace).unwrap();
    Profile::open(&out).unwrap()
}

/// A shop of this many cached requests at each snapshot.
fn shop_at(requests: &[usize], causes: &[Cause]) -> (tempfile::TempDir, Profile) {
    let tmp = tempfile::tempdir().unwrap();
    let mut heap = shop(&tmp.path().join("spool"));
    for (&requests, &cause) in requests.iter().zip(causes) {
        heap.snapshot(cause, &shop_heap(requests), false);
    }
    let profile = sealed(tmp.path(), &mut heap);
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
fn a_leak_over_three_snapshots() {
    let causes = [
        Cause::Interval,
        Cause::Interval,
        Cause::OutOfMemory,
        Cause::Exit,
    ];
    let (_tmp, profile) = shop_at(&[10, 400, 1000, 2], &causes);
    let report = written(|out| text(&profile, &TextOptions::default(), out));
    golden("sites-leak.txt", &report);
    // The planted line is the first that the report names.
    let first = report
        .lines()
        .find(|line| line.starts_with("  - "))
        .unwrap();
    assert!(
        first.contains("acme.Cache.load (Cache.java:42) grew by"),
        "{first}"
    );
}

#[test]
fn one_snapshot() {
    let (_tmp, profile) = shop_at(&[100], &[Cause::Exit]);
    golden(
        "sites-one.txt",
        &written(|out| text(&profile, &TextOptions::default(), out)),
    );
}

#[test]
fn much_is_not_known() {
    let tmp = tempfile::tempdir().unwrap();
    let mut heap = Heap::new(
        &tmp.path().join("spool"),
        target(),
        Sites {
            attribute: false,
            ..spare()
        },
    );
    let live: Vec<Live> = vec![
        ("[B", 8192, Origin::NoMark),
        ("[C", 800, Origin::NoMark),
        ("Lacme/Lock;", 16, Origin::Unreadable),
        ("Lacme/Key;", 24, Origin::Hashed),
        ("Lacme/Key;", 24, Origin::Owner(9)),
        ("Lacme/Key;", 24, Origin::Foreign),
    ];
    heap.record(&Record::Notice("the JVM has no spare bits to waste".into()))
        .snapshot(Cause::Request, &live, false);
    let profile = sealed(tmp.path(), &mut heap);
    golden(
        "sites-unknown.txt",
        &written(|out| text(&profile, &TextOptions::default(), out)),
    );
}

#[test]
fn no_snapshot_and_nothing_that_grew() {
    let tmp = tempfile::tempdir().unwrap();
    let profile = sealed(tmp.path(), &mut shop(&tmp.path().join("spool")));
    let report = written(|out| text(&profile, &TextOptions::default(), out));
    assert!(report.contains("No snapshot was taken"), "{report}");
    let (_tmp, profile) = shop_at(&[50, 10], &[Cause::Request, Cause::Exit]);
    let report = written(|out| text(&profile, &TextOptions::default(), out));
    assert!(
        report.contains("No line has more live bytes than before."),
        "{report}"
    );
    assert!(!report.contains("LOOK HERE"), "{report}");
    assert!(
        report.contains("4 lines shrank") || report.contains("3 lines shrank"),
        "{report}"
    );
}

/// The table of the cache's line grows once, its nodes in each step.
#[test]
fn steps_are_of_what_is_asked_for() {
    let (_tmp, profile) = shop_at(&[10, 11, 17], &[Cause::Interval; 3]);
    let options = TextOptions {
        method: Some(MethodGlob::new("HashMap.resize")),
        ..TextOptions::default()
    };
    let report = written(|out| text(&profile, &options, out));
    let words: Vec<&str> = report.split_whitespace().collect();
    let said = words.join(" ");
    assert!(said.contains("it grew in 1 of 2 steps"), "{report}");
}

#[test]
fn two_profiles_compare_by_lines() {
    let (_one, before) = shop_at(&[10], &[Cause::Exit]);
    let (_two, after) = shop_at(&[10, 90], &[Cause::Request, Cause::Exit]);
    let (before, after) = (At::last(&before).unwrap(), At::last(&after).unwrap());
    let options = TextOptions {
        method: Some(MethodGlob::new("Cache.put")),
        ..TextOptions::default()
    };
    golden(
        "sites-diff.txt",
        &written(|out| diff_text(before, after, &options, out)),
    );
    let value = written(|out| diff_json(before, after, &JsonOptions::default(), out));
    let value: Value = serde_json::from_str(&value).unwrap();
    assert_eq!(value["before"]["live_objects"], json!(shop_heap(10).len()));
    assert_eq!(value["after"]["number"], json!(2));
    let lines = value["lines"].as_array().unwrap();
    assert_eq!(lines[0]["class"], "acme.Cache");
    assert_eq!(lines[0]["line"], 42);
    assert_eq!(lines[0]["after_bytes"], 90 * 1040);
    let put = lines.iter().find(|line| line["line"] == 52).unwrap();
    assert_eq!(put["types"][0]["type"], "java.util.HashMap$Node");
    assert_eq!(put["types"][0]["site"]["line"], 1901);
    // Everything with a site is in some line, once.
    for (side, at) in [("before", before), ("after", after)] {
        let sum = |key: &str| -> u64 {
            let of = |line: &Value| line[format!("{side}_{key}")].as_u64().unwrap();
            lines.iter().map(of).sum()
        };
        assert_eq!(sum("objects"), at.snapshot.with_site.objects);
        assert_eq!(sum("bytes"), at.snapshot.with_site.bytes);
    }
}

/// docs/formats.md, "JSON report": the fields that tools rely on.
#[test]
fn json_keeps_its_contract() {
    let (_tmp, profile) = shop_at(&[5, 20], &[Cause::Request, Cause::Exit]);
    let value = written(|out| json(&profile, &JsonOptions::default(), out));
    let value: Value = serde_json::from_str(&value).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["target"]["collector"], "G1");
    assert_eq!(value["skipped"][0]["lens"], "sites");
    assert_eq!(value["sites"]["mode"], "spare");
    let snapshots = value["sites"]["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.len(), 2);
    let last = &snapshots[1];
    assert_eq!(last["cause"], "exit");
    assert_eq!(last["unknown_objects"], 2);
    assert_eq!(
        last["unknown_reasons"],
        json!({"vm or native": 1, "hash taken first": 1})
    );
    let mut by_line: BTreeMap<(String, u64), (u64, u64)> = BTreeMap::new();
    let sites = last["sites"].as_array().unwrap();
    for site in sites {
        assert!(site["allocated"].is_null());
        let number = |key: &str| site[key].as_u64().unwrap();
        let app = (
            site["type"].as_str().unwrap().to_owned(),
            site["app_line"].as_u64().unwrap_or(0),
        );
        let sum = by_line.entry(app).or_default();
        *sum = (sum.0 + number("live_objects"), sum.1 + number("live_bytes"));
    }
    let of = |ty: &str, line| by_line[&(ty.to_owned(), line)];
    assert_eq!(of("byte[]", 42), (20, 20_800));
    assert_eq!(of("acme.Cache$Entry", 51), (20, 480));
    assert_eq!(of("java.util.HashMap$Node", 52), (20, 640));
    assert_eq!(of("java.util.HashMap$Node", 0), (1, 32));
    let all: u64 = by_line.values().map(|sum| sum.0).sum();
    assert_eq!(json!(all + 2), last["live_objects"]);
    let node = sites
        .iter()
        .find(|site| site["app_line"] == 52 && site["line"] == 1901)
        .unwrap();
    assert_eq!(node["class"], "java.util.HashMap");
    assert_eq!(node["method"], "newNode");
    assert_eq!(
        (&node["app_class"], &node["app_method"]),
        (&json!("acme.Cache"), &json!("put"))
    );
    // --top limits each list, --method chooses.
    let options = JsonOptions {
        top: Some(1),
        method: Some(MethodGlob::new("acme.Shop.*")),
    };
    let value: Value = serde_json::from_str(&written(|out| json(&profile, &options, out))).unwrap();
    let sites = value["sites"]["snapshots"][0]["sites"].as_array().unwrap();
    assert_eq!(sites.len(), 1);
    assert_eq!(sites[0]["class"], "acme.Shop");
}

#[test]
fn source_lines_and_many_snapshots() {
    let (_tmp, profile) = shop_at(&[5; 13], &[Cause::Interval; 13]);
    let sources = tempfile::tempdir().unwrap();
    let file: String = (1..60)
        .map(|line| format!("    code of {line}\n"))
        .collect();
    std::fs::create_dir(sources.path().join("acme")).unwrap();
    std::fs::write(sources.path().join("acme/Cache.java"), file).unwrap();
    let options = TextOptions {
        source: Sources::open(&[sources.path().to_owned()]).unwrap(),
        ..TextOptions::default()
    };
    let report = written(|out| text(&profile, &options, out));
    assert!(report.contains("\n   code of 42\n"), "{report}");
    assert!(!report.contains("code of 12"), "of another file: {report}");
    let (_, snapshots) = report.split_once("SNAPSHOTS\n").unwrap();
    let listed: Vec<&str> = snapshots
        .lines()
        .filter_map(|line| line.split_once(" by the clock"))
        .map(|(number, _)| number.trim())
        .collect();
    assert_eq!(
        listed,
        ["1", "5", "6", "7", "8", "9", "10", "11", "12", "13"]
    );
    assert!(snapshots.contains("... 3 more"), "{snapshots}");
}

#[test]
fn narrow_terminals_and_closed_pipes() {
    let (_tmp, profile) = shop_at(&[10, 300], &[Cause::Request, Cause::Exit]);
    for width in [0, 20, 40, 200] {
        let options = TextOptions {
            width,
            top: 2,
            ..TextOptions::default()
        };
        assert!(!written(|out| text(&profile, &options, out)).is_empty());
    }
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    text(&profile, &TextOptions::default(), &mut Closed).unwrap();
    json(&profile, &JsonOptions::default(), &mut Closed).unwrap();
}
