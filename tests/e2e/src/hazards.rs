//! The hazard targets (`tests/hazards`): compiled once a process, run plain, watched by the witness, or profiled.

use crate::compare::{Asked, Findings, Marks, Witnessed};
use crate::expect::{Seen, Target};
use crate::report::Report;
use crate::witness::{Record, watch};
use crate::{borescope_paths, borescope_report, java, javac, output, root, sources};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The classes that are watched and profiled; the helpers in package `tools` are not.
const CLASSES: &str = "hazards.*";

/// The targets that run one after another in one JVM.
pub const TOGETHER: [&str; 38] = [
    "Straight",
    "Branches",
    "Loops",
    "LoopAtZero",
    "Nested",
    "WorkedExample",
    "Catching",
    "Finally",
    "Synced",
    "Unwinding",
    "Recursion",
    "Switches",
    "LocalReuse",
    "Constructors",
    "Members",
    "Lambdas",
    "ManyPaths",
    "BigSwitch",
    "Threads",
    "VirtualThreads",
    "Reflective",
    "TwoLoaders",
    "Unloading",
    "Hidden",
    "OldVersions",
    "Irreducible",
    "DeadCode",
    "Subroutines",
    "WideLocals",
    "HugeMethods",
    "FarBranches",
    "StackOverflow",
    "Reflection",
    "Hot",
    "RunLoops",
    "Diamonds",
    "Leaves",
    "LeafThreads",
];

/// The compiled targets and their comments.
pub struct Suite {
    /// Where the classes are.
    pub classes: PathBuf,
    /// The comments.
    pub targets: Vec<Target>,
    folder: tempfile::TempDir,
    scratches: AtomicUsize,
}

/// The suite, compiled once a process.
pub fn suite() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    SUITE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let classes = folder.path().join("classes");
        std::fs::create_dir(&classes).expect("a folder for classes");
        let files = sources(&root().join("tests/hazards/hazards"));
        let mut all = files.clone();
        all.extend(sources(&root().join("tests/hazards/tools")));
        javac(&all, &classes, &[]);
        Suite {
            targets: files.iter().map(|file| Target::read(file)).collect(),
            classes,
            folder,
            scratches: AtomicUsize::new(0),
        }
    })
}

/// Runs some targets on one JDK.
#[derive(Clone, Debug, Default)]
pub struct Job<'a> {
    /// JDK version.
    pub jdk: u32,
    /// Options of the JVM.
    pub options: Vec<&'a str>,
    /// `JAVA_TOOL_OPTIONS`.
    pub tool_options: Option<String>,
    /// Names of the targets.
    pub targets: Vec<&'a str>,
}

impl Job<'_> {
    fn arguments(&self) -> Vec<&str> {
        let classes = suite().classes.to_str().expect("an UTF-8 path");
        let mut arguments = self.options.clone();
        arguments.extend(["-Xverify:all", "-cp", classes, "hazards.All"]);
        arguments.extend(&self.targets);
        arguments
    }

    fn environment(&self, command: &mut Command) {
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS");
        command.envs(
            self.tool_options
                .iter()
                .map(|options| ("JAVA_TOOL_OPTIONS", options)),
        );
    }

    /// Runs the targets without any agent of ours.
    pub fn plain(&self) -> Output {
        let mut command = Command::new(java(self.jdk));
        self.environment(command.args(self.arguments()));
        output(&mut command)
    }

    /// Runs the targets under the witness.
    pub fn watch(&self) -> (Output, Record) {
        let folder = suite().scratch();
        watch(
            self.jdk,
            &[CLASSES],
            &self.arguments(),
            &folder,
            |command| self.environment(command),
        )
    }

    /// Profiles the targets; returns what they printed and the report.
    pub fn profile(&self, engine: &str, k: u32, asked: Asked) -> (Output, Report) {
        let (run, report) = self.profile_with(k, engine, &asked.options());
        let report = Report::read(&report);
        assert_eq!(report.k, k as usize, "k of the report");
        (run, report)
    }

    /// As [`Self::profile`], with options of the command line and the report as it is.
    pub fn profile_with(&self, k: u32, engine: &str, options: &[&str]) -> (Output, Value) {
        let folder = suite().scratch().join("profile");
        let mut command = borescope_paths(k, engine, options, &[CLASSES], &folder);
        self.environment(command.arg(java(self.jdk)).args(self.arguments()));
        let run = output(&mut command);
        let report = borescope_report(&folder);
        std::fs::remove_dir_all(&folder).expect("a profile can be removed");
        (run, report)
    }
}

impl Suite {
    /// A new empty folder.
    pub fn scratch(&self) -> PathBuf {
        let number = self.scratches.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).expect("a scratch folder");
        folder
    }

    /// Where the compiled targets and helpers are.
    pub fn classes(&self) -> &Path {
        &self.classes
    }

    fn marks(&self, word: &str) -> Marks {
        let of = |t: &Target| -> Vec<(String, String)> {
            t.marked(word)
                .into_iter()
                .map(|method| (t.file.clone(), method))
                .collect()
        };
        Marks(self.targets.iter().flat_map(of).collect())
    }

    /// Checks the comments of the named targets against what was seen; adds differences to `wrong`, returns how many numbers it compared.
    pub fn check(&self, targets: &[&str], seen: &[Seen], wrong: &mut Vec<String>) -> usize {
        let named = |t: &&Target| targets.iter().any(|name| t.file == format!("{name}.java"));
        let mut compared = 0;
        for target in self.targets.iter().filter(named) {
            let (differences, numbers) = target.check(seen);
            wrong.extend(differences);
            compared += numbers;
        }
        compared
    }

    /// Compares a report with the witness and with the comments; gives also how many numbers in comments it compared.
    pub fn judge(
        &self,
        targets: &[&str],
        witnessed: &Witnessed,
        report: &Report,
        asked: Asked,
    ) -> (Findings, usize) {
        let (plain, varies) = (self.marks("plain"), self.marks("varies"));
        let mut findings = witnessed.compare(report, asked, &plain, &varies);
        let comments = self.check(targets, &findings.seen, &mut findings.wrong);
        (findings, comments)
    }
}
