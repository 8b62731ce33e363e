//! From spools to profiles to reports: one JVM and several, orderly ends and kills, damage and full disks.

mod common;

use borescope_spool::meta::{Record, Skipped};
use common::{Ran, World, counters, target};
use std::fs;

fn json(w: &World, dir: &str) -> serde_json::Value {
    let ran = w.run(&["report", dir, "--format", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Leaves the template as an unsealed spool in `dir`.
fn leave(w: &World, dir: &str, name: &str) {
    let spool = w.path(dir).join(".spool").join(name);
    fs::create_dir_all(&spool).unwrap();
    for file in ["counters.bin", "meta.log"] {
        fs::copy(w.path("template").join(file), spool.join(file)).unwrap();
    }
}

#[test]
fn one_jvm_makes_the_directory_a_profile_and_the_findings_are_shown() {
    let w = World::new();
    w.java(0);
    let ran = w.run(&["paths", "-o", "out", "--", "java"]);
    assert!(ran.stdout.starts_with("hello from"), "{ran:?}");
    assert!(
        ran.stderr
            .contains(&format!("`borescope report {}`", w.path("out").display())),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("com.acme.Main"), "{ran:?}");
    let names = w.list("out");
    assert!(
        names.contains(&"manifest.json".to_owned())
            && names.iter().any(|n| n.ends_with(".parquet")),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|n| n.starts_with('.')),
        "no spool, no staging: {names:?}"
    );

    let report = json(&w, "out");
    assert_eq!(report["target"]["pid"], 4711);
    let method = &report["paths"]["methods"][0];
    assert_eq!(
        (
            method["class"].as_str(),
            method["method"].as_str(),
            method["activations"].as_u64()
        ),
        (Some("com.acme.Main"), Some("loop"), Some(3))
    );
    // The worked example: <BCE, BDE, BDE, BCE> occurs 3 times in each of the three activations.
    let grams = method["ngrams"].as_array().unwrap();
    let found = grams
        .iter()
        .find(|g| g["ids"] == serde_json::json!(["4", "6", "6", "4"]))
        .expect("the 4-gram");
    assert_eq!(found["count"], 9);

    let text = w.run(&["report", "out"]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""));
    assert!(text.stdout.contains("com.acme.Main"), "{text:?}");
    assert!(!text.stdout.contains('\u{1b}'), "no colour in a pipe");
    assert!(
        w.run(&["report", "out", "--color", "always"])
            .stdout
            .contains('\u{1b}')
    );
}

#[test]
fn quiet_says_only_where_the_profile_is() {
    let w = World::new();
    w.java(0);
    let ran = w.run(&["paths", "--quiet", "-o", "out", "--", "java"]);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("profile in"), "{ran:?}");
}

#[test]
fn several_jvms_make_several_profiles() {
    let w = World::new();
    w.script("worker", r#"agent "${JAVA_TOOL_OPTIONS##*=lens}""#);
    w.script("build", "worker & worker & wait");
    let ran = w.run(&["paths", "-o", "out", "--", "build"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("2 profiles"), "{ran:?}");
    let names = w.list("out");
    assert!(
        names.len() == 2 && names.iter().all(|n| n.starts_with("jvm-")),
        "{names:?}"
    );
    assert_eq!(
        json(&w, &format!("out/{}", names[0]))["target"]["pid"],
        4711
    );

    let listing = w.run(&["report", "out"]);
    assert_eq!(listing.code, Some(0));
    assert!(
        names.iter().all(|n| listing.stdout.contains(n)),
        "{listing:?}"
    );
    w.run(&["report", "out", "--format", "json"])
        .fails(1, &["2 profiles", "jvm-"]);
}

#[test]
fn what_a_killed_run_left_is_sealed_by_report() {
    let w = World::new();
    fs::write(w.path("template/counters.bin"), counters(false)).unwrap();
    leave(&w, "out", "4711");
    let report = json(&w, "out");
    assert_eq!(report["target"]["sealed_after_crash"], true);
    assert!(w.path("out/manifest.json").is_file() && !w.path("out/.spool").exists());

    // A second JVM that used the same directory.
    leave(&w, "out", "4711-2");
    let listing = w.run(&["report", "out"]);
    assert!(listing.stdout.starts_with("2 profiles"), "{listing:?}");
    assert!(w.path("out/jvm-4711-2/manifest.json").is_file() && !w.path("out/.spool").exists());
}

#[test]
fn seal_command_keeps_the_spool() {
    let w = World::new();
    let ran = w.run(&["seal", "template", "-o", "out"]);
    assert_eq!(
        (ran.code, ran.stdout),
        (Some(0), format!("{}\n", w.path("out").display()))
    );
    assert_eq!(json(&w, "out")["target"]["pid"], 4711);
    assert_eq!(w.list("template"), ["counters.bin", "meta.log"]);
    let ran = w.run(&["seal", "bin", "-o", "none"]);
    ran.fails(3, &["not a spool"]);
    assert!(!w.path("none").exists());
}

#[test]
fn damaged_or_empty_is_exit_code_3() {
    let w = World::new();
    fs::create_dir(w.path("empty")).unwrap();
    w.run(&["report", "empty"])
        .fails(3, &["no profile in empty"]);
    fs::create_dir(w.path("bad")).unwrap();
    fs::write(w.path("bad/manifest.json"), "{").unwrap();
    w.run(&["report", "bad"]).fails(3, &["manifest.json"]);

    fs::write(w.path("template/counters.bin"), "garbage").unwrap();
    leave(&w, "spoiled", "12");
    w.run(&["report", "spoiled"])
        .fails(3, &["cannot complete the profile", "counters.bin"]);
    assert!(
        w.path("spoiled/.spool/12/counters.bin").is_file(),
        "the spool is kept"
    );
    assert!(!w.path("spoiled/manifest.json").exists());
}

#[test]
fn a_full_disk_loses_nothing() {
    let w = World::new();
    leave(&w, "out", "12");
    // A file-size limit of 0 refuses every write, as a full disk does.
    let line = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} report out",
        env!("CARGO_BIN_EXE_borescope")
    );
    Ran::new(w.command("sh").args(["-c", &line]).output().unwrap()).fails(
        2,
        &[
            "cannot complete the profile",
            "the counts are kept in",
            "out/.spool/12",
        ],
    );
    assert_eq!(w.list("out"), [".spool"], "nothing half-written");
    let report = json(&w, "out");
    assert_eq!(
        report["target"]["pid"], 4711,
        "done again once there is space"
    );
}

