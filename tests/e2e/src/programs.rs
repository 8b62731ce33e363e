//! Real programs as users run them, plain and under `borescope paths`: the same output, files and exit code are due.
//!
//! Programs are rows of [`crate::workloads`]. A [`Variant`] says how to run one; [`covering`] gives a few variants that together use
//! every engine, k and collector, [`product`] all of them.

pub use crate::workloads::ALL;
use crate::{JDKS, borescope, java, root, run, sources};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// A program and what it is run on.
#[derive(Debug)]
pub struct Program {
    /// Name in tests and tables.
    pub name: &'static str,
    /// Jars of `.cache/jars`, without `.jar`; a trailing `*` stands for every jar that begins so. The drivers' classes come first.
    pub(crate) jars: &'static [&'static str],
    /// Options of the JVM.
    pub(crate) options: &'static [&'static str],
    /// Main class.
    pub(crate) main: &'static str,
    /// Arguments; `{out}` is the directory for files, `{input}` that of the inputs, `{lang3}` and `{ecj-parser}` are source trees.
    pub(crate) args: &'static [&'static str],
    /// Lines that are piped to its standard input.
    pub(crate) stdin: usize,
    /// The exit code that it must have.
    pub exit: i32,
    /// Oldest JDK that can run it.
    pub since: u32,
    /// Newest JDK that can run it.
    pub until: u32,
    /// Classes (as a glob over methods) whose path counts do not depend on time, threads or hash seeds: equal in every run.
    pub steady: Option<&'static str>,
}

/// The program of a name.
pub fn program(name: &str) -> &'static Program {
    ALL.iter()
        .find(|p| p.name == name)
        .unwrap_or_else(|| panic!("no program {name}"))
}

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Variant {
    /// JDK.
    pub jdk: u32,
    /// Collector, as in `-XX:+Use...GC`.
    pub collector: &'static str,
    /// Engine.
    pub engine: &'static str,
    /// Longest sequence.
    pub k: u32,
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "JDK {} {} {} k={}",
            self.jdk, self.collector, self.engine, self.k
        )
    }
}

/// Engines with each k that the tests use; the Ball-Larus ones count single paths only.
pub const ENGINES: [(&str, u32); 11] = [
    ("automaton", 4),
    ("ksf", 4),
    ("automaton", 16),
    ("blpp-hash", 1),
    ("automaton", 1),
    ("ksf", 16),
    ("blpp-dense", 1),
    ("ksf", 1),
    ("ksf-mtf", 4),
    ("ksf-mtf", 1),
    ("ksf-mtf", 16),
];

/// HotSpot's collectors.
pub const COLLECTORS: [&str; 5] = ["G1", "Parallel", "Serial", "Z", "Shenandoah"];

/// The collectors that a JDK has: a build may leave out any but Serial.
pub fn collectors(jdk: u32) -> &'static [&'static str] {
    static FOUND: OnceLock<BTreeMap<u32, Vec<&'static str>>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let has = |jdk: u32, collector: &str| {
            let flag = format!("-XX:+Use{collector}GC");
            crate::output(Command::new(java(jdk)).args([&flag, "-version"]))
                .status
                .success()
        };
        JDKS.into_iter()
            .map(|jdk| {
                let (there, not): (Vec<_>, Vec<_>) =
                    COLLECTORS.into_iter().partition(|c| has(jdk, c));
                if !not.is_empty() {
                    eprintln!("JDK {jdk} has no {not:?} collector");
                }
                (jdk, there)
            })
            .collect()
    });
    &found[&jdk]
}

/// One variant a JDK, chosen so that all programs together use every pair of engine and collector (11 has no common
/// divisor with their 5, nor with the 3 JDKs).
pub fn covering(program: &Program) -> Vec<Variant> {
    let number = ALL.iter().position(|p| p.name == program.name).unwrap_or(0);
    JDKS.into_iter()
        .enumerate()
        .filter(|(_, jdk)| program.runs_on(*jdk))
        .map(|(j, jdk)| {
            let i = number * JDKS.len() + j;
            let (engine, k) = ENGINES[i % ENGINES.len()];
            let there = collectors(jdk);
            Variant {
                jdk,
                collector: there[i % there.len()],
                engine,
                k,
            }
        })
        .collect()
}

