//! The sites lens on real JVMs: programs whose live objects are known report exactly those, by line; the totals are those of the JVM's own histogram; and the
//! program does not notice.

use borescope_e2e::live::{exact, nothing_wrong, run, same, witness};
use borescope_e2e::sites::{
    ALL, COMPACT, Log, Row, Target, Waiting, collectors, programs, report_rows, spool, suite,
};
use borescope_e2e::{
    JDKS, agent, borescope, borescope_report, java, jdk, root, run as done, sources,
};
use borescope_sites::{ClassId, Event, History, Scheme};
use borescope_spool::meta::Record;
use borescope_spool::snapshot::{self, Origin};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

/// Every collector with the JDK's classes, and the first without.
fn on_all_collectors(jdk: u32) {
    let mut wrong = Vec::new();
    for options in collectors(jdk) {
        wrong.extend(exact(jdk, options, "", &ALL));
    }
    wrong.extend(exact(jdk, "-XX:+UseSerialGC", ",jdk=0", &ALL));
    nothing_wrong(&wrong);
}

#[test]
fn live_objects_by_line_jdk_17() {
    on_all_collectors(17);
}

#[test]
fn live_objects_by_line_jdk_21() {
    on_all_collectors(21);
}

#[test]
fn live_objects_by_line_jdk_25() {
    on_all_collectors(25);
}

/// Without compressed class pointers the heap walk does not read classes out of objects, and goes by tags: with the same figures.
const BY_TAGS: &str = "-XX:-UseCompressedClassPointers";

#[test]
fn live_objects_by_line_where_the_walk_goes_by_tags() {
    let mut wrong = Vec::new();
    for jdk in JDKS {
        wrong.extend(exact(jdk, &format!("{BY_TAGS} -XX:+UseG1GC"), "", &ALL));
    }
    nothing_wrong(&wrong);
}

/// The log alone says what each number stands for: no event contradicts those before it, owners are in the log, and the headers were read by what it holds.
#[test]
fn the_log_of_numbers_is_whole() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let with = run(25, COMPACT, Some(("", &out)), &ALL);
    assert!(with.status.success());
    let log = Log::read(&spool(&out));
    let scheme = log.records.iter().find_map(|r| match r {
        Record::Sites(sites) => sites.scheme,
        _ => None,
    });
    let scheme = Scheme::from_bytes(&scheme.expect("a scheme")).expect("a scheme");
    let mut history = History::new(scheme);
    let mut names: HashMap<ClassId, &str> = HashMap::new();
    let (mut events, mut shorter) = (0, 0);
    for record in &log.records {
        let Record::Numbered(numbered) = record else {
            continue;
        };
        let event = Event::from_bytes(&numbered.event).expect("an event");
        history.apply(&event).expect("an event that can be");
        let name = *names.entry(event.class).or_insert(&numbered.signature);
        assert_eq!(name, numbered.signature, "a class has one name");
        assert!(numbered.owner > 0);
        events += 1;
        shorter += u32::from(Some(event.number.len()) < scheme.max_len(event.space));
    }
    println!("{events} numbers, {shorter} of them shorter than the first");
    assert!(events > 1000 && shorter > 100);
    let last = log.snapshots().last().map(|s| s.epoch);
    let decoder = history.decoder(last.expect("a snapshot"));
    assert!(decoder.slots() > 1000);
    // What the agent read, it can have read by these alone.
    let classes: BTreeSet<&str> = names.values().copied().collect();
    let marked = last_snapshot_types(&out);
    for ty in &marked {
        assert!(classes.contains(ty.as_str()), "{ty} has no numbers");
    }
    assert!(marked.len() > 50, "{}", marked.len());
}

/// Signatures of the types that have objects with an owner in the last snapshot.
fn last_snapshot_types(out: &Path) -> BTreeSet<String> {
    let spool = spool(out);
    let log = Log::read(&spool);
    let number = log.snapshots().last().expect("a snapshot").number;
    let bytes = std::fs::read(spool.join(snapshot::file_name(number))).expect("a file");
    let read = snapshot::Snapshot::read(&bytes).expect("a whole snapshot");
    let marked = read
        .rows
        .iter()
        .filter(|r| matches!(r.origin, Origin::Owner(_)));
    marked
        .map(|r| read.classes[r.class as usize].clone())
        .collect()
}

