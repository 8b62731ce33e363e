//! Operands: the parameters of calls, and the stack effect of instructions that do nothing else.

use borescope_classfile::insn::*;

/// The parameters of a method descriptor (JVMS 4.3.3), each as its descriptor; ends with a `None` item if it is malformed.
pub(crate) struct Parameters<'a>(Option<&'a [u8]>);

impl<'a> Parameters<'a> {
    pub(crate) fn of(descriptor: &'a [u8]) -> Self {
        Self(Some(descriptor.strip_prefix(b"(").unwrap_or_default()))
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0?;
        if rest.first() == Some(&b')') {
            self.0 = None;
            return None;
        }
        let dimensions = rest.iter().take_while(|&&c| c == b'[').count();
        let len = match rest.get(dimensions) {
            Some(b'L') => rest.iter().position(|&c| c == b';').map(|at| at + 1),
            Some(b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z') => Some(dimensions + 1),
            _ => None,
        };
        self.0 = len.map(|len| &rest[len..]);
        Some(len.map(|len| &rest[..len]))
    }
}

/// By opcode: slots popped, and what is pushed (1, or 2 for a long or double), of instructions that do nothing else to stack and locals and whose
/// operands go nowhere.
pub(crate) static SIMPLE: [Option<(u8, u8)>; 256] = {
    let mut table = [None; 256];
    let list: &[(u8, u8, u8, u8)] = &[
        (NOP, NOP, 0, 0),
        (ACONST_NULL, ICONST_5, 0, 1),
        (LCONST_0, LCONST_1, 0, 2),
        (FCONST_0, FCONST_2, 0, 1),
        (DCONST_0, DCONST_1, 0, 2),
        (BIPUSH, LDC_W, 0, 1),
        (LDC2_W, LDC2_W, 0, 2),
        (IALOAD, IALOAD, 2, 1),
        (LALOAD, LALOAD, 2, 2),
        (FALOAD, FALOAD, 2, 1),
        (DALOAD, DALOAD, 2, 2),
        (AALOAD, SALOAD, 2, 1),
        (IASTORE, IASTORE, 3, 0),
        (LASTORE, LASTORE, 4, 0),
        (FASTORE, FASTORE, 3, 0),
        (DASTORE, DASTORE, 4, 0),
        (BASTORE, SASTORE, 3, 0),
        (POP, POP, 1, 0),
        (POP2, POP2, 2, 0),
        (IADD, IADD, 2, 1),
        (LADD, LADD, 4, 2),
        (FADD, FADD, 2, 1),
        (DADD, DADD, 4, 2),
        (ISUB, ISUB, 2, 1),
        (LSUB, LSUB, 4, 2),
        (FSUB, FSUB, 2, 1),
        (DSUB, DSUB, 4, 2),
        (IMUL, IMUL, 2, 1),
        (LMUL, LMUL, 4, 2),
        (FMUL, FMUL, 2, 1),
        (DMUL, DMUL, 4, 2),
        (IDIV, IDIV, 2, 1),
        (LDIV, LDIV, 4, 2),
        (FDIV, FDIV, 2, 1),
        (DDIV, DDIV, 4, 2),
        (IREM, IREM, 2, 1),
        (LREM, LREM, 4, 2),
        (FREM, FREM, 2, 1),
        (DREM, DREM, 4, 2),
        (INEG, INEG, 1, 1),
        (LNEG, LNEG, 2, 2),
        (FNEG, FNEG, 1, 1),
        (DNEG, DNEG, 2, 2),
        (ISHL, ISHL, 2, 1),
        (LSHL, LSHL, 3, 2),
        (ISHR, ISHR, 2, 1),
        (LSHR, LSHR, 3, 2),
        (IUSHR, IUSHR, 2, 1),
        (LUSHR, LUSHR, 3, 2),
        (IAND, IAND, 2, 1),
        (LAND, LAND, 4, 2),
        (IOR, IOR, 2, 1),
        (LOR, LOR, 4, 2),
        (IXOR, IXOR, 2, 1),
        (LXOR, LXOR, 4, 2),
        (IINC, IINC, 0, 0),
        (I2L, I2L, 1, 2),
        (I2F, I2F, 1, 1),
        (I2D, I2D, 1, 2),
        (L2I, L2F, 2, 1),
        (L2D, L2D, 2, 2),
        (F2I, F2I, 1, 1),
        (F2L, F2D, 1, 2),
        (D2I, D2I, 2, 1),
        (D2L, D2L, 2, 2),
        (D2F, D2F, 2, 1),
        (I2B, I2S, 1, 1),
        (LCMP, LCMP, 4, 1),
        (FCMPL, FCMPG, 2, 1),
        (DCMPL, DCMPG, 4, 1),
        (IFEQ, IFLE, 1, 0),
        (IF_ICMPEQ, IF_ACMPNE, 2, 0),
        (GOTO, GOTO, 0, 0),
        (TABLESWITCH, LOOKUPSWITCH, 1, 0),
        (IRETURN, IRETURN, 1, 0),
        (LRETURN, LRETURN, 2, 0),
        (FRETURN, FRETURN, 1, 0),
        (DRETURN, DRETURN, 2, 0),
        (RETURN, RETURN, 0, 0),
        (ARRAYLENGTH, ARRAYLENGTH, 1, 1),
        (INSTANCEOF, INSTANCEOF, 1, 1),
        (MONITOREXIT, MONITOREXIT, 1, 0),
        (IFNULL, IFNONNULL, 1, 0),
        (GOTO_W, GOTO_W, 0, 0),
    ];
    let mut i = 0;
    while i < list.len() {
        let (first, last, pop, push) = list[i];
        let mut op = first;
        while op <= last {
            table[op as usize] = Some((pop, push));
            op += 1;
        }
        i += 1;
    }
    table
};
