//! Bytecode instructions: opcodes, lengths and control flow (JVMS chapter 6).
//!
//! Works on the bare `code` array of a method, without the constant pool. Everything is bounds-checked and nothing allocates:
//! the splicer and the control-flow graph walk every instruction of every class with it.

use crate::Error;

macro_rules! opcodes {
    ($($name:ident = $value:literal;)*) => {
        $(#[doc = concat!("Opcode ", $value, " (JVMS 6.5).")] pub const $name: u8 = $value;)*
    };
}

opcodes! {
    NOP = 0x00;
    ACONST_NULL = 0x01;
    ICONST_M1 = 0x02;
    ICONST_0 = 0x03;
    ICONST_1 = 0x04;
    ICONST_2 = 0x05;
    ICONST_3 = 0x06;
    ICONST_4 = 0x07;
    ICONST_5 = 0x08;
    LCONST_0 = 0x09;
    LCONST_1 = 0x0a;
    FCONST_0 = 0x0b;
    FCONST_1 = 0x0c;
    FCONST_2 = 0x0d;
    DCONST_0 = 0x0e;
    DCONST_1 = 0x0f;
    BIPUSH = 0x10;
    SIPUSH = 0x11;
    LDC = 0x12;
    LDC_W = 0x13;
    LDC2_W = 0x14;
    ILOAD = 0x15;
    LLOAD = 0x16;
    FLOAD = 0x17;
    DLOAD = 0x18;
    ALOAD = 0x19;
    ILOAD_0 = 0x1a;
    ILOAD_1 = 0x1b;
    ILOAD_2 = 0x1c;
    ILOAD_3 = 0x1d;
    LLOAD_0 = 0x1e;
    LLOAD_1 = 0x1f;
    LLOAD_2 = 0x20;
    LLOAD_3 = 0x21;
    FLOAD_0 = 0x22;
    FLOAD_1 = 0x23;
    FLOAD_2 = 0x24;
    FLOAD_3 = 0x25;
    DLOAD_0 = 0x26;
    DLOAD_1 = 0x27;
    DLOAD_2 = 0x28;
    DLOAD_3 = 0x29;
    ALOAD_0 = 0x2a;
    ALOAD_1 = 0x2b;
    ALOAD_2 = 0x2c;
    ALOAD_3 = 0x2d;
    IALOAD = 0x2e;
    LALOAD = 0x2f;
    FALOAD = 0x30;
    DALOAD = 0x31;
    AALOAD = 0x32;
    BALOAD = 0x33;
    CALOAD = 0x34;
    SALOAD = 0x35;
    ISTORE = 0x36;
    LSTORE = 0x37;
    FSTORE = 0x38;
    DSTORE = 0x39;
    ASTORE = 0x3a;
    ISTORE_0 = 0x3b;
    ISTORE_1 = 0x3c;
    ISTORE_2 = 0x3d;
    ISTORE_3 = 0x3e;
    LSTORE_0 = 0x3f;
    LSTORE_1 = 0x40;
    LSTORE_2 = 0x41;
    LSTORE_3 = 0x42;
    FSTORE_0 = 0x43;
    FSTORE_1 = 0x44;
    FSTORE_2 = 0x45;
    FSTORE_3 = 0x46;
    DSTORE_0 = 0x47;
    DSTORE_1 = 0x48;
    DSTORE_2 = 0x49;
    DSTORE_3 = 0x4a;
    ASTORE_0 = 0x4b;
    ASTORE_1 = 0x4c;
    ASTORE_2 = 0x4d;
    ASTORE_3 = 0x4e;
    IASTORE = 0x4f;
    LASTORE = 0x50;
    FASTORE = 0x51;
    DASTORE = 0x52;
    AASTORE = 0x53;
    BASTORE = 0x54;
    CASTORE = 0x55;
    SASTORE = 0x56;
    POP = 0x57;
    POP2 = 0x58;
    DUP = 0x59;
    DUP_X1 = 0x5a;
    DUP_X2 = 0x5b;
    DUP2 = 0x5c;
    DUP2_X1 = 0x5d;
    DUP2_X2 = 0x5e;
    SWAP = 0x5f;
    IADD = 0x60;
    LADD = 0x61;
    FADD = 0x62;
    DADD = 0x63;
    ISUB = 0x64;
    LSUB = 0x65;
    FSUB = 0x66;
    DSUB = 0x67;
    IMUL = 0x68;
    LMUL = 0x69;
    FMUL = 0x6a;
    DMUL = 0x6b;
    IDIV = 0x6c;
    LDIV = 0x6d;
    FDIV = 0x6e;
    DDIV = 0x6f;
    IREM = 0x70;
    LREM = 0x71;
    FREM = 0x72;
    DREM = 0x73;
    INEG = 0x74;
    LNEG = 0x75;
    FNEG = 0x76;
    DNEG = 0x77;
    ISHL = 0x78;
    LSHL = 0x79;
    ISHR = 0x7a;
    LSHR = 0x7b;
    IUSHR = 0x7c;
    LUSHR = 0x7d;
    IAND = 0x7e;
    LAND = 0x7f;
    IOR = 0x80;
    LOR = 0x81;
    IXOR = 0x82;
    LXOR = 0x83;
    IINC = 0x84;
    I2L = 0x85;
    I2F = 0x86;
    I2D = 0x87;
    L2I = 0x88;
    L2F = 0x89;
    L2D = 0x8a;
    F2I = 0x8b;
    F2L = 0x8c;
    F2D = 0x8d;
    D2I = 0x8e;
    D2L = 0x8f;
    D2F = 0x90;
    I2B = 0x91;
    I2C = 0x92;
    I2S = 0x93;
    LCMP = 0x94;
    FCMPL = 0x95;
    FCMPG = 0x96;
    DCMPL = 0x97;
    DCMPG = 0x98;
    IFEQ = 0x99;
    IFNE = 0x9a;
    IFLT = 0x9b;
    IFGE = 0x9c;
    IFGT = 0x9d;
    IFLE = 0x9e;
    IF_ICMPEQ = 0x9f;
    IF_ICMPNE = 0xa0;
    IF_ICMPLT = 0xa1;
    IF_ICMPGE = 0xa2;
    IF_ICMPGT = 0xa3;
    IF_ICMPLE = 0xa4;
    IF_ACMPEQ = 0xa5;
    IF_ACMPNE = 0xa6;
    GOTO = 0xa7;
    JSR = 0xa8;
    RET = 0xa9;
    TABLESWITCH = 0xaa;
    LOOKUPSWITCH = 0xab;
    IRETURN = 0xac;
    LRETURN = 0xad;
    FRETURN = 0xae;
    DRETURN = 0xaf;
    ARETURN = 0xb0;
    RETURN = 0xb1;
    GETSTATIC = 0xb2;
    PUTSTATIC = 0xb3;
    GETFIELD = 0xb4;
    PUTFIELD = 0xb5;
    INVOKEVIRTUAL = 0xb6;
    INVOKESPECIAL = 0xb7;
    INVOKESTATIC = 0xb8;
    INVOKEINTERFACE = 0xb9;
    INVOKEDYNAMIC = 0xba;
    NEW = 0xbb;
    NEWARRAY = 0xbc;
    ANEWARRAY = 0xbd;
    ARRAYLENGTH = 0xbe;
    ATHROW = 0xbf;
    CHECKCAST = 0xc0;
    INSTANCEOF = 0xc1;
    MONITORENTER = 0xc2;
    MONITOREXIT = 0xc3;
    WIDE = 0xc4;
    MULTIANEWARRAY = 0xc5;
    IFNULL = 0xc6;
    IFNONNULL = 0xc7;
    GOTO_W = 0xc8;
    JSR_W = 0xc9;
}

/// Marks instructions whose length depends on their operands.
const V: u8 = 0xff;

/// Length by opcode; 0 = not an instruction that a class file may contain.
static LENGTH: [u8; 256] = {
    let known: [u8; 202] = [
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 2, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, V, V, 1, 1, 1, 1, 1, 1, 3, 3,
        3, 3, 3, 3, 3, 5, 5, 3, 2, 3, 1, 1, 3, 3, 1, 1, V, 4, 3, 3, 5, 5,
    ];
    let mut all = [0; 256];
    let mut i = 0;
    while i < known.len() {
        all[i] = known[i];
        i += 1;
    }
    all
};

/// The opcode at `bci`.
#[inline]
pub fn opcode(code: &[u8], bci: usize) -> Result<u8, Error> {
    code.get(bci).copied().ok_or(Error::CodeEnd(bci))
}

#[inline]
fn i32_at(code: &[u8], at: usize) -> Option<i32> {
    let bytes = code.get(at..at.checked_add(4)?)?;
    Some(i32::from_be_bytes(bytes.try_into().ok()?))
}

/// Length in bytes of the instruction at `bci`, which lies wholly inside `code`.
#[inline]
pub fn insn_len(code: &[u8], bci: usize) -> Result<usize, Error> {
    let op = opcode(code, bci)?;
    let len = match LENGTH[op as usize] {
        V => variable_len(code, bci, op)?,
        0 => return Err(Error::BadOpcode { bci, opcode: op }),
        len => len as usize,
    };
    if len > code.len() - bci {
        Err(Error::CodeEnd(bci))
    } else {
        Ok(len)
    }
}

fn variable_len(code: &[u8], bci: usize, op: u8) -> Result<usize, Error> {
    if op == WIDE {
        return match opcode(code, bci + 1)? {
            ILOAD..=ALOAD | ISTORE..=ASTORE | RET => Ok(4),
            IINC => Ok(6),
            opcode => Err(Error::BadOpcode {
                bci: bci + 1,
                opcode,
            }),
        };
    }
    let table = SwitchTable::read(code, bci)?;
    Ok(table.pairs_at - bci + table.count * table.stride)
}

/// Where the jump table of a switch lies.
#[derive(Clone, Copy)]
struct SwitchTable {
    /// Position of the first entry.
    pairs_at: usize,
    /// Bytes from one entry to the next: 4 (tableswitch) or 8 (lookupswitch, key first).
    stride: usize,
    count: usize,
    default: i32,
}

impl SwitchTable {
    fn read(code: &[u8], bci: usize) -> Result<Self, Error> {
        let at = (bci + 4) & !3;
        let int = |i: usize| i32_at(code, at + 4 * i).ok_or(Error::CodeEnd(bci));
        let default = int(0)?;
        let (header, stride, count) = if opcode(code, bci)? == TABLESWITCH {
            (12, 4, i64::from(int(2)?) - i64::from(int(1)?) + 1)
        } else {
            (8, 8, i64::from(int(1)?))
        };
        // A table longer than the code is refused before anything is computed from its length.
        match usize::try_from(count) {
            Ok(count) if count <= code.len() && (stride == 8 || count > 0) => Ok(Self {
                pairs_at: at + header,
                stride,
                count,
                default,
            }),
            _ => Err(Error::BadSwitch(bci)),
        }
    }
}

/// Iterator over the instructions of a method: `(bci, opcode)`. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Insns<'a> {
    code: &'a [u8],
    next: usize,
}

