//! Class file versions: a preview minor is instrumented and kept; a version of a JDK of the future passes through with one line.

use borescope::instrument::{Instrumenter, NEWEST_MAJOR, Settings, numbered, refuse};
use borescope_classfile::ClassFile;
use borescope_spool::layout::Engine;

/// The demo's class with another version (JVMS 4.1: minor at offset 4, major at 6).
fn class(minor: u16, major: u16) -> Vec<u8> {
    let mut bytes = include_bytes!("../../../java/demo/Settings.class").to_vec();
    bytes[4..6].copy_from_slice(&minor.to_be_bytes());
    bytes[6..8].copy_from_slice(&major.to_be_bytes());
    bytes
}

#[test]
fn preview_minor_is_kept() {
    let bytes = class(65535, 65);
    let parsed = ClassFile::parse(&bytes).unwrap();
    assert_eq!(refuse(&parsed), None);
    let done = Instrumenter::default()
        .instrument(&parsed, Settings::new(Engine::Automaton, 4), numbered)
        .expect("slots");
    let new = done.bytes.expect("its methods are instrumented");
    assert_eq!(new[..8], bytes[..8]);
    assert!(new.len() > bytes.len() && done.skipped.is_empty());
}

#[test]
fn future_major_is_refused_in_words() {
    let newest = class(0, NEWEST_MAJOR);
    assert_eq!(refuse(&ClassFile::parse(&newest).unwrap()), None);
    let future = class(0, NEWEST_MAJOR + 1);
    let why = refuse(&ClassFile::parse(&future).unwrap()).expect("unknown version");
    assert!(
        why.contains(&(NEWEST_MAJOR + 1).to_string()) && why.contains("newer"),
        "{why}"
    );
}
