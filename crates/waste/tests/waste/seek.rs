//! From a tick to the next access, and from a trap back to its instruction: held against programs that are really executed.

use crate::common::Fixed;
use crate::common::machine::{Did, Machine, Program, START, programs};
use borescope_waste::handler::code::Operand;
use borescope_waste::handler::trap::{Unknown, trapped};
use borescope_waste::{Access, Code, Kind, Miss, Place, Reader, Registers, Seek, Step};
use proptest::prelude::*;

const STEPS: usize = 200;

fn accept(operand: &Operand) -> Option<Access> {
    operand.access.ok().filter(|_| !operand.form.stack)
}

/// Runs a seek on a machine, executing up to each breakpoint, which must be on the way. What it came to, and the accesses that happened on the way.
fn seek(machine: &mut Machine, program: &Program, skip: u32, stops: u32) -> (Step, Vec<Did>) {
    let (step, passed) = seek_bounded(machine, program, skip, stops, 10_000);
    (step.expect("the breakpoint is on the way"), passed)
}

/// As [`seek`], but a breakpoint that is not reached within so many instructions, or before the program ends, gives no step.
fn seek_bounded(
    machine: &mut Machine,
    program: &Program,
    skip: u32,
    stops: u32,
    most: u32,
) -> (Option<Step>, Vec<Did>) {
    let mut reader = Reader::new();
    let mut seek = Seek::new(machine.registers.rip, skip, stops);
    let mut passed = Vec::new();
    loop {
        let step = seek.run(&mut reader, &program.code(), &machine.registers, accept);
        let Step::BreakAt(pc) = step else {
            return (Some(step), passed);
        };
        // The breakpoint may be where the thread stands: it has been there already, so it must move first.
        for n in 0.. {
            let did = (n < most).then(|| machine.step(program)).flatten();
            let Some(did) = did else {
                return (None, passed);
            };
            passed.extend(did);
            if machine.registers.rip == pc {
                break;
            }
        }
        seek.stopped(pc);
    }
}

