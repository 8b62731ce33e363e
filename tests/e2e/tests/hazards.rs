//! Hazards that need a JVM of their own: ends of the program, a second agent. The program's output and exit code are those of the plain run,
//! and the counts those of the witness and of the comments.

use borescope_e2e::compare::{Asked, Witnessed};
use borescope_e2e::expect::Target;
use borescope_e2e::hazards::{Job, TOGETHER, suite};
use borescope_e2e::report::{Method, PathCount};
use borescope_e2e::{JDKS, jdk, root, run, sources};
use std::path::PathBuf;
use std::process::Command;

/// Runs a target plain, watched and profiled with each engine, and compares.
fn same(job: &Job, exit: i32) {
    let target = job.targets[0];
    let plain = job.plain();
    assert_eq!(
        plain.status.code(),
        Some(exit),
        "{job:?}: {}",
        String::from_utf8_lossy(&plain.stderr)
    );
    let (watched, record) = job.watch();
    assert_eq!(
        (watched.status.code(), &watched.stdout),
        (Some(exit), &plain.stdout),
        "the witness disturbs {target}"
    );
    let witnessed = Witnessed::new(record).expect("the record agrees with the class files");
    let mut wrong = Vec::new();
    let numbers = suite().check(&job.targets, &witnessed.seen(), &mut wrong);
    assert!(numbers > 0, "{target} expects nothing");
    assert!(
        wrong.is_empty(),
        "JDK {}: comments and witness differ:\n{}",
        job.jdk,
        wrong.join("\n")
    );
    let [default, full, split, _] = Asked::ALL;
    for (engine, k, asked) in [
        ("automaton", 4, default),
        ("automaton", 2, full),
        ("ksf", 3, default),
        ("ksf-mtf", 3, default),
        ("blpp-hash", 1, split),
        ("blpp-dense", 1, full),
    ] {
        let (profiled, report) = job.profile(engine, k, asked);
        let name = format!(
            "{target} on JDK {}, {engine}, k = {k}, {}",
            job.jdk,
            asked.options().join(" ")
        );
        assert_eq!(
            profiled.status.code(),
            Some(exit),
            "{name}: {}",
            String::from_utf8_lossy(&profiled.stderr)
        );
        assert_eq!(
            String::from_utf8_lossy(&profiled.stdout),
            String::from_utf8_lossy(&plain.stdout),
            "{name}: standard output"
        );
        let (findings, comments) = suite().judge(&job.targets, &witnessed, &report, asked);
        assert!(
            findings.wrong.is_empty(),
            "{name}:\n{}",
            findings.wrong.join("\n")
        );
        println!("{name}: {} methods, {comments} comments", findings.methods);
    }
}

fn on_all(target: &str, exit: i32) {
    for jdk in JDKS {
        same(
            &Job {
                jdk,
                targets: vec![target],
                ..Job::default()
            },
            exit,
        );
    }
}

#[test]
fn exit_in_a_loop() {
    on_all("ExitInLoop", 3);
}

#[test]
fn halt() {
    on_all("Halt", 4);
}

#[test]
fn daemon_threads_and_shutdown_hooks_at_exit() {
    on_all("DaemonAtExit", 0);
}

#[test]
fn exception_out_of_main() {
    on_all("DiesInMain", 1);
}

/// The JVM is in the middle of loading the same classes when the load hook gets them: it must not load or call anything. (The witness, which
/// asks the JVM about each class, cannot follow here.)
#[test]
fn circle_of_superclasses() {
    for jdk in JDKS {
        let job = Job {
            jdk,
            targets: vec!["Circular"],
            ..Job::default()
        };
        let plain = job.plain();
        let text = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(text.contains("ClassCircularityError"), "{text}");
        for engine in ["automaton", "ksf", "ksf-mtf"] {
            let (profiled, report) = job.profile(engine, 3, Asked::ALL[0]);
            assert_eq!(
                (profiled.status, String::from_utf8_lossy(&profiled.stdout)),
                (plain.status, String::from_utf8_lossy(&plain.stdout)),
                "JDK {jdk}, {engine}"
            );
            let main = |m: &&Method| m.class == "hazards.Circular" && m.method == "main";
            let main = report.methods.iter().find(main).expect("main was counted");
            assert_eq!(main.activations, 1);
        }
    }
}

/// The jar of a Java agent.
fn rewriter() -> PathBuf {
    let folder = suite().scratch();
    let manifest = folder.join("manifest");
    std::fs::write(
        &manifest,
        "Premain-Class: tools.Rewriter\nCan-Retransform-Classes: true\n",
    )
    .expect("a manifest");
    let jar = folder.join("rewriter.jar");
    let mut command = Command::new(jdk(17).join("bin/jar"));
    command
        .arg("cfm")
        .arg(&jar)
        .arg(&manifest)
        .arg("-C")
        .arg(suite().classes())
        .arg("tools/Rewriter.class");
    run(&mut command);
    jar
}

