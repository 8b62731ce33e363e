//! Each form of allocation, in a JVM: a stand-in for the helper prints what is marked, and the comments of tests/java/forms say what that should be.

#[path = "support/jdk.rs"]
mod jdk;
#[path = "support/mod.rs"]
mod support;

use borescope_allocations::{Resolver, Settings, Skip, instrument};
use borescope_classfile::ClassFile;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a line's sites marked, in order, how many objects of the library it accounts for, and why sites on it were left alone.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    marked: Vec<String>,
    library: u32,
    left: Option<String>,
}

type Lines = BTreeMap<u16, Line>;

/// Reads the comments.
fn expected(source: &str) -> Lines {
    let mut lines = Lines::new();
    for (i, text) in source.lines().enumerate() {
        let Some((_, comment)) = text.split_once(" //") else {
            continue;
        };
        let mut line = Line::default();
        if let Some(reason) = comment.strip_prefix(" left: ") {
            line.left = Some(reason.to_owned());
        } else {
            let mut words = comment.split_whitespace();
            while let Some(word) = words.next() {
                if word == "lib" {
                    line.library = words.next().unwrap().parse().unwrap();
                } else {
                    line.marked.push(word.to_owned());
                }
            }
        }
        if line != Line::default() {
            lines.insert(i as u16 + 1, line);
        }
    }
    lines
}

fn settings(name: &str, variant: Variant) -> Settings {
    Settings {
        mark: variant != Variant::OnlyCalls || name == "forms/Lib",
        reset: variant == Variant::Reset,
        jdk: name == "forms/Lib",
        is_jdk: |class| class == "forms/Lib",
        exclude: |_, method, _| method == "toString",
        ..Settings::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Default,
    Reset,
    OnlyCalls,
}

/// A folder with the compiled classes, those of the stand-in in `stub`.
fn compiled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let forms = ["Forms", "Lib", "Node", "Resets"].map(|name| format!("forms/{name}.java"));
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    jdk::compile(&forms, dir.path(), &[]);
    jdk::compile_stub(&dir.path().join("stub"));
    dir
}

/// What a main class prints when the classes are instrumented.
fn run(version: u32, dir: &Path, main: &str) -> String {
    jdk::output(
        Command::new(jdk::home(version).join("bin/java"))
            .args(["-Xverify:all", "-XX:+UseSerialGC", "--patch-module"])
            .arg(format!("java.base={}", dir.join("stub").display()))
            .arg("-cp")
            .arg(dir)
            .arg(main),
    )
}

/// Instruments the classes in a folder; the lines of Forms.java by the numbers of sites and calls (0 for those of other sources), and what was
/// left alone.
fn instrumented(dir: &Path, variant: Variant) -> (Vec<u16>, Vec<u16>, Lines) {
    let classes: Vec<_> = fs::read_dir(dir.join("forms"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|file| !file.ends_with("Resets$Unseen.class"))
        .collect();
    let mut all = support::All::default();
    for file in &classes {
        all.add_class(&fs::read(file).unwrap());
    }
    let (mut sites, mut calls) = (vec![0u16], vec![0u16]);
    let mut left = Lines::new();
    for file in &classes {
        let bytes = fs::read(file).unwrap();
        let class = ClassFile::parse(&bytes).unwrap();
        let first = (sites.len() as u32, calls.len() as u32);
        let settings = settings(&class.this_name(), variant);
        let done = instrument(&class, &settings, &Resolver(&all), |_, _| Some(first)).unwrap();
        let ours = class.source_file().as_deref() == Some("Forms.java");
        let keep = |line: u16| if ours { line } else { 0 };
        sites.extend(done.sites.iter().map(|site| keep(site.line)));
        calls.extend(done.calls.iter().map(|call| keep(call.line)));
        for skip in done.skipped {
            let Skip { method, bci, .. } = skip;
            assert!(skip.calls);
            let code = class.methods()[usize::from(method)].code().unwrap();
            let lines = code.line_numbers();
            let line = lines.iter().rfind(|(at, _)| *at <= bci.unwrap()).unwrap().1;
            if ours {
                left.entry(line).or_default().left = Some(skip.reason.to_owned());
            }
        }
        if let Some(new) = done.bytes {
            fs::write(file, new).unwrap();
        }
    }
    (sites, calls, left)
}

/// What happens at the lines of Forms.java, on each JDK.
fn observed(dir: &Path, variant: Variant) -> Vec<Lines> {
    let (sites, calls, left) = instrumented(dir, variant);
    jdk::JDKS
        .map(|version| {
            let text = run(version, dir, "forms.Forms");
            let mut lines = Lines::new();
            for (line, l) in &left {
                lines.entry(*line).or_default().left.clone_from(&l.left);
            }
            for event in text.lines() {
                let words: Vec<&str> = event.split_whitespace().collect();
                let number = |i: usize| words[i].parse::<usize>().unwrap();
                match words[..] {
                    ["mark", _, name] => {
                        let line = lines.entry(sites[number(1)]).or_default();
                        line.marked.push(name.to_owned());
                    }
                    ["in", _, _, _] => lines.entry(calls[number(2)]).or_default().library += 1,
                    _ => panic!("JDK {version}: {event}"),
                }
            }
            lines.remove(&0);
            lines
        })
        .into()
}

fn check(variant: Variant) {
    let dir = compiled();
    let source = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/forms/Forms.java"),
    );
    let mut expected = expected(&source.unwrap());
    assert!(expected.len() > 50);
    if variant == Variant::OnlyCalls {
        expected.retain(|_, line| {
            line.marked.clear();
            line.left = None;
            line.library > 0
        });
    }
    for (version, observed) in jdk::JDKS.iter().zip(observed(dir.path(), variant)) {
        let mut differences = String::new();
        for line in expected.keys().chain(observed.keys()) {
            let (e, o) = (expected.get(line), observed.get(line));
            if e != o {
                writeln!(differences, "line {line}: expected {e:?}, found {o:?}").unwrap();
            }
        }
        assert!(differences.is_empty(), "JDK {version}\n{differences}");
    }
}

#[test]
fn every_form_is_marked_and_every_line_accounts_for_what_the_library_makes() {
    check(Variant::Default);
}

#[test]
fn lines_account_for_the_same_when_calls_are_reset() {
    check(Variant::Reset);
}

#[test]
fn lines_account_for_the_same_without_marks() {
    check(Variant::OnlyCalls);
}

/// What a method makes the library allocate that is not instrumented has no call.
#[test]
fn a_reset_call_does_not_outlast_its_line() {
    let dir = compiled();
    let (_, calls, _) = instrumented(dir.path(), Variant::Reset);
    for version in jdk::JDKS {
        let text = run(version, dir.path(), "forms.Resets");
        let known: Vec<bool> = text
            .lines()
            .filter_map(|event| event.strip_prefix("in "))
            .map(|event| {
                let call: usize = event.split(' ').nth(1).unwrap().parse().unwrap();
                assert!(call < calls.len());
                call > 0
            })
            .collect();
        let expected = [
            true, false, false, true, true, false, true, true, false, true,
        ];
        assert_eq!(known, expected, "JDK {version}\n{text}");
    }
}
