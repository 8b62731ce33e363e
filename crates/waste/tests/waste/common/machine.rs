//! A small part of x86-64: encoded by hand, and executed, so that what the decoder says can be held against what happens.

use borescope_waste::{Code, Element, Kind, Registers};
use proptest::prelude::*;
use std::collections::HashMap;

/// Where the code stands.
pub const START: u64 = 0x7F00_0000_1000;
/// Where rsp points to.
pub const STACK: u64 = 0x7FFF_0000_0000;
/// Where the other registers point to.
pub const HEAP: u64 = 0x10_0000;

/// An instruction. Registers by number; targets are numbers of instructions.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Load(u8, u8, i32),
    LoadIndexed(u8, u8, u8, i32),
    Load32(u8, u8, i32),
    Store(u8, i32, u8),
    Store8(u8, i32, u8),
    StoreImmediate(u8, i32, i32),
    StoreDouble(u8, i32),
    LoadFloat(u8, i32),
    AddTo(u8, i32, u8),
    Exchange(u8, i32, u8),
    CompareExchange(u8, i32, u8),
    Compare(u8, i32),
    CompareMemory(u8, i32, u8),
    Add(u8, i32),
    LoadStack(u8, i32),
    StoreStack(i32, u8),
    Lea(u8, u8, i32),
    Prefetch(u8, i32),
    Nop,
    MoveString,
    Fill(u8),
    Jump(usize),
    JumpIf(u8, usize),
    JumpTo(usize),
    Call(usize),
}

/// An access that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Did {
    pub pc: u64,
    pub address: u64,
    pub width: u8,
    pub kind: Kind,
    pub element: Element,
    pub stack: bool,
}

impl Did {
    /// It goes across the end of the address space: no access that is followed.
    pub fn wraps(&self) -> bool {
        self.address.checked_add(self.width.into()).is_none()
    }
}

/// An assembled program.
pub struct Program {
    pub ops: Vec<Op>,
    pub bytes: Vec<u8>,
    pub starts: Vec<u64>,
}

/// ModRM with a base and a 32-bit displacement.
fn memory(out: &mut Vec<u8>, register: u8, base: u8, displacement: i32) {
    out.push(0x80 | (register & 7) << 3 | if base & 7 == 4 { 4 } else { base & 7 });
    if base & 7 == 4 {
        out.push(0x24);
    }
    out.extend(displacement.to_le_bytes());
}

fn rex(wide: bool, register: u8, index: u8, base: u8) -> u8 {
    0x40 | u8::from(wide) << 3 | (register >> 3) << 2 | (index >> 3) << 1 | base >> 3
}

fn encode(op: Op, at: u64, target: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut out = Vec::new();
    let plain = |opcode: &[u8], wide, register, base, displacement| {
        let mut out = vec![rex(wide, register, 0, base)];
        out.extend(opcode);
        memory(&mut out, register, base, displacement);
        out
    };
    let relative = |opcode: &[u8], to: usize| {
        let mut out = opcode.to_vec();
        let end = at + opcode.len() as u64 + 4;
        out.extend((target(to).wrapping_sub(end) as i32).to_le_bytes());
        out
    };
    match op {
        Op::Load(r, b, d) => return plain(&[0x8B], true, r, b, d),
        Op::Load32(r, b, d) => return plain(&[0x8B], false, r, b, d),
        Op::Store(b, d, r) => return plain(&[0x89], true, r, b, d),
        Op::Store8(b, d, r) => return plain(&[0x88], false, r, b, d),
        Op::AddTo(b, d, r) => return plain(&[0x01], true, r, b, d),
        Op::Exchange(b, d, r) => return plain(&[0x87], true, r, b, d),
        Op::CompareMemory(b, d, r) => return plain(&[0x39], true, r, b, d),
        Op::Lea(r, b, d) => return plain(&[0x8D], true, r, b, d),
        Op::Prefetch(b, d) => return plain(&[0x0F, 0x18], false, 1, b, d),
        Op::LoadStack(r, d) => return plain(&[0x8B], true, r, 4, d),
        Op::StoreStack(d, r) => return plain(&[0x89], true, r, 4, d),
        Op::Jump(to) => return relative(&[0xE9], to),
        Op::JumpIf(condition, to) => return relative(&[0x0F, 0x80 | condition], to),
        Op::Call(to) => return relative(&[0xE8], to),
        Op::LoadIndexed(r, b, i, d) => {
            out.extend([rex(true, r, i, b), 0x8B, 0x84 | (r & 7) << 3]);
            out.push(0xC0 | (i & 7) << 3 | b & 7);
            out.extend(d.to_le_bytes());
        }
        Op::StoreImmediate(b, d, value) => {
            out = plain(&[0xC7], true, 0, b, d);
            out.extend(value.to_le_bytes());
        }
        Op::StoreDouble(b, d) => {
            out.push(0xF2);
            out.extend(plain(&[0x0F, 0x11], false, 1, b, d));
        }
        Op::LoadFloat(b, d) => {
            out.push(0xF3);
            out.extend(plain(&[0x0F, 0x10], false, 1, b, d));
        }
        Op::CompareExchange(b, d, r) => {
            out.push(0xF0);
            out.extend(plain(&[0x0F, 0xB1], true, r, b, d));
        }
        Op::Compare(r, value) => {
            out.extend([rex(true, 0, 0, r), 0x81, 0xF8 | r & 7]);
            out.extend(value.to_le_bytes());
        }
        Op::Add(r, value) => {
            out.extend([rex(true, 0, 0, r), 0x81, 0xC0 | r & 7]);
            out.extend(value.to_le_bytes());
        }
        Op::Nop => out.extend([0x0F, 0x1F, 0x44, 0x00, 0x08]),
        Op::MoveString => out.extend([0x48, 0xA5]),
        // mov ecx, turns; rep stosq.
        Op::Fill(turns) => out.extend([0xB9, turns, 0, 0, 0, 0xF3, 0x48, 0xAB]),
        Op::JumpTo(to) => {
            // mov r11, target; jmp r11: one unit of two instructions.
            out.extend([0x49, 0xBB]);
            out.extend(target(to).to_le_bytes());
            out.extend([0x41, 0xFF, 0xE3]);
        }
    }
    out
}

