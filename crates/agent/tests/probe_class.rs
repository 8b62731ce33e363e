//! The helpers' committed class files are what their sources compile to.

use std::path::Path;
use std::process::Command;

#[test]
fn agrees_with_its_source() {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java/probe");
    let out = tempfile::tempdir().unwrap();
    let status = Command::new(probe.join("build"))
        .arg(out.path())
        .status()
        .expect("java/probe/build runs");
    assert!(
        status.success(),
        "java/probe/build failed: is a JDK 17 or newer installed?"
    );
    for name in [
        "BorescopeProbe.class",
        "BorescopeSites.class",
        "BorescopeTrace.class",
        "invoke/BorescopeTrap.class",
    ] {
        // Compiled by a JDK of its own, java.base's class lands below its package, with or without the module's source folder.
        let fresh = ["java/lang", "java/java/lang"]
            .iter()
            .find_map(|dir| std::fs::read(out.path().join(dir).join(name)).ok())
            .expect("the class was compiled");
        let committed = std::fs::read(probe.join("java/lang").join(name)).unwrap();
        assert!(fresh == committed, "run java/probe/build and commit {name}");
    }
}
