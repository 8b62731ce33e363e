//! What the numbers in the table mean, written to the log: each method once, by a thread of the agent's that looks about once a second, and at the end.
//! Must never happen here: a class kept from being unloaded, or a method asked for twice.

use super::State;
use crate::jvmti::{Jni, Jvmti};
use borescope_classfile::insn;
use borescope_spool::meta::Record;
use borescope_spool::waste::{Access, Compiled, Method};
use borescope_waste::Table;
use std::collections::{BTreeMap, HashSet};
use std::ffi::c_void;

/// Writes down the methods that have come since the last time.
pub fn log_new(state: &State, jni: Jni, table: &Table<'_>, known: &mut HashSet<u64>) {
    let mut classes: BTreeMap<(String, Option<String>), Vec<Method>> = BTreeMap::new();
    for number in table.methods() {
        if known.insert(number)
            && let Some((class, source_file, method)) = describe(state.jvmti, jni, number)
        {
            classes
                .entry((class, source_file))
                .or_default()
                .push(method);
        }
    }
    for ((class, source_file), methods) in classes {
        state.log(&Record::Compiled(Compiled {
            class,
            source_file,
            methods,
        }));
    }
}

fn describe(jvmti: Jvmti, jni: Jni, number: u64) -> Option<(String, Option<String>, Method)> {
    let id = number as *mut c_void;
    // SAFETY: numbers in the table are the ids that HotSpot gave in stacks.
    let (of, method) = unsafe { (jvmti.declaring(jni, id)?, jvmti.describe(id)?) };
    let method = Method {
        number,
        name: method.name,
        descriptor: method.descriptor,
        lines: method.lines,
        accesses: method.code.map(|code| accesses(&code, &of.constants)),
    };
    Some((of.class, of.source_file, method))
}

/// Bytecodes that may touch memory.
fn accesses(code: &[u8], constants: &[u8]) -> Vec<Access> {
    let touches = |opcode: u8| {
        matches!(opcode,
            // ldc and its kin; loads from arrays; stores to them
            0x12..=0x14 | 0x2E..=0x35 | 0x4F..=0x56
            // returns; fields; calls; new and its kin, athrow, checks, monitors; multianewarray
            | 0xAC..=0xB1 | 0xB2..=0xBD | 0xBE..=0xC3 | 0xC5)
    };
    let entries = entries(constants);
    insn::insns(code)
        .map_while(Result::ok)
        .filter(|(_, opcode)| touches(*opcode))
        .map(|(bci, opcode)| Access {
            bci,
            opcode,
            descriptor: insn::constant(code, bci.into())
                .filter(|_| FIELDS.contains(&opcode))
                .and_then(|field| kind_of(constants, &entries, field)),
        })
        .collect()
}

/// getstatic to putfield.
const FIELDS: std::ops::RangeInclusive<u8> = 0xB2..=0xB5;

/// Where the entries of a constant pool begin, by number; as many as can be told (JVMS 4.4).
fn entries(constants: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut entries = vec![usize::MAX];
    while let Some(&tag) = constants.get(at) {
        entries.push(at);
        at += match tag {
            1 => 3 + usize::from(half(constants, at + 1).unwrap_or(0)),
            7 | 8 | 16 | 19 | 20 => 3,
            15 => 4,
            3 | 4 | 9..=12 | 17 | 18 => 5,
            5 | 6 => {
                entries.push(usize::MAX);
                9
            }
            _ => break,
        };
    }
    entries
}

/// First character of a field's descriptor.
fn kind_of(constants: &[u8], entries: &[usize], field: u16) -> Option<u8> {
    let entry = |n: u16, tag: u8| {
        let at = *entries.get(usize::from(n))?;
        (constants.get(at) == Some(&tag)).then_some(at)
    };
    let name_and_type = half(constants, entry(field, 9)? + 3)?;
    let descriptor = half(constants, entry(name_and_type, 12)? + 3)?;
    constants.get(entry(descriptor, 1)? + 3).copied()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_kind() {
        // 1: a long, which takes two; 3: Fieldref; 4: its class, whose name does not matter; 5: name and type; 6: "b"; 7: "J".
        let pool = [
            &[5, 0, 0, 0, 0, 0, 0, 0, 1][..],
            &[9, 0, 4, 0, 5],
            &[7, 0, 6],
            &[12, 0, 6, 0, 7],
            &[1, 0, 1, b'b'],
            &[1, 0, 1, b'J'],
        ]
        .concat();
        // aload_0, getfield 3, l2i, ireturn
        let code = [0x2A, 0xB4, 0, 3, 0x88, 0xAC];
        let access = |bci, opcode, descriptor| Access {
            bci,
            opcode,
            descriptor,
        };
        let expected = [access(1, 0xB4, Some(b'J')), access(5, 0xAC, None)];
        assert_eq!(accesses(&code, &pool), expected);
        // Whatever is missing: no kind, no panic.
        for length in 0..pool.len() {
            assert_eq!(accesses(&code, &pool[..length])[0].descriptor, None);
        }
    }
}