/// Interpreted, compiled by one compiler only, and compiled at once: the same counts.
#[test]
fn live_objects_by_line_however_it_is_compiled() {
    let mut wrong = Vec::new();
    for jdk in JDKS {
        let short: Vec<&str> = ALL.into_iter().filter(|t| *t != "Hot").collect();
        wrong.extend(exact(jdk, "-Xint", "", &short));
        wrong.extend(exact(jdk, "-XX:TieredStopAtLevel=1", "", &ALL));
        wrong.extend(exact(jdk, "-XX:-TieredCompilation", "", &ALL));
    }
    nothing_wrong(&wrong);
}

/// What is sealed and reported says the same as the spool, but for what has no site: that has reasons, no types.
#[test]
fn the_report_says_what_the_spool_says() {
    for (jdk, headers, asked, mode) in [
        (17, "", "auto", "spare"),
        (21, "", "auto", "spare"),
        (25, "", "auto", "spare"),
        (25, COMPACT, "auto", "dynamic"),
        (17, "", "dynamic", "dynamic"),
        (21, "", "static", "static"),
    ] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("out");
        let mut sites = Command::new(borescope());
        sites.args(["sites", "--quiet", "--mode", asked, "-o"]);
        sites.arg(&out).arg("--").arg(java(jdk));
        sites
            .args(headers.split_whitespace())
            .args(["-Xverify:all", "-cp"])
            .arg(&suite().classes)
            .arg("sites.All")
            .args(ALL);
        let with = done(&mut sites);
        same(&run(jdk, headers, None, &ALL), &with, "borescope sites");
        let report = borescope_report(&out);
        let snapshots = report["sites"]["snapshots"].as_array().expect("snapshots");
        let last = snapshots.len() - 1;
        assert_eq!(
            (
                snapshots[last]["cause"].as_str(),
                report["sites"]["mode"].as_str()
            ),
            (Some("exit"), Some(mode))
        );
        let rows = report_rows(&report, last);
        let (wrong, compared) = suite().check(&ALL, &rows, true, false);
        assert!(wrong.is_empty(), "JDK {jdk}, {mode}:\n{}", wrong.join("\n"));
        assert!(compared > 250, "{compared}");
        // Known and unknown together are all.
        let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
        for (known, unknown, all) in [
            (sum(|r| r.objects), "unknown_objects", "live_objects"),
            (sum(|r| r.bytes), "unknown_bytes", "live_bytes"),
        ] {
            assert_eq!(
                Some(known + snapshots[last][unknown].as_u64().expect(unknown)),
                snapshots[last][all].as_u64(),
                "{all}"
            );
        }
    }
}

#[test]
fn totals_are_those_of_the_class_histogram() {
    let mut wrong = Vec::new();
    for jdk in JDKS {
        for options in collectors(jdk) {
            wrong.extend(witness(jdk, options, ""));
        }
        wrong.extend(witness(jdk, BY_TAGS, ""));
    }
    nothing_wrong(&wrong);
}

/// The planted line of a program.
fn planted(program: &str) -> String {
    let source = root()
        .join("tests/sites/programs")
        .join(format!("{program}.java"));
    let text = std::fs::read_to_string(&source).expect("the source");
    let lines: Vec<usize> = (1..)
        .zip(text.lines())
        .filter(|(_, l)| l.ends_with("// leak"))
        .map(|(n, _)| n)
        .collect();
    assert_eq!(lines.len(), 1, "{program} has one planted line");
    format!("({program}.java:{})", lines[0])
}

/// The line of a report that a reader sees first.
fn first_finding(report: &str) -> &str {
    let mut lines = report
        .lines()
        .skip_while(|l| !l.starts_with("LOOK HERE FIRST"));
    lines
        .nth(1)
        .unwrap_or_else(|| panic!("nothing to look at:\n{report}"))
}

fn text_report(out: &Path) -> String {
    let report = done(Command::new(borescope()).arg("report").arg(out));
    String::from_utf8_lossy(&report.stdout).into_owned()
}

