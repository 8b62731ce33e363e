//! Puts the probes into a class: parse, control flow, numbering, splice. Pure: no JVM; the same bytes and settings give the same result.
//!
//! Probe code (JVMS 6.5), with `r` = max_locals (int, the path register) and `s` = max_locals + 1 (long, the engine's state):
//! see ARCHITECTURE.md, "From bytecode to a path ID". Nothing is added to the class but constants: no field, no method.

use crate::memory::dense_limit;
use borescope_cfg::{Builder, Probe, Then};
use borescope_classfile::insn::{
    BIPUSH, IADD, ICONST_0, IINC, ILOAD, ILOAD_0, INVOKESTATIC, ISTORE, ISTORE_0, LDC_W, LLOAD,
    LLOAD_0, LSTORE, LSTORE_0, SIPUSH, WIDE,
};
use borescope_classfile::{At, Buffers, ClassFile, ExtraLocal, MethodEdit, Plain, Splicer};
use borescope_spool::layout::Engine;
use borescope_spool::meta;

/// The helper that probes call.
pub const HELPER: &str = "java/lang/BorescopeProbe";
/// Newest class file version known (JDK 26); newer classes pass through.
pub const NEWEST_MAJOR: u16 = 70;

/// Instruments one class after another, keeping its buffers.
#[derive(Default)]
pub struct Instrumenter {
    flows: Builder,
    edit: MethodEdit,
    code: Vec<u8>,
    buffers: Buffers,
}

/// What became of a class.
pub struct Instrumented {
    /// The new class file; `None` = nothing in it could be instrumented.
    pub bytes: Option<Vec<u8>>,
    /// Instrumented methods, with the numbering of their IDs.
    pub methods: Vec<meta::Method>,
    /// Methods that stay plain.
    pub skipped: Vec<meta::Skipped>,
}

/// How many method indices a class takes: one for each method with code.
pub fn method_count(class: &ClassFile<'_>) -> u32 {
    class
        .methods()
        .iter()
        .filter(|m| m.code().is_some())
        .count() as u32
}

/// Why a class is left alone as a whole, if it is.
pub fn refuse(class: &ClassFile<'_>) -> Option<String> {
    let major = class.major();
    (major > NEWEST_MAJOR).then(|| {
        format!("class file version {major} is newer than this borescope knows ({NEWEST_MAJOR})")
    })
}

impl Instrumenter {
    /// Instruments a class whose methods with code get the indices from `first_index` on.
    pub fn instrument(
        &mut self,
        class: &ClassFile<'_>,
        engine: Engine,
        first_index: u32,
    ) -> Instrumented {
        let name = class.this_name().into_owned();
        let mut out = Instrumented {
            bytes: None,
            methods: Vec::new(),
            skipped: Vec::new(),
        };
        let mut splicer = Splicer::with_buffers(class, std::mem::take(&mut self.buffers));
        let with_code = class
            .methods()
            .iter()
            .enumerate()
            .filter_map(|(i, m)| Some((i, m, m.code()?)));
        for ((i, method, code), index) in with_code.zip(first_index..) {
            let done = match self.flows.build(&code) {
                Ok((flow, probes)) => {
                    let hashed = flow.num_paths > dense_limit(engine);
                    self.write(
                        &mut splicer,
                        code.max_locals,
                        &probes,
                        &Helper::new(engine, hashed),
                        index,
                    )
                    .and_then(|()| splicer.edit(i, &self.edit))
                    .map(|()| flow)
                    .map_err(|e| e.to_string())
                }
                Err(e) => Err(e.to_string()),
            };
            let (method_name, descriptor) =
                (method.name().into_owned(), method.descriptor().into_owned());
            match done {
                Ok(flow) => {
                    out.methods.push(meta::Method {
                        index,
                        name: method_name,
                        descriptor,
                        lines: code.line_numbers(),
                        flow,
                    });
                }
                Err(reason) => {
                    out.skipped.push(meta::Skipped {
                        class: name.clone(),
                        method: method_name,
                        descriptor,
                        reason,
                    });
                }
            }
        }
        let (bytes, buffers) = splicer.finish_keeping();
        self.buffers = buffers;
        out.bytes = (!out.methods.is_empty()).then_some(bytes);
        out
    }

