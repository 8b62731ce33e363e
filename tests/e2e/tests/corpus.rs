//! Real class files: every class of the corpus, and every class of the JDKs themselves, goes through a splice without edits (same bytes) and
//! through full instrumentation, and the JVM then verifies it (`-Xverify:all`, linked without being initialised) on JDK 17 and 25.
//! An error that the class as it was does not give is a failure. The number of methods that stay plain is printed by reason.

use borescope_classfile::ClassFile;
use borescope_e2e::corpus::{Tally, instrument, jars};
use borescope_e2e::programs::drivers;
use borescope_e2e::{java, root, run};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that can be a dependency of `jar`: all jars but other versions of the same artifact.
fn class_path(jar: &Path) -> String {
    let artifact = |p: &Path| {
        let name = p
            .file_stem()
            .expect("a jar has a name")
            .to_string_lossy()
            .into_owned();
        let end = name
            .match_indices('-')
            .find(|(i, _)| name[i + 1..].starts_with(|c: char| c.is_ascii_digit()))
            .map_or(name.len(), |(i, _)| i);
        name[..end].to_owned()
    };
    let mut others: Vec<PathBuf> = std::fs::read_dir(root().join(".cache/jars"))
        .expect("run tests/fetch")
        .map(|e| e.expect("directory entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "jar") && artifact(p) != artifact(jar))
        .collect();
    others.sort();
    others
        .iter()
        .map(|p| p.display().to_string())
        .collect::<Vec<_>>()
        .join(":")
}

/// Instruments the jars, engines and burst mode by turns from `first` on, and has a JDK link all classes.
fn verified(jdk: u32, first: usize, jars: &[(PathBuf, String)]) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut total = Tally::default();
    let mut jobs = Vec::new();
    for (i, (jar, path)) in jars.iter().enumerate() {
        let job = dir.path().join(format!("{i}.job"));
        total.add(instrument(
            jar,
            first,
            &dir.path().join(format!("{i}.jar")),
            path,
            &job,
        ));
        jobs.push(job);
    }
    println!(
        "JDK {jdk}: {} classes of {} jars, {} MB, {:.2} times the size when instrumented; {} methods instrumented, plain:",
        total.classes,
        jars.len(),
        total.bytes >> 20,
        total.grown as f64 / total.bytes as f64,
        total.methods
    );
    for (reason, count) in &total.plain {
        println!("  {count:6} {reason}");
    }
    assert!(
        total.unreadable.is_empty(),
        "not read: {:#?}",
        total.unreadable
    );
    assert!(
        total.changed.is_empty(),
        "changed by a splice without edits: {:#?}",
        total.changed
    );

    let mut command = Command::new(java(jdk));
    command
        .args([
            "-Xverify:all",
            "-Xmx2g",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
        ])
        .arg(drivers())
        .arg("Link")
        .args(&jobs);
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    let (sums, errors): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|l| l.starts_with("linked\t"));
    let sum = |field: usize| -> u64 {
        sums.iter()
            .map(|l| {
                l.split('\t')
                    .nth(field)
                    .and_then(|n| n.parse::<u64>().ok())
                    .expect("a number")
            })
            .sum()
    };
    println!(
        "JDK {jdk}: {} classes linked twice, {} of them instrumented; {} give the same error as they are; {} new errors",
        sum(1),
        sum(3),
        sum(2),
        errors.len()
    );
    assert!(
        errors.is_empty(),
        "{} classes fail only when instrumented, such as\n{}",
        errors.len(),
        errors[..errors.len().min(20)].join("\n")
    );
    assert_eq!(sums.len(), jars.len());
    assert_eq!(sum(1), total.classes);
    // A class path that lacks too much would make the comparison worthless.
    assert!(
        sum(2) * 10 < sum(1),
        "too many classes cannot be linked as they are"
    );
    assert!(sum(3) * 3 > sum(1), "too few classes were instrumented");
}

fn corpus(jdk: u32, first: usize) {
    let all: Vec<_> = jars()
        .into_iter()
        .map(|jar| (jar.clone(), class_path(&jar)))
        .collect();
    verified(jdk, first, &all);
}

fn modules(jdk: u32, first: usize) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let jar = dir.path().join("modules.jar");
    run(Command::new(java(jdk))
        .arg("-cp")
        .arg(drivers())
        .args(["Link", "--modules"])
        .arg(&jar));
    verified(jdk, first, &[(jar, String::new())]);
}

#[test]
fn corpus_on_17() {
    corpus(17, 0);
}

#[test]
fn corpus_on_25() {
    corpus(25, 1);
}

#[test]
fn jdk_17_itself() {
    modules(17, 2);
}

#[test]
fn jdk_25_itself() {
    modules(25, 3);
}

/// The judge itself: a class that was rewritten wrongly (a constructor that returns an int) is found, in both JDKs.
#[test]
fn broken_class_is_found() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let bytes = std::fs::read(drivers().join("Check.class")).expect("compiled driver");
    let class = ClassFile::parse(&bytes).expect("a class file");
    let code = class
        .methods()
        .iter()
        .find(|m| m.name() == "<init>")
        .and_then(|m| m.code())
        .expect("a constructor")
        .code;
    let last = code
        .iter()
        .rposition(|&b| b == 0xb1)
        .expect("a return instruction");
    let at = code.as_ptr().addr() - bytes.as_ptr().addr() + last;
    let mut broken = bytes.clone();
    broken[at] = 0xac;
    for (name, bytes) in [("good.jar", &bytes), ("broken.jar", &broken)] {
        let mut zip = zip::ZipWriter::new(File::create(dir.path().join(name)).expect("jar"));
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        zip.start_file("Check.class", stored).expect("entry");
        zip.write_all(bytes).expect("entry");
        zip.finish().expect("jar");
    }
    let (good, broken) = (dir.path().join("good.jar"), dir.path().join("broken.jar"));
    let job = dir.path().join("job");
    let lines = format!(
        "{}\n{}\n{}\nCheck.class",
        good.display(),
        broken.display(),
        good.display()
    );
    std::fs::write(&job, lines).expect("job");
    for jdk in [17, 25] {
        let output = run(Command::new(java(jdk))
            .args(["-Xverify:all", "-cp"])
            .arg(drivers())
            .arg("Link")
            .arg(&job));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.starts_with("Check.class\t-\tjava.lang.VerifyError: "),
            "{text}"
        );
        assert!(text.ends_with("linked\t1\t0\t1\n"), "{text}");
    }
}