/// Every JDK, collector, engine and k.
pub fn product(program: &Program) -> Vec<Variant> {
    let mut all = Vec::new();
    for jdk in JDKS.into_iter().filter(|jdk| program.runs_on(*jdk)) {
        for &collector in collectors(jdk) {
            all.extend(ENGINES.map(|(engine, k)| Variant {
                jdk,
                collector,
                engine,
                k,
            }));
        }
    }
    all
}

/// What a run of a program gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, 128 + n if signal n ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, without the lines of borescope.
    pub stderr: String,
    /// Files under its output directory, by relative path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Outcome {
    fn of(output: &Output, out: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(out, out, &mut files);
        let stderr = String::from_utf8_lossy(&output.stderr);
        Self {
            code: exit_code(output.status),
            stdout: output.stdout.clone(),
            stderr: stderr
                .lines()
                .filter(|l| !l.starts_with("borescope: "))
                .collect::<Vec<_>>()
                .join("\n"),
            files,
        }
    }

    /// What differs, in one line; `None` = nothing.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.code != other.code {
            return Some(format!(
                "exit code {} became {}; standard error:\n{}",
                self.code, other.code, other.stderr
            ));
        }
        if self.stdout != other.stdout {
            let (a, b) = (
                String::from_utf8_lossy(&self.stdout),
                String::from_utf8_lossy(&other.stdout),
            );
            return Some(format!("standard output became\n{b}\ninstead of\n{a}"));
        }
        if self.stderr != other.stderr {
            return Some(format!(
                "standard error became\n{}\ninstead of\n{}",
                other.stderr, self.stderr
            ));
        }
        let names: std::collections::BTreeSet<_> =
            self.files.keys().chain(other.files.keys()).collect();
        names
            .into_iter()
            .find(|n| self.files.get(*n) != other.files.get(*n))
            .map(|name| format!("the file {} differs", name.display()))
    }
}

/// The exit code as a shell gives it.
pub fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn collect(root: &Path, dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).expect("output directory") {
        let path = entry.expect("directory entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below its root").to_owned();
            files.insert(name, fs::read(&path).expect("output file"));
        }
    }
}

impl Program {
    /// Whether a JDK can run it, as it is.
    pub fn runs_on(&self, jdk: u32) -> bool {
        (self.since..=self.until).contains(&jdk)
    }

    /// The arguments of `java`, with files going to `out`.
    pub fn arguments(&self, out: &Path) -> Vec<String> {
        let mut arguments: Vec<String> = self.options.iter().map(|o| (*o).to_owned()).collect();
        arguments.extend(["-cp".to_owned(), self.class_path(), self.main.to_owned()]);
        arguments.extend(self.args.iter().map(|a| {
            match *a {
                "{out}" => out.display().to_string(),
                "{lang3}" => source_tree("commons-lang3-3.17.0-sources")
                    .display()
                    .to_string(),
                // Against the rest of ecj in its jar. (The whole needs javax.lang.model of a JDK newer than 17.)
                "{ecj-parser}" => source_tree("ecj-3.38.0-sources")
                    .join("org/eclipse/jdt/internal/compiler/parser")
                    .display()
                    .to_string(),
                a => a.replace(
                    "{input}",
                    &root().join("tests/programs/input").display().to_string(),
                ),
            }
        }));
        arguments
    }

    fn class_path(&self) -> String {
        let mut path = drivers().display().to_string();
        for jar in self.jars.iter().flat_map(|pattern| jars(pattern)) {
            path += ":";
            path += &jar.display().to_string();
        }
        path
    }

    /// The file names of its jars.
    pub fn jar_names(&self) -> Vec<String> {
        let all = self.jars.iter().flat_map(|pattern| jars(pattern));
        all.filter_map(|jar| Some(jar.file_name()?.to_str()?.to_owned()))
            .collect()
    }

    /// Runs it as it is.
    pub fn plain(&self, jdk: u32, options: &[&str]) -> Outcome {
        let out = tempfile::tempdir().expect("temporary directory");
        let mut command = Command::new(java(jdk));
        command.args(options).args(self.arguments(out.path()));
        Outcome::of(&feed(&mut command, self.stdin), out.path())
    }