    /// Fills `self.edit` with the probes' code.
    fn write(
        &mut self,
        pool: &mut Splicer<'_>,
        max_locals: u16,
        probes: &[Probe],
        helper: &Helper,
        index: u32,
    ) -> Result<(), Plain> {
        let r = max_locals;
        let s = max_locals
            .checked_add(1)
            .filter(|s| *s < u16::MAX - 1)
            .ok_or(Plain::LocalsFull)?;
        self.edit.clear();
        self.edit.extra_locals = &[ExtraLocal::Int, ExtraLocal::Long];
        self.edit.extra_stack = 4; // s, r and one addend
        for probe in probes {
            let code = &mut self.code;
            code.clear();
            let at = match *probe {
                Probe::Enter { value } => {
                    push(code, pool, index)?;
                    call(code, pool, helper.enter, "(I)J")?;
                    local(code, LSTORE, s);
                    push(code, pool, value)?;
                    local(code, ISTORE, r);
                    At::Entry
                }
                Probe::Add { at, value } => {
                    add(code, pool, r, value)?;
                    at
                }
                Probe::Emit {
                    at,
                    add: value,
                    then,
                } => {
                    local(code, LLOAD, s);
                    local(code, ILOAD, r);
                    if value != 0 {
                        push(code, pool, value)?;
                        code.push(IADD);
                    }
                    match then {
                        Then::Leave => call(code, pool, helper.exit, "(JI)V")?,
                        Then::Continue => {
                            call(code, pool, helper.hit, "(JI)J")?;
                            local(code, LSTORE, s);
                        }
                        Then::Restart(start) => {
                            call(code, pool, helper.hit, "(JI)J")?;
                            local(code, LSTORE, s);
                            push(code, pool, start)?;
                            local(code, ISTORE, r);
                        }
                    }
                    at
                }
                Probe::Caught { bci, value } => {
                    local(code, LLOAD, s);
                    call(code, pool, "caught", "(J)V")?;
                    push(code, pool, value)?;
                    local(code, ISTORE, r);
                    At::Before(bci)
                }
            };
            self.edit.insert(at, &self.code);
        }
        Ok(())
    }
}

/// Names of the helper's methods for an engine and a kind of row.
struct Helper {
    enter: &'static str,
    hit: &'static str,
    exit: &'static str,
}

impl Helper {
    fn new(engine: Engine, hashed: bool) -> Self {
        match (engine, hashed) {
            (Engine::Ksf, _) => Self {
                enter: "enterKsf",
                hit: "hitKsf",
                exit: "exitKsf",
            },
            (_, true) => Self {
                enter: "enter",
                hit: "hitHash",
                exit: "exitHash",
            },
            (_, false) => Self {
                enter: "enter",
                hit: "hit",
                exit: "exit",
            },
        }
    }
}

/// iload, lload, istore or lstore in its shortest form.
fn local(code: &mut Vec<u8>, op: u8, index: u16) {
    if index < 4 {
        let first = match op {
            ILOAD => ILOAD_0,
            LLOAD => LLOAD_0,
            ISTORE => ISTORE_0,
            _ => LSTORE_0,
        };
        code.push(first + index as u8);
    } else if index < 256 {
        code.extend([op, index as u8]);
    } else {
        code.extend([WIDE, op]);
        code.extend(index.to_be_bytes());
    }
}

/// Pushes a constant: iconst, bipush, sipush or ldc_w.
fn push(code: &mut Vec<u8>, pool: &mut Splicer<'_>, value: u32) -> Result<(), Plain> {
    match value {
        0..=5 => code.push(ICONST_0 + value as u8),
        6..=127 => code.extend([BIPUSH, value as u8]),
        128..=32767 => {
            code.push(SIPUSH);
            code.extend((value as u16).to_be_bytes());
        }
        _ => {
            code.push(LDC_W);
            code.extend(pool.integer(value as i32)?.to_be_bytes());
        }
    }
    Ok(())
}

/// r += value.
fn add(code: &mut Vec<u8>, pool: &mut Splicer<'_>, r: u16, value: u32) -> Result<(), Plain> {
    if value <= 127 && r < 256 {
        code.extend([IINC, r as u8, value as u8]);
    } else if value <= 32767 {
        code.extend([WIDE, IINC]);
        code.extend(r.to_be_bytes());
        code.extend((value as u16).to_be_bytes());
    } else {
        local(code, ILOAD, r);
        push(code, pool, value)?;
        code.push(IADD);
        local(code, ISTORE, r);
    }
    Ok(())
}

fn call(
    code: &mut Vec<u8>,
    pool: &mut Splicer<'_>,
    name: &str,
    descriptor: &str,
) -> Result<(), Plain> {
    let method = pool.methodref(HELPER, name, descriptor)?;
    code.push(INVOKESTATIC);
    code.extend(method.to_be_bytes());
    Ok(())
}