impl Program {
    pub fn new(ops: Vec<Op>) -> Program {
        // Lengths do not depend on targets.
        let mut starts = vec![START];
        for op in &ops {
            let length = encode(*op, 0, |_| 0).len() as u64;
            starts.push(starts.last().unwrap() + length);
        }
        let target = |n: usize| starts[n % starts.len()];
        let bytes = ops
            .iter()
            .zip(&starts)
            .flat_map(|(op, at)| encode(*op, *at, target))
            .collect();
        Program { ops, bytes, starts }
    }

    pub fn code(&self) -> Code<'_> {
        Code::new(START, &self.bytes)
    }
}

/// What executes it.
#[derive(Clone)]
pub struct Machine {
    pub registers: Registers,
    pub memory: HashMap<u64, u8>,
    /// Between the two instructions of a `JumpTo`.
    jump: Option<u64>,
}

impl Machine {
    pub fn new(values: &[u64; 16]) -> Machine {
        let mut registers = Registers {
            rip: START,
            flags: 2,
            ..Registers::default()
        };
        registers.general = values.map(|v| HEAP + v % 256 * 8);
        registers.general[4] = STACK;
        Machine {
            registers,
            memory: HashMap::new(),
            jump: None,
        }
    }

    fn read(&self, address: u64, width: u8) -> u64 {
        let byte =
            |n: u64| u64::from(*self.memory.get(&address.wrapping_add(n)).unwrap_or(&7)) << (8 * n);
        (0..u64::from(width)).map(byte).sum()
    }

    fn write(&mut self, address: u64, width: u8, value: u64) {
        for n in 0..u64::from(width) {
            self.memory
                .insert(address.wrapping_add(n), (value >> (8 * n)) as u8);
        }
    }

    fn compare(&mut self, a: u64, b: u64) {
        let (result, borrow) = a.overflowing_sub(b);
        let overflow = (a as i64).overflowing_sub(b as i64).1;
        let parity = (result as u8).count_ones().is_multiple_of(2);
        let bits = [
            (borrow, 0),
            (parity, 2),
            (result == 0, 6),
            ((result as i64) < 0, 7),
            (overflow, 11),
        ];
        self.registers.flags = bits
            .iter()
            .fold(2, |f, (on, bit)| f | u64::from(*on) << bit);
    }

    fn holds(&self, condition: u8) -> bool {
        let flag = |bit: u8| self.registers.flags >> bit & 1 != 0;
        let held = match condition >> 1 {
            0 => flag(11),
            1 => flag(0),
            2 => flag(6),
            3 => flag(0) || flag(6),
            4 => flag(7),
            5 => flag(2),
            6 => flag(7) != flag(11),
            _ => flag(6) || flag(7) != flag(11),
        };
        held != (condition & 1 != 0)
    }

