//! Runs targets of the sites lens and holds what was alive against their comments, and against the JVM's own histogram.

use crate::sites::{ALL, Log, Row, Waiting, by_type, histogram, rows, spool, suite};
use crate::{agent, borescope, java, jdk, output, run as done};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// Targets on one JDK with a collector, with the agent if there are options for it.
pub fn command(
    jdk: u32,
    options: &str,
    agent_options: Option<(&str, &Path)>,
    targets: &[&str],
) -> Command {
    let mut command = Command::new(java(jdk));
    command
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS");
    if let Some((how, out)) = agent_options {
        command.arg(format!(
            "-agentpath:{}=lens=sites,out={}{how}",
            agent().display(),
            out.display()
        ));
    }
    command
        .args(["-Xverify:all", "-Xmx600m"])
        .args(options.split_whitespace());
    command
        .arg("-cp")
        .arg(&suite().classes)
        .arg("sites.All")
        .args(targets);
    command
}

/// The same, run to its end.
pub fn run(
    jdk: u32,
    options: &str,
    agent_options: Option<(&str, &Path)>,
    targets: &[&str],
) -> Output {
    output(&mut command(jdk, options, agent_options, targets))
}

/// The program does not notice.
pub fn same(plain: &Output, with: &Output, name: &str) {
    let err = String::from_utf8_lossy(&with.stderr);
    assert_eq!(with.status, plain.status, "{name}: {err}");
    assert_eq!(
        String::from_utf8_lossy(&with.stdout),
        String::from_utf8_lossy(&plain.stdout),
        "{name}: {err}"
    );
}

/// The snapshot that was taken when the JVM ended.
pub fn last(out: &Path) -> Vec<Row> {
    let spool = spool(out);
    let log = Log::read(&spool);
    let snapshots = log.snapshots();
    let last = snapshots
        .last()
        .unwrap_or_else(|| panic!("no snapshot; the agent says {:?}", log.notices()));
    assert!(last.live_only);
    let rows = rows(&spool, &log, last.number);
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(
        (sum(|r| r.objects), sum(|r| r.bytes)),
        (last.objects, last.bytes),
        "totals"
    );
    rows
}

/// Runs and compares; what is wrong.
pub fn exact(jdk: u32, options: &str, how: &str, targets: &[&str]) -> Vec<String> {
    let name = format!("JDK {jdk} {options} {how}");
    let plain = run(jdk, options, None, targets);
    assert_eq!(
        plain.status.code(),
        Some(0),
        "{name}: {}",
        String::from_utf8_lossy(&plain.stderr)
    );
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let with = run(jdk, options, Some((how, &out)), targets);
    same(&plain, &with, &name);
    let (wrong, compared) = suite().check(targets, &last(&out), !how.contains("jdk=0"), true);
    println!("{name}: {compared} numbers compared, {} wrong", wrong.len());
    wrong.into_iter().map(|w| format!("{name}: {w}")).collect()
}

/// An independent witness: the JVM's own count of objects and bytes by class, between two snapshots of ours at the same point.
pub fn witness(jdk_version: u32, options: &str, how: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let mut targets = ALL.to_vec();
    targets.push("wait");
    let waiting = Waiting::start(
        &mut command(jdk_version, options, Some((how, &out)), &targets),
        "ready",
    );
    let pid = waiting.pid().to_string();
    let jcmd =
        || done(Command::new(jdk(jdk_version).join("bin/jcmd")).args([&pid, "GC.class_histogram"]));
    // What jcmd makes the JVM load the first time, and what a snapshot does, is there before.
    jcmd();
    done(Command::new(borescope()).args(["snapshot", &pid]));
    jcmd();
    done(Command::new(borescope()).args(["snapshot", &pid]));
    let printed = jcmd();
    done(Command::new(borescope()).args(["snapshot", &pid]));
    let (ended, _) = waiting.finish();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let spool = spool(&out);
    let log = Log::read(&spool);
    assert_eq!(log.snapshots().len(), 4);
    let [before, after] = [2, 3].map(|number| by_type(&rows(&spool, &log, number)));
    let seen = histogram(&String::from_utf8_lossy(&printed.stdout));
    assert!(seen.len() > 300, "{seen:?}");
    let types: BTreeSet<&String> = before
        .keys()
        .chain(after.keys())
        .chain(seen.keys())
        .collect();
    let mut wrong = Vec::new();
    let mut moved = 0;
    for ty in types {
        // What collectors put into gaps of the heap is nobody's.
        if ty.starts_with("jdk.internal.vm.Filler") {
            continue;
        }
        let [a, b, h] = [&before, &after, &seen].map(|of| of.get(ty).copied().unwrap_or_default());
        moved += usize::from(a != b);
        if (h.0 < a.0.min(b.0) || h.0 > a.0.max(b.0)) || (h.1 < a.1.min(b.1) || h.1 > a.1.max(b.1))
        {
            wrong.push(format!("JDK {jdk_version} {options} {how}: {ty}: (objects, bytes) {a:?} and {b:?}, the JVM says {h:?}"));
        }
    }
    println!(
        "JDK {jdk_version} {options} {how}: {} types compared, {moved} moved, {} wrong",
        seen.len(),
        wrong.len()
    );
    assert!(
        moved <= 5,
        "{moved} types changed meanwhile: that proves little"
    );
    wrong
}

/// Fails with all that is wrong, if anything is.
pub fn nothing_wrong(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
