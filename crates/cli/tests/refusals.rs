//! What cannot be done is said in one line with a remedy, under the exit code that tells scripts why; and nothing of the user's is
//! overwritten.

mod common;

use common::{Ran, World};
use std::fs;

#[test]
fn wrong_command_lines_are_exit_code_1() {
    let w = World::new();
    w.java(0);
    for (arguments, word) in [
        (&[][..], "no command given"),
        (&["frobnicate"], "frobnicate"),
        (&["paths"], "after `--`"),
        (&["paths", "--"], "after `--`"),
        (&["paths", "java", "-jar", "a.jar"], "goes after `--`"),
        (&["paths", "-k", "0", "--", "java"], "1..=64"),
        (&["paths", "-k", "65", "--", "java"], "1..=64"),
        (&["paths", "-k", "four", "--", "java"], "four"),
        (&["paths", "--engine", "fast", "--", "java"], "automaton"),
        (
            &["paths", "--engine", "blpp-hash", "-k", "2", "--", "java"],
            "single paths",
        ),
        (
            &["paths", "--include", "", "--", "java"],
            "must not be empty",
        ),
        (
            &["paths", "--include", "a.*,b.*", "--", "java"],
            "one glob an option",
        ),
        (
            &["paths", "--exclude", "a b", "--", "java"],
            "cannot be part of a class name",
        ),
        (
            &["paths", "--branches", "some", "--", "java"],
            "merge, split",
        ),
        (&["paths", "--memory", "lots", "--", "java"], "512M"),
        (&["paths", "--rows", "1", "--", "java"], "--rows"),
        (
            &["sites", "--mode", "hybrid", "--", "java"],
            "choose auto, spare, dynamic or static",
        ),
        (&["attach", "--mode", "hybrid", "1"], "tags and locks"),
        (
            &["sites", "--mode", "bare", "--", "java"],
            "auto, spare, dynamic, static",
        ),
        (&["report"], "DIR"),
        (&["report", "nowhere"], "nowhere"),
        (&["report", ".", "--format", "pdf"], "json, html, pprof"),
        (&["report", ".", "--top", "0"], "--top"),
        (&["demo", "-k", "99"], "1..=64"),
        (&["completions", "tcsh"], "bash, elvish, fish"),
        (&["man", "woman"], "no command \"woman\""),
    ] {
        w.run(arguments).fails(1, &[word]);
    }
    assert_eq!(
        w.list("."),
        ["agent.so", "bin", "template"],
        "nothing was made"
    );
}

#[test]
fn help_and_version_are_exit_code_0_on_standard_output() {
    let w = World::new();
    for (arguments, words) in [
        (
            &["--help"][..],
            &[
                "demo",
                "paths",
                "report",
                "doctor",
                "seal",
                "borescope paths -- java -jar app.jar",
            ][..],
        ),
        (
            &["paths", "--help"],
            &[
                "--include",
                "JAVA_TOOL_OPTIONS",
                "What next",
                "128 + n",
                "--branches",
                "--straight-line",
                "--rows",
            ],
        ),
        (
            &["report", "--help"],
            &["--method", "jq", "3 the profile is"],
        ),
        (&["demo", "--help"], &["JAVA_HOME"]),
        (&["doctor", "--help"], &["/usr/lib/jvm"]),
        (&["seal", "--help"], &[".spool"]),
        (
            &["completions", "bash"],
            &["_borescope()", "--straight-line"],
        ),
        (
            &["completions", "zsh"],
            &["#compdef borescope", "--straight-line"],
        ),
        (&["man"], &[".TH borescope 1", "simulate"]),
        (&["man", "report"], &[".TH borescope-report 1", "pprof"]),
        (
            &["--version"],
            &[concat!("borescope ", env!("CARGO_PKG_VERSION"))],
        ),
    ] {
        let ran = w.run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        for word in words {
            assert!(ran.stdout.contains(word), "no {word:?} in {}", ran.stdout);
        }
    }
}