    /// Executes one instruction (one turn, if repeated). Its accesses; `None` at the program's end.
    pub fn step(&mut self, program: &Program) -> Option<Vec<Did>> {
        let pc = self.registers.rip;
        if let Some(target) = self.jump.take() {
            self.registers.rip = target;
            return Some(Vec::new());
        }
        // A fill is two instructions.
        let n = program.starts.partition_point(|start| *start <= pc) - 1;
        let op = *program.ops.get(n)?;
        let next = program.starts[n + 1];
        self.registers.rip = next;
        let mut did = Vec::new();
        let mut touch = |address: u64, width: u8, kind: Kind| {
            did.push(Did {
                pc,
                address,
                width,
                kind,
                element: Element::Bits,
                stack: false,
            });
        };
        let g = |s: &Self, r: u8| s.registers.general[usize::from(r)];
        let to = |s: &Self, base: u8, d: i32| g(s, base).wrapping_add(d as i64 as u64);
        let target = |n: usize| program.starts[n % program.starts.len()];
        match op {
            Op::Load(r, b, d) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Load);
                self.registers.general[usize::from(r)] = self.pointer(a);
            }
            Op::Load32(r, b, d) => {
                let a = to(self, b, d);
                touch(a, 4, Kind::Load);
                self.registers.general[usize::from(r)] = HEAP + self.read(a, 4) % 4096;
            }
            Op::LoadIndexed(r, b, i, d) => {
                let a = to(self, b, d).wrapping_add(g(self, i) << 3);
                touch(a, 8, Kind::Load);
                self.registers.general[usize::from(r)] = self.pointer(a);
            }
            Op::Store(b, d, r) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Store);
                self.write(a, 8, g(self, r));
            }
            Op::Store8(b, d, r) => {
                let a = to(self, b, d);
                touch(a, 1, Kind::Store);
                self.write(a, 1, g(self, r));
            }
            Op::StoreImmediate(b, d, value) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Store);
                self.write(a, 8, value as i64 as u64);
            }
            Op::StoreDouble(b, d) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Store);
                self.write(a, 8, 1.5f64.to_bits());
            }
            Op::LoadFloat(b, d) => touch(to(self, b, d), 4, Kind::Load),
            Op::AddTo(b, d, r) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Both);
                let sum = self.read(a, 8).wrapping_add(g(self, r));
                self.write(a, 8, sum);
            }
            Op::Exchange(b, d, r) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Both);
                let old = self.pointer(a);
                self.write(a, 8, g(self, r));
                self.registers.general[usize::from(r)] = old;
            }
            Op::CompareExchange(b, d, r) => {
                let a = to(self, b, d);
                let old = self.read(a, 8);
                self.compare(g(self, 0), old);
                if self.registers.zero() {
                    touch(a, 8, Kind::Both);
                    self.write(a, 8, g(self, r));
                } else {
                    touch(a, 8, Kind::Load);
                    self.registers.general[0] = HEAP + old % 4096;
                }
            }
            Op::Compare(r, value) => self.compare(g(self, r), value as i64 as u64),
            Op::CompareMemory(b, d, r) => {
                let a = to(self, b, d);
                touch(a, 8, Kind::Load);
                let value = self.read(a, 8);
                self.compare(value, g(self, r));
            }
            Op::Add(r, value) => {
                let sum = to(self, r, value);
                self.registers.general[usize::from(r)] = sum;
                self.registers.flags ^= 0x41;
            }
            Op::LoadStack(r, d) => {
                let a = to(self, 4, d);
                touch(a, 8, Kind::Load);
                self.registers.general[usize::from(r)] = self.pointer(a);
            }
            Op::StoreStack(d, r) => {
                let a = to(self, 4, d);
                touch(a, 8, Kind::Store);
                self.write(a, 8, g(self, r));
            }
            Op::Lea(r, b, d) => self.registers.general[usize::from(r)] = to(self, b, d),
            Op::Prefetch(..) | Op::Nop => {}
            Op::MoveString => {
                let (from, into) = (g(self, 6), g(self, 7));
                touch(from, 8, Kind::Load);
                touch(into, 8, Kind::Store);
                let value = self.read(from, 8);
                self.write(into, 8, value);
                self.registers.general[6] = from.wrapping_add(8);
                self.registers.general[7] = into.wrapping_add(8);
            }
            Op::Fill(turns) if pc == program.starts[n] => {
                self.registers.general[1] = u64::from(turns);
                self.registers.rip = pc + 5;
            }
            Op::Fill(_) if self.registers.general[1] == 0 => {}
            Op::Fill(_) => {
                let a = g(self, 7);
                touch(a, 8, Kind::Store);
                self.write(a, 8, g(self, 0));
                self.registers.general[7] = a.wrapping_add(8);
                self.registers.general[1] -= 1;
                if self.registers.general[1] != 0 {
                    self.registers.rip = pc;
                }
            }
            Op::Jump(n) => self.registers.rip = target(n),
            Op::JumpIf(condition, n) if self.holds(condition) => self.registers.rip = target(n),
            Op::JumpIf(..) => {}
            Op::JumpTo(n) => {
                self.registers.general[11] = target(n);
                self.registers.rip = pc + 10;
                self.jump = Some(target(n));
            }
            Op::Call(n) => {
                self.registers.general[4] -= 8;
                let slot = self.registers.general[4];
                self.write(slot, 8, next);
                self.registers.rip = target(n);
            }
        }
        let element = match op {
            Op::StoreDouble(..) => Element::F64,
            Op::LoadFloat(..) => Element::F32,
            _ => Element::Bits,
        };
        let stack = matches!(op, Op::LoadStack(..) | Op::StoreStack(..));
        for access in &mut did {
            access.element = element;
            access.stack = stack;
        }
        Some(did)
    }

    /// What a load puts into a register: near the heap's start, whatever was in memory, so that it can be a base again.
    fn pointer(&self, address: u64) -> u64 {
        HEAP + self.read(address, 8) % 4096
    }
}