/// All instructions of `code`, in order.
pub fn insns(code: &[u8]) -> Insns<'_> {
    Insns { code, next: 0 }
}

impl Iterator for Insns<'_> {
    type Item = Result<(u16, u8), Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bci = self.next;
        let op = *self.code.get(bci)?;
        let item = insn_len(self.code, bci).and_then(|len| {
            self.next = bci + len;
            Ok((u16::try_from(bci).map_err(|_| Error::CodeEnd(bci))?, op))
        });
        if item.is_err() {
            self.next = self.code.len();
        }
        Some(item)
    }
}

/// The constant that the instruction at `bci` names, if it names one.
pub fn constant(code: &[u8], bci: usize) -> Option<u16> {
    let byte = |at: usize| code.get(at).copied();
    match byte(bci)? {
        LDC => byte(bci + 1).map(u16::from),
        LDC_W | LDC2_W | GETSTATIC..=NEW | ANEWARRAY | CHECKCAST | INSTANCEOF | MULTIANEWARRAY => {
            Some(u16::from_be_bytes([byte(bci + 1)?, byte(bci + 2)?]))
        }
        _ => None,
    }
}

/// Where control can go after an instruction, other than to an exception handler. All targets lie inside the code (but may
/// point into the middle of an instruction: whoever knows the instruction starts checks that).
#[derive(Clone, Debug)]
pub enum Flow<'a> {
    /// Only to the next instruction.
    Next,
    /// Conditional: to the target or to the next instruction.
    Branch(u16),
    /// Always to the target (goto, goto_w).
    Goto(u16),
    /// One of the targets.
    Switch {
        /// Where no case matches.
        default: u16,
        /// The cases' targets in table order, repeats included, without the default.
        targets: Targets<'a>,
    },
    /// Leaves the method by xreturn.
    Return,
    /// athrow.
    Throw,
    /// Subroutine call (jsr, jsr_w): to the target, and back to the next instruction.
    Jsr(u16),
    /// Return from a subroutine.
    Ret,
}

