//! A world without a JVM: shell scripts stand for `java` and for build tools, and leave a spool made by `borescope_spool::testing`
//! where the agent would have made one.
#![allow(dead_code)] // each test file uses its part

use borescope_spool::layout::Engine;
use borescope_spool::meta::{Class, Counting, Method, Record, Target};
use borescope_spool::testing::{Builder, worked_example};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Shell function: leaves the template spool in the output directory that the agent options in `$1` name.
const AGENT: &str = r#"#!/bin/sh
agent() {
    out=${1##*,out=}; out=${out%%,*}; spool=$out/.spool/$$
    mkdir -p "$spool"; cp "$TEMPLATE"/* "$spool"
}
"#;

/// A directory with scripts, an agent library that nobody loads, and a template spool.
pub struct World {
    dir: TempDir,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::create_dir(dir.path().join("template")).unwrap();
        fs::write(dir.path().join("agent.so"), "").unwrap();
        let world = Self { dir };
        fs::write(world.path("template/counters.bin"), counters(true)).unwrap();
        fs::write(world.path("template/meta.log"), metadata()).unwrap();
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A script in `bin`, which is first on PATH; `agent OPTIONS` in it leaves a spool.
    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        let text = tempfile::NamedTempFile::new().unwrap();
        fs::write(&text, format!("{AGENT}{body}\n")).unwrap();
        self.install(&text, name)
    }

    /// Copies an executable to `bin`, in another process: as Linux runs no file that is open for writing, and what another thread of
    /// ours starts meanwhile would inherit our open file for a moment.
    pub fn install(&self, from: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        let mut command = Command::new("install");
        command.args(["-m", "755"]).arg(from.as_ref()).arg(&path);
        assert!(command.status().unwrap().success());
        path
    }

    /// A `java` that leaves a spool, says so and ends with this code.
    pub fn java(&self, code: u8) -> PathBuf {
        self.script(
            "java",
            &format!("agent \"$1\"; echo \"hello from $$\"; exit {code}"),
        )
    }

    /// Any program in this world.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path =
            std::env::join_paths([self.path("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
        command
            .current_dir(self.dir.path())
            .env("PATH", path)
            .env("TEMPLATE", self.path("template"));
        command
            .env("BORESCOPE_AGENT", self.path("agent.so"))
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JAVA_HOME");
        command
    }

    pub fn borescope(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_borescope"));
        command.args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(self.borescope(arguments).output().unwrap())
    }

    /// Names in a directory, sorted.
    pub fn list(&self, dir: &str) -> Vec<String> {
        names(&self.path(dir))
    }
}

pub fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Checks that it failed as promised: this exit code, nothing on standard output, one line on standard error with these words.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("borescope: "), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
    }
}

/// The worked example of seed 000, three times in one method.
pub fn counters(ended: bool) -> Vec<u8> {
    let mut builder = Builder::new(Engine::Automaton, 4);
    // ABCE(back) 0, BCE(back) 4, BCEF 5, BDE(back) 6: the trace 6 2 0 0 2 2 0 0 2 2 0 0 2 3 in the paper's numbers.
    let trace = vec![0, 4, 6, 6, 4, 4, 6, 6, 4, 4, 6, 6, 4, 5];
    builder
        .method(4, 8)
        .run(0, 4, &[trace.clone(), trace.clone(), trace]);
    builder.finish(ended.then_some(1_700_000_002_000))
}

/// The first record of a log: the JVM, started with these include globs.
pub fn target(include: &[&str]) -> Record {
    Record::Target(Target {
        pid: 4711,
        jdk: "17.0.15".into(),
        vm: "OpenJDK 64-Bit Server VM 17.0.15".into(),
        collector: "G1".into(),
        command: "com.acme.Main".into(),
        started: 1_700_000_000_000,
        include: include.iter().map(ToString::to_string).collect(),
        merge: true,
        ..Target::default()
    })
}

/// The JVM and the method that [`counters`] is about.
pub fn metadata() -> Vec<u8> {
    let method = Method {
        index: 4,
        counting: Counting::Rows,
        name: "loop".into(),
        descriptor: "(I)V".into(),
        lines: (0..6).map(|block| (block * 3, 10 + block)).collect(),
        flow: worked_example(),
    };
    let class = Class {
        name: "com/acme/Main".into(),
        loader: "app".into(),
        hash: 1,
        source_file: Some("Main.java".into()),
        methods: vec![method],
        straight_line: 2,
    };
    [target(&[]), Record::Class(class)]
        .iter()
        .flat_map(Record::encode)
        .collect()
}