fn register() -> impl Strategy<Value = u8> {
    // Not rsp, nor r15, which holds the thread in compiled code; r12 and r13 have encodings of their own.
    prop_oneof![0u8..4, 5u8..11, 12u8..15]
}

fn op(length: usize) -> impl Strategy<Value = Op> {
    let (r, b) = (register, register);
    let d = || -64i32..64;
    prop_oneof![
        3 => (r(), b(), d()).prop_map(|(r, b, d)| Op::Load(r, b, d)),
        1 => b().prop_map(|b| Op::Load(b, b, 8)),
        1 => (r(), b(), 0u8..4, d()).prop_map(|(r, b, i, d)| Op::LoadIndexed(r, b, i, d)),
        1 => (r(), b(), d()).prop_map(|(r, b, d)| Op::Load32(r, b, d)),
        3 => (b(), d(), r()).prop_map(|(b, d, r)| Op::Store(b, d, r)),
        1 => (b(), d(), r()).prop_map(|(b, d, r)| Op::Store8(b, d, r)),
        1 => (b(), d(), any::<i32>()).prop_map(|(b, d, v)| Op::StoreImmediate(b, d, v)),
        1 => (b(), d()).prop_map(|(b, d)| Op::StoreDouble(b, d)),
        1 => (b(), d()).prop_map(|(b, d)| Op::LoadFloat(b, d)),
        1 => (b(), d(), r()).prop_map(|(b, d, r)| Op::AddTo(b, d, r)),
        1 => (b(), d(), r()).prop_map(|(b, d, r)| Op::Exchange(b, d, r)),
        1 => (b(), d(), r()).prop_map(|(b, d, r)| Op::CompareExchange(b, d, r)),
        2 => (r(), 0i32..0x10_1000).prop_map(|(r, v)| Op::Compare(r, v)),
        1 => (b(), d(), r()).prop_map(|(b, d, r)| Op::CompareMemory(b, d, r)),
        2 => (r(), -16i32..16).prop_map(|(r, v)| Op::Add(r, v)),
        1 => (r(), 0i32..64).prop_map(|(r, d)| Op::LoadStack(r, d)),
        1 => (0i32..64, r()).prop_map(|(d, r)| Op::StoreStack(d, r)),
        1 => (r(), b(), d()).prop_map(|(r, b, d)| Op::Lea(r, b, d)),
        1 => (b(), d()).prop_map(|(b, d)| Op::Prefetch(b, d)),
        1 => Just(Op::Nop),
        1 => Just(Op::MoveString),
        1 => (0u8..5).prop_map(Op::Fill),
        1 => (0..length).prop_map(Op::Jump),
        3 => (0u8..16, 0..length).prop_map(|(c, n)| Op::JumpIf(c, n)),
        1 => (0..length).prop_map(Op::JumpTo),
        1 => (0..length).prop_map(Op::Call),
    ]
}

/// Random programs and register values.
pub fn programs(longest: usize) -> impl Strategy<Value = (Vec<Op>, [u64; 16])> {
    (2..longest).prop_flat_map(|length| {
        let ops = prop::collection::vec(op(length), length);
        (ops, prop::array::uniform16(any::<u64>()))
    })
}
