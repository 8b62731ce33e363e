//! Allocation sites in real class files: every class of the corpus, and of the JDKs themselves, is instrumented with all settings by turns, and the JVM verifies
//! it (`-Xverify:all`, linked without being initialised) on JDK 17 and 25. What was found and what was left alone is printed. And a real program runs
//! from an instrumented jar, with a helper that looks at the header of each object that is said to be in nobody's reach.

#[path = "../../../crates/allocations/tests/support/mod.rs"]
mod support;

use borescope_allocations::{Resolver, Settings};
use borescope_e2e::programs::drivers;
use borescope_e2e::{java, jdk, output, root, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// All settings by turns.
fn settings(turn: u64, jdk: bool) -> Settings {
    if turn % 5 == 4 {
        return Settings {
            trace: true,
            attribute: false,
            local: true,
            ..Settings::default()
        };
    }
    Settings {
        jdk: jdk && turn % 4 != 3,
        local: turn.is_multiple_of(2),
        reset: turn.is_multiple_of(3),
        mark: turn % 8 != 7,
        // Half of a jar's classes at random play the JDK, so that there are many calls.
        is_jdk: |class| borescope_allocations::is_jdk(class) || class.len() % 2 == 0,
        ..Settings::default()
    }
}

/// Instruments the jars and has a JDK link all classes.
fn verified(version: u32, jars: &[(PathBuf, String)]) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut all = support::All::default();
    for (jar, _) in jars {
        all.add(jar);
    }
    let mut tally = support::Tally::default();
    let mut jobs = Vec::new();
    for (i, (jar, path)) in jars.iter().enumerate() {
        let job = dir.path().join(format!("{i}.job"));
        let out = dir.path().join(format!("{i}.jar"));
        support::instrument_jar(
            jar,
            |turn| settings(turn, path.is_empty()),
            &Resolver(&all),
            &out,
            path,
            &job,
            &mut tally,
        );
        jobs.push(job);
    }
    println!("JDK {version}: {tally:#?}");
    let constructed = tally.sites[&borescope_allocations::Kind::New];
    let lost = tally
        .skipped
        .get("the constructed object is too deep on the stack")
        .unwrap_or(&0);
    assert!(
        lost * 1000 <= constructed,
        "more than 0.1 % of sites are lost"
    );
    let mut command = Command::new(java(version));
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
        text.lines().partition(|line| line.starts_with("linked\t"));
    let sum = |field: usize| -> u64 {
        let numbers = sums.iter().filter_map(|line| line.split('\t').nth(field));
        numbers.map(|n| n.parse::<u64>().expect("a number")).sum()
    };
    println!(
        "JDK {version}: {} classes linked twice, {} of them instrumented; {} give the same error as they are",
        sum(1),
        sum(3),
        sum(2)
    );
    assert!(
        errors.is_empty(),
        "{} classes fail only when instrumented, such as\n{}",
        errors.len(),
        errors[..errors.len().min(20)].join("\n")
    );
    assert_eq!((sums.len(), sum(1)), (jars.len(), tally.classes));
    assert!(sum(2) * 10 < sum(1) && sum(3) * 3 > sum(1));
}

fn corpus(version: u32) {
    let jars: Vec<_> = support::jars()
        .into_iter()
        .map(|jar| (jar.clone(), support::class_path(&jar)))
        .collect();
    verified(version, &jars);
}

fn modules(version: u32) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let jar = dir.path().join("modules.jar");
    run(Command::new(java(version))
        .arg("-cp")
        .arg(drivers())
        .args(["Link", "--modules"])
        .arg(&jar));
    verified(version, &[(jar, String::new())]);
}

#[test]
fn corpus_on_17() {
    corpus(17);
}

#[test]
fn corpus_on_25() {
    corpus(25);
}

#[test]
fn jdk_17_itself() {
    modules(17);
}

#[test]
fn jdk_25_itself() {
    modules(25);
}

/// Compiles the helper that checks headers; the folder to patch java.base with.
fn checking_helper(dir: &Path) {
    let sources = root().join("crates/allocations/tests/java/checking");
    let patch = format!("java.base={}", sources.display());
    run(Command::new(jdk(17).join("bin/javac"))
        .args(["-nowarn", "--patch-module", &patch, "-d"])
        .arg(dir)
        .arg(sources.join("BorescopeSites.java")));
}

/// The compiler ecj compiles its own sources, all its sites marked: an object that is marked with a plain store is neither locked nor hashed, and is
/// not marked yet.
#[test]
fn plain_marks_meet_untouched_objects() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let jar = root().join(".cache/jars/ecj-3.38.0.jar");
    let modules = dir.path().join("modules.jar");
    run(Command::new(java(17))
        .arg("-cp")
        .arg(drivers())
        .args(["Link", "--modules"])
        .arg(&modules));
    let mut all = support::All::default();
    all.add(&modules);
    all.add(&jar);
    let (new, job) = (dir.path().join("ecj.jar"), dir.path().join("job"));
    let mut tally = support::Tally::default();
    support::instrument_jar(
        &jar,
        |_| Settings {
            local: true,
            ..Settings::default()
        },
        &Resolver(&all),
        &new,
        "",
        &job,
        &mut tally,
    );
    assert!(tally.plain_new * 2 > tally.sites[&borescope_allocations::Kind::New]);
    // A folder, as the jar is signed.
    let classes = dir.path().join("classes");
    unzip(&jar, &classes);
    unzip(&new, &classes);
    let helper = dir.path().join("helper");
    checking_helper(&helper);
    let sources = dir.path().join("sources");
    unzip(&root().join(".cache/jars/ecj-3.38.0-sources.jar"), &sources);
    for (version, collector) in [
        (17, "-XX:+UseSerialGC"),
        (21, "-XX:+UseG1GC"),
        (25, "-XX:+UseParallelGC"),
    ] {
        let mut command = Command::new(java(version));
        command
            .args(["-Xverify:all", "-Xmx512m", collector, "--patch-module"])
            .arg(format!("java.base={}", helper.display()))
            .arg("-cp")
            .arg(&classes)
            .args([
                "org.eclipse.jdt.internal.compiler.batch.Main",
                "-17",
                "-nowarn",
                "-proceedOnError",
                "-d",
                "none",
            ])
            .arg(&sources);
        let done = output(&mut command);
        let text = String::from_utf8_lossy(&done.stderr);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("marks: "))
            .unwrap_or_else(|| panic!("JDK {version}: {text}"));
        println!("JDK {version} {collector}: {line}");
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [plain, touched, other] = numbers[..] else {
            panic!("{line}")
        };
        assert!(plain > 1_000_000 && other > 10_000, "{line}");
        assert_eq!(touched, 0, "{line}");
    }
}

fn unzip(jar: &Path, dir: &Path) {
    let file = std::fs::File::open(jar).expect("sources");
    let mut zip = zip::ZipArchive::new(file).expect("a jar");
    zip.extract(dir).expect("sources");
}
