//! JDKs for tests: where they are, the compiler, and running commands.
#![allow(dead_code, missing_docs)] // each user takes a part

use std::path::{Path, PathBuf};
use std::process::Command;

/// The JDKs that tests run on.
pub const JDKS: [u32; 3] = [17, 21, 25];

pub fn home(version: u32) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = root.join(format!(".cache/jdks/{version}"));
    assert!(
        home.join("bin/java").exists(),
        "no JDK {version} in .cache/jdks: run tests/fetch"
    );
    home
}

/// What a command prints; panics if it fails.
pub fn output(command: &mut Command) -> String {
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

/// Compiles files of tests/java with the JDK 17's compiler.
pub fn compile(sources: &[&str], dir: &Path, options: &[&str]) {
    let java = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
    let mut javac = Command::new(home(17).join("bin/javac"));
    javac.args(["-g", "-nowarn", "-d"]).arg(dir).args(options);
    output(javac.args(sources.iter().map(|source| java.join(source))));
}

/// Compiles the stand-in for the helper, which is to be a class of java.base.
pub fn compile_stub(dir: &Path) {
    let java = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/stub");
    let patch = format!("java.base={}", java.display());
    let options = ["--patch-module", &patch];
    compile(&["stub/BorescopeSites.java"], dir, &options);
}
