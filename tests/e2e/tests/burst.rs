//! Burst mode on real JVMs: what is estimated of a program that does the same each time, against a run that counts everything. Numbers are
//! compared on one thread with fixed seeds, so each run chooses the same activations.

use borescope_e2e::hazards::{Job, TOGETHER};
use borescope_e2e::{agent, borescope, borescope_report, java, output, programs, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Runs the program under the agent and reads its profile.
fn profile(jdk: u32, options: &str, jvm: &[&str], args: &[&str]) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("p");
    let agent = format!(
        "-agentpath:{}=lens=paths,include=Bursts,out={},{options}",
        agent().display(),
        out.display()
    );
    let mut command = Command::new(java(jdk));
    command.arg(agent).arg("-Xverify:all").args(jvm);
    command.arg("-cp").arg(programs::drivers());
    let ran = run(command.arg("Bursts").args(args));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!said.contains("borescope"), "{said}");
    borescope_report(&out)
}

/// A count: value, and its interval if it is an estimate.
type Count = (u64, Option<(u64, u64)>);

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn count(value: &Value, interval: &Value) -> Count {
    let ends = (!interval.is_null()).then(|| (number(&interval["lo"]), number(&interval["hi"])));
    (number(value), ends)
}

/// All counts of a report, by method and what is counted.
fn counts(report: &Value) -> BTreeMap<(String, String), Count> {
    let mut all = BTreeMap::new();
    let list = |value: &Value| value.as_array().expect("a list").clone();
    for method in list(&report["paths"]["methods"]) {
        let name = method["method"].as_str().expect("a name").to_owned();
        let mut add = |what: String, count| all.insert((name.clone(), what), count);
        for (what, ends) in [
            ("activations", "activations_interval"),
            ("iterations", "iterations_interval"),
        ] {
            add(what.into(), count(&method[what], &method[ends]));
        }
        let estimated = !method["chosen"].is_null();
        assert_eq!(method["exact"], !estimated, "{name}");
        for path in list(&method["paths"]) {
            add(
                format!("path {}", path["id"]),
                count(&path["count"], &path["interval"]),
            );
        }
        for gram in list(&method["ngrams"]) {
            let ends = if estimated { &gram } else { &Value::Null };
            add(gram["ids"].to_string(), count(&gram["count"], ends));
        }
    }
    all
}

/// Of all estimates: how many hold the truth, and how many there are. What is exact must be equal.
fn held(truth: &Value, burst: &Value) -> (u32, u32) {
    let (truth, burst) = (counts(truth), counts(burst));
    let (mut held, mut all) = (0, 0);
    for (what, (count, ends)) in &burst {
        let Some((exact, None)) = truth.get(what).copied() else {
            panic!("{what:?} did not happen");
        };
        match ends {
            None => assert_eq!(*count, exact, "{what:?}"),
            Some((lo, hi)) => {
                assert!(lo <= count && count <= hi, "{what:?}");
                all += 1;
                held += u32::from(*lo <= exact && exact <= *hi);
            }
        }
    }
    (held, all)
}

/// `main` and `work` run once: nothing is said of them. The rest has thousands of activations.
fn intervals_hold_on(jdk: u32) {
    let args = ["20000"];
    for (k, jvm) in [(1, "-Xint"), (4, "-XX:+UseSerialGC")] {
        let truth = profile(jdk, &format!("k={k}"), &[], &args);
        let (mut held_all, mut all) = (0, 0);
        let mut samples = Vec::new();
        for seed in 1..=4 {
            let options = format!("k={k},burst=16,seed={seed}");
            let burst = profile(jdk, &options, &[jvm], &args);
            let head = &burst["paths"]["burst"];
            assert_eq!((number(&head["one_in"]), number(&head["groups"])), (16, 16));
            let total = number(&truth["paths"]["totals"]["ids"]);
            let ends = (number(&head["ids"]["lo"]), number(&head["ids"]["hi"]));
            assert!(ends.0 <= total && total <= ends.1, "{total} {ends:?}");
            let (held, of) = held(&truth, &burst);
            (held_all, all) = (held_all + held, all + of);
            samples.push(number(&burst["paths"]["totals"]["ids"]));
        }
        println!("JDK {jdk}, k = {k}: {held_all} of {all} intervals hold the truth");
        // 95 % of them would, if they were independent; those of one method in one run are not.
        assert!(held_all * 100 >= all * 90, "{held_all} of {all}");
        assert!(all > if k == 1 { 100 } else { 1000 }, "{all}");
        samples.sort_unstable();
        samples.dedup();
        assert_eq!(samples.len(), 4, "seeds choose alike");
    }
}

#[test]
fn intervals_hold_on_17() {
    intervals_hold_on(17);
}

#[test]
fn intervals_hold_on_21() {
    intervals_hold_on(21);
}

#[test]
fn intervals_hold_on_25() {
    intervals_hold_on(25);
}

