//! The copy of a method's old code, table by table, in classes as javac makes them: what the tables say of the old code they say of the copy, at one
//! distance. That it runs is tested in model.rs and verify.rs.

#[path = "support/mod.rs"]
mod support;

use cafebabe::attributes::{AttributeData, CodeData, StackMapEntry, VerificationType};
use std::collections::BTreeSet;

fn codes<'a>(class: &'a cafebabe::ClassFile<'a>) -> Vec<(String, &'a CodeData<'a>)> {
    let mut all = Vec::new();
    for method in &class.methods {
        for attribute in &method.attributes {
            if let AttributeData::Code(code) = &attribute.data {
                all.push((format!("{}.{}", class.this_class, method.name), code));
            }
        }
    }
    all
}

/// (what, begin, end, more) of the entries of all tables of lines and variables, in order.
fn entries(code: &CodeData) -> Vec<(&'static str, u16, u16, String)> {
    let mut all = Vec::new();
    for attribute in &code.attributes {
        match &attribute.data {
            AttributeData::LineNumberTable(lines) => {
                let entry = |l: &cafebabe::attributes::LineNumberEntry| {
                    ("line", l.start_pc, l.start_pc, l.line_number.to_string())
                };
                all.extend(lines.iter().map(entry));
            }
            AttributeData::LocalVariableTable(variables) => all.extend(variables.iter().map(|v| {
                let more = format!("{} {} {}", v.name, v.descriptor, v.index);
                ("variable", v.start_pc, v.start_pc + v.length, more)
            })),
            AttributeData::LocalVariableTypeTable(variables) => {
                all.extend(variables.iter().map(|v| {
                    let more = format!("{} {} {}", v.name, v.signature, v.index);
                    ("type", v.start_pc, v.start_pc + v.length, more)
                }));
            }
            _ => {}
        }
    }
    all
}

/// All frames: bci, locals, stack; given the locals of the initial frame.
fn frames(code: &CodeData, initial: Vec<String>) -> Vec<(u16, Vec<String>, Vec<String>)> {
    let name = |t: &VerificationType| format!("{t:?}");
    let (mut all, mut locals) = (Vec::new(), initial);
    let mut next = 0;
    for attribute in &code.attributes {
        let AttributeData::StackMapTable(table) = &attribute.data else {
            continue;
        };
        for frame in table {
            let mut stack = Vec::new();
            let delta = match frame {
                StackMapEntry::Same { offset_delta } => offset_delta,
                StackMapEntry::SameLocals1StackItem {
                    offset_delta,
                    stack: item,
                } => {
                    stack.push(name(item));
                    offset_delta
                }
                StackMapEntry::Chop {
                    offset_delta,
                    chop_count,
                } => {
                    locals.truncate(locals.len() - usize::from(*chop_count));
                    offset_delta
                }
                StackMapEntry::Append {
                    offset_delta,
                    locals: more,
                } => {
                    locals.extend(more.iter().map(name));
                    offset_delta
                }
                StackMapEntry::FullFrame {
                    offset_delta,
                    locals: all,
                    stack: items,
                } => {
                    locals = all.iter().map(name).collect();
                    stack.extend(items.iter().map(name));
                    offset_delta
                }
            };
            all.push((next + delta, locals.clone(), stack));
            next += delta + 1;
        }
    }
    all
}

#[derive(Default)]
struct Seen {
    padded: usize,
    frame_at_0: usize,
    no_frames: usize,
    uninitialized: usize,
    constructors: usize,
    handlers: usize,
    kinds: BTreeSet<&'static str>,
}

