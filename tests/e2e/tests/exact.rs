//! Exact against an independent witness: on every JDK, in every compilation mode, with every engine, short branches told apart or not, methods
//! with a single path counted or not, the report's counts of paths and of sequences of paths equal those derived from the single-stepped
//! instructions of a plain run, and the numbers that stand as comments on the targets' source lines. Targets: `tests/hazards`; always with
//! `-Xverify:all`.

use borescope_e2e::compare::{Asked, Witnessed};
use borescope_e2e::hazards::{Job, TOGETHER, suite};
use borescope_e2e::{agent, borescope_report, java, programs, run};
use std::process::Command;

/// Ways to run bytecode, by JVM options. Compiling everything with C2 takes long, so there only the targets and the probes are.
const MODES: [(&str, &[&str]); 4] = [
    ("interpreter", &["-Xint"]),
    ("C1", &["-Xcomp", "-XX:TieredStopAtLevel=1"]),
    (
        "C2",
        &[
            "-Xcomp",
            "-XX:-TieredCompilation",
            "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=compileonly,hazards.*::*",
            "-XX:CompileCommand=compileonly,java.lang.BorescopeProbe::*",
            "-XX:CompileCommand=compileonly,java.lang.invoke.BorescopeTrap::*",
        ],
    ),
    ("default", &[]),
];

/// Lengths of sequences.
const LENGTHS: [u32; 4] = [1, 2, 4, 16];

/// One run of the targets under borescope.
struct Try {
    mode: &'static str,
    options: &'static [&'static str],
    engine: &'static str,
    k: u32,
    asked: Asked,
}

/// What is tried on one JDK. Each pair of (mode, k), (mode, what was asked) and (k, what was asked) occurs on each JDK, and over the JDKs
/// three of the four ways to ask with each mode and k. The other engines are there for comparison: the k-slab forest takes two lengths in
/// each mode, with move to front one, the two plain baselines take turns.
fn tries(jdk: u32) -> Vec<Try> {
    let turn = borescope_e2e::JDKS.iter().position(|j| *j == jdk);
    let turn = turn.expect("a known JDK");
    let mut tries = Vec::new();
    for (m, (mode, options)) in MODES.into_iter().enumerate() {
        let mut add = |engine, k, asked: usize| {
            tries.push(Try {
                mode,
                options,
                engine,
                k,
                asked: Asked::ALL[asked % 4],
            });
        };
        for (l, k) in LENGTHS.into_iter().enumerate() {
            add("automaton", k, m + l + turn);
            if (m + l) % 2 == 0 {
                add("ksf", k, m + l / 2 + turn);
            } else if (m + l) % 4 == 1 {
                add("ksf-mtf", k, m + turn);
            }
        }
        let baseline = ["blpp-hash", "blpp-dense"][(m + turn) % 2];
        add(baseline, 1, m + turn + 1);
    }
    tries
}