/// The same seed chooses the same activations, whoever compiles them.
#[test]
fn a_seed_repeats() {
    let options = "k=2,burst=7,seed=18446744073709551615";
    let one = profile(25, options, &["-Xint"], &["3000"]);
    let other = profile(
        25,
        options,
        &["-Xcomp", "-XX:TieredStopAtLevel=1"],
        &["3000"],
    );
    assert_eq!(counts(&one), counts(&other));
}

/// The ends of the range: half of the activations, and next to none of them.
#[test]
fn most_and_least() {
    let truth = profile(25, "k=2", &[], &["4000"]);
    let half = profile(25, "k=2,burst=2,seed=5", &[], &["4000"]);
    let (held_of_half, all) = held(&truth, &half);
    assert!(
        all > 100 && held_of_half * 100 >= all * 90,
        "{held_of_half} of {all}"
    );
    // 20,000 activations: none or a few are chosen, and what is counted in slots is all there.
    let least = profile(25, "k=2,burst=65536,seed=5", &[], &["4000"]);
    let leaf = |report: &Value| counts(report)[&("leaf".to_owned(), "iterations".to_owned())];
    assert_eq!(leaf(&least), (4000, None));
    let chosen: u64 = (least["paths"]["methods"]
        .as_array()
        .expect("methods")
        .iter())
    .filter_map(|m| m["chosen"].as_u64())
    .sum();
    assert!(chosen < 10, "{chosen}");
}

/// Virtual threads share arenas, and which of them comes first is chance: so only far bounds hold for certain.
#[test]
fn virtual_threads() {
    for jdk in [21, 25] {
        let report = profile(jdk, "k=3,burst=4,seed=9", &[], &["16000", "virtual"]);
        let counts = counts(&report);
        let get = |method: &str| counts[&(method.to_owned(), "activations".to_owned())];
        // All turns of eight threads; six standard deviations of 4,000 chosen are 330.
        assert_eq!(get("leaf"), (16_000, None), "JDK {jdk}");
        for method in ["even", "uneven", "nested", "caught", "many"] {
            let (count, ends) = get(method);
            assert!(
                (14_600..17_400).contains(&count) && ends.is_some(),
                "JDK {jdk}: {method} {count}"
            );
        }
        let even = counts[&("even".to_owned(), "iterations".to_owned())].0;
        assert_eq!(even, 9 * get("even").0, "JDK {jdk}");
    }
}

/// Programs that are hard to splice and to run do the same with two copies of their code, of which half of the activations each run one.
#[test]
fn hazards_run_as_without_probes() {
    let all_of_c1: &[&str] = &["-Xcomp", "-XX:TieredStopAtLevel=1"];
    let (mut chosen, mut long) = (0, 0);
    for (jdk, options) in [(17, all_of_c1), (21, &[]), (25, &["-Xint"]), (25, &[])] {
        let job = Job {
            jdk,
            options: options.to_vec(),
            targets: TOGETHER.to_vec(),
            ..Job::default()
        };
        let plain = job.plain();
        let (ran, report) = job.profile_with(4, "automaton", &["--burst", "1/2"]);
        assert_eq!(ran.status.code(), Some(0), "JDK {jdk} {options:?}");
        let text = |out: &[u8]| String::from_utf8_lossy(out).into_owned();
        assert_eq!(
            text(&ran.stdout),
            text(&plain.stdout),
            "JDK {jdk} {options:?}"
        );
        for method in report["paths"]["methods"].as_array().expect("methods") {
            let estimated = !method["chosen"].is_null();
            chosen += u32::from(estimated);
            long += u32::from(!estimated && method["unfinished"].is_u64());
        }
    }
    // Methods in rows that are too long for two copies count exactly.
    println!("{chosen} methods with two copies, {long} too long for them");
    assert!(chosen > 400 && long > 0, "{chosen} {long}");
}

fn fails(args: &[&str]) -> String {
    let mut command = Command::new(borescope());
    let out = output(command.args(args));
    assert_eq!(out.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// What cannot be is said in one line, and by the agent without a halt.
#[test]
fn bad_options() {
    for share in ["64", "1/1", "1/65537", "2/64"] {
        let said = fails(&["paths", "--burst", share, "--", "java"]);
        assert!(said.contains("1/64"), "{said}");
    }
    let said = fails(&["paths", "--burst", "1/64", "--engine", "ksf", "--", "java"]);
    assert!(
        said.contains("automaton") && said.trim_end().lines().count() == 1,
        "{said}"
    );
    for options in ["burst=0", "burst=64,engine=ksf"] {
        let mut command = Command::new(java(25));
        command.arg(format!("-agentpath:{}={options}", agent().display()));
        command.arg("-cp").arg(programs::drivers());
        let out = output(command.args(["Bursts", "10"]));
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(
            said.lines().filter(|l| l.contains("burst")).count(),
            1,
            "{said}"
        );
    }
}
