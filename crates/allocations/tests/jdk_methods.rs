//! `src/jdk_methods.bin` holds exactly what the JDKs 17, 21 and 25 say. With BORESCOPE_UPDATE set, the test writes the file.

#[path = "support/jdk.rs"]
mod jdk;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[test]
fn the_list_of_jdk_methods_is_what_the_jdks_say() {
    let dir = tempfile::tempdir().unwrap();
    jdk::compile(&["JdkMethods.java"], dir.path(), &[]);
    let (mut overridable, mut inherited) = (BTreeSet::new(), BTreeSet::new());
    for version in jdk::JDKS {
        let text = jdk::output(
            Command::new(jdk::home(version).join("bin/java"))
                .args(["--add-modules", "ALL-SYSTEM", "-cp"])
                .arg(dir.path())
                .arg("JdkMethods"),
        );
        let (first, second) = text.split_once("final\n").unwrap();
        assert!(first.lines().count() > 10_000, "JDK {version}");
        overridable.extend(first.lines().map(hash));
        inherited.extend(second.lines().map(hash));
    }
    let inherited: Vec<u32> = inherited.difference(&overridable).copied().collect();
    let words = [overridable.len() as u32].into_iter();
    let words = words.chain(overridable).chain(inherited);
    let bytes: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/jdk_methods.bin");
    if std::env::var_os("BORESCOPE_UPDATE").is_some() {
        std::fs::write(&file, &bytes).unwrap();
    }
    assert!(
        std::fs::read(&file).unwrap() == bytes,
        "src/jdk_methods.bin is out of date: run this test with BORESCOPE_UPDATE=1"
    );
}
