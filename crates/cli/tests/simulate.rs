//! `borescope simulate`: its two forms of output, and what it refuses.

mod common;

use borescope_sites::trace::{Step, Trace, TraceSite};
use common::{Ran, World};
use serde_json::Value;
use std::path::Path;

fn ran(w: &World, args: &[&str]) -> Ran {
    Ran::new(w.borescope(args).output().unwrap())
}

/// Two classes; of the first, one site makes 100 objects of which 100 are hashed.
fn trace() -> Vec<u8> {
    let site = |class| TraceSite {
        class,
        method: 0,
        label: String::new(),
    };
    let allocate = |site, count| Step::Allocate { site, count };
    let mut steps = vec![allocate(0, 100), allocate(2, 3)];
    steps.extend((0..100).map(|nth| Step::Hash { site: 0, nth }));
    let trace = Trace {
        classes: vec!["a.Hashed".into(), "a.\u{1b}Plain".into()],
        sites: vec![site(0), site(0), site(1)],
        steps,
    };
    trace.write(Vec::new()).unwrap()
}

#[test]
fn a_trace_as_text_and_as_json() {
    let w = World::new();
    std::fs::write(w.path("t.trace"), trace()).unwrap();
    let text = ran(&w, &["simulate", "t.trace"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for line in [
        "Allocation sites: t.trace\n2 classes, 3 sites, of which 2 allocated 103 objects; the identity hash of 100 was asked for",
        "       2           1            100          100  a.Hashed\n       1           1              3            0  a.?Plain",
        "  14  static           100.0000     100.000       100  100.0%    0.0%      0.0%",
    ] {
        assert!(text.stdout.contains(line), "{line:?} in {text:?}");
    }
    assert!(!text.stdout.contains("invented"));

    let json = ran(
        &w,
        &[
            "simulate", "t.trace", "--format", "json", "--width", "20", "--seed", "5",
        ],
    );
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    let simulate = &value["simulate"];
    assert_eq!(
        (
            simulate["synthetic"].as_bool(),
            simulate["seed"].as_u64(),
            simulate["source"].as_str()
        ),
        (Some(false), Some(5), Some("t.trace"))
    );
    assert_eq!(simulate["sites_per_class"][0]["allocating"], 1);
    let rows = simulate["collisions"].as_array().unwrap();
    // A random hash of 15 bits is always there.
    let widths: Vec<_> = rows.iter().map(|r| r["width"].as_u64().unwrap()).collect();
    assert_eq!(widths, [15, 20, 20, 20, 20, 20, 20]);
    let row = |name: &str| rows.iter().find(|r| r["hashing"] == name).unwrap();
    assert_eq!(row("static")["max"], 100);
    assert_eq!(row("hybrid")["exact"], 100);
    assert_eq!(rows[0]["unmarked"], 100);
}

#[test]
fn the_demo_says_that_it_is_invented_and_is_the_same_each_time() {
    let w = World::new();
    let run = |seed: &str| {
        let args = ["simulate", "--demo", "--width", "15", "--seed", seed];
        ran(&w, &args).stdout
    };
    let first = run("3");
    assert!(
        first.starts_with("Allocation sites: synthetic trace, seed 3 (invented: no program ran)\n")
    );
    assert_eq!(first, run("3"));
    assert_ne!(first, run("4"));
}

#[test]
fn refusals() {
    let w = World::new();
    let mut cut = trace();
    cut.pop();
    std::fs::write(w.path("cut.trace"), cut).unwrap();
    std::fs::write(w.path("other.trace"), "no trace at all").unwrap();
    std::fs::create_dir(w.path("folder")).unwrap();
    for pid in ["12", "13"] {
        recording(&w.path("several").join(".spool").join(pid));
    }
    for (args, code, said) in [
        (&["simulate"][..], 1, "--demo"),
        (&["simulate", "--demo", "x"], 1, "cannot be used with"),
        (&["simulate", "--demo", "--width", "7"], 1, "7"),
        (&["simulate", "none.trace"], 2, "cannot read none.trace"),
        (&["simulate", "cut.trace"], 3, "cut.trace: trace: "),
        (
            &["simulate", "other.trace"],
            3,
            "it does not begin as a trace",
        ),
        (&["simulate", "folder"], 3, "folder holds no recording"),
        (&["simulate", "several"], 1, "several holds 2 recordings"),
        // Not made into a profile, which would be the end of it.
        (&["report", "several"], 3, "but the recording of a trace"),
        (&["sites", "--trace", "x/", "--", "java"], 1, "not `x/`"),
        (
            &["sites", "--trace", "cut.trace", "--", "java"],
            2,
            "is there already",
        ),
        (
            &["sites", "--trace", "none/t", "--", "java"],
            2,
            "cannot make none/t.recording",
        ),
        (
            &["sites", "--trace", "new", "--", "./no-program"],
            2,
            "cannot run `./no-program`",
        ),
    ] {
        let ran = ran(&w, args);
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(
            ran.stdout.is_empty() && ran.stderr.contains(said),
            "{ran:?}"
        );
    }
    assert!(!w.path("new.recording").exists());
    assert!(w.path("several/.spool/13/events.bin").exists());
}

/// A spool with no events.
fn recording(dir: &Path) {
    use borescope_spool::trace::{CLASSES, EVENTS, MAGIC, slot};
    std::fs::create_dir_all(dir).unwrap();
    let mut words = [0; slot::FIRST];
    words[slot::MAGIC] = MAGIC;
    words[slot::NEXT] = slot::FIRST as u64;
    words[slot::LIMIT] = slot::FIRST as u64;
    let bytes: Vec<u8> = words.iter().flat_map(|w: &u64| w.to_le_bytes()).collect();
    std::fs::write(dir.join(EVENTS), bytes).unwrap();
    std::fs::write(dir.join(CLASSES), "").unwrap();
    std::fs::write(dir.join("meta.log"), "").unwrap();
}

#[test]
fn what_a_run_has_left_is_a_trace_too() {
    let w = World::new();
    let spool = w.path("t.recording/.spool/12");
    recording(&spool);
    for dir in ["t.recording", "t.recording/.spool/12"] {
        let ran = ran(&w, &["simulate", dir]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("0 classes, 0 sites"), "{ran:?}");
    }
}
