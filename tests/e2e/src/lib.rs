//! End-to-end tests of borescope: what they share.
//!
//! The tests run the release build of `borescope` on real JVMs, so this crate finds JDKs (put in `.cache/jdks` by `tests/fetch`), builds the tool
//! once a test process, and runs it. Whatever is missing fails the test with a message that says how to get it: nothing is skipped.
//!
//! - [`programs`] runs real programs ([`workloads`]), plain and under borescope; [`corpus`] holds all their class files.
//! - [`witness`] reads what the single-stepping agent recorded; [`code`] reads class files; [`oracle`] derives paths and n-grams from both,
//!   independently of `crates/`; [`merge`] removes what a report does not tell apart; [`report`] reads what borescope printed; [`compare`] compares the two; [`expect`] reads expectations
//!   from the comments of targets; [`hazards`] runs the targets.
//! - [`sites`] has the targets of the sites lens, and compares what is alive with their comments; [`live`] runs them. [`waste`] has those of the waste lens.

#![warn(missing_docs)]

pub mod code;
pub mod compare;
pub mod corpus;
pub mod expect;
pub mod hazards;
pub mod live;
pub mod merge;
pub mod oracle;
pub mod programs;
pub mod report;
pub mod sites;
pub mod waste;
pub mod witness;
pub mod workloads;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The JDKs that everything runs on.
pub const JDKS: [u32; 3] = [17, 21, 25];

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository has a root")
}

/// Home of the JDK (or JRE) of a major version.
pub fn jdk(major: u32) -> PathBuf {
    let home = root().join(format!(".cache/jdks/{major}"));
    assert!(
        home.join("bin/java").exists(),
        "no JDK {major} in .cache/jdks: run tests/fetch"
    );
    home
}

/// The `java` launcher of a JDK.
pub fn java(major: u32) -> PathBuf {
    jdk(major).join("bin/java")
}

/// The `borescope` binary, built for release.
pub fn borescope() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("borescope"))
}

/// The agent, built for release.
pub fn agent() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("libborescope.so"))
}

/// The witness agent, built for release.
pub fn witness_agent() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("libborescope_witness.so"))
}

/// Where `file` is, once all that tests run is built. `BORESCOPE_BUILT` names a directory that holds it already.
///
/// All in one, once a process: a second build of other packages has other features of what they depend on, and so would take the agent away and build it
/// again, while another thread's JVM is about to load it.
fn built(file: &str) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        if let Some(built) = std::env::var_os("BORESCOPE_BUILT") {
            return built.into();
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(root())
            .args(["build", "--release", "--quiet"]);
        for package in ["borescope-cli", "borescope-agent", "borescope-witness"] {
            cargo.args(["-p", package]);
        }
        run(&mut cargo);
        // A test is TARGET/PROFILE/deps/NAME, a program TARGET/PROFILE/NAME.
        let exe = std::env::current_exe().expect("a program has a path");
        let profile = exe.ancestors().skip(1).find(|p| !p.ends_with("deps"));
        let target = profile
            .and_then(Path::parent)
            .expect("cargo's target directory");
        target.join("release")
    });
    let path = directory.join(file);
    assert!(path.exists(), "cargo did not build {}", path.display());
    path
}

/// Runs a command to its end; panics with all it printed if it cannot be started or fails.
pub fn run(command: &mut Command) -> Output {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command:?}\nended with {}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs a command to its end, however it ends.
pub fn output(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// A shell script that may mount: in a mount namespace of its own, so nothing is left behind.
pub fn with_mounts(script: &str, args: &[&Path]) -> Command {
    let root = std::fs::metadata("/proc/self")
        .map(|m| std::os::unix::fs::MetadataExt::uid(&m))
        .expect("/proc")
        == 0;
    let mut command = Command::new("unshare");
    command.args(if root {
        &["--mount"][..]
    } else {
        &["--user", "--map-root-user", "--mount"]
    });
    command.args(["sh", "-c", script, "sh"]).args(args);
    command
}

/// Compiles Java sources with the JDK 17's compiler into `classes`.
pub fn javac(sources: &[PathBuf], classes: &Path, options: &[&str]) {
    let mut javac = Command::new(jdk(17).join("bin/javac"));
    run(javac
        .args(["-g", "--release", "17", "-nowarn", "-d"])
        .arg(classes)
        .args(options)
        .args(sources));
}

/// The Java sources in a folder, sorted.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "java"))
        .collect();
    files.sort();
    files
}

/// `borescope paths -k K --engine ENGINE OPTION... --include GLOB... -o PROFILE --`, to be followed by the command to profile.
pub fn borescope_paths(
    k: u32,
    engine: &str,
    options: &[&str],
    include: &[&str],
    profile: &Path,
) -> Command {
    let mut command = Command::new(borescope());
    command.args(["paths", "-k", &k.to_string(), "--engine", engine]);
    command.args(options);
    for glob in include {
        command.args(["--include", glob]);
    }
    command.arg("-o").arg(profile).arg("--");
    command
}

/// `borescope report PROFILE --format json`, parsed.
pub fn borescope_report(profile: &Path) -> serde_json::Value {
    let mut command = Command::new(borescope());
    let output = run(command
        .arg("report")
        .arg(profile)
        .args(["--format", "json"]));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("the report is not JSON: {error}"))
}