#[test]
fn no_java_no_agent_no_directory_are_exit_code_2() {
    let w = World::new();
    let without_java = |arguments: &[&str]| {
        Ran::new(
            w.borescope(arguments)
                .env("PATH", w.path("bin"))
                .output()
                .unwrap(),
        )
    };
    without_java(&["paths", "-o", "out", "--", "java", "-version"]).fails(
        2,
        &[
            "cannot run `java`: not found on PATH",
            "install a JDK 17 or newer",
            "full path",
        ],
    );
    without_java(&["demo"]).fails(2, &["no Java found", "JAVA_HOME"]);
    w.run(&["paths", "-o", "out", "--", "/nowhere/java"])
        .fails(2, &["cannot run `/nowhere/java`", "no such file"]);
    fs::write(w.path("bin/java"), "not executable").unwrap();
    w.run(&["paths", "-o", "out", "--", "./bin/java"])
        .fails(2, &["cannot run `./bin/java`", "Permission denied"]);
    assert!(!w.path("out").exists(), "nothing is left behind");

    w.java(0);
    let agent = |path: &str| {
        Ran::new(
            w.borescope(&["paths", "-o", "out", "--", "java"])
                .env("BORESCOPE_AGENT", w.path(path))
                .output()
                .unwrap(),
        )
    };
    agent("gone.so").fails(2, &["gone.so", "BORESCOPE_AGENT"]);
    fs::create_dir(w.path("a=b")).unwrap();
    fs::write(w.path("a=b/agent.so"), "").unwrap();
    agent("a=b/agent.so").fails(2, &["`=`"]);
    assert!(!w.path("out").exists());

    w.run(&["paths", "-o", "/proc/none/out", "--", "java"])
        .fails(2, &["/proc/none/out", "-o"]);
    w.run(&["paths", "-o", "/proc", "--", "java"])
        .fails(2, &["/proc", "-o"]);
}

#[test]
fn a_copy_without_its_agent_says_where_it_looked() {
    let w = World::new();
    w.java(0);
    w.install(env!("CARGO_BIN_EXE_borescope"), "borescope");
    let run = || {
        Ran::new(
            w.command("borescope")
                .args(["paths", "-q", "-o", "out", "--", "java"])
                .env_remove("BORESCOPE_AGENT")
                .output()
                .unwrap(),
        )
    };
    run().fails(2, &["libborescope.so", "../lib", "BORESCOPE_AGENT"]);
    fs::create_dir(w.path("lib")).unwrap();
    fs::write(w.path("lib/libborescope.so"), "").unwrap();
    assert_eq!(run().code, Some(0), "found in ../lib");
}

#[test]
fn what_is_there_is_not_overwritten() {
    let w = World::new();
    w.java(0);
    fs::write(w.path("file"), "mine").unwrap();
    fs::create_dir(w.path("full")).unwrap();
    fs::write(w.path("full/notes.txt"), "mine").unwrap();
    w.run(&["paths", "-o", "file", "--", "java"])
        .fails(2, &["file", "-o"]);
    w.run(&["paths", "-o", "full", "--", "java"])
        .fails(2, &["full", "not empty"]);

    fs::create_dir(w.path("run")).unwrap();
    assert_eq!(
        w.run(&["paths", "-o", "run", "--", "java"]).code,
        Some(0),
        "an empty directory is fine"
    );
    let manifest = fs::read(w.path("run/manifest.json")).unwrap();
    w.run(&["paths", "-o", "run", "--", "java"])
        .fails(2, &["run", "already holds a profile"]);
    w.run(&["demo", "-o", "run"])
        .fails(2, &["run", "already holds a profile"]);
    w.run(&["seal", "template", "-o", "run"])
        .fails(2, &["run", "already holds a profile"]);
    assert_eq!(fs::read(w.path("run/manifest.json")).unwrap(), manifest);
    assert_eq!(fs::read_to_string(w.path("file")).unwrap(), "mine");
    assert_eq!(w.list("full"), ["notes.txt"]);
}
