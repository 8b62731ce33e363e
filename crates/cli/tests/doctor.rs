//! `borescope doctor` really starts what it is given: here scripts that answer as JDKs of several kinds do.

mod common;

use borescope_spool::sites::Cause;
use borescope_spool::testing::sites::{shop, shop_heap};
use common::{Ran, World};

const HOTSPOT: &str = "OpenJDK 64-Bit Server VM";

/// A script that says who it is and otherwise does `run`.
fn jdk(w: &World, name: &str, version: &str, vm: &str, run: &str) -> String {
    let who = format!(
        "printf '    java.version = {version}\\n    java.vm.name = {vm}\\n    os.arch = amd64\\n' >&2"
    );
    let body = format!("case $1 in -XshowSettings*) {who};; *) {run};; esac");
    w.script(name, &body).display().to_string()
}

/// What it says of the thing with this name.
fn line<'a>(stdout: &'a str, name: &str) -> &'a str {
    stdout
        .lines()
        .find(|l| l.contains(name))
        .unwrap_or_else(|| panic!("no {name} in {stdout}"))
}

#[test]
fn a_jdk_works_if_it_leaves_counts() {
    let w = World::new();
    let good = jdk(
        &w,
        "java17",
        "17.0.15",
        HOTSPOT,
        r#"agent "$JAVA_TOOL_OPTIONS""#,
    );
    let ran = w.run(&["doctor", "--java", &good]);
    assert!(
        line(&ran.stdout, &good).starts_with("ok  JDK 17.0.15"),
        "{ran:?}"
    );
    assert!(
        line(&ran.stdout, &good).contains("profiled 1 methods"),
        "{ran:?}"
    );
    assert!(line(&ran.stdout, "output:").starts_with("ok"), "{ran:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn the_sites_lens_is_tried_too() {
    let w = World::new();
    shop(&w.path("sites")).snapshot(Cause::Exit, &shop_heap(3), false);
    let both = jdk(
        &w,
        "java17",
        "17.0.15",
        HOTSPOT,
        r#"case $1 in *lens=sites*) TEMPLATE=${TEMPLATE%template}sites;; esac; agent "$1""#,
    );
    // A name that is not `java` would get the agent through the environment.
    let java = w.path("jdk/java");
    std::fs::create_dir(w.path("jdk")).unwrap();
    std::fs::rename(both, &java).unwrap();
    let java = java.display().to_string();
    let ran = w.run(&["doctor", "--java", &java]);
    let words = format!(
        "profiled 1 methods of a test program, found the lines of {} live objects",
        shop_heap(3).len() - 2
    );
    assert!(line(&ran.stdout, &java).contains(&words), "{ran:?}");
    // A lens that is off is said, and no failure.
    std::fs::remove_dir_all(w.path("sites")).unwrap();
    std::fs::create_dir(w.path("sites")).unwrap();
    let ran = w.run(&["doctor", "--java", &java]);
    assert!(line(&ran.stdout, &java).starts_with("ok  "), "{ran:?}");
    assert!(
        line(&ran.stdout, &java).contains("the sites lens does not work ("),
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn each_failure_has_its_reason_and_exit_code_2() {
    let w = World::new();
    for (name, version, vm, run, words) in [
        (
            "java11",
            "11.0.2",
            HOTSPOT,
            "exit 0",
            &["too old", "17 or newer"][..],
        ),
        (
            "openj9",
            "21.0.1",
            "Eclipse OpenJ9 VM",
            "exit 0",
            &["not HotSpot", "Temurin"],
        ),
        ("silent", "17.0.15", HOTSPOT, "exit 0", &["counted nothing"]),
        (
            "unlucky",
            "17.0.15",
            HOTSPOT,
            "echo 'borescope: no memory here' >&2",
            &["counted nothing: borescope: no memory here"],
        ),
        (
            "broken",
            "17.0.15",
            HOTSPOT,
            "echo Could not find agent library; exit 1",
            &["exit status: 1", "Could not find agent library"],
        ),
    ] {
        let java = jdk(&w, name, version, vm, run);
        let ran = w.run(&["doctor", "--java", &java]);
        let line = line(&ran.stdout, &java);
        assert!(
            line.starts_with("!!") && words.iter().all(|word| line.contains(word)),
            "{ran:?}"
        );
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    let ran = w.run(&["doctor", "--java", "/nowhere/java"]);
    assert!(
        line(&ran.stdout, "/nowhere/java").starts_with("!!"),
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(2));
}

#[test]
fn no_agent_and_no_place_to_write_are_found_too() {
    let w = World::new();
    let good = jdk(
        &w,
        "java17",
        "17.0.15",
        HOTSPOT,
        r#"agent "$JAVA_TOOL_OPTIONS""#,
    );
    let mut without = w.borescope(&["doctor", "--java", &good]);
    let ran = Ran::new(
        without
            .env("BORESCOPE_AGENT", "/nowhere.so")
            .output()
            .unwrap(),
    );
    assert!(
        line(&ran.stdout, "/nowhere.so").starts_with("!!"),
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(2));
    let ran = w.run(&["doctor", "--java", &good, "-o", "/proc"]);
    assert!(line(&ran.stdout, "/proc").starts_with("!!"), "{ran:?}");
    assert_eq!(ran.code, Some(2));
}