    /// Runs it under `borescope paths`, with the profile in `profile`. Also gives what borescope said on standard error.
    pub fn profiled(
        &self,
        variant: &Variant,
        options: &[&str],
        profile: &Path,
    ) -> (Outcome, Vec<String>) {
        let out = tempfile::tempdir().expect("temporary directory");
        let mut command = Command::new(borescope());
        command
            .args([
                "paths",
                "--quiet",
                "-k",
                &variant.k.to_string(),
                "--engine",
                variant.engine,
                "-o",
            ])
            .arg(profile)
            // The k-SF has no bounds, and sequences without end in some programs.
            .args([
                "--memory",
                if variant.engine.starts_with("ksf") {
                    "8G"
                } else {
                    "64M"
                },
            ])
            .arg("--")
            .arg(java(variant.jdk))
            .args(options)
            .args(self.arguments(out.path()));
        let output = feed(&mut command, self.stdin);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr
            .lines()
            .filter(|l| l.starts_with("borescope: "))
            .map(str::to_owned)
            .collect();
        (Outcome::of(&output, out.path()), said)
    }

    /// Runs it plain (unless `plain` holds that run already) and in a variant under borescope; `Err` says what is not as it should be.
    /// Gives the counts of its steady classes.
    pub fn check(
        &self,
        variant: &Variant,
        plain: &mut BTreeMap<u32, Outcome>,
    ) -> Result<Counts, String> {
        let verify = "-Xverify:all";
        let collector = format!("-XX:+Use{}GC", variant.collector);
        let expected = plain
            .entry(variant.jdk)
            .or_insert_with(|| self.plain(variant.jdk, &[verify]));
        if expected.code != self.exit {
            return Err(format!(
                "the plain run ended with {}:\n{}",
                expected.code, expected.stderr
            ));
        }
        let dir = tempfile::tempdir().expect("temporary directory");
        let profile = dir.path().join("profile");
        let (outcome, said) = self.profiled(variant, &[verify, &collector], &profile);
        if let Some(difference) = expected.difference(&outcome) {
            return Err(format!("{difference}\nborescope said: {said:#?}"));
        }
        self.counts(&profile)
            .map_err(|error| format!("{error}\nborescope said: {said:#?}"))
    }

