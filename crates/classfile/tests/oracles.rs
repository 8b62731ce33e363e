//! Spliced classes as two other readers of class files see them: noak and cafebabe.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/mod.rs"]
mod support;

use borescope_classfile::{ClassFile, insn};
use cafebabe::attributes::{AttributeData, AttributeInfo, CodeData, StackMapEntry};
use noak::reader::attributes::StackMapFrame;
use noak::reader::{Attribute, AttributeContent};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Compares what the three readers say. Returns the number of frames.
fn compare(bytes: &[u8]) -> usize {
    let ours = ClassFile::parse(bytes).unwrap();
    let other = cafebabe::parse_class(bytes).unwrap();
    assert_eq!(ours.this_name(), &*other.this_class);
    assert_eq!(ours.super_name().as_deref(), other.super_class.as_deref());
    assert_eq!(
        (ours.major(), ours.minor()),
        (other.major_version, other.minor_version)
    );
    let source_file = other
        .attributes
        .iter()
        .find_map(|attribute| match &attribute.data {
            AttributeData::SourceFile(name) => Some(name.clone()),
            _ => None,
        });
    assert_eq!(ours.source_file(), source_file);
    assert_eq!(ours.methods().len(), other.methods.len());
    for (method, other) in ours.methods().iter().zip(&other.methods) {
        assert_eq!(method.name(), other.name);
        assert_eq!(method.descriptor(), other.descriptor.to_string());
        let code = other
            .attributes
            .iter()
            .find_map(|attribute| match &attribute.data {
                AttributeData::Code(code) => Some(code),
                _ => None,
            });
        assert_eq!(method.code().is_some(), code.is_some());
        if let (Some(code), Some(other)) = (method.code(), code) {
            compare_code(&code, other);
        }
    }
    frames(bytes)
}

fn compare_code(code: &borescope_classfile::Code, other: &CodeData) {
    assert_eq!(
        (code.max_stack, code.max_locals),
        (other.max_stack, other.max_locals)
    );
    assert_eq!(code.code, other.code);
    // cafebabe has decoded all instructions: both see the same starts.
    let starts: Vec<usize> = insn::insns(code.code)
        .map(|item| item.unwrap().0.into())
        .collect();
    let theirs = other
        .bytecode
        .as_ref()
        .unwrap()
        .opcodes
        .iter()
        .map(|(at, _)| *at);
    assert_eq!(starts, theirs.collect::<Vec<_>>());
    let is_start = |bci: u16| starts.binary_search(&bci.into()).is_ok();
    let entries: Vec<_> = code
        .exceptions()
        .map(|e| (e.start, e.end, e.handler))
        .collect();
    let theirs = other
        .exception_table
        .iter()
        .map(|e| (e.start_pc, e.end_pc, e.handler_pc));
    assert_eq!(entries, theirs.collect::<Vec<_>>());
    for (start, end, handler) in entries {
        assert!(start < end && is_start(start) && is_start(handler));
        assert!(is_start(end) || usize::from(end) == code.code.len());
    }
    let mut lines = Vec::new();
    for AttributeInfo { data, .. } in &other.attributes {
        match data {
            AttributeData::LineNumberTable(entries) => {
                lines.extend(
                    entries
                        .iter()
                        .map(|entry| (entry.start_pc, entry.line_number)),
                );
            }
            AttributeData::LocalVariableTable(variables) => {
                for variable in variables {
                    let end = usize::from(variable.start_pc) + usize::from(variable.length);
                    assert!(is_start(variable.start_pc));
                    assert!(end == code.code.len() || is_start(end as u16));
                }
            }
            AttributeData::StackMapTable(frames) => {
                // The first delta counts from 0, the others from the bci behind the last frame.
                let mut next = 0;
                for frame in frames {
                    let bci = next + delta(frame);
                    assert!(is_start(bci));
                    next = bci + 1;
                }
            }
            _ => {}
        }
    }
    lines.sort_by_key(|&(bci, _)| bci);
    assert_eq!(code.line_numbers(), lines);
    assert!(lines.iter().all(|&(bci, _)| is_start(bci)));
}

fn delta(frame: &StackMapEntry) -> u16 {
    match *frame {
        StackMapEntry::Same { offset_delta }
        | StackMapEntry::SameLocals1StackItem { offset_delta, .. }
        | StackMapEntry::Chop { offset_delta, .. }
        | StackMapEntry::Append { offset_delta, .. }
        | StackMapEntry::FullFrame { offset_delta, .. } => offset_delta,
    }
}

/// None if noak does not know the attribute.
fn read<'a>(
    class: &noak::reader::Class<'a>,
    attribute: Result<Attribute<'a>, noak::error::DecodeError>,
) -> Option<AttributeContent<'a>> {
    attribute.unwrap().read_content(class.pool()).ok()
}

/// Reads all instructions and frames with noak; the number of frames.
fn frames(bytes: &[u8]) -> usize {
    let class = noak::reader::Class::new(bytes).unwrap();
    let mut count = 0;
    for method in class.methods() {
        for content in method
            .unwrap()
            .attributes()
            .iter()
            .filter_map(|a| read(&class, a))
        {
            let AttributeContent::Code(code) = content else {
                continue;
            };
            assert!(code.raw_instructions().all(|item| item.is_ok()));
            for content in code.attributes().iter().filter_map(|a| read(&class, a)) {
                let AttributeContent::StackMapTable(table) = content else {
                    continue;
                };
                for frame in table.iter() {
                    let (_, frame) = frame.unwrap(); // noak 0.7 gives wrong positions
                    if let StackMapFrame::Full { mut locals, .. } = frame {
                        assert!(locals.all(|local| local.is_ok()));
                    }
                    count += 1;
                }
            }
        }
    }
    count
}

#[test]
fn spliced_classes_read_alike() {
    let mut outcome = support::Outcome::default();
    let (mut before, mut after) = (0, 0);
    for bytes in support::data() {
        before += compare(&bytes);
        after += compare(&support::heavy(&bytes, &mut outcome));
        compare(&support::heavy_with(Some(false), &bytes, &mut outcome));
    }
    assert!(outcome.plain.is_empty(), "{outcome:?}");
    assert!(before > 50 && after > before, "{before} {after}");

    let mut runner = TestRunner::deterministic();
    let strategy = generate::program(1..12, 40);
    for _ in 0..500 {
        let bytes = strategy
            .new_tree(&mut runner)
            .unwrap()
            .current()
            .assemble()
            .class;
        compare(&bytes);
        compare(&support::heavy(&bytes, &mut outcome));
        compare(&support::heavy_with(Some(true), &bytes, &mut outcome));
    }
    assert!(outcome.plain.is_empty(), "{outcome:?}");
}
