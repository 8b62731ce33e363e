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

fn settings(name: &str) -> Settings {
    Settings {
        jdk: name == "forms/Lib",
        is_jdk: |class| class == "forms/Lib",
        exclude: |_, method, _| method == "toString",
        ..Settings::default()
    }
}

/// Instruments the classes in a folder, runs them, and says what happened at the lines of Forms.java.
fn observed(dir: &Path) -> Vec<Lines> {
    let classes: Vec<_> = fs::read_dir(dir.join("forms"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let mut all = support::All::default();
    for file in &classes {
        all.add_class(&fs::read(file).unwrap());
    }
    // Line of each number; 0 for those of other sources.
    let (mut sites, mut calls) = (vec![0u16], vec![0u16]);
    let mut left = Lines::new();
    for file in &classes {
        let bytes = fs::read(file).unwrap();
        let class = ClassFile::parse(&bytes).unwrap();
        let first = (sites.len() as u32, calls.len() as u32);
        let settings = settings(&class.this_name());
        let done = instrument(&class, &settings, &Resolver(&all), |_, _| Some(first)).unwrap();
        let ours = class.source_file().as_deref() == Some("Forms.java");
        let keep = |line: u16| if ours { line } else { 0 };
        sites.extend(done.sites.iter().map(|site| keep(site.line)));
        calls.extend(done.calls.iter().map(|call| keep(call.line)));
        for Skip {
            method,
            bci,
            reason,
        } in done.skipped
        {
            let code = class.methods()[usize::from(method)].code().unwrap();
            let lines = code.line_numbers();
            let line = lines.iter().rfind(|(at, _)| *at <= bci.unwrap()).unwrap().1;
            if ours {
                left.entry(line).or_default().left = Some(reason.to_owned());
            }
        }
        if let Some(new) = done.bytes {
            fs::write(file, new).unwrap();
        }
    }
    jdk::JDKS
        .map(|version| {
            let text = jdk::output(
                Command::new(jdk::home(version).join("bin/java"))
                    .args(["-Xverify:all", "-XX:+UseSerialGC", "--patch-module"])
                    .arg(format!("java.base={}", dir.join("stub").display()))
                    .arg("-cp")
                    .arg(dir)
                    .arg("forms.Forms"),
            );
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

#[test]
fn every_form_is_marked_and_every_line_accounts_for_what_the_library_makes() {
    let dir = tempfile::tempdir().unwrap();
    let forms = ["Forms", "Lib", "Node"].map(|name| format!("forms/{name}.java"));
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    jdk::compile(&forms, dir.path(), &[]);
    jdk::compile_stub(&dir.path().join("stub"));
    let source = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/forms/Forms.java"),
    );
    let expected = expected(&source.unwrap());
    assert!(expected.len() > 50);
    for (version, observed) in jdk::JDKS.iter().zip(observed(dir.path())) {
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
