//! The messages that docs/TROUBLESHOOTING.md explains are messages that borescope has.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn every_message_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for room in [
        "agent",
        "attach",
        "cfg",
        "classfile",
        "cli",
        "profile",
        "report",
    ] {
        sources(&root.join("crates").join(room).join("src"), &mut files);
    }
    let mut code = String::new();
    for file in &files {
        code.push_str(&fs::read_to_string(file).unwrap());
    }
    // Strings go on over line ends as one text.
    let mut joined = String::new();
    for (i, part) in code.split("\\\n").enumerate() {
        joined.push_str(if i == 0 { part } else { part.trim_start() });
    }
    let doc = fs::read_to_string(root.join("docs/TROUBLESHOOTING.md")).unwrap();
    let mut messages = 0;
    for line in doc.lines().filter_map(|l| l.strip_prefix("### `")) {
        let message = line.strip_suffix('`').unwrap_or_else(|| panic!("{line}"));
        let message = message.strip_prefix("Lower bounds: ").unwrap_or(message);
        messages += 1;
        // The lens's cause and remedy are put together where it is told.
        let message = message.strip_prefix("no waste lens: ").unwrap_or(message);
        for part in message
            .split("...")
            .flat_map(|p| p.split(", so sequences"))
            .flat_map(|p| p.split(';'))
            .filter(|p| p.trim().len() > 6)
        {
            assert!(joined.contains(part.trim()), "no message has {part:?}");
        }
    }
    assert!(messages > 30, "{messages}");
}
