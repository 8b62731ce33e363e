//! Loads that a collector's barrier makes, not the program.
//!
//! Generational ZGC looks at a reference field before it stores to it: `test dword [field], bits` (or, before an atomic access, `cmp word
//! [field], bits`) and a jump to the slow path, then `mov qword [field], value` (ZBarrierSetAssembler::store_barrier_fast, JDK 21 to 25). Taken for a load of the
//! program it would make each dead store of a reference look alive. What tells it from the program's own test of a field is that the widths differ: no
//! field is read as 2 or 4 bytes and written as 8.
//!
//! Not recognised: the load before a reference store while G1 or Shenandoah mark concurrently (their snapshot barrier), which looks like a
//! load of the program. It runs only while they mark; dead stores of references are underestimated then.

use super::access::Kind;
use super::code::{Code, Instruction, Reader};
use iced_x86::{FlowControl, Mnemonic, OpKind};

/// Instructions between the test and the store: the jump, and colouring the pointer.
const REACH: usize = 16;

/// Whether an instruction is generational ZGC's look at a field that is stored to right after.
pub fn is_store_check(reader: &mut Reader, code: &Code<'_>, check: &Instruction) -> bool {
    let raw = &check.raw;
    let bytes = match raw.mnemonic() {
        Mnemonic::Test => 4,
        Mnemonic::Cmp => 2,
        _ => return false,
    };
    let immediate = !matches!(raw.op1_kind(), OpKind::Register | OpKind::Memory);
    if raw.op0_kind() != OpKind::Memory || !immediate || raw.memory_size().size() != bytes {
        return false;
    }
    let mut pc = check.next();
    for n in 0..REACH {
        let Some(next) = reader.at(code, pc) else {
            return false;
        };
        let jump = next.raw.flow_control() == FlowControl::ConditionalBranch;
        if (n == 0) != jump {
            return false;
        }
        if next.raw.flow_control() != FlowControl::Next && !jump {
            return false;
        }
        if same_operand(raw, &next.raw) && next.raw.memory_size().size() == 8 {
            let operands = reader.operands(&next, None);
            return operands.iter().any(|o| o.kind != Kind::Load);
        }
        if reader.writes(&next, [raw.memory_base(), raw.memory_index()]) {
            return false;
        }
        pc = next.next();
    }
    false
}

fn same_operand(a: &iced_x86::Instruction, b: &iced_x86::Instruction) -> bool {
    let memory = |i: &iced_x86::Instruction| {
        (
            i.memory_base(),
            i.memory_index(),
            i.memory_index_scale(),
            i.memory_displacement64(),
        )
    };
    let has = (0..b.op_count()).any(|n| b.op_kind(n) == OpKind::Memory);
    has && memory(a) == memory(b)
}