/// An agent has changed the methods of a class before we could: we see what the JVM shows us, or leave the class plain and say so.
#[test]
fn second_agent_that_changes_the_schema() {
    let jar = rewriter();
    for jdk in JDKS {
        for how in ["schema", "schema-retransform"] {
            let job = Job {
                jdk,
                tool_options: Some(format!("-javaagent:{}={how}", jar.display())),
                targets: vec!["Early"],
                ..Job::default()
            };
            let plain = job.plain();
            let text = String::from_utf8_lossy(&plain.stdout).into_owned();
            assert!(text.contains("5 14") && text.contains("nameBBBB"), "{text}");
            for engine in ["automaton", "ksf", "ksf-mtf"] {
                let (profiled, report) = job.profile(engine, 3, Asked::ALL[0]);
                assert_eq!(
                    (profiled.status, String::from_utf8_lossy(&profiled.stdout)),
                    (plain.status, String::from_utf8_lossy(&plain.stdout)),
                    "JDK {jdk}, {how}, {engine}"
                );
                let counted: u64 = report
                    .methods
                    .iter()
                    .filter(|m| m.class == "hazards.Early" && m.method == "loop")
                    .flat_map(|m| &m.paths)
                    .map(|p| p.count)
                    .sum();
                let refused = report
                    .skipped
                    .iter()
                    .any(|s| s.class == "hazards.Early" && s.reason.contains("refuses"));
                let expected = match how {
                    "schema" => (9, false),
                    _ => (0, true),
                };
                assert_eq!((counted, refused), expected, "JDK {jdk}, {how}, {engine}");
            }
        }
    }
}

#[test]
fn second_agent_in_both_orders() {
    let jar = rewriter();
    for jdk in JDKS {
        for how in ["plain", "retransform"] {
            let agent = format!("-javaagent:{}={how}", jar.display());
            // The JVM takes agents from the variable first, then those of the command line, where borescope puts its own in front.
            let first = Job {
                jdk,
                tool_options: Some(agent.clone()),
                targets: vec!["Rewritten"],
                ..Job::default()
            };
            let last = Job {
                jdk,
                options: vec![&agent],
                targets: vec!["Rewritten"],
                ..Job::default()
            };
            for job in [first, last] {
                let text = String::from_utf8_lossy(&job.plain().stdout).into_owned();
                assert!(
                    text.contains("7654324 7654327"),
                    "the agent had no effect: {text}"
                );
                same(&job, 0);
            }
        }
    }
}

#[test]
fn thousands_of_classes_unloaded() {
    for jdk in JDKS {
        let job = Job {
            jdk,
            options: vec!["-Xmx64m"],
            targets: vec!["Unloading:5000"],
            ..Job::default()
        };
        let plain = job.plain();
        for engine in ["automaton", "ksf", "ksf-mtf"] {
            let (profiled, report) = job.profile(engine, 3, Asked::ALL[0]);
            assert_eq!(
                (profiled.status, &profiled.stdout),
                (plain.status, &plain.stdout)
            );
            let thrown: Vec<_> = report
                .methods
                .iter()
                .filter(|m| m.class == "hazards.Thrown" && m.method == "applyAsInt")
                .collect();
            assert_eq!(thrown.len(), 1, "equal bytes share one table");
            let items: u64 = thrown[0].paths.iter().map(|p| p.count).sum();
            assert_eq!(
                (thrown[0].activations, items),
                (5000, 25_000),
                "JDK {jdk}, {engine}"
            );
        }
    }
}

/// The worked example of the source document: 14 paths in the trace, <C D D C> three times.
#[test]
fn worked_example() {
    let job = Job {
        jdk: 17,
        targets: vec!["WorkedExample"],
        ..Job::default()
    };
    for engine in ["automaton", "ksf", "ksf-mtf"] {
        let (_, report) = job.profile(engine, 4, Asked::ALL[0]);
        let trace = report
            .methods
            .iter()
            .find(|m| m.method == "trace")
            .expect("trace is reported");
        assert_eq!(trace.num_paths, "8");
        assert_eq!(trace.paths.iter().map(|p| p.count).sum::<u64>(), 14);
        // The paths that go round: through the line of block C, and through that of D.
        let id = |line| {
            let round = |p: &&PathCount| p.count == 6 && p.lines.contains(&line);
            let path = trace.paths.iter().find(round);
            path.unwrap_or_else(|| panic!("no path runs 6 times through line {line}"))
                .id
                .clone()
        };
        let (c, d) = (id(13), id(15));
        let gram = [c.clone(), d.clone(), d, c];
        let count = trace.ngrams.iter().find(|(ids, _)| *ids == gram);
        assert_eq!(count.map(|(_, n)| *n), Some(3), "{engine}");
    }
}

/// Every target is run by a test: together with others, or by its name in this file.
#[test]
fn no_target_is_forgotten() {
    let here = include_str!("hazards.rs");
    let mut targets = 0;
    for file in sources(&root().join("tests/hazards/hazards")) {
        let name = file
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name != "All" {
            assert!(
                TOGETHER.contains(&name.as_str()) || here.contains(&format!("\"{name}\"")),
                "no test runs {name}"
            );
            assert!(
                !Target::read(&file).expectations.is_empty(),
                "{name} expects nothing"
            );
            targets += 1;
        }
    }
    assert!(targets >= 30, "only {targets} targets");
}
