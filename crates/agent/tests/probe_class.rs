//! The probe helper's committed class file is what its source compiles to.

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
    // Compiled by a JDK of its own, java.base's class lands below its package, with or without the module's source folder.
    let fresh = [
        "java/lang/BorescopeProbe.class",
        "java/java/lang/BorescopeProbe.class",
    ]
    .iter()
    .find_map(|f| std::fs::read(out.path().join(f)).ok())
    .expect("the class was compiled");
    let committed = std::fs::read(probe.join("java/lang/BorescopeProbe.class")).unwrap();
    assert!(
        fresh == committed,
        "run java/probe/build and commit BorescopeProbe.class"
    );
}
