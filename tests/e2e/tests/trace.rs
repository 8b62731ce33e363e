//! No stage of `./test` yet, since the agent does not record traces yet (docs/sites-numbering.md, "Recorded traces").
//!
//! Traces of the sites lens: of a program that says what happens, each allocation and each first reference of an identity hash, by object; and `borescope
//! simulate` reads them.

use borescope_e2e::sites::programs;
use borescope_e2e::{JDKS, borescope, java, output, root, run};
use borescope_sites::trace::{Step, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

/// Which of a line's objects are hashed: the first of each so many; 0 = none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    objects: u64,
    every: u64,
}

type Lines = BTreeMap<(u32, String), Line>;

/// The comments of the program.
fn expected() -> Lines {
    let source = fs::read_to_string(root().join("tests/sites/programs/Traced.java"));
    let mut lines = Lines::new();
    for (at, line) in (1..).zip(source.expect("the program").lines()) {
        let Some((_, comment)) = line.split_once("// trace: ") else {
            continue;
        };
        for part in comment.split("; ") {
            let words: Vec<&str> = part.split(' ').collect();
            let every = match words[2..] {
                ["none"] => 0,
                ["all"] => 1,
                ["every", n] => n.parse().expect("a number"),
                _ => panic!("line {at}: {part}"),
            };
            let objects = words[1].parse().expect("a number");
            let line = Line { objects, every };
            assert!(lines.insert((at, words[0].into()), line).is_none());
        }
    }
    assert!(lines.len() > 20);
    lines
}

/// What a trace says of the program's own lines.
fn observed(trace: &Trace) -> Lines {
    let mut objects = vec![0; trace.sites.len()];
    let mut hashed: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); trace.sites.len()];
    for step in &trace.steps {
        match *step {
            Step::Allocate { site, count } => objects[site as usize] += count,
            // `Trace::read` has checked that the object was there by then.
            Step::Hash { site, nth } => {
                let new = hashed[site as usize].insert(nth);
                assert!(new, "object {nth} of site {site} twice");
            }
        }
    }
    let mut lines = Lines::new();
    for (at, site) in trace.sites.iter().enumerate() {
        let own = ["Traced.", "Traced$"]
            .iter()
            .any(|p| site.label.starts_with(p));
        if !own || objects[at] == 0 {
            continue;
        }
        let (_, line) = site.label.rsplit_once(':').expect("a line");
        let key = (
            line.parse().expect("a line"),
            trace.classes[site.class as usize].clone(),
        );
        let nths = &hashed[at];
        let every = match nths.len() as u64 {
            0 => 0,
            n => objects[at].div_ceil(n),
        };
        // Just the first of each so many.
        let exact = nths.iter().zip(0..).all(|(&nth, i)| nth == i * every)
            && (every == 0 || nths.len() as u64 == objects[at].div_ceil(every));
        assert!(exact, "{} hashed {nths:?}", site.label);
        let line = Line {
            objects: objects[at],
            every,
        };
        assert!(lines.insert(key, line).is_none(), "{} twice", site.label);
    }
    lines
}

fn traced(jdk: u32, options: &[&str], file: &Path) -> Trace {
    let program = |command: &mut Command| {
        command
            .args(options)
            .args(["-Xverify:all", "-Xmx600m", "-cp"])
            .args([programs(), "Traced"])
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS");
        run(command)
    };
    let plain = program(&mut Command::new(java(jdk)));
    let with = program(
        Command::new(borescope())
            .args(["sites", "--trace"])
            .arg(file)
            .arg("--")
            .arg(java(jdk)),
    );
    let said = String::from_utf8_lossy(&with.stderr);
    assert_eq!(with.stdout, plain.stdout, "JDK {jdk}: {said}");
    assert!(
        said.contains("borescope: trace in ") && !said.contains("no room"),
        "{said}"
    );
    // Those that hold the lock themselves.
    assert!(said.contains(" times of locked objects"), "{said}");
    let open = File::open(file).expect("a trace");
    Trace::read(BufReader::new(open)).expect("a whole trace")
}

#[test]
fn a_trace_has_each_object_and_each_first_reference() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut failures = String::new();
    for jdk in JDKS {
        for collector in ["Serial", "Parallel", "G1", "Z", "Shenandoah"] {
            let option = format!("-XX:+Use{collector}GC");
            let name = format!("JDK {jdk} {collector}");
            let file = folder.path().join(format!("{jdk}-{collector}"));
            let trace = traced(jdk, &[&option], &file);
            let (expected, observed) = (expected(), observed(&trace));
            let keys: BTreeSet<_> = expected.keys().chain(observed.keys()).collect();
            for key in keys {
                let (e, o) = (expected.get(key), observed.get(key));
                if e != o {
                    failures += &format!("{name} {key:?}: expected {e:?}, found {o:?}\n");
                }
            }
            fs::remove_file(&file).expect("the trace");
            let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn the_simulator_reads_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("t");
    let trace = traced(17, &[], &file);
    let simulated = run(Command::new(borescope())
        .args(["simulate", "--format", "json"])
        .arg(&file));
    let json: serde_json::Value = serde_json::from_slice(&simulated.stdout).expect("JSON");
    let classes = json["simulate"]["sites_per_class"].as_array();
    let classes = classes.expect("classes");
    let plain = classes.iter().find(|c| c["class"] == "Traced$Plain");
    let plain = plain.expect("the class");
    // Five lines of 30,000 and one of 120,000.
    assert_eq!(plain["objects"], 30_000 * 5 + 120_000);
    assert_eq!(plain["hashed"], 10_000 + 30_000 + 3_750 + 120_000);
    assert_eq!(classes.len(), trace.classes.len());
    // A second recording does not take the first one's place.
    let again = output(
        Command::new(borescope())
            .args(["sites", "--trace"])
            .arg(&file)
            .args(["--", "true"]),
    );
    assert_eq!(again.status.code(), Some(2));
}