    /// Counts of single paths of the steady classes: (class, method, descriptor, bytecode ranges) -> count.
    fn counts(&self, profile: &Path) -> Result<Counts, String> {
        let mut command = Command::new(borescope());
        command
            .arg("report")
            .arg(profile)
            .args(["--format", "json"]);
        match self.steady {
            Some(glob) => command.args(["--method", glob]),
            None => command.args(["--top", "3"]),
        };
        let output = crate::output(&mut command);
        if !output.status.success() {
            return Err(format!(
                "report failed: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("report is not JSON: {e}"))?;
        let methods = report["paths"]["methods"]
            .as_array()
            .ok_or("no paths.methods in the report")?;
        let executed = |m: &&serde_json::Value| m["activations"].as_u64().unwrap_or(0) > 0;
        if methods.iter().filter(executed).count() == 0 {
            return Err("the report has no method that ran".to_owned());
        }
        let mut counts = Counts::new();
        if self.steady.is_some() {
            for m in methods {
                let name =
                    format!("{}.{}{}", m["class"], m["method"], m["descriptor"]).replace('"', "");
                counts.insert(
                    format!("{name} activations"),
                    m["activations"].as_u64().unwrap_or(0),
                );
                for p in m["paths"].as_array().ok_or("a method without paths")? {
                    counts.insert(
                        format!("{name} {}", p["bcis"]),
                        p["count"].as_u64().ok_or("a path without count")?,
                    );
                }
            }
        }
        Ok(counts)
    }
}

/// Counts by what they count.
pub type Counts = BTreeMap<String, u64>;

/// The first entries that differ between two runs' counts.
pub fn counts_difference(a: &Counts, b: &Counts) -> Option<String> {
    let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let lines: Vec<String> = keys
        .into_iter()
        .filter(|k| a.get(*k) != b.get(*k))
        .map(|k| format!("  {k}: {:?} and {:?}", a.get(k), b.get(k)))
        .take(10)
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Runs a command to its end with `lines` lines on a pipe as standard input. A program that hangs is killed after ten minutes, which
/// fails the test by its exit code: no program here needs one on an idle machine.
pub fn feed(command: &mut Command, lines: usize) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let writer = std::thread::spawn(move || {
        for i in 0..lines {
            // A program that ends early closes the pipe.
            if writeln!(stdin, "line {i} of what is piped in").is_err() {
                break;
            }
        }
    });
    let (done, waits) = std::sync::mpsc::channel::<()>();
    let group = child.id();
    let watchdog = std::thread::spawn(move || {
        if waits.recv_timeout(Duration::from_secs(600))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            kill(&format!("-{group}"));
        }
    });
    let output = child.wait_with_output().expect("the program's output");
    drop(done);
    writer.join().expect("writer of standard input");
    watchdog.join().expect("watchdog");
    output
}

/// `kill -9` of a process, or of a group if negative.
pub fn kill(pid: &str) {
    let _ = Command::new("sh")
        .args(["-c", "kill -KILL \"$0\"", pid])
        .status();
}

/// The jars of `.cache/jars` that a pattern names.
pub fn jars(pattern: &str) -> Vec<PathBuf> {
    let dir = root().join(".cache/jars");
    let found = match pattern.strip_suffix('*') {
        None => vec![dir.join(format!("{pattern}.jar"))],
        Some(prefix) => {
            let mut all: Vec<PathBuf> = fs::read_dir(&dir)
                .unwrap_or_else(|e| panic!("{}: {e}: run tests/fetch", dir.display()))
                .map(|e| e.expect("directory entry").path())
                .filter(|p| {
                    p.file_name()
                        .and_then(|n| n.to_str())
                        .is_some_and(|n| n.starts_with(prefix) && n.ends_with(".jar"))
                })
                .collect();
            all.sort();
            all
        }
    };
    assert!(
        !found.is_empty() && found.iter().all(|p| p.exists()),
        "no jar {pattern} in .cache/jars: run tests/fetch"
    );
    found
}

/// A directory of this process, made once a name and filled by `fill`. Those of processes that have ended are removed.
fn made_once(name: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut made = MADE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(dir) = made.get(name) {
        return dir.clone();
    }
    let all = std::env::temp_dir().join("borescope-e2e");
    let own = all.join(std::process::id().to_string());
    let dir = own.join(name);
    fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for other in fs::read_dir(&all).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(other.file_name()).exists() {
            let _ = fs::remove_dir_all(other.path());
        }
    }
    fill(&dir);
    made.insert(name.to_owned(), dir.clone());
    dir
}

/// The compiled drivers.
pub fn drivers() -> PathBuf {
    made_once("drivers", |classes| {
        let patterns = [
            "h2-2.3.232",
            "lucene-core-9.12.0",
            "kotlin-stdlib-2.0.21",
            "annotations*",
            "scimark-2.0",
            "fop-core*",
            "fop-util*",
            "fop-events*",
            "xmlgraphics*",
        ];
        let path: Vec<String> = patterns
            .iter()
            .flat_map(|p| jars(p))
            .map(|p| p.display().to_string())
            .collect();
        crate::javac(
            &sources(&root().join("tests/programs")),
            classes,
            &["-cp", &path.join(":")],
        );
    })
}

/// The sources in a jar, unpacked.
fn source_tree(jar: &str) -> PathBuf {
    made_once(jar, |dir| {
        // The machine has no other sure way to unpack a jar than the JDK's own tool.
        run(Command::new(crate::jdk(17).join("bin/jar"))
            .arg("xf")
            .arg(&jars(jar)[0])
            .current_dir(dir));
        // Needs Ant, which is no part of the program.
        let _ = fs::remove_dir_all(dir.join("org/eclipse/jdt/internal/antadapter"));
        let _ = fs::remove_file(dir.join("org/eclipse/jdt/core/JDTCompilerAdapter.java"));
    })
}