fn check(name: &str, old: &CodeData, new: &CodeData, seen: &mut Seen) {
    let start = new.code.len() - old.code.len();
    assert_eq!(new.code[start..], *old.code, "{name}");
    // The marker, iconst and ifeq (JVMS 6.5) at the entry.
    assert_eq!(new.code[4], 0x99, "{name}");
    let entry = 4 + usize::from(u16::from_be_bytes([new.code[5], new.code[6]]));
    assert!(new.code[entry..start].iter().all(|&op| op == 0), "{name}");
    assert!(start - entry < 4);
    if entry < start {
        assert_eq!(start % 4, 0, "{name}");
        seen.padded += 1;
    }
    let (start, entry) = (start as u16, entry as u16);

    // Handlers: those of the edited code, the added ones, those of the copy.
    let own = old.exception_table.len();
    let all = &new.exception_table;
    let (before, copied) = all.split_at(all.len() - own);
    for (old, new) in old.exception_table.iter().zip(copied) {
        let moved = [old.start_pc, old.end_pc, old.handler_pc].map(|bci| bci + start);
        assert_eq!(moved, [new.start_pc, new.end_pc, new.handler_pc], "{name}");
        assert_eq!(old.catch_type, new.catch_type);
        seen.handlers += 1;
    }
    assert!(before.iter().all(|e| e.end_pc <= entry && e.start_pc > 6));

    // Lines and variables: for each table the edited code's entries, then the copy's.
    let (old_entries, new_entries) = (entries(old), entries(new));
    assert_eq!(new_entries.len(), 2 * old_entries.len(), "{name}");
    for kind in ["line", "variable", "type"] {
        let old: Vec<_> = old_entries.iter().filter(|e| e.0 == kind).collect();
        let new: Vec<_> = new_entries.iter().filter(|e| e.0 == kind).collect();
        let (edited, copied) = new.split_at(old.len());
        for ((old, edited), copied) in old.iter().zip(edited).zip(copied) {
            let begin = |bci: u16| if bci == 0 { entry } else { start + bci };
            let end = if kind == "line" {
                begin(old.1)
            } else {
                old.2 + start
            };
            assert_eq!((copied.1, copied.2), (begin(old.1), end), "{name}: {old:?}");
            assert!(edited.2 <= entry, "{name}: {old:?}");
            assert_eq!((&old.3, &old.3), (&edited.3, &copied.3));
            seen.kinds.insert(kind);
        }
    }

    // Frames: the copy's begin with one at its entry, and none holds more than the old ones.
    let new_frames: Vec<_> = frames(new, Vec::new())
        .into_iter()
        .skip_while(|f| f.0 < entry)
        .collect();
    assert_eq!(new_frames[0].0, entry, "{name}");
    assert!(new_frames[0].2.is_empty(), "{name}");
    let initial = new_frames[0].1.clone();
    let old_frames = frames(old, initial.clone());
    let at_0 = old_frames.first().is_some_and(|f| f.0 == 0);
    let extra = usize::from(!at_0 || entry < start);
    assert_eq!(new_frames.len(), old_frames.len() + extra, "{name}");
    for (old, new) in old_frames.iter().zip(&new_frames[extra..]) {
        let moved = |types: &[String]| -> Vec<String> {
            let each = types.iter().map(|t| {
                let Some(rest) = t.strip_prefix("Uninitialized { code_offset: ") else {
                    return t.clone();
                };
                let bci: u16 = rest.trim_end_matches(" }").parse().unwrap();
                format!("Uninitialized {{ code_offset: {} }}", bci + start)
            });
            each.collect()
        };
        let expected = (old.0 + start, moved(&old.1), moved(&old.2));
        assert_eq!(*new, expected, "{name}");
        seen.uninitialized += usize::from(expected.2 != old.2);
    }
    seen.frame_at_0 += usize::from(at_0);
    seen.no_frames += usize::from(old_frames.is_empty());
    if name.ends_with(".<init>") {
        assert_eq!(initial[0], "UninitializedThis", "{name}");
        seen.constructors += 1;
    }
}

#[test]
fn tables_of_the_copy_are_the_old_ones_moved() {
    let mut outcome = support::Outcome::default();
    let mut seen = Seen::default();
    for bytes in support::data() {
        let edited = support::heavy_with(Some(true), &bytes, &mut outcome);
        let (old, new) = (
            cafebabe::parse_class(&bytes).unwrap(),
            cafebabe::parse_class(&edited).unwrap(),
        );
        for ((name, old), (_, new)) in codes(&old).into_iter().zip(codes(&new)) {
            check(&name, old, new, &mut seen);
        }
    }
    assert!(outcome.plain.is_empty(), "{outcome:?}");
    // All that is hard is there.
    assert!(seen.padded > 0 && seen.frame_at_0 > 0 && seen.no_frames > 0);
    assert!(seen.uninitialized > 0 && seen.constructors > 3 && seen.handlers > 5);
    assert_eq!(seen.kinds.len(), 3);
}

/// The initial frame is that of the descriptor (JVMS 4.10.1.6).
#[test]
fn the_initial_frame_holds_this_and_the_parameters() {
    let mut outcome = support::Outcome::default();
    let mut found = 0;
    for bytes in support::data() {
        let edited = support::heavy_with(Some(false), &bytes, &mut outcome);
        let class = cafebabe::parse_class(&edited).unwrap();
        for (name, code) in codes(&class) {
            let entry = 4 + u16::from_be_bytes([code.code[5], code.code[6]]);
            let object = |class: &str| format!("Object {{ class_name: {class:?} }}");
            let expected = match &*name {
                "Shapes.longs" => vec![
                    object("Shapes"),
                    "Long".into(),
                    "Integer".into(),
                    "Double".into(),
                    object("[Ljava/lang/Object;"),
                    object("[[I"),
                ],
                "Shapes.mixed" => vec!["Integer".into()],
                "Shapes$Derived.<init>" => {
                    vec![
                        "UninitializedThis".into(),
                        "Integer".into(),
                        "Integer".into(),
                    ]
                }
                _ => continue,
            };
            let frames = frames(code, Vec::new());
            let frame = frames.iter().find(|f| f.0 == entry).unwrap();
            assert_eq!(frame.1, expected, "{name}");
            found += 1;
        }
    }
    assert_eq!(found, 3);
}
