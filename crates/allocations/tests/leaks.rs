//! What is said of constructors: against the comments of tests/java/Leaks.java, and of the JDK's own against their class files.

#[path = "support/jdk.rs"]
mod jdk;
#[path = "support/mod.rs"]
mod support;

use borescope_allocations::{Constructors, Resolver, summarize};
use borescope_classfile::ClassFile;
use std::collections::BTreeMap;

#[test]
fn constructors_leak_or_are_safe_as_their_comments_say() {
    let dir = tempfile::tempdir().unwrap();
    jdk::compile(&["Leaks.java"], dir.path(), &[]);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java/Leaks.java");
    let source = std::fs::read_to_string(source).unwrap();
    let expected: BTreeMap<u16, bool> = source
        .lines()
        .zip(1..)
        .filter_map(|(line, number)| match line.rsplit_once("// ")?.1 {
            "leaks" => Some((number, true)),
            "safe" => Some((number, false)),
            _ => None,
        })
        .collect();
    assert!(expected.len() > 25);
    let mut all = support::All::default();
    let files: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    for bytes in &files {
        all.add_class(bytes);
    }
    let mut found = BTreeMap::new();
    for bytes in &files {
        let class = ClassFile::parse(bytes).unwrap();
        for method in class.methods().iter().filter(|m| m.name() == "<init>") {
            let lines = method.code().unwrap().line_numbers();
            let leaks = Resolver(&all).leaks(&class.this_name(), &method.descriptor());
            found.insert(lines[0].1, leaks);
        }
    }
    // A constructor's first line is that of its call of another one, or its head where that is not written.
    for (line, leaks) in &expected {
        let found = found.get(line).or_else(|| found.get(&(line + 1)));
        assert_eq!(found, Some(leaks), "line {line}");
    }
    // A class that was not seen is not known to be safe; one whose superclass was not seen neither.
    assert!(Resolver(&support::All::default()).leaks("Leaks$Fields", "()V"));
    let mut part = support::All::default();
    for bytes in &files {
        if summarize(&ClassFile::parse(bytes).unwrap()).name() == "Leaks$Quiet" {
            part.add_class(bytes);
        }
    }
    assert!(Resolver(&part).leaks("Leaks$Quiet", "()V"));
}
