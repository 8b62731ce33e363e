//! The copy of a method's old code behind the edited one ([`super::MethodEdit::keep_copy`]): where it goes, and its code.

use super::Plain;
use super::layout::Layout;
use crate::class::Code;
use crate::insn::NOP;

/// Where the copy of the old code stands in the new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    /// Where the jump at the method's entry leads.
    pub(super) entry: u32,
    /// Of bci 0, behind the nops.
    pub(super) start: u32,
    /// Length of the old code.
    len: u32,
}

impl Copied {
    /// Places the copy at or just behind `end`, the end of the edited code and the added handlers.
    pub(super) fn plan(code: &Code, end: u32, layout: &Layout) -> Result<Self, Plain> {
        // Only a switch depends on where it stands (JVMS 6.5, tableswitch: its table begins at a multiple of 4 bytes).
        let start = if layout.has_switch() {
            end.next_multiple_of(4)
        } else {
            end
        };
        let lines = code.line_numbers();
        if !lines.is_empty() && lines.iter().all(|(bci, _)| *bci != 0) {
            return Err(Plain::NoLine);
        }
        Ok(Self {
            entry: end,
            start,
            len: code.code.len() as u32,
        })
    }

    /// The end of the new code.
    pub(super) fn end(&self) -> u32 {
        self.start + self.len
    }

    /// The place of an old bci, or of the old code's end; the new code has at most 65535 bytes.
    pub(super) fn at(&self, bci: u16) -> u16 {
        (self.start + u32::from(bci)) as u16
    }

    /// The begin of a line or of a variable's range: what begins at bci 0 covers the nops, too.
    pub(super) fn range_start(&self, bci: u16) -> u16 {
        if bci == 0 {
            self.entry as u16
        } else {
            self.at(bci)
        }
    }

    /// Appends the copy to the code that begins at `base` of `out`, and lets the jump that ends the test lead to it.
    pub(super) fn emit(
        &self,
        code: &[u8],
        test_len: u32,
        base: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Plain> {
        let jump = test_len - 3;
        let distance = i16::try_from(self.entry - jump).map_err(|_| Plain::FarBranch)?;
        let at = base + jump as usize;
        out[at + 1..at + 3].copy_from_slice(&distance.to_be_bytes());
        out.extend(std::iter::repeat_n(NOP, (self.start - self.entry) as usize));
        out.extend(code);
        Ok(())
    }
}