/// The case targets of a switch; made by [`flow`], which has checked them.
#[derive(Clone, Debug)]
pub struct Targets<'a> {
    code: &'a [u8],
    bci: usize,
    /// Position of the next offset.
    at: usize,
    stride: usize,
    left: usize,
}

impl Iterator for Targets<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        let target = target(self.code, self.bci, i32_at(self.code, self.at)?).ok();
        self.at += self.stride;
        target
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Targets<'_> {}

#[inline]
fn target(code: &[u8], bci: usize, offset: i32) -> Result<u16, Error> {
    usize::try_from(bci as i64 + i64::from(offset))
        .ok()
        .filter(|&target| target < code.len())
        .and_then(|target| u16::try_from(target).ok())
        .ok_or(Error::BadTarget(bci))
}

/// Control flow of the instruction at `bci`.
#[inline]
pub fn flow(code: &[u8], bci: usize) -> Result<Flow<'_>, Error> {
    let near = || match code.get(bci + 1..bci + 3) {
        Some(&[hi, lo]) => target(code, bci, i32::from(i16::from_be_bytes([hi, lo]))),
        _ => Err(Error::CodeEnd(bci)),
    };
    let far = || target(code, bci, i32_at(code, bci + 1).ok_or(Error::CodeEnd(bci))?);
    Ok(match opcode(code, bci)? {
        IFEQ..=IF_ACMPNE | IFNULL | IFNONNULL => Flow::Branch(near()?),
        GOTO => Flow::Goto(near()?),
        GOTO_W => Flow::Goto(far()?),
        JSR => Flow::Jsr(near()?),
        JSR_W => Flow::Jsr(far()?),
        RET => Flow::Ret,
        WIDE if opcode(code, bci + 1)? == RET => Flow::Ret,
        IRETURN..=RETURN => Flow::Return,
        ATHROW => Flow::Throw,
        TABLESWITCH | LOOKUPSWITCH => {
            insn_len(code, bci)?;
            let table = SwitchTable::read(code, bci)?;
            let targets = Targets {
                code,
                bci,
                at: table.pairs_at + table.stride - 4,
                stride: table.stride,
                left: table.count,
            };
            if targets.clone().count() != table.count {
                return Err(Error::BadTarget(bci));
            }
            Flow::Switch {
                default: target(code, bci, table.default)?,
                targets,
            }
        }
        _ => {
            insn_len(code, bci)?;
            Flow::Next
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_padded_and_wide_instructions() {
        // nop; tableswitch at bci 1 (2 bytes of padding), default 1 -> bci 2.., low 0, high 1.
        let mut code = vec![NOP, TABLESWITCH, 0, 0];
        for v in [23i32, 0, 1, 23, 24] {
            code.extend(v.to_be_bytes());
        }
        code.extend([RETURN, RETURN]);
        assert_eq!(insn_len(&code, 1), Ok(23));
        let Ok(Flow::Switch { default, targets }) = flow(&code, 1) else {
            panic!("not a switch")
        };
        assert_eq!((default, targets.collect::<Vec<_>>()), (24, vec![24, 25]));
        let starts: Vec<_> = insns(&code).collect::<Result<_, _>>().unwrap();
        assert_eq!(
            starts,
            [(0, NOP), (1, TABLESWITCH), (24, RETURN), (25, RETURN)]
        );
        assert_eq!(insn_len(&[WIDE, IINC, 0, 1, 0, 1], 0), Ok(6));
        assert_eq!(insn_len(&[WIDE, RET, 0, 1], 0), Ok(4));
        assert!(matches!(flow(&[WIDE, RET, 0, 1], 0), Ok(Flow::Ret)));
        assert!(insn_len(&[WIDE, NOP, 0, 1], 0).is_err());
    }

    #[test]
    fn hostile_tables_are_refused() {
        for (op, a, b) in [
            (TABLESWITCH, i32::MIN, i32::MAX),
            (TABLESWITCH, 1, 0),
            (LOOKUPSWITCH, -1, 0),
            (LOOKUPSWITCH, i32::MAX, 0),
        ] {
            let mut code = vec![op, 0, 0, 0];
            for v in [0, a, b] {
                code.extend(v.to_be_bytes());
            }
            assert_eq!(insn_len(&code, 0), Err(Error::BadSwitch(0)));
            assert!(flow(&code, 0).is_err());
        }
        assert_eq!(insn_len(&[LOOKUPSWITCH], 0), Err(Error::CodeEnd(0)));
        assert!(matches!(
            flow(&[GOTO, 0x80, 0], 0),
            Err(Error::BadTarget(0))
        ));
        assert!(matches!(flow(&[GOTO, 0], 0), Err(Error::CodeEnd(0))));
    }
}
