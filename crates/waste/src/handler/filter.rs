//! Accesses that are not the program's: stacks, headers, array lengths, and everything outside of the heap.
//!
//! Loads of an object's class are always silent (10 to 25 % of all silent loads without this filter), and so are those of an array's length. Where the
//! object that is touched is known, offsets say exactly what a header is. Where only the instruction is known, a class-word load is told by its
//! displacement and width, since no field can be there; an array's length cannot, since a field of another object may be at that offset.

use super::access::{Access, Kind};
use super::code::Operand;
use super::tally::Refusal;

/// Where the VM keeps what in an object (offsets in bytes; source: oopDesc and arrayOopDesc of JDK 17 to 25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset and bytes of the class word.
    pub class: (u8, u8),
    /// Offset of an array's length (4 bytes).
    pub length: u8,
}

impl Layout {
    /// `-XX:+UseCompressedClassPointers`, the default.
    pub const COMPRESSED: Layout = Layout {
        class: (8, 4),
        length: 12,
    };
    /// `-XX:-UseCompressedClassPointers`.
    pub const WIDE: Layout = Layout {
        class: (8, 8),
        length: 16,
    };
    /// `-XX:+UseCompactObjectHeaders` (JDK 25): the class is in the upper half of the mark word.
    pub const COMPACT: Layout = Layout {
        class: (4, 4),
        length: 8,
    };
}

/// The object that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its address.
    pub start: u64,
    /// Whether it is an array.
    pub array: bool,
}

/// What is watched, and what not. Ranges are from (inclusive) and to (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The reserved Java heap.
    pub heap: (u64, u64),
    /// The thread's stack.
    pub stack: (u64, u64),
    /// Object layout.
    pub layout: Layout,
}

impl Scope {
    /// The access of an operand, or why it is none of ours.
    pub fn judge(&self, operand: &Operand, object: Option<Object>) -> Result<Access, Refusal> {
        let access = operand.access.map_err(|_| Refusal::Hidden)?;
        if operand.form.stack || touches(self.stack, &access) {
            return Err(Refusal::Stack);
        }
        if access.address() < self.heap.0 || access.end() > self.heap.1 {
            return Err(Refusal::OutsideHeap);
        }
        match object {
            Some(object) => self.by_object(&access, object)?,
            None => self.by_form(operand)?,
        }
        Ok(access)
    }

    fn by_object(&self, access: &Access, object: Object) -> Result<(), Refusal> {
        let header = u64::from(self.layout.class.0 + self.layout.class.1);
        let length = object.start.saturating_add(self.layout.length.into());
        if touches((object.start, object.start.saturating_add(header)), access) {
            return Err(Refusal::Header);
        }
        // A wide load that begins with the length and goes on (a copy of a whole object) is one of elements, too.
        if object.array && (access.address(), access.width()) == (length, 4) {
            return Err(Refusal::ArrayLength);
        }
        Ok(())
    }

    fn by_form(&self, operand: &Operand) -> Result<(), Refusal> {
        let (offset, width) = self.layout.class;
        let class_word = operand.form.field
            && operand.kind == Kind::Load
            && operand.form.displacement == i64::from(offset)
            && operand.width == u16::from(width);
        if class_word {
            Err(Refusal::Header)
        } else {
            Ok(())
        }
    }
}

fn touches((from, to): (u64, u64), access: &Access) -> bool {
    access.address() < to && access.end() > from
}
