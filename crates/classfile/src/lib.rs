//! Class files: a reader that borrows from the bytes, and a splicer that inserts code and moves everything that depends on code
//! positions while all that is not touched stays byte-identical.
//!
//! Comes in: the bytes of one class file (JVMS chapter 4, versions 45.3 to the newest), and for each method a list of code
//! fragments to insert. Goes out: the bytes of the new class. Must never happen here: a panic on hostile bytes, or a class that
//! the JVM's verifier refuses while it accepts the original.

pub mod insn;

/// Why bytes are not a class file that this crate can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The code ends inside the instruction at this bci, or the bci lies outside the code.
    #[error("code ends inside the instruction at bci {0}")]
    CodeEnd(usize),
    /// No such instruction.
    #[error("unknown opcode {opcode:#04x} at bci {bci}")]
    BadOpcode {
        /// Where.
        bci: usize,
        /// Which.
        opcode: u8,
    },
    /// The jump table of a switch has an impossible size.
    #[error("switch at bci {0} has an impossible table")]
    BadSwitch(usize),
    /// A jump leaves the code.
    #[error("jump at bci {0} leaves the code")]
    BadTarget(usize),
}
