//! Damaged class files: reading and splicing them gives an error or a class file, never a panic.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/mod.rs"]
mod support;

use borescope_classfile::insn::{ICONST_0, constant, insn_len, insns};
use borescope_classfile::{ClassFile, Error, MethodEdit, Plain, Splicer};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Add(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Truncate(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        // Small values and extremes hit lengths, tags and opcodes.
        8 => (at(), prop_oneof![any::<u8>(), 0..16u8, Just(0xff)]).prop_map(|(at, value)| Damage::Set(at, value)),
        1 => (at(), any::<u8>()).prop_map(|(at, value)| Damage::Add(at, value)),
        1 => at().prop_map(Damage::Remove),
        1 => at().prop_map(Damage::Truncate),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    match damage {
        Damage::Set(at, value) => *at.get_mut(bytes) = *value,
        Damage::Add(at, value) => bytes.insert(at.index(bytes.len()), *value),
        Damage::Remove(at) => drop(bytes.remove(at.index(bytes.len()))),
        Damage::Truncate(at) => bytes.truncate(at.index(bytes.len())),
    }
}

/// Uses all there is of the library.
fn use_it(bytes: &[u8]) -> Result<bool, TestCaseError> {
    let Ok(class) = ClassFile::parse(bytes) else {
        return Ok(false);
    };
    prop_assert_eq!(Splicer::new(&class).finish(), bytes);
    let _ = (class.this_name(), class.super_name(), class.source_file());
    for index in 0..class.pool_count() {
        let _ = (class.utf8(index), class.class_name(index));
    }
    let mut splicer = Splicer::new(&class);
    let marker = support::marker(&mut splicer).unwrap();
    let mut edit = MethodEdit::default();
    for (i, method) in class.methods().iter().enumerate() {
        let _ = (method.name(), method.descriptor());
        let Some(code) = method.code() else { continue };
        let _ = (code.line_numbers(), code.exceptions().count());
        if support::heavy_edit(&class, i, &marker, &mut edit).is_ok() {
            let _ = splicer.edit(i, &edit);
            edit.keep_copy(&[ICONST_0]);
            let _ = splicer.edit(i, &edit);
        }
    }
    let spliced = splicer.finish();
    prop_assert!(ClassFile::parse(&spliced).is_ok());
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_classes_do_no_harm(
        file in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let data = support::data();
        let mut bytes = file.get(&data).clone();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        use_it(&bytes)?;
    }

    /// Small methods, where most of the bytes are code, frames and tables.
    #[test]
    fn damaged_methods_do_no_harm(
        program in generate::program(1..6, 3),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let mut bytes = program.assemble().class;
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        use_it(&bytes)?;
    }
}

#[test]
fn undamaged_classes_are_read() {
    assert_eq!(support::data().len(), 7);
    for bytes in support::data() {
        assert!(use_it(&bytes).unwrap());
    }
}

/// What names a constant beyond the pool must not come to name one that is appended.
#[test]
fn constants_beyond_the_pool_are_refused() {
    let mut poked = [0; 3];
    for good in support::data() {
        let class = ClassFile::parse(&good).unwrap();
        let beyond = Error::PoolIndex(class.pool_count());
        let with_beyond = |at: usize| {
            let mut bytes = good.clone();
            bytes[at..at + 2].copy_from_slice(&class.pool_count().to_be_bytes());
            bytes
        };
        // javac's first constant is a Methodref: tag, class, name and type.
        if good[10] == 10 {
            assert_eq!(
                ClassFile::parse(&with_beyond(11)).err(),
                Some(beyond.clone())
            );
            poked[0] += 1;
        }
        for (i, method) in class.methods().iter().enumerate() {
            let Some(code) = method.code() else { continue };
            let at = code.code.as_ptr() as usize - good.as_ptr() as usize;
            // The attribute: name, length, stack, locals, length of the code, code (JVMS 4.7.3).
            assert_eq!(
                ClassFile::parse(&with_beyond(at - 14)).err(),
                Some(beyond.clone())
            );
            poked[1] += 1;
            for (bci, _) in insns(code.code).map(Result::unwrap) {
                let bci = usize::from(bci);
                if insn_len(code.code, bci).unwrap() < 3 || constant(code.code, bci).is_none() {
                    continue;
                }
                let bytes = with_beyond(at + bci + 1);
                let class = ClassFile::parse(&bytes).unwrap();
                let mut splicer = Splicer::new(&class);
                let marker = support::marker(&mut splicer).unwrap();
                let mut edit = MethodEdit::default();
                if support::heavy_edit(&class, i, &marker, &mut edit).is_ok() {
                    assert_eq!(
                        splicer.edit(i, &edit),
                        Err(Plain::Malformed(beyond.clone()))
                    );
                    poked[2] += 1;
                }
            }
        }
    }
    assert!(poked.iter().all(|n| *n > 3), "{poked:?}");
}
