//! From a tick's program counter to the next access that the thread makes.
//!
//! A timer stops a thread anywhere. [`Seek`] decodes on from there: as long as nothing has changed the registers it can say what a jump does
//! and where an operand is; beyond that it asks for an execute breakpoint at the next instruction that must be seen with its registers (an
//! access, or a jump that depends on them), and goes on when that traps. That takes 3 to 6 traps a sample where single steps take 58 to 69.
//!
//! Which access is taken decides what is seen: always the first after the tick would prefer what follows long instructions. So the caller
//! may let a random number of candidates pass first (`skip`).

use super::access::Access;
use super::code::{Code, Hidden, Instruction, Operand, Reader};
use super::registers::Registers;
use super::tally::Miss;
use iced_x86::{FlowControl, OpKind};

/// Instructions looked at between two traps.
const LOOK: usize = 512;

/// An access and the instruction that makes it.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The instruction. It has not run yet.
    pub instruction: Instruction,
    /// The access.
    pub access: Access,
}

/// What to do next.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The access is what the thread does next: it stands at this instruction, or only jumps are between.
    Reached(Reached),
    /// Break before this instruction runs; then [`Seek::stopped`] and [`Seek::run`]. In a loop it may be the one the thread stands at: whether it traps
    /// at once or in the next turn is all the same.
    BreakAt(u64),
    /// The way leads to this address, in other code: [`Seek::run`] with the code there, if any, else give up with [`Miss::LeftCode`].
    Elsewhere(u64),
    /// The thread is about to return to the address that stands at the top of its stack: [`Seek::returns_to`] it, then [`Seek::run`].
    Return,
    /// It came to nothing.
    Miss(Miss),
    /// The one access there is was not accepted. A seek goes on instead, a sample of the PMU cannot.
    Refused(Operand),
}

/// A seek under way.
#[derive(Clone, Copy, Debug)]
pub struct Seek {
    pc: u64,
    /// The registers are those before the instruction at `pc`.
    fresh: bool,
    /// Accesses to let pass.
    skip: u32,
    /// Breakpoints left.
    stops: u32,
}

impl Seek {
    /// Begins where the tick stopped the thread. `skip`: accesses to let pass first; `stops`: breakpoints it may ask for.
    pub fn new(pc: u64, skip: u32, stops: u32) -> Seek {
        Seek {
            pc,
            fresh: true,
            skip,
            stops,
        }
    }

    /// The breakpoint trapped: the thread is before the instruction at `pc`.
    pub fn stopped(&mut self, pc: u64) {
        self.pc = pc;
        self.fresh = true;
    }

    /// The way goes on at a return address. The registers stay those of the stop for all but the stack pointer.
    pub fn returns_to(&mut self, pc: u64) {
        self.pc = pc;
        self.fresh = false;
    }

    /// Where the seek is.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Goes on. `registers`: those of the last stop. `accept`: the access of an operand, if it may be taken.
    pub fn run(
        &mut self,
        reader: &mut Reader,
        code: &Code<'_>,
        registers: &Registers,
        mut accept: impl FnMut(&Operand) -> Option<Access>,
    ) -> Step {
        for _ in 0..LOOK {
            let Some(instruction) = reader.at(code, self.pc) else {
                return match code.contains(self.pc) {
                    true => Step::Miss(Miss::Undecodable),
                    false => Step::Elsewhere(self.pc),
                };
            };
            let known = self.fresh.then_some(registers);
            if instruction.raw.flow_control() != FlowControl::Next {
                if let Some(step) = self.branch(&instruction, known) {
                    return step;
                }
                continue;
            }
            let operands = reader.operands(&instruction, known);
            if known.is_none() {
                // Some may turn out to be refused; as candidates they count all the same.
                let candidate = |operand: &Operand| match operand.access {
                    Err(Hidden::Base) => !(operand.form.stack || operand.form.thread),
                    _ => accept(operand).is_some(),
                };
                let candidates = operands.iter().filter(candidate).count() as u32;
                if candidates > self.skip {
                    return self.break_at(instruction.pc());
                }
                self.skip -= candidates;
            } else {
                for access in operands.iter().filter_map(|operand| accept(&operand)) {
                    if self.skip == 0 {
                        return Step::Reached(Reached {
                            instruction,
                            access,
                        });
                    }
                    self.skip -= 1;
                }
            }
            self.pc = instruction.next();
            self.fresh = false;
        }
        Step::Miss(Miss::StepLimit)
    }

    fn break_at(&mut self, pc: u64) -> Step {
        match self.stops.checked_sub(1) {
            Some(left) => {
                self.stops = left;
                self.pc = pc;
                Step::BreakAt(pc)
            }
            None => Step::Miss(Miss::StepLimit),
        }
    }

    /// Follows a branch, or says what must happen first.
    fn branch(&mut self, branch: &Instruction, known: Option<&Registers>) -> Option<Step> {
        let raw = &branch.raw;
        let to_register = || match raw.op0_kind() {
            OpKind::Register => Some(known?.value(raw.op0_register())),
            _ => Some(None),
        };
        match raw.flow_control() {
            FlowControl::UnconditionalBranch => self.pc = raw.near_branch_target(),
            FlowControl::Call if raw.op0_kind() == OpKind::NearBranch64 => {
                self.pc = raw.near_branch_target();
                self.fresh = false;
            }
            FlowControl::ConditionalBranch => {
                let Some(registers) = known else {
                    return Some(self.break_at(branch.pc()));
                };
                match taken(raw, registers) {
                    Some(true) => self.pc = raw.near_branch_target(),
                    Some(false) => self.pc = branch.next(),
                    None => return Some(Step::Miss(Miss::LeftCode)),
                }
                // `loop` counts rcx down.
                self.fresh = !(raw.is_loop() || raw.is_loopcc());
            }
            FlowControl::IndirectBranch | FlowControl::IndirectCall => match to_register() {
                None => return Some(self.break_at(branch.pc())),
                // Through memory: where it leads is not ours to read.
                Some(None) => return Some(Step::Miss(Miss::LeftCode)),
                Some(Some(target)) => {
                    self.pc = target;
                    self.fresh = raw.flow_control() == FlowControl::IndirectBranch;
                }
            },
            FlowControl::Return => {
                return Some(match known {
                    Some(_) => Step::Return,
                    None => self.break_at(branch.pc()),
                });
            }
            _ => return Some(Step::Miss(Miss::LeftCode)),
        }
        None
    }
}

/// Whether a conditional branch is taken.
fn taken(raw: &iced_x86::Instruction, registers: &Registers) -> Option<bool> {
    let condition = || registers.holds(raw.condition_code());
    if raw.is_jcx_short() {
        // jrcxz, or jecxz with an address-size prefix.
        return Some(match raw.code() {
            iced_x86::Code::Jrcxz_rel8_64 => registers.rcx() == 0,
            _ => registers.rcx() as u32 == 0,
        });
    }
    if raw.is_loop() || raw.is_loopcc() {
        let more = registers.rcx().wrapping_sub(1) != 0;
        return match raw.is_loop() {
            true => Some(more),
            false => Some(more && condition()?),
        };
    }
    condition()
}
