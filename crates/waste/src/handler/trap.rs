//! Which instruction trapped: a data breakpoint reports after the access, so the program counter is already behind it.
//!
//! x86 cannot be decoded backwards, so this decodes from a known instruction boundary (the start of the code blob, or any nearer one) up to the
//! program counter and takes the last instruction. It must then turn out that this one can have touched the watched place; where its address can still be computed
//! from the registers, that is checked. A load that overwrote its base register cannot be checked, and is taken.
//!
//! Not found: accesses of jumps and calls through memory, after which the program counter is elsewhere. None of them touches the Java heap.

use super::access::{Access, Place};
use super::code::{Code, Hidden, Instruction, Operand, Operands, Reader, is_memory, repeats};
use super::registers::Registers;

/// The access that trapped.
#[derive(Clone, Copy, Debug)]
pub struct Trapped {
    /// The instruction that made it.
    pub instruction: Instruction,
    /// The access, settled if it was a compare-and-exchange.
    pub access: Access,
    /// Its address was not computed but taken from the watch, aligned as Java aligns.
    pub assumed: bool,
}

/// Why it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The anchor is not before the program counter in this code.
    NoAnchor,
    /// Decoding from the anchor meets no instruction that ends at the program counter.
    Skew,
    /// That instruction accesses no memory by its operands.
    NoAccess,
    /// It accesses memory, but not the place.
    Elsewhere,
}

/// The access that a trap with these registers reports. `anchor`: an address at which an instruction begins, at or before the program
/// counter; decoding takes time by its distance. `place`: what was watched.
pub fn trapped(
    reader: &mut Reader,
    code: &Code<'_>,
    anchor: u64,
    registers: &Registers,
    place: &Place,
) -> Result<Trapped, Unknown> {
    let pc = registers.rip;
    // A repeated string instruction that is not through stands at the program counter itself.
    if let Some(again) = reader.at(code, pc)
        && repeats(&again.raw)
    {
        let operands = reader.operands(&again, Some(registers));
        if let Ok(access) = choose(&operands, place, |o| string_before(&again, o, registers)) {
            return Ok(done(again, access, false, registers));
        }
    }
    if anchor >= pc || !code.contains(anchor) {
        return Err(Unknown::NoAnchor);
    }
    let last = code.before(anchor, pc).ok_or(Unknown::Skew)?;
    let operands = if repeats(&last.raw) {
        // It is through: rcx is 0, which would say that it does nothing.
        let mut once = *registers;
        once.general[1] = 1;
        reader.operands(&last, Some(&once))
    } else {
        reader.operands(&last, Some(registers))
    };
    if operands.is_empty() {
        return Err(Unknown::NoAccess);
    }
    let overwritten = !last.raw.is_string_instruction() && reader.overwrites_address(&last);
    let found = choose(&operands, place, |operand| {
        if last.raw.is_string_instruction() {
            string_before(&last, operand, registers)
        } else if overwritten {
            Err(Hidden::Overwritten)
        } else {
            operand.access
        }
    });
    match found {
        Ok(access) => Ok(done(last, access, false, registers)),
        Err(Some(operand)) => {
            let access = assume(&operand, place).ok_or(Unknown::Elsewhere)?;
            Ok(done(last, access, true, registers))
        }
        Err(None) => Err(Unknown::Elsewhere),
    }
}

/// The operand that touches the place. If none certainly does: one that may, as its address is not known. Where both do, the store: it came last.
fn choose(
    operands: &Operands,
    place: &Place,
    mut access: impl FnMut(&Operand) -> Result<Access, Hidden>,
) -> Result<Access, Option<Operand>> {
    let mut sure: Option<Access> = None;
    let mut perhaps = None;
    for operand in operands.iter() {
        match access(&operand) {
            Ok(access) if place.overlap(&access) != 0 => {
                if sure.is_none() || access.kind().stores() {
                    sure = Some(access);
                }
            }
            Ok(_) => {}
            Err(_) => perhaps = perhaps.or(Some(operand)),
        }
    }
    sure.ok_or(perhaps)
}

/// The access that a string instruction made last: rsi and rdi have moved on.
fn string_before(
    instruction: &Instruction,
    operand: &Operand,
    registers: &Registers,
) -> Result<Access, Hidden> {
    let next = operand.access?;
    debug_assert!((0..2).any(|n| is_memory(instruction.raw.op_kind(n))));
    let step = u64::from(next.width());
    let address = match registers.down() {
        true => next.address().wrapping_add(step),
        false => next.address().wrapping_sub(step),
    };
    Access::new(address, next.width(), next.kind(), next.element()).ok_or(Hidden::Base)
}

/// An access of the operand's width that touches the place, aligned to its width as all of Java's are. Elements of gathers and of masked vectors
/// that are narrower than the operand cannot be told apart: the place itself then.
fn assume(operand: &Operand, place: &Place) -> Option<Access> {
    let exact = matches!(operand.access, Ok(_) | Err(Hidden::Overwritten));
    let width = match u8::try_from(operand.width) {
        Ok(width) if exact && width.is_power_of_two() => width,
        _ => place.len(),
    };
    let start = place.start() - place.start() % u64::from(width);
    Access::new(start, width, operand.kind, operand.element)
}

fn done(instruction: Instruction, access: Access, assumed: bool, registers: &Registers) -> Trapped {
    Trapped {
        instruction,
        access: access.of_kind(access.kind().settled(registers.zero())),
        assumed,
    }
}
