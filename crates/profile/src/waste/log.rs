//! What `meta.log` says of methods: from a number in the table's frames to a line of source.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use borescope_spool::log::LogReader;
use borescope_spool::meta::Record;
use borescope_spool::waste::{Access, Compiled, Method, Waste};
use borescope_waste::Frame;
use borescope_waste::analysis::bytecode;
use borescope_waste::handler::watches::Shape;

use super::{LENS, Place, What};
use crate::Error;
use crate::gather::{not_a_spool, of_target, source_form, torn};
use crate::model::{Skipped, Target};
use crate::sites::names::class_name;

/// A method and its class.
struct Named {
    class: String,
    source_file: Option<String>,
    method: Method,
}

/// The log, indexed by the numbers of methods.
pub(super) struct Log {
    pub(super) target: Target,
    pub(super) set_up: Waste,
    methods: HashMap<u64, Named>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) notices: Vec<String>,
    pub(super) torn: Option<String>,
}

impl Log {
    pub(super) fn read(path: &Path) -> Result<Log, Error> {
        let bytes = fs::read(path).map_err(not_a_spool(path))?;
        let mut target = Target::default();
        let mut set_up = None;
        let mut methods = HashMap::new();
        let mut skipped = BTreeSet::new();
        let mut notices = Vec::new();
        let mut reader = LogReader::new(&bytes);
        for record in reader.by_ref() {
            match record {
                Record::Target(of) => target = of_target(of),
                Record::Waste(waste) => set_up = Some(waste),
                Record::Compiled(compiled) => named(compiled, &mut methods),
                Record::Skipped(one) => {
                    skipped.insert(Skipped {
                        class: source_form(&one.class),
                        method: one.method,
                        descriptor: one.descriptor,
                        lens: LENS.into(),
                        reason: one.reason,
                    });
                }
                Record::Notice(text) => notices.push(text),
                Record::Ended { at_ms } => {
                    target.ended = Some(at_ms);
                    target.sealed_after_crash = false;
                }
                Record::Class(_)
                | Record::Sites(_)
                | Record::SiteClass(_)
                | Record::Owners(_)
                | Record::Numbered(_)
                | Record::Snapshot(_) => {}
            }
        }
        let Some(set_up) = set_up else {
            return Err(Error::NotASpool {
                path: path.to_owned(),
                reason: notices
                    .first()
                    .cloned()
                    .unwrap_or("its log does not say how the waste lens was set up".into()),
            });
        };
        Ok(Log {
            target,
            set_up,
            methods,
            skipped: skipped.into_iter().collect(),
            notices,
            torn: torn(&reader),
        })
    }

    /// Methods that are named.
    pub(super) fn methods(&self) -> u64 {
        self.methods.len() as u64
    }

    /// What a frame of the table stands for.
    pub(super) fn what(&self, frame: Frame) -> What {
        match frame {
            Frame::CUT => return What::Cut,
            Frame::DEEPER => return What::Deeper,
            Frame::UNKNOWN => return What::Unknown,
            _ => {}
        }
        let Some(named) = self.methods.get(&frame.method) else {
            return What::Unnamed;
        };
        let lines = &named.method.lines;
        let before = lines.iter().filter(|(bci, _)| i32::from(*bci) <= frame.bci);
        // Without an index it is the method's entry for the compiler: the first line is near.
        let line = match frame.bci {
            0.. => before.max_by_key(|(bci, _)| *bci),
            _ => lines.iter().min_by_key(|(bci, _)| *bci),
        };
        let place = Place {
            class: class_name(&named.class),
            method: named.method.name.clone(),
            descriptor: named.method.descriptor.clone(),
            source_file: named.source_file.clone(),
            line: line.map_or(0, |(_, line)| *line),
        };
        What::At(place, frame.bci)
    }

    /// Where an access was made that the compiler's notes place at `frame`: another place of the method if the bytecode there cannot do it and only one of the
    /// method can.
    pub(super) fn refined(&self, frame: Frame, shape: &Shape) -> Frame {
        let Some(accesses) = self.accesses(frame) else {
            return frame;
        };
        let fits = |access: &&Access| bytecode::fits(access.opcode, access.descriptor, shape);
        let mut here = accesses
            .iter()
            .filter(|one| i32::from(one.bci) == frame.bci);
        if here.any(|access| fits(&access)) {
            return frame;
        }
        // Calls fit everything: what they call is inlined, and has frames of its own.
        let mut able = accesses
            .iter()
            .filter(fits)
            .filter(|access| value_of(access.opcode, access.descriptor).is_some());
        match (able.next(), able.next()) {
            (Some(only), None) => Frame {
                bci: only.bci.into(),
                ..frame
            },
            _ => frame,
        }
    }

    fn accesses(&self, frame: Frame) -> Option<&[Access]> {
        self.methods.get(&frame.method)?.method.accesses.as_deref()
    }

    /// What the bytecode of a frame says of an access that was made there: the type of the value, and whether it cannot have made it.
    pub(super) fn access(&self, frame: Frame, shape: &Shape) -> (Option<String>, Option<bool>) {
        let Some(accesses) = self.accesses(frame) else {
            return (None, None);
        };
        let mut all = accesses.iter();
        let Some(access) = all.find(|access| i32::from(access.bci) == frame.bci) else {
            return (None, Some(true));
        };
        let fits = bytecode::fits(access.opcode, access.descriptor, shape);
        let ty = value_of(access.opcode, access.descriptor).filter(|_| fits);
        (ty.and_then(type_name).map(str::to_owned), Some(!fits))
    }
}

fn named(compiled: Compiled, methods: &mut HashMap<u64, Named>) {
    for method in compiled.methods {
        methods.insert(
            method.number,
            Named {
                class: compiled.class.clone(),
                source_file: compiled.source_file.clone(),
                method,
            },
        );
    }
}

/// What a bytecode loads or stores, as the first character of a descriptor, `?` = the constant pool would tell; `None` = neither (JVMS 17, chapter 6).
fn value_of(opcode: u8, descriptor: Option<u8>) -> Option<u8> {
    match opcode {
        0x2E..=0x35 => Some(b"IJFDLBCS"[usize::from(opcode - 0x2E)]),
        0x4F..=0x56 => Some(b"IJFDLBCS"[usize::from(opcode - 0x4F)]),
        0xB2..=0xB5 => Some(descriptor.unwrap_or(b'?')),
        _ => None,
    }
}

fn type_name(value: u8) -> Option<&'static str> {
    Some(match value {
        b'Z' => "boolean",
        b'B' => "byte",
        b'C' => "char",
        b'S' => "short",
        b'I' => "int",
        b'J' => "long",
        b'F' => "float",
        b'D' => "double",
        b'L' | b'[' => "reference",
        _ => return None,
    })
}
