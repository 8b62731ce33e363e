//! The waste lens on real JVMs: programs whose share of useless loads and stores is known are measured within five points, and do not notice.

use borescope_e2e::sites::collectors;
use borescope_e2e::waste::{Expected, WITHIN, found, suite};
use borescope_e2e::{borescope, borescope_report, java, output, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Ticks for each second of CPU time: many, as it is the answers that count here, not what they cost.
const RATE: &str = "10000";
/// Rounds of the first run; each further one has [`MORE`] times as many.
const ROUNDS: u32 = 4_000_000;
const MORE: u32 = 3;
/// A machine that is so slow that this many runs are not enough is told so.
const RUNS: u32 = 3;

/// `java` with the targets, to be run for so many rounds.
fn target(jdk: u32, options: &str, rounds: u32) -> Vec<String> {
    let mut words = vec![java(jdk).display().to_string()];
    words.extend(options.split_whitespace().map(str::to_owned));
    // Each access in compiled code of its own, and nobody knows what the others do.
    let apart = "-XX:CompileCommand=dontinline,waste.*::*";
    words.extend(["-XX:CompileCommand=quiet", apart, "-Xmx300m", "-cp"].map(str::to_owned));
    words.push(suite().classes().display().to_string());
    words.extend(["waste.All".to_owned(), rounds.to_string()]);
    words
}

/// Profiles a run, which must not notice.
fn profiled(jdk: u32, options: &str, rounds: u32, out: &Path) {
    let words = target(jdk, options, rounds);
    let (program, arguments) = words.split_first().expect("a program");
    let clean = |command: &mut Command| {
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS");
    };
    let mut plain = Command::new(program);
    clean(plain.args(arguments));
    let plain = run(&mut plain);
    let mut with = Command::new(borescope());
    with.args(["waste", "--rate", RATE, "-q", "-o"]).arg(out);
    clean(with.arg("--").args(&words));
    let with = output(&mut with);
    let said = String::from_utf8_lossy(&with.stderr);
    assert_eq!(with.status.code(), Some(0), "JDK {jdk} {options}: {said}");
    assert_eq!(with.stdout, plain.stdout, "JDK {jdk} {options}: {said}");
}

/// Stores to references where the collector loads the field before: these are not dead, or not asked about.
fn loads_before_it_stores(jdk: u32, options: &str, expected: &Expected) -> bool {
    let generational =
        options.contains("ZGenerational") || (jdk > 21 && options.contains("UseZGC"));
    generational && expected.of_reference() && expected.kind == "dead_store"
}

/// What is wrong, or how many answers were too few.
fn check(jdk: u32, options: &str, report: &Value) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for expected in &suite().expected {
        let (completed, wasteful) = found(report, expected);
        if loads_before_it_stores(jdk, options, expected) {
            continue;
        }
        if completed < expected.needed() {
            let needed = expected.needed();
            return Err(format!(
                "{expected}: {completed} answers, {needed} are needed"
            ));
        }
        let share = 100.0 * wasteful as f64 / completed as f64;
        if (share - f64::from(expected.percent)).abs() > WITHIN {
            wrong.push(format!(
                "JDK {jdk} {options}: {expected}: measured {share:.1} % ({wasteful} of {completed})"
            ));
        }
    }
    Ok(wrong)
}

/// Runs until there are answers enough.
fn known_answers(jdk: u32, options: &str) -> Vec<String> {
    let mut rounds = ROUNDS;
    let mut few = String::new();
    for _ in 0..RUNS {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("out");
        profiled(jdk, options, rounds, &out);
        match check(jdk, options, &borescope_report(&out)) {
            Ok(wrong) => {
                let programs = suite().expected.len();
                println!(
                    "JDK {jdk} {options}: {programs} programs, {} wrong",
                    wrong.len()
                );
                return wrong;
            }
            Err(why) => few = why,
        }
        rounds *= MORE;
    }
    vec![format!(
        "JDK {jdk} {options}: too few answers after {RUNS} runs: {few}"
    )]
}

fn on_all_collectors(jdk: u32) {
    assert!(suite().expected.len() >= 24, "{}", suite().expected.len());
    let all = collectors(jdk);
    let wrong: Vec<String> = all
        .iter()
        .flat_map(|options| known_answers(jdk, options))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn known_answers_on_17() {
    on_all_collectors(17);
}

#[test]
fn known_answers_on_21() {
    on_all_collectors(21);
}

#[test]
fn known_answers_on_25() {
    on_all_collectors(25);
}

#[test]
fn where_nothing_is_compiled_the_lens_refuses_and_the_program_runs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let words = target(17, "-Xint", 1000);
    let mut with = Command::new(borescope());
    with.args(["waste", "-o"])
        .arg(dir.path().join("out"))
        .arg("--")
        .args(&words);
    let with = output(&mut with);
    let said = String::from_utf8_lossy(&with.stderr);
    assert_eq!(with.status.code(), Some(2), "{said}");
    assert!(said.contains("-Xint"), "{said}");
    assert!(!with.stdout.is_empty(), "the program did not run");
}
