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
        accesses: method.code.map(|code| accesses(&code)),
    };
    Some((of.class, of.source_file, method))
}

/// Bytecodes that may touch memory.
fn accesses(code: &[u8]) -> Vec<Access> {
    let touches = |opcode: u8| {
        matches!(opcode,
            // ldc and its kin; loads from arrays; stores to them
            0x12..=0x14 | 0x2E..=0x35 | 0x4F..=0x56
            // returns; fields; calls; new and its kin, athrow, checks, monitors; multianewarray
            | 0xAC..=0xB1 | 0xB2..=0xBD | 0xBE..=0xC3 | 0xC5)
    };
    insn::insns(code)
        .map_while(Result::ok)
        .filter(|(_, opcode)| touches(*opcode))
        .map(|(bci, opcode)| Access {
            bci,
            opcode,
            descriptor: None,
        })
        .collect()
}
