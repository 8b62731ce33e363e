//! Exact against an independent witness: on every JDK, in every compilation mode, with every engine, the report's counts of paths and of
//! sequences of paths equal those derived from the single-stepped instructions of a plain run, and the numbers that stand as comments on
//! the targets' source lines. Targets: `tests/hazards`; always with `-Xverify:all`.

use borescope_e2e::compare::Witnessed;
use borescope_e2e::hazards::{Job, suite};

/// The targets that run one after another in one JVM.
const TOGETHER: [&str; 34] = [
    "Straight",
    "Branches",
    "Loops",
    "LoopAtZero",
    "Nested",
    "WorkedExample",
    "Catching",
    "Finally",
    "Synced",
    "Unwinding",
    "Recursion",
    "Switches",
    "LocalReuse",
    "Constructors",
    "Members",
    "Lambdas",
    "ManyPaths",
    "BigSwitch",
    "Threads",
    "VirtualThreads",
    "Reflective",
    "TwoLoaders",
    "Unloading",
    "Hidden",
    "OldVersions",
    "Irreducible",
    "DeadCode",
    "Subroutines",
    "WideLocals",
    "HugeMethods",
    "FarBranches",
    "StackOverflow",
    "Reflection",
    "Hot",
];

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
        ],
    ),
    ("default", &[]),
];

/// Engines with lengths of sequences; the two baselines count single paths only.
const ENGINES: [(&str, &[u32]); 4] = [
    ("automaton", &[1, 2, 4, 16]),
    ("ksf", &[1, 2, 4, 16]),
    ("blpp-hash", &[1]),
    ("blpp-dense", &[1]),
];

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
    let witnessed = Witnessed::new(record);

    let mut wrong = Vec::new();
    let seen = witnessed
        .seen()
        .expect("the record agrees with the class files");
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

    for (at, (mode, options)) in MODES.iter().enumerate() {
        for (engine, lengths) in ENGINES {
            for (i, k) in lengths.iter().enumerate() {
                // The k-slab forest, kept for comparison, takes two of the lengths in each mode.
                if engine == "ksf" && (i + at) % 2 == 1 {
                    continue;
                }
                let job = Job {
                    options: options.to_vec(),
                    ..job.clone()
                };
                let name = format!("JDK {jdk}, {mode}, {engine}, k = {k}");
                let (run, report) = job.profile(engine, *k);
                let (findings, comments) = suite().judge(&TOGETHER, &witnessed, &report);
                println!(
                    "{name}: {} methods, {} sequences, {comments} comments compared, {} differ",
                    findings.methods,
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
                wrong.extend(
                    findings
                        .wrong
                        .iter()
                        .take(20)
                        .map(|w| format!("{name}: {w}")),
                );
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
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