/// Whether a machine gets to an instruction by jumps alone.
fn only_jumps(machine: &Machine, program: &Program, pc: u64) -> bool {
    let mut machine = machine.clone();
    let registers = machine.registers.general;
    for _ in 0..50 {
        if machine.registers.rip == pc {
            return machine.registers.general == registers;
        }
        machine.step(program);
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_seek_reaches_the_next_access((ops, values) in programs(24), tick in 0usize..40) {
        let program = Program::new(ops);
        let mut machine = Machine::new(&values);
        for _ in 0..tick {
            if machine.step(&program).is_none() {
                return Ok(());
            }
        }
        // What really comes next.
        let mut ahead = machine.clone();
        let mut next = None;
        let mut ends = false;
        for _ in 0..STEPS {
            match ahead.step(&program) {
                Some(did) if did.iter().any(Did::wraps) => return Ok(()),
                Some(did) => next = did.into_iter().find(|d| !d.stack),
                None => ends = true,
            }
            if next.is_some() || ends {
                break;
            }
        }
        let (step, passed) = seek(&mut machine, &program, 0, 1000);
        match (step, next) {
            (Step::Reached(reached), Some(next)) => {
                prop_assert!(passed.iter().all(|d| d.stack), "it passed {:?}", passed);
                prop_assert!(only_jumps(&machine, &program, reached.instruction.pc()));
                let access = reached.access;
                prop_assert_eq!(
                    (reached.instruction.pc(), access.address(), access.width(), access.element()),
                    (next.pc, next.address, next.width, next.element)
                );
                let settled = access.kind() == next.kind || access.kind() == Kind::CompareExchange;
                prop_assert!(settled, "{:?} is {:?}", access, next);
            }
            // A loop without an access, or the program's end.
            (Step::Miss(Miss::StepLimit), None) => {}
            (Step::Elsewhere(pc), None) => prop_assert_eq!(pc, *program.starts.last().unwrap()),
            (step, next) => prop_assert!(false, "{:?} but {:?}", step, next),
        }
    }

    #[test]
    fn a_seek_lets_accesses_pass_and_ends((ops, values) in programs(24), skip in 0u32..5, stops in 0u32..8) {
        let program = Program::new(ops);
        let mut machine = Machine::new(&values);
        let (step, passed) = seek_bounded(&mut machine, &program, skip, stops, 1000);
        match step {
            None => {}
            Some(Step::Reached(reached)) => {
                // Candidates that do not access after all (a fill of no turns) count as passed.
                let passed = passed.iter().filter(|d| !d.stack).count();
                prop_assert!(passed <= 3 * skip as usize + 10);
                prop_assert!(only_jumps(&machine, &program, reached.instruction.pc()));
            }
            Some(Step::Miss(miss)) => prop_assert_eq!(miss, Miss::StepLimit),
            Some(Step::Elsewhere(_)) => {}
            Some(step) => prop_assert!(false, "{:?}", step),
        }
    }

    #[test]
    fn a_trap_is_traced_to_its_instruction((ops, values) in programs(24), pick in any::<u64>()) {
        let program = Program::new(ops);
        let mut machine = Machine::new(&values);
        let mut reader = Reader::new();
        for _ in 0..STEPS {
            let before = machine.registers;
            let Some(did) = machine.step(&program) else { break };
            for access in did.iter().filter(|d| !d.stack && !d.wraps()) {
                let watched = Access::new(access.address, access.width, access.kind, access.element).unwrap();
                let place = Place::within(&watched, &mut Fixed(pick));
                let overlapping = did.iter().filter(|d| d.address.abs_diff(access.address) < 8).count();
                let found = trapped(&mut reader, &program.code(), START, &machine.registers, &place);
                // The next instruction may be a fill that would have touched the place just before: then that is taken.
                let code = program.code();
                let next = reader.at(&code, machine.registers.rip);
                let fill = next.is_some_and(|n| n.bytes.get() == [0xF3, 0x48, 0xAB]);
                if fill && found.is_ok_and(|f| f.instruction.pc() == machine.registers.rip) {
                    continue;
                }
                let found = match found {
                    Ok(found) => found,
                    Err(why) => return Err(TestCaseError::fail(format!("{why:?} at {before:x?}"))),
                };
                prop_assert_eq!(found.instruction.pc(), access.pc);
                prop_assert!(place.overlap(&found.access) != 0);
                if overlapping == 1 {
                    prop_assert_eq!(found.access.kind(), access.kind);
                }
                prop_assert_eq!(found.access.element(), access.element);
                if !found.assumed && overlapping == 1 {
                    prop_assert_eq!((found.access.address(), found.access.width()), (access.address, access.width));
                }
            }
        }
    }

    /// Whatever the bytes and registers: no panic, and what is said holds together.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80), values in prop::array::uniform16(any::<u64>()), rip in 0u64..90, place in any::<u64>(), skip in 0u32..3) {
        let code = Code::new(START, &bytes);
        let registers = Registers { general: values, rip: START + rip, flags: values[3], ..Registers::default() };
        let mut reader = Reader::new();
        for n in 0..bytes.len() as u64 {
            if let Some(instruction) = reader.at(&code, START + n) {
                prop_assert_eq!(instruction.next() - instruction.pc(), instruction.bytes.get().len() as u64);
                for operand in reader.operands(&instruction, Some(&registers)).iter() {
                    if let Ok(access) = operand.access {
                        prop_assert_eq!(u16::from(access.width()), operand.width);
                    }
                }
                reader.overwrites_address(&instruction);
                borescope_waste::handler::barrier::is_store_check(&mut reader, &code, &instruction);
            }
        }
        let mut seek = Seek::new(registers.rip, skip, 3);
        let step = seek.run(&mut reader, &code, &registers, accept);
        if let Step::BreakAt(pc) = step {
            prop_assert!(code.contains(pc));
        }
        let place = Place::new(place & !7, 8).unwrap();
        if let Ok(found) = trapped(&mut reader, &code, START, &registers, &place) {
            prop_assert!(place.overlap(&found.access) != 0);
        }
    }
}