#[test]
fn a_jvm_that_still_runs_is_left_alone() {
    let w = World::new();
    // A copy of `sleep` under the name of the counters: the process has the file mapped, as a JVM would.
    w.script(
        "daemon",
        r#"agent "$JAVA_TOOL_OPTIONS"; rm "$spool/counters.bin"; cp "$(command -v sleep)" "$spool/counters.bin"; echo $$ > ready; exec "$spool/counters.bin" 600"#,
    );
    w.script("start", "mkfifo ready; daemon >/dev/null 2>&1 & read pid < ready; until grep -q counters.bin /proc/$pid/maps; do :; done; echo $pid");
    let ran = w.run(&["paths", "-o", "out", "--", "start"]);
    let pid = ran.stdout.trim().to_owned();
    let killed = rustix::process::Pid::from_raw(pid.parse().unwrap())
        .map(|p| rustix::process::kill_process(p, rustix::process::Signal::KILL));
    assert_eq!(killed, Some(Ok(())));
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains(&format!("JVM {pid} still runs")),
        "{ran:?}"
    );
    assert_eq!(w.list("out/.spool"), [pid], "the spool is where it was");
}

#[test]
fn an_empty_profile_is_one_clear_line_and_exit_code_3() {
    let w = World::new();
    w.java(0);
    let skipped = Record::Skipped(Skipped {
        class: "com/acme/Main".into(),
        method: String::new(),
        descriptor: String::new(),
        reason: "class file version 99 is newer than any that is known".into(),
    });
    for (i, (log, words)) in [
        (
            target(&[]).encode(),
            ["loaded no class but those of the JDK", "--include"],
        ),
        (
            target(&["com.acne.*", "org.x"]).encode(),
            [
                "no class that was loaded matches",
                "--include 'com.acne.*' or --include 'org.x'",
            ],
        ),
        (
            [target(&["com.acme.*"]).encode(), skipped.encode()].concat(),
            ["nothing could be instrumented", "--skipped"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(w.path("template/meta.log"), log).unwrap();
        let dir = format!("out{i}");
        let ran = w.run(&["paths", "-o", &dir, "--", "java"]);
        assert_eq!(ran.code, Some(0), "the program's: {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 2, "{ran:?}");
        assert!(
            words.iter().all(|word| ran.stderr.contains(word)),
            "{ran:?}"
        );
        let report = w.run(&["report", &dir, "--format", "json"]);
        assert_eq!(
            (report.code, report.stderr.lines().count()),
            (Some(3), 1),
            "{report:?}"
        );
        assert!(serde_json::from_str::<serde_json::Value>(&report.stdout).is_ok());
    }
}

#[test]
fn a_directory_with_other_things_in_it_is_not_turned_into_a_profile() {
    let w = World::new();
    leave(&w, "home", "12");
    fs::write(w.path("home/methods.parquet"), "mine").unwrap();
    assert_eq!(w.run(&["report", "home"]).code, Some(0));
    assert_eq!(
        fs::read_to_string(w.path("home/methods.parquet")).unwrap(),
        "mine"
    );
    assert_eq!(w.list("home"), ["jvm-12", "methods.parquet"]);

    // Interrupted between two files of a seal: some have arrived, the manifest has not.
    leave(&w, "half", "12");
    fs::create_dir(w.path("half/.sealing")).unwrap();
    fs::write(w.path("half/methods.parquet"), "half").unwrap();
    assert_eq!(json(&w, "half")["target"]["pid"], 4711);
    assert!(!w.list("half").iter().any(|n| n.starts_with('.')));
}

/// `--out` takes each format; a page is whole, and a place that cannot be written is named.
#[test]
fn reports_go_to_a_file_when_asked() {
    let w = World::new();
    w.java(0);
    w.run(&["paths", "-q", "-o", "out", "--", "java"]);
    for (format, start) in [
        ("html", "<!doctype html>"),
        ("json", "{\"borescope\":"),
        ("text", "hello"),
    ] {
        let printed = w.run(&["report", "out", "--format", format]);
        assert_eq!(printed.code, Some(0), "{printed:?}");
        assert!(format == "text" || printed.stdout.starts_with(start));
        let ran = w.run(&["report", "out", "--format", format, "--out", "file"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        assert_eq!(fs::read_to_string(w.path("file")).unwrap(), printed.stdout);
    }
    let nowhere = ["report", "out", "--out", "no/such/directory/file"];
    w.run(&nowhere)
        .fails(2, &["no/such/directory/file", "--out FILE"]);
    let left = fs::read_dir(w.path(".")).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".tmp"));
    assert_eq!(left.count(), 0, "nothing half-written stays");
}
