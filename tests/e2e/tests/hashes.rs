//! The sites lens where numbers of allocation sites stand in identity hashes: live objects are exact in each mode, and the program's hashes stay right under random
//! locking, hashing and collecting, in these modes and beside spare bits. Why there is no hybrid mode: `HashTagged`.

use borescope_e2e::live::{exact, last, nothing_wrong, witness};
use borescope_e2e::sites::{ALL, COMPACT, collectors, programs};
use borescope_e2e::{JDKS, agent, java, jdk, run as done};
use std::process::Command;

/// Numbers in identity hashes, since headers have no other room.
#[test]
fn live_objects_by_line_in_compact_headers() {
    let mut wrong = Vec::new();
    for options in collectors(25) {
        wrong.extend(exact(25, &format!("{COMPACT} {options}"), "", &ALL));
    }
    wrong.extend(compilers(25, COMPACT, ""));
    nothing_wrong(&wrong);
}

/// Interpreted, compiled by one compiler only, and compiled at once.
fn compilers(jdk: u32, headers: &str, how: &str) -> Vec<String> {
    let short: Vec<&str> = ALL.into_iter().filter(|t| *t != "Hot").collect();
    let mut wrong = exact(jdk, &format!("{headers} -Xint"), how, &short);
    for options in ["-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation"] {
        wrong.extend(exact(jdk, &format!("{headers} {options}"), how, &ALL));
    }
    wrong
}

/// Numbers in identity hashes where there is other room, too.
fn in_identity_hashes(how: &str) {
    let mut wrong = Vec::new();
    for jdk in JDKS {
        for options in collectors(jdk) {
            wrong.extend(exact(jdk, options, how, &ALL));
        }
    }
    wrong.extend(compilers(17, "", how));
    nothing_wrong(&wrong);
}

#[test]
fn live_objects_by_line_with_dynamic_numbers() {
    in_identity_hashes(",mode=dynamic");
    let classes = "-XX:+UseG1GC -XX:-UseCompressedClassPointers";
    nothing_wrong(&exact(25, classes, ",mode=dynamic", &ALL));
}

#[test]
fn live_objects_by_line_with_static_numbers() {
    in_identity_hashes(",mode=static");
    let mut wrong = Vec::new();
    for options in collectors(25) {
        let compact = format!("{COMPACT} {options}");
        wrong.extend(exact(25, &compact, ",mode=static", &ALL));
    }
    nothing_wrong(&wrong);
}

/// With the JVM's own histogram.
#[test]
fn totals_are_those_of_the_class_histogram() {
    let mut wrong = Vec::new();
    for options in collectors(25) {
        wrong.extend(witness(25, &format!("{COMPACT} {options}"), ""));
    }
    for (jdk, options, how) in [
        (17, "-XX:+UseSerialGC", ",mode=dynamic"),
        (21, "-XX:+UseG1GC", ",mode=static"),
        (25, COMPACT, ",mode=static"),
    ] {
        wrong.extend(witness(jdk, options, how));
    }
    nothing_wrong(&wrong);
}

/// Locking, waiting, hashing and collecting at random: no hash changes, whoever reads it, no look-up fails, no monitor lets two in. `BORESCOPE_STRESS` is another amount
/// for each collector: rounds, or seconds such as `360s`.
fn hashes_stay_right(jdk: u32, headers: &str, how: &str) {
    let amount = std::env::var("BORESCOPE_STRESS").unwrap_or_else(|_| "150".into());
    for options in collectors(jdk) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(java(jdk));
        command.arg(format!(
            "-agentpath:{}=lens=sites,out={}{how}",
            agent().display(),
            dir.path().join("out").display()
        ));
        command
            .args(["-Xverify:all", "-Xmx300m"])
            .args(headers.split_whitespace())
            .args(options.split_whitespace());
        let ran = done(command.args(["-cp", programs(), "HashStress", "4", &amount]));
        let printed = String::from_utf8_lossy(&ran.stdout);
        let hashes = printed
            .strip_prefix("wrong 0 lost 0 of ")
            .and_then(|rest| rest.strip_suffix(" hashes\n"))
            .and_then(|n| n.parse::<u64>().ok());
        assert!(
            hashes.is_some_and(|n| n > 0),
            "JDK {jdk} {headers} {options} {how}: {printed}"
        );
        let marked = last(&dir.path().join("out"))
            .iter()
            .filter(|r| r.ty.starts_with("HashStress$"))
            .map(|r| r.objects)
            .sum::<u64>();
        assert!(marked > 0, "nothing of it is alive");
        print!("JDK {jdk} {headers} {options} {how}: {printed}");
    }
}

#[test]
fn hashes_stay_right_beside_spare_bits_jdk_17() {
    hashes_stay_right(17, "", "");
}

#[test]
fn hashes_stay_right_beside_spare_bits_jdk_21() {
    hashes_stay_right(21, "", "");
}

#[test]
fn hashes_stay_right_beside_spare_bits_jdk_25() {
    hashes_stay_right(25, "", "");
}

#[test]
fn hashes_stay_right_with_dynamic_numbers_in_compact_headers() {
    hashes_stay_right(25, COMPACT, "");
}

#[test]
fn hashes_stay_right_with_dynamic_numbers_elsewhere() {
    for jdk in JDKS {
        hashes_stay_right(jdk, "", ",mode=dynamic");
    }
}

#[test]
fn hashes_stay_right_with_static_numbers_jdk_17() {
    hashes_stay_right(17, "", ",mode=static");
}

#[test]
fn hashes_stay_right_with_static_numbers_in_compact_headers() {
    hashes_stay_right(25, COMPACT, ",mode=static");
}

/// Why there is no hybrid mode (the seed's figure 9C): HotSpot reads a hash for a debugger's tag and leaves no trace of it in the header; when another hash takes its
/// place, though Java code has not read it yet, the debugger takes the object for two.
#[test]
fn a_hash_that_changes_makes_two_objects_of_one() {
    for headers in ["-Xshare:auto", COMPACT] {
        for (how, seen) in [(None, "two objects"), (Some("keep"), "one object")] {
            let mut debugger = Command::new(java(17));
            debugger
                .args(["-cp", programs(), "HashTagged"])
                .arg(jdk(25))
                .arg(headers)
                .args(how);
            let ran = done(&mut debugger);
            assert_eq!(
                String::from_utf8_lossy(&ran.stdout),
                format!("2 looks, {seen}\n"),
                "{headers}"
            );
        }
    }
}
