//! Whether a bytecode can do an access: C2's debug information names the right one for about half of the pairs only.
//!
//! What fits may still be wrong; what does not fit is: such a line is flagged as doubtful, and the machine instruction beside it is what counts.

use crate::handler::access::{Element, Kind};
use crate::handler::watches::Shape;

/// What a bytecode does to memory.
enum Does {
    /// Nothing in the heap.
    Nothing,
    /// Loads of a value of this descriptor.
    Loads(u8),
    /// Stores one.
    Stores(u8),
    /// Loads or stores anything: other code is inlined, or the VM's is at work.
    Anything,
}

/// Opcodes (JVMS 17, chapter 6).
fn does(opcode: u8, descriptor: Option<u8>) -> Does {
    match opcode {
        0x2E..=0x35 => Does::Loads(b"IJFDLBCS"[usize::from(opcode - 0x2E)]),
        0x4F..=0x56 => Does::Stores(b"IJFDLBCS"[usize::from(opcode - 0x4F)]),
        // getstatic, getfield; putstatic, putfield
        0xB2 | 0xB4 => descriptor.map_or(Does::Anything, Does::Loads),
        0xB3 | 0xB5 => descriptor.map_or(Does::Anything, Does::Stores),
        // arraylength
        0xBE => Does::Loads(b'I'),
        // invokes; new and its kin, athrow, checkcast, instanceof, monitors; multianewarray; ldc and its kin (a class or string may be resolved)
        0xB6..=0xBA | 0xBB..=0xBD | 0xBF..=0xC3 | 0xC5 | 0x12..=0x14 => Does::Anything,
        // returns: a method inlined or synchronized
        0xAC..=0xB1 => Does::Anything,
        _ => Does::Nothing,
    }
}

/// Whether a bytecode can do an access of this shape. `descriptor`: first character of the field's descriptor, for field accesses.
pub fn fits(opcode: u8, descriptor: Option<u8>, shape: &Shape) -> bool {
    let array = matches!(opcode, 0x2E..=0x35 | 0x4F..=0x56);
    match does(opcode, descriptor) {
        Does::Nothing => false,
        Does::Anything => true,
        Does::Loads(value) => shape.kind.loads() && wide_enough(value, array, shape),
        Does::Stores(value) => {
            // A store of a reference may load what it overwrites, or mark a card by exchange: barriers.
            let barrier = matches!(value, b'L' | b'[');
            // An array's length is loaded for the check of the index.
            let length = array && shape.kind == Kind::Load && shape.width == 4;
            length || ((shape.kind != Kind::Load || barrier) && wide_enough(value, array, shape))
        }
    }
}

/// Whether the width can be that of a value, or of several side by side: C2 merges neighbours and makes vectors of loops over arrays.
fn wide_enough(value: u8, array: bool, shape: &Shape) -> bool {
    let (width, element) = match value {
        b'Z' | b'B' => (1, Element::Bits),
        b'S' | b'C' => (2, Element::Bits),
        b'I' => (4, Element::Bits),
        b'J' => (8, Element::Bits),
        b'F' => (4, Element::F32),
        b'D' => (8, Element::F64),
        // Compressed or not.
        _ => (4, Element::Bits),
    };
    let length = array && shape.kind == Kind::Load && shape.width == 4;
    // Bits may be any value's: vectors and copies of floating point are moved as integers.
    let means = shape.element == Element::Bits || shape.element == element;
    length || (means && shape.width >= width && shape.width.is_multiple_of(width))
}