fn exact_on(jdk: u32) {
    let job = Job {
        jdk,
        targets: TOGETHER.to_vec(),
        ..Job::default()
    };
    let (plain, record) = job.watch();
    assert!(
        plain.status.success(),
        "{}",
        String::from_utf8_lossy(&plain.stderr)
    );
    let witnessed = Witnessed::new(record).expect("the record agrees with the class files");

    let mut wrong = Vec::new();
    let seen = witnessed.seen();
    let numbers = suite().check(&TOGETHER, &seen, &mut wrong);
    assert!(
        wrong.is_empty(),
        "JDK {jdk}: comments and witness differ:\n{}",
        wrong.join("\n")
    );
    println!(
        "JDK {jdk}: the witness saw {} methods run; {numbers} numbers in comments agree",
        seen.len()
    );
    assert!(numbers > 300, "only {numbers} numbers in comments");

    for Try {
        mode,
        options,
        engine,
        k,
        asked,
    } in tries(jdk)
    {
        let job = Job {
            options: options.to_vec(),
            ..job.clone()
        };
        let name = format!(
            "JDK {jdk}, {mode}, {engine}, k = {k}, {}",
            asked.options().join(" ")
        );
        let (run, report) = job.profile(engine, k, asked);
        let (findings, comments) = suite().judge(&TOGETHER, &witnessed, &report, asked);
        println!(
            "{name}: {} methods ({} with fixed counters, {} of one path left out), {} branches merged, {} sequences, {comments} comments \
             compared, {} differ",
            findings.methods,
            findings.slots,
            findings.straight_line,
            findings.merged,
            findings.grams,
            findings.wrong.len()
        );
        let stderr = String::from_utf8_lossy(&run.stderr);
        if run.status.code() != Some(0) {
            wrong.push(format!("{name}: ended with {}: {stderr}", run.status));
        }
        if run.stdout != plain.stdout {
            wrong.push(format!(
                "{name}: printed other than plain:\n{}",
                String::from_utf8_lossy(&run.stdout)
            ));
        }
        // What is not used is not tested.
        for (what, used, expected) in [
            ("fixed counters", findings.slots, engine == "automaton"),
            ("merged branches", findings.merged, asked.merge),
        ] {
            if (used >= 20) != expected {
                wrong.push(format!("{name}: {used} {what}"));
            }
        }
        wrong.extend(
            findings
                .wrong
                .iter()
                .take(20)
                .map(|w| format!("{name}: {w}")),
        );
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The design covers what it says.
#[test]
fn tries_cover_pairs() {
    let mut all = std::collections::BTreeMap::new();
    for jdk in borescope_e2e::JDKS {
        let tries = tries(jdk);
        let own = tries.iter().filter(|t| t.engine == "automaton");
        let (mut modes, mut lengths) = (vec![], vec![]);
        for t in own {
            let asked = t.asked.options();
            modes.push((t.mode, asked.clone()));
            lengths.push((t.k, asked.clone()));
            let ways: &mut Vec<_> = all.entry((t.mode, t.k)).or_default();
            ways.push(asked);
        }
        modes.sort();
        modes.dedup();
        lengths.sort();
        lengths.dedup();
        assert_eq!((modes.len(), lengths.len()), (16, 16));
        for engine in ["ksf", "ksf-mtf", "blpp-hash", "blpp-dense"] {
            assert!(tries.iter().any(|t| t.engine == engine), "{engine}");
        }
    }
    for (pair, mut ways) in all {
        ways.sort();
        ways.dedup();
        assert_eq!(ways.len(), 3, "{pair:?}");
    }
}

#[test]
fn exact_on_17() {
    exact_on(17);
}

#[test]
fn exact_on_21() {
    exact_on(21);
}

#[test]
fn exact_on_25() {
    exact_on(25);
}

/// Slow paths that are traps in C2's code (java/probe, BorescopeTrap) count what the interpreter counts. `-Xbatch` makes the compilers take the same
/// decisions each time.
#[test]
fn traps() {
    for jdk in borescope_e2e::JDKS {
        let profile = |jvm: &[String]| {
            let dir = tempfile::tempdir().expect("a directory");
            let out = dir.path().join("p");
            let mut command = Command::new(java(jdk));
            command.arg(format!(
                "-agentpath:{}=lens=paths,k=16,include=Traps,out={}",
                agent().display(),
                out.display()
            ));
            command.args(jvm).arg("-cp").arg(programs::drivers());
            let ran = run(command.args(["Traps", "12000"]));
            (ran.stdout, borescope_report(&out)["paths"].clone())
        };
        let logs = tempfile::tempdir().expect("a directory");
        let log = logs.path().join("log");
        let compiled = [
            "-Xbatch".into(),
            "-XX:+UnlockDiagnosticVMOptions".into(),
            "-XX:+LogCompilation".into(),
            format!("-XX:LogFile={}", log.display()),
        ];
        let (said, counted) = profile(&["-Xint".into()]);
        assert_eq!(profile(&compiled), (said, counted), "JDK {jdk}");
        let log = std::fs::read(log).expect("the log");
        let log = String::from_utf8_lossy(&log);
        let trapped = log
            .match_indices("<uncommon_trap thread=")
            .filter(|(at, _)| {
                log[*at..]
                    .lines()
                    .nth(1)
                    .is_some_and(|l| l.contains("BorescopeTrap known"))
            });
        let trapped = trapped.count();
        println!("JDK {jdk}: {trapped} slow paths trapped");
        assert!(trapped > 0, "JDK {jdk}");
    }
}
