//! The demo for real, on the machine's JDK and with the agent that cargo has built beside this test: its committed class is what its
//! committed source says, and it prints what README shows. (That of `demo sites` is an end-to-end test, on one JDK.)

mod common;

use common::{Ran, World};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn compiling_the_sources_gives_the_committed_classes() {
    let demo = repository("java/demo");
    let out = tempfile::tempdir().unwrap();
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/javac"));
    let javac = home.filter(|p| p.is_file()).unwrap_or("javac".into());
    let status = Command::new(&javac)
        .args(["--release", "17", "-g", "-d"])
        .arg(out.path())
        .args(["Settings.java", "Shop.java"].map(|name| demo.join(name)))
        .status();
    assert!(
        status
            .unwrap_or_else(|e| panic!("this test needs a JDK's {}: {e}", javac.display()))
            .success()
    );
    let made = std::fs::read_dir(out.path().join("demo")).unwrap();
    let made: Vec<_> = made.map(|class| class.unwrap().path()).collect();
    assert_eq!(made.len(), 3, "{made:?}");
    for class in made {
        let committed = std::fs::read(demo.join(class.file_name().unwrap())).unwrap_or_default();
        assert!(
            std::fs::read(&class).unwrap() == committed,
            "{}: run: javac --release 17 -g -d java java/demo/*.java",
            class.display()
        );
    }
}

#[test]
fn the_demo_prints_what_readme_shows() {
    let w = World::new();
    let mut demo = w.borescope(&["demo", "-o", "out"]);
    demo.env_remove("BORESCOPE_AGENT");
    for name in ["PATH", "JAVA_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            demo.env(name, value);
        }
    }
    let ran = Ran::new(demo.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .starts_with("demo: read 20000000 settings, result ffd28bcd8445ffb7\n"),
        "{ran:?}"
    );

    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let (_, result) = readme.split_once("## One result").expect("the section");
    let excerpt: Vec<&str> = result
        .lines()
        .take_while(|l| !l.starts_with("## "))
        .filter_map(|l| l.strip_prefix("    "))
        .filter(|l| *l != "...")
        .collect();
    assert!(excerpt.len() > 10, "{excerpt:?}");
    let file = std::fs::read_to_string(w.path("out/report.txt")).unwrap();
    for line in excerpt {
        assert!(
            ran.stdout.lines().any(|l| l == line),
            "README shows {line:?}, the demo printed {}",
            ran.stdout
        );
        assert!(
            file.lines().any(|l| l == line),
            "not in report.txt: {line:?}"
        );
    }
}
