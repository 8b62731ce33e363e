//! JDK classes on request: already loaded ones are retransformed, later ones instrumented as they load; the program runs as before, the
//! counts are exact, and the classes that probes themselves run through are named.

use borescope_e2e::{JDKS, borescope_paths, borescope_report, java, javac, output, root};
use serde_json::Value;
use std::path::Path;

/// Where Tokens is, compiled.
fn tokens() -> tempfile::TempDir {
    let classes = tempfile::tempdir().unwrap();
    javac(
        &[root().join("tests/hazards/jdk/Tokens.java")],
        classes.path(),
        &[],
    );
    classes
}

/// Runs Tokens with `n` tokens under borescope; checks what it prints; returns the report.
fn profile(jdk: u32, classes: &Path, include: &[&str], engine: &str, n: u64) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("profile");
    let ran = output(
        borescope_paths(4, engine, &["--straight-line"], include, &profile)
            .arg(java(jdk))
            .args(["-Xverify:all", "-cp"])
            .arg(classes)
            .args(["jdkclasses.Tokens", &n.to_string()]),
    );
    assert_eq!(
        ran.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout).trim(),
        format!("{{be={}, to={}}}", n / 2, n / 2)
    );
    borescope_report(&profile)
}

fn activations(report: &Value, class: &str, method: &str) -> u64 {
    let methods = report["paths"]["methods"].as_array().unwrap();
    methods
        .iter()
        .filter(|m| m["class"] == class && m["method"] == method)
        .map(|m| m["activations"].as_u64().unwrap())
        .sum()
}

#[test]
fn are_counted_exactly() {
    let classes = tokens();
    for jdk in JDKS {
        for engine in ["automaton", "ksf"] {
            let include = [
                "java.util.*",
                "java.io.*",
                "java.lang.String*",
                "jdkclasses.*",
            ];
            let [few, many] =
                [1000, 3000].map(|n| profile(jdk, classes.path(), &include, engine, n));
            // The JDK's own use of these classes at start is the same in both runs.
            for (class, method) in [
                ("java.util.StringTokenizer", "nextToken"),
                ("java.util.TreeMap", "merge"),
            ] {
                let more = activations(&many, class, method) - activations(&few, class, method);
                assert_eq!(more, 2000, "{class}.{method} on JDK {jdk}, {engine}");
            }
            assert_eq!(activations(&few, "jdkclasses.Tokens", "main"), 1);
        }
    }
}

#[test]
fn that_probes_run_through_stay_plain_and_are_named() {
    let classes = tokens();
    for jdk in JDKS {
        let report = profile(jdk, classes.path(), &["java.lang.*"], "automaton", 10);
        let skipped = report["skipped"].as_array().unwrap();
        for class in ["java.lang.Thread", "java.lang.Object"] {
            assert!(
                skipped.iter().any(|s| s["class"] == class
                    && s["reason"] == "the probes themselves run through it"),
                "{class} on JDK {jdk}"
            );
            assert!(
                !report["paths"]["methods"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|m| m["class"] == class)
            );
        }
        assert!(
            activations(&report, "java.lang.String", "hashCode") > 0,
            "JDK {jdk}"
        );
    }
}
