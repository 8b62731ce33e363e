//! Spliced classes in real JVMs: the verifier accepts them, and they do what the originals do. Needs the JDKs that `tests/fetch
//! jdks` provides; javac of JDK 17 compiles the classes.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/mod.rs"]
mod support;

use borescope_classfile::{At, ClassFile, Splicer, insn};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Home directories of the JDKs 17 and 25.
fn jdks() -> [PathBuf; 2] {
    let fetched = Command::new(root().join("tests/fetch"))
        .arg("jdks")
        .status()
        .expect("tests/fetch");
    assert!(fetched.success(), "tests/fetch jdks failed");
    ["17", "25"].map(|version| root().join(".cache/jdks").join(version))
}

fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    out.into_owned()
}

fn compile(jdk: &Path, source: &str, dir: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/java")
        .join(source);
    output(
        Command::new(jdk.join("bin/javac"))
            .arg("-g")
            .arg("-d")
            .arg(dir)
            .arg(source),
    );
}

fn java(jdk: &Path, class_path: &Path, args: &[&Path]) -> String {
    output(
        Command::new(jdk.join("bin/java"))
            .arg("-Xverify:all")
            .arg("-cp")
            .arg(class_path)
            .args(args),
    )
}

#[test]
fn heavily_edited_code_verifies_and_behaves_as_before() {
    let jdks = jdks();
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    compile(&jdks[0], "Shapes.java", &original);
    compile(&jdks[0], "LinkAll.java", dir.path());
    // Without a copy of the old code; with one that runs; with one that does not.
    for (name, edited) in [
        ("spliced", None),
        ("copy", Some(false)),
        ("beside", Some(true)),
    ] {
        let spliced = dir.path().join(name);
        fs::create_dir(&spliced).unwrap();
        let mut outcome = support::Outcome::default();
        for file in fs::read_dir(&original).unwrap() {
            let file = file.unwrap();
            let old = fs::read(file.path()).unwrap();
            let bytes = support::heavy_with(edited, &old, &mut outcome);
            fs::write(spliced.join(file.file_name()), bytes).unwrap();
        }
        assert!(outcome.plain.is_empty(), "{outcome:?}");
        assert!(outcome.edited > 15, "{outcome:?}");
        runs_as_before(&jdks, dir.path(), &original, &spliced);
    }
}

/// What is spliced verifies, prints what the original prints, and is compiled.
fn runs_as_before(jdks: &[PathBuf], tools: &Path, original: &Path, spliced: &Path) {
    for jdk in jdks {
        let main = Path::new("Shapes");
        let expected = java(jdk, original, &[main]);
        assert!(expected.lines().count() > 10);
        assert_eq!(java(jdk, spliced, &[main]), expected);
        // C2 compiles the method with monitors: structured locking holds.
        let mut command = Command::new(jdk.join("bin/java"));
        command.args([
            "-XX:-TieredCompilation",
            "-XX:+PrintCompilation",
            "-Xbatch",
            "-cp",
        ]);
        let log = output(command.arg(spliced).arg("Shapes"));
        assert!(log.contains("Shapes::locked"), "{log}");
        let skipped = |line: &&str| line.contains("Shapes") && line.contains("COMPILE SKIPPED");
        assert_eq!(log.lines().find(skipped), None);
        let count = fs::read_dir(spliced).unwrap().count();
        let linked = java(jdk, tools, &[Path::new("LinkAll"), spliced]);
        assert_eq!(linked, format!("linked\t{count}\n"));
    }
}

/// Random methods with frames and without, heavily edited, every other one with a copy of the old code; and some that grow past 32 KB.
#[test]
fn generated_code_verifies() {
    let jdks = jdks();
    let dir = tempfile::tempdir().unwrap();
    compile(&jdks[0], "LinkAll.java", dir.path());
    let (original, spliced) = (dir.path().join("original"), dir.path().join("spliced"));
    fs::create_dir(&original).unwrap();
    fs::create_dir(&spliced).unwrap();
    let mut runner = TestRunner::deterministic();
    let mut long = 0;
    for i in 0..600 {
        let is_long = i % 3 == 0;
        let strategy = if is_long {
            generate::program(6..20, 900)
        } else {
            generate::program(1..10, 30)
        };
        let mut program = strategy.new_tree(&mut runner).unwrap().current();
        program.name = format!("G{i:04}");
        if is_long {
            program.blocks[3].padding += 9000;
        }
        let bytes = program.assemble().class;
        let class = ClassFile::parse(&bytes).unwrap();
        let mut splicer = Splicer::new(&class);
        let mut edit = Default::default();
        let marker = support::marker(&mut splicer).unwrap();
        let places = if is_long { 64 } else { 1 };
        support::heavy_edit_every(places, &class, 0, &marker, &mut edit).unwrap();
        if is_long {
            // Two blocks of nops push everything else apart.
            let code = class.methods()[0].code().unwrap();
            edit.insert(At::Entry, &[0; 100]);
            edit.insert(At::Before(code.line_numbers()[3].0), &[0; 30_000]);
        } else if i % 2 == 0 {
            edit.keep_copy(&[insn::ICONST_0]);
        }
        match splicer.edit(0, &edit) {
            Ok(()) => long += usize::from(is_long),
            Err(plain) => assert!(is_long, "{plain}: {program:?}"),
        }
        fs::write(original.join(format!("G{i:04}.class")), &bytes).unwrap();
        fs::write(spliced.join(format!("G{i:04}.class")), splicer.finish()).unwrap();
    }
    assert!(long > 100, "only {long} long methods were edited");
    for jdk in &jdks {
        for classes in [&original, &spliced] {
            let linked = java(jdk, dir.path(), &[Path::new("LinkAll"), classes]);
            assert_eq!(linked, "linked\t600\n");
        }
    }
}
