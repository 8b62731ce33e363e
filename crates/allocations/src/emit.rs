//! Writes the inserted code and splices it in.
//!
//! What marks stands behind the instruction that made the object, and runs only when control falls from there (JVMS 6.5):
//!
//! ```text
//! dup                                       the object on top of the stack
//! dup2 pop                                  below one slot
//! dup2_x1 pop2 dup_x2                       below two
//! aload N                                   in a local
//!     SITE  invokestatic mark(Object, int)
//! ```

use borescope_classfile::insn::{
    ALOAD, ALOAD_0, ATHROW, BIPUSH, DUP, DUP_X2, DUP2, DUP2_X1, Flow, ICONST_0, ILOAD, ILOAD_0,
    INVOKESTATIC, IRETURN, ISTORE, ISTORE_0, LDC_W, POP, POP2, RETURN, SIPUSH, WIDE, flow,
    insn_len, insns,
};
use borescope_classfile::{At, ClassFile, Code, ExtraLocal, MethodEdit, Plain, Splicer};

use crate::scan::{Around, Asks, Found, Mark};
use crate::walk::Place;
use crate::{HELPER, Settings, Skip, TRACE_HELPER};

/// Splices what was found in the methods of a class; none if no method could be changed.
pub(crate) fn splice(
    class: &ClassFile<'_>,
    settings: &Settings,
    planned: &[(usize, Found)],
    (first_site, first_call): (u32, u32),
    skipped: &mut Vec<Skip>,
) -> Option<Vec<u8>> {
    let mut splicer = Splicer::new(class);
    let mut edit = MethodEdit::default();
    let mut any = false;
    for (index, found) in planned {
        let method = &class.methods()[*index];
        let Some(code) = method.code() else {
            continue;
        };
        let once = method.name_bytes() == b"<clinit>" && !loops(&code);
        let mut splice = |marks: bool| {
            let mut writer = Writer {
                pool: &mut splicer,
                settings,
                edit: &mut edit,
                first_site,
                first_call,
            };
            writer.write(&code, found, marks)?;
            edit.may_be_huge = once;
            splicer.edit(*index, &edit)
        };
        let mut done = splice(true);
        if let Err(plain) = &done {
            let reason = reason(plain);
            // An object without a mark says so. But without its calls, what the JDK makes for the method would get another one's line.
            if found.changes_call() {
                done = splice(false);
            }
            skipped.push(Skip {
                method: *index as u16,
                bci: None,
                reason,
                calls: done.is_ok() || !found.changes_call(),
            });
        }
        any |= done.is_ok();
    }
    any.then(|| splicer.finish())
}

/// Whether there is a jump backwards.
fn loops(code: &Code<'_>) -> bool {
    insns(code.code).any(|step| {
        let Ok((bci, _)) = step else { return true };
        match flow(code.code, usize::from(bci)) {
            Ok(Flow::Branch(to) | Flow::Goto(to)) => to <= bci,
            Ok(Flow::Switch {
                default,
                mut targets,
            }) => default <= bci || targets.any(|to| to <= bci),
            Ok(Flow::Next | Flow::Return | Flow::Throw) => false,
            Ok(Flow::Jsr(_) | Flow::Ret) | Err(_) => true,
        }
    })
}

/// The words of [`Plain`], without what differs from case to case.
fn reason(plain: &Plain) -> &'static str {
    match plain {
        Plain::CodeTooLarge => "its code would pass 64 KB",
        Plain::HugeMethodLimit => "its code would pass 8,000 bytes and so never be compiled",
        Plain::ConstantPoolFull => "the class's constant pool is full",
        Plain::JsrRet => "it uses jsr or ret",
        Plain::LocalsFull => "it has no room for more local variables",
        Plain::StackFull => "it has no room for a deeper operand stack",
        Plain::HandlersFull => "it has no room for more exception handlers",
        Plain::FarBranch => "a conditional jump would pass 32 KB",
        Plain::NoFrame => "a jump target has no stack map frame",
        Plain::NoLine | Plain::TableFull => "it has no room for more line numbers or variables",
        Plain::NoCode => "it has no code",
        Plain::Malformed(_) | Plain::BadInsertion(_) => "its code is malformed",
    }
}

struct Writer<'w, 'a> {
    pool: &'w mut Splicer<'a>,
    settings: &'w Settings,
    edit: &'w mut MethodEdit,
    first_site: u32,
    first_call: u32,
}