/// The first line of the report names the planted line: of one snapshot at the end, and of what has grown since one in between.
fn hunt(program: &str, arguments: &[&str]) {
    let planted = planted(program);
    for (jdk, headers) in JDKS.map(|jdk| (jdk, "")).into_iter().chain([(25, COMPACT)]) {
        let headers = || headers.split_whitespace();
        let plain = {
            let mut command = Command::new(java(jdk));
            command.args(headers());
            command.args(["-cp", programs(), program]).args(arguments);
            let (output, rest) = Waiting::start(&mut command, "warm").finish();
            assert!(output.status.success());
            rest
        };
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("out");
        let mut command = Command::new(java(jdk));
        command.arg(format!(
            "-agentpath:{}=lens=sites,out={}",
            agent().display(),
            out.display()
        ));
        command
            .args(headers())
            .args(["-Xverify:all", "-cp", programs(), program])
            .args(arguments);
        let waiting = Waiting::start(&mut command, "warm");
        done(Command::new(borescope()).args(["snapshot", &waiting.pid().to_string()]));
        let (output, rest) = waiting.finish();
        assert!(
            output.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(rest, plain, "{program} on JDK {jdk}");
        let report = text_report(&out);
        let first = first_finding(&report);
        assert!(
            first.contains(&planted),
            "{program} on JDK {jdk}: {first}\nin\n{report}"
        );
        assert!(first.contains("grew"), "{first}");

        let single = dir.path().join("single");
        let mut command = Command::new(borescope());
        command
            .args(["sites", "--quiet", "-o"])
            .arg(&single)
            .arg("--");
        command
            .arg(java(jdk))
            .args(headers())
            .args(["-cp", programs(), program])
            .args(arguments);
        let (output, _) = Waiting::start(&mut command, "warm").finish();
        assert!(
            output.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report = text_report(&single);
        let first = first_finding(&report);
        assert!(
            first.contains(&planted),
            "{program} on JDK {jdk}: {first}\nin\n{report}"
        );
        println!("{program} on JDK {jdk}: {first}");
    }
}

#[test]
fn leak_of_a_cache_on_h2() {
    hunt("CacheLeak", &["2000", "1000"]);
}

#[test]
fn leak_of_readers_of_lucene() {
    hunt("ReaderLeak", &["5000", "400"]);
}

#[test]
fn leak_of_listeners_of_the_jdks_web_server() {
    hunt("ListenerLeak", &["2000"]);
}

/// What README shows of `borescope demo sites`.
#[test]
fn the_example_of_the_readme() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let ran = done(
        Command::new(borescope())
            .args(["demo", "sites", "-o"])
            .arg(dir.path().join("run"))
            .env("JAVA_HOME", jdk(17)),
    );
    let advice = |text: &str| {
        let mut parts = text.split("LOOK HERE FIRST");
        let part = parts.find(|part| part.trim_start().starts_with("- demo.Shop.load"));
        let advice = part.and_then(|part| part.split("\n\n").next());
        let words = advice.unwrap_or_else(|| panic!("{text}"));
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(
        advice(&String::from_utf8_lossy(&ran.stdout)),
        advice(&readme)
    );
}

/// Headers that the lens cannot write to: one line, and the program runs as without it.
#[test]
fn what_it_does_not_support_is_said_in_one_line() {
    let hashes = "-XX:+UnlockExperimentalVMOptions -XX:hashCode=0";
    for (jdk, options, how) in [
        (17, "-XX:+UseBiasedLocking", ",mode=spare"),
        (25, COMPACT, ",mode=spare"),
        (21, hashes, ",mode=dynamic"),
    ] {
        let targets = ["Forms", "Used", "Hot"];
        let plain = run(jdk, options, None, &targets);
        let dir = tempfile::tempdir().expect("a temporary folder");
        let how = Some((how, dir.path().join("out")));
        let how = how.as_ref().map(|(how, out)| (*how, out.as_path()));
        let with = run(jdk, options, how, &targets);
        same(&plain, &with, options);
        let err = String::from_utf8_lossy(&with.stderr);
        let said: Vec<&str> = err
            .lines()
            .filter(|l| l.starts_with("borescope: "))
            .collect();
        assert_eq!(said.len(), 1, "{options}: {err}");
        println!("{options}: {}", said[0]);
    }
}

/// Every target is run, and says something.
#[test]
fn no_target_is_forgotten() {
    for file in sources(&root().join("tests/sites/sites")) {
        let name = file
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let helper = ["All", "Keep", "Loaded"].contains(&name.as_str());
        assert!(
            ALL.contains(&name.as_str()) || helper,
            "no test runs {name}"
        );
        assert!(
            name == "All" || !Target::read(&file).lines.is_empty(),
            "{name} expects nothing"
        );
    }
}
