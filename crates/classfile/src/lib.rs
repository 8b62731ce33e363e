//! Class files: a reader that borrows from the bytes, and a splicer that inserts code and moves everything that depends on code
//! positions while all that is not touched stays byte-identical.
//!
//! Comes in: the bytes of one class file (JVMS chapter 4, versions 45.3 to the newest), and for each method a list of code
//! fragments to insert. Goes out: the bytes of the new class. Must never happen here: a panic on hostile bytes, or a class that
//! the JVM's verifier refuses while it accepts the original.

mod class;
pub mod insn;
mod mutf8;
mod read;
mod splice;

pub use class::{ClassFile, Code, ExceptionEntry, Exceptions, InvokeDynamic, Member, Method};
pub use splice::{At, Buffers, ExtraLocal, MethodEdit, Plain, Splicer};

/// Why bytes are not a class file that this crate can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file, or an attribute, ends inside the structure at this offset from its start.
    #[error("ends too early, at offset {0}")]
    End(usize),
    /// Does not start with 0xCAFEBABE.
    #[error("not a class file")]
    Magic,
    /// Before 45.3, whose Code attribute has another layout.
    #[error("class file version {0}.{1} is older than 45.3")]
    TooOld(u16, u16),
    /// A constant pool tag that is not known, so the pool's end is not known either.
    #[error("unknown constant pool tag {0}")]
    PoolTag(u8),
    /// A constant pool index that does not lead to an entry of the kind needed.
    #[error("bad constant pool index {0}")]
    PoolIndex(u16),
    /// Something else that JVMS chapter 4 forbids.
    #[error("{0}")]
    Format(&'static str),
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
