//! The demo's committed class is what its committed source says: compiled again here, byte for byte.

use std::path::Path;
use std::process::Command;

#[test]
fn compiling_the_source_gives_the_committed_class() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java/demo");
    let out = tempfile::tempdir().unwrap();
    let javac = std::env::var_os("JAVA_HOME")
        .map(|home| Path::new(&home).join("bin/javac"))
        .filter(|p| p.is_file())
        .unwrap_or("javac".into());
    let status = Command::new(&javac)
        .args(["--release", "17", "-g", "-d"])
        .arg(out.path())
        .arg(demo.join("Settings.java"))
        .status();
    assert!(
        status
            .unwrap_or_else(|e| panic!("this test needs a JDK's {}: {e}", javac.display()))
            .success()
    );
    let made = std::fs::read(out.path().join("demo/Settings.class")).unwrap();
    assert!(
        made == std::fs::read(demo.join("Settings.class")).unwrap(),
        "run: javac --release 17 -g -d java java/demo/Settings.java"
    );
}