impl Writer<'_, '_> {
    /// Fills the edit.
    fn write(&mut self, code: &Code<'_>, found: &Found, marks: bool) -> Result<(), Plain> {
        self.edit.clear();
        // The object, the site, and its dimensions; or two copied slots over the object.
        self.edit.extra_stack = 3;
        let mut bytes = Vec::new();
        for mark in found.marks.iter().filter(|_| marks) {
            bytes.clear();
            self.mark(&mut bytes, mark)?;
            let at = usize::from(mark.bci);
            let next = at + insn_len(code.code, at)?;
            self.edit.insert(At::FallThrough(next as u16), &bytes);
        }
        for &(bci, asks) in found.hashes.iter().filter(|_| marks) {
            bytes.clear();
            bytes.push(DUP);
            let name = match asks {
                Asks::Identity => "identity",
                Asks::HashCode => "hashCode",
            };
            self.invoke(&mut bytes, name, "(Ljava/lang/Object;)V")?;
            self.edit.insert(At::Before(bci), &bytes);
        }
        for &(call, bci) in &found.calls {
            bytes.clear();
            push(&mut bytes, self.pool, self.first_call + call)?;
            self.invoke(&mut bytes, "call", "(I)V")?;
            self.edit.insert(At::Before(bci), &bytes);
            if self.settings.reset {
                bytes.clear();
                push(&mut bytes, self.pool, 0)?;
                self.invoke(&mut bytes, "call", "(I)V")?;
                let at = usize::from(bci);
                let next = at + insn_len(code.code, at)?;
                self.edit.insert(At::FallThrough(next as u16), &bytes);
            }
        }
        if let Some(around) = found.around {
            self.around(code, around, &mut bytes)?;
        }
        Ok(())
    }

    fn mark(&mut self, code: &mut Vec<u8>, mark: &Mark) -> Result<(), Plain> {
        match mark.place {
            Place::Stack(0) => code.push(DUP),
            Place::Stack(1) => code.extend([DUP2, POP]),
            Place::Stack(_) => code.extend([DUP2_X1, POP2, DUP_X2]),
            Place::Local(local) => slot(code, ALOAD, ALOAD_0, local),
            Place::Deep | Place::Gone => return Ok(()),
        }
        push(code, self.pool, self.first_site + mark.site)?;
        if mark.dimensions > 0 {
            push(code, self.pool, u32::from(mark.dimensions))?;
            let name = if self.settings.jdk {
                "markMultiIn"
            } else {
                "markMulti"
            };
            return self.invoke(code, name, "(Ljava/lang/Object;II)V");
        }
        let name = match (self.settings.jdk, mark.plain) {
            _ if self.settings.trace && mark.exact => "mark",
            _ if self.settings.trace => "markOf",
            (false, false) => "mark",
            (false, true) => "markPlain",
            (true, false) => "markIn",
            (true, true) => "markInPlain",
        };
        self.invoke(code, name, "(Ljava/lang/Object;I)V")
    }

    /// Saves the call at the entry and restores it at each end.
    fn around(
        &mut self,
        code: &Code<'_>,
        around: Around,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Plain> {
        const SAVED: &[ExtraLocal] = &[ExtraLocal::Int];
        self.edit.extra_locals = SAVED;
        let saved = code.max_locals;
        bytes.clear();
        self.invoke(bytes, "enter", "()I")?;
        slot(bytes, ISTORE, ISTORE_0, saved);
        if around == Around::Forget {
            push(bytes, self.pool, 0)?;
            self.invoke(bytes, "call", "(I)V")?;
        }
        self.edit.insert(At::Entry, bytes);
        bytes.clear();
        slot(bytes, ILOAD, ILOAD_0, saved);
        self.invoke(bytes, "leave", "(I)V")?;
        for step in insns(code.code) {
            let (bci, op) = step?;
            if matches!(op, IRETURN..=RETURN) {
                self.edit.insert(At::Before(bci), bytes);
            }
        }
        bytes.push(ATHROW);
        self.edit.unwind(&[(0, code.code.len() as u16)], bytes);
        Ok(())
    }

    fn invoke(&mut self, code: &mut Vec<u8>, name: &str, descriptor: &str) -> Result<(), Plain> {
        let helper = match self.settings.trace {
            true => TRACE_HELPER,
            false => HELPER,
        };
        let method = self.pool.methodref(helper, name, descriptor)?;
        code.push(INVOKESTATIC);
        code.extend(method.to_be_bytes());
        Ok(())
    }
}

/// Pushes an int.
fn push(code: &mut Vec<u8>, pool: &mut Splicer<'_>, value: u32) -> Result<(), Plain> {
    match value {
        0..=5 => code.push(ICONST_0 + value as u8),
        6..=0x7f => code.extend([BIPUSH, value as u8]),
        0x80..=0x7fff => {
            code.push(SIPUSH);
            code.extend((value as u16).to_be_bytes());
        }
        _ => {
            let constant = pool.integer(value as i32)?;
            code.push(LDC_W);
            code.extend(constant.to_be_bytes());
        }
    }
    Ok(())
}

/// Loads or stores a local; `short` is the instruction's form for local 0.
fn slot(code: &mut Vec<u8>, op: u8, short: u8, local: u16) {
    match local {
        0..=3 => code.push(short + local as u8),
        4..=0xff => code.extend([op, local as u8]),
        _ => {
            code.extend([WIDE, op]);
            code.extend(local.to_be_bytes());
        }
    }
}
