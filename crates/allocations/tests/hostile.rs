//! Any bytes: no panic, and what comes out is a class file with the same methods.

#[path = "../../classfile/tests/support/generate.rs"]
mod generate;
#[path = "support/mod.rs"]
mod support;

use borescope_allocations::{
    Constructors, Instrumented, Resolver, Settings, instrument, summarize,
};
use borescope_classfile::ClassFile;
use proptest::prelude::*;

/// Safe or not by a hash of the name, so that both happen.
struct Mixed;

impl Constructors for Mixed {
    fn leaks(&self, class: &str, descriptor: &str) -> bool {
        (class.len() + descriptor.len()).is_multiple_of(2)
    }
}

/// Class files with all sorts of code: those of classfile's tests.
fn data() -> Vec<Vec<u8>> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../classfile/tests/data");
    let files = std::fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path());
    let classes = files.filter(|file| file.extension().is_some_and(|e| e == "class"));
    classes.map(|file| std::fs::read(file).unwrap()).collect()
}

fn all_settings() -> [Settings; 5] {
    let defaults = Settings::default();
    [
        defaults,
        Settings {
            jdk: true,
            ..defaults
        },
        Settings {
            reset: true,
            local: true,
            ..defaults
        },
        Settings {
            trace: true,
            attribute: false,
            ..defaults
        },
        Settings {
            mark: false,
            is_jdk: |_| true,
            ..defaults
        },
    ]
}

/// Instruments and summarizes bytes that may be no class file.
fn survive(bytes: &[u8]) -> Option<Instrumented> {
    let class = ClassFile::parse(bytes).ok()?;
    let mut all = support::All::default();
    all.add_class(bytes);
    let summary = summarize(&class);
    let mut last = None;
    for settings in all_settings() {
        for method in class.methods() {
            Resolver(&all).leaks(summary.name(), &method.descriptor());
        }
        let mut asked = None;
        let done = instrument(&class, &settings, &Mixed, |sites, calls| {
            asked = Some((sites, calls));
            Some((u32::MAX / 4, 7))
        })
        .unwrap();
        assert_eq!(
            asked.unwrap_or_default(),
            (done.sites.len(), done.calls.len())
        );
        assert!(done.bytes.is_none() || asked.is_some());
        if let Some(new) = &done.bytes {
            let new = ClassFile::parse(new).expect("a class file");
            assert_eq!(new.methods().len(), class.methods().len());
        }
        last = Some(done);
    }
    last
}

#[test]
fn the_unharmed_class_files_have_sites() {
    let sites: usize = data()
        .iter()
        .map(|bytes| {
            let class = ClassFile::parse(bytes).unwrap();
            let done = instrument(&class, &Settings::default(), &Mixed, |_, _| Some((1, 1)));
            done.unwrap().sites.len()
        })
        .sum();
    assert!(sites > 20, "{sites}");
}

#[test]
fn no_numbers_no_change() {
    for bytes in data() {
        let class = ClassFile::parse(&bytes).unwrap();
        let done = instrument(&class, &Settings::default(), &Mixed, |_, _| None);
        assert!(done.is_none_or(|done| done.bytes.is_none() && done.sites.is_empty()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn harmed_class_files(which in any::<prop::sample::Index>(), harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let data = data();
        let mut bytes = which.get(&data).clone();
        for (at, value) in harm {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        survive(&bytes);
    }

    /// Harm in the code alone, where most of it lands in instructions.
    #[test]
    fn harmed_code(which in any::<prop::sample::Index>(), method in any::<prop::sample::Index>(), harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let data = data();
        let mut bytes = which.get(&data).clone();
        let class = ClassFile::parse(&bytes).unwrap();
        let codes: Vec<_> = class.methods().iter().filter_map(|m| m.code()).map(|c| {
            let start = c.code.as_ptr() as usize - bytes.as_ptr() as usize;
            (start, c.code.len())
        }).collect();
        prop_assume!(!codes.is_empty());
        let (start, len) = *method.get(&codes);
        for (at, value) in harm {
            bytes[start + at.index(len)] = value;
        }
        survive(&bytes);
    }

    #[test]
    fn generated_code(mut program in generate::program(1..10, 30)) {
        program.name = "G".to_owned();
        let bytes = program.assemble().class;
        prop_assert!(survive(&bytes).is_some());
    }
}