#[test]
fn why_a_trap_is_not_traced() {
    // mov [rax], rcx; add rax, 8; nop
    let bytes = [0x48, 0x89, 0x08, 0x48, 0x83, 0xC0, 0x08, 0x90];
    let code = Code::new(START, &bytes);
    let mut reader = Reader::new();
    let place = Place::new(0x1000, 8).unwrap();
    let mut at = |rip: u64, anchor: u64, rax: u64| {
        let mut registers = Registers {
            rip: START + rip,
            ..Registers::default()
        };
        registers.general[0] = rax;
        trapped(&mut reader, &code, START + anchor, &registers, &place)
            .map(|t| (t.access.address(), t.assumed))
    };
    assert_eq!(at(3, 0, 0x1000), Ok((0x1000, false)));
    assert_eq!(at(3, 0, 0x1008), Err(Unknown::Elsewhere));
    assert_eq!(at(7, 0, 0x1000), Err(Unknown::NoAccess));
    assert_eq!(at(5, 0, 0x1000), Err(Unknown::Skew));
    assert_eq!(at(0, 0, 0x1000), Err(Unknown::NoAnchor));
    assert_eq!(at(3, 4, 0x1000), Err(Unknown::NoAnchor));
    assert_eq!(at(9, 0, 0x1000), Err(Unknown::Skew));
    // A nearer anchor does as well.
    assert_eq!(at(7, 3, 0x1000), Err(Unknown::NoAccess));
}

#[test]
fn a_load_over_its_own_base() {
    // mov eax, [rax+4]: the address is gone, the access is as wide and aligned as it must be.
    let bytes = [0x8B, 0x40, 0x04];
    let mut reader = Reader::new();
    let registers = Registers {
        rip: START + 3,
        ..Registers::default()
    };
    let place = Place::new(0x1004, 4).unwrap();
    let found = trapped(
        &mut reader,
        &Code::new(START, &bytes),
        START,
        &registers,
        &place,
    )
    .unwrap();
    assert!(found.assumed);
    assert_eq!(
        (
            found.access.address(),
            found.access.width(),
            found.access.kind()
        ),
        (0x1004, 4, Kind::Load)
    );
}

#[test]
fn returns_calls_and_ends() {
    let mut reader = Reader::new();
    let mut registers = Registers {
        rip: START,
        ..Registers::default()
    };
    registers.general[0] = 0x5000;
    let mut go = |bytes: &[u8], seek: &mut Seek| {
        seek.run(&mut reader, &Code::new(START, bytes), &registers, accept)
    };
    // ret: the caller reads the address.
    let mut seek = Seek::new(START, 0, 4);
    assert!(matches!(go(&[0xC3], &mut seek), Step::Return));
    seek.returns_to(0x9000);
    assert!(matches!(go(&[0xC3], &mut seek), Step::Elsewhere(0x9000)));
    // nop; ret: not before the return is the next instruction.
    let mut seek = Seek::new(START, 0, 4);
    assert!(matches!(go(&[0x90, 0xC3], &mut seek), Step::BreakAt(pc) if pc == START + 1));
    // call rax, jmp rax: known at once; call [rax]: not ours to read.
    assert!(matches!(
        go(&[0xFF, 0xD0], &mut Seek::new(START, 0, 4)),
        Step::Elsewhere(0x5000)
    ));
    assert!(matches!(
        go(&[0xFF, 0xE0], &mut Seek::new(START, 0, 4)),
        Step::Elsewhere(0x5000)
    ));
    assert!(matches!(
        go(&[0xFF, 0x10], &mut Seek::new(START, 0, 4)),
        Step::Miss(Miss::LeftCode)
    ));
    // int3, ud2; half an instruction; a jump to itself.
    assert!(matches!(
        go(&[0xCC], &mut Seek::new(START, 0, 4)),
        Step::Miss(Miss::LeftCode)
    ));
    assert!(matches!(
        go(&[0x48, 0x8B], &mut Seek::new(START, 0, 4)),
        Step::Miss(Miss::Undecodable)
    ));
    assert!(matches!(
        go(&[0xEB, 0xFE], &mut Seek::new(START, 0, 4)),
        Step::Miss(Miss::StepLimit)
    ));
    // jrcxz with rcx = 0 is taken.
    assert!(
        matches!(go(&[0xE3, 0x10], &mut Seek::new(START, 0, 4)), Step::Elsewhere(pc) if pc == START + 0x12)
    );
    // No breakpoints left.
    let mut seek = Seek::new(START, 0, 0);
    assert!(matches!(
        go(&[0x90, 0x48, 0x8B, 0x08], &mut seek),
        Step::Miss(Miss::StepLimit)
    ));
}
