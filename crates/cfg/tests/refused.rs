//! Code that gets no probes, with the exact words that reports show.

mod common;

use borescope_cfg::Skip;
use borescope_cfg::flow::Flow;
use borescope_classfile::insn::*;

fn build(code: &[u8], guards: &[(u16, u16, u16)]) -> Result<Flow, Skip> {
    let program = common::Program {
        code: code.to_vec(),
        guards: guards.to_vec(),
    };
    program.build_with(common::FAST).map(|built| built.0)
}

/// The reason why a method is skipped.
fn reason(code: &[u8], guards: &[(u16, u16, u16)]) -> String {
    match build(code, guards) {
        Ok(flow) => panic!("{code:?} is taken: {flow:?}"),
        Err(skip) => skip.to_string(),
    }
}

#[test]
fn subroutines() {
    let words = "uses jsr/ret subroutines";
    assert_eq!(reason(&[JSR, 0, 4, RETURN, ASTORE_1, RET, 1], &[]), words);
    assert_eq!(
        reason(&[JSR_W, 0, 0, 0, 6, RETURN, ASTORE_1, RET, 1], &[]),
        words
    );
    assert_eq!(reason(&[RET, 1], &[]), words);
    assert_eq!(reason(&[WIDE, RET, 0, 1], &[]), words);
    // Where nothing leads to it, it does no harm.
    let flow = build(&[RETURN, RET, 1], &[]).unwrap();
    assert_eq!((flow.blocks.len(), flow.num_paths), (1, 1));
}

#[test]
fn handlers_that_control_flows_into() {
    let words = "an exception handler is also reached without an exception";
    // By the instruction before, by a jump, as the target of a switch, as a loop's head.
    assert_eq!(reason(&[NOP, POP, RETURN], &[(0, 1, 1)]), words);
    assert_eq!(reason(&[GOTO, 0, 3, POP, RETURN], &[(0, 3, 3)]), words);
    let mut switch = vec![LOOKUPSWITCH, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0];
    switch.extend([RETURN]);
    assert_eq!(reason(&switch, &[(0, 12, 12)]), words);
    assert_eq!(reason(&[NOP, GOTO, 0xff, 0xff], &[(0, 1, 0)]), words);
    assert_eq!(reason(&[POP, RETURN], &[(0, 1, 0)]), words, "by the entry");
    // A jump from unreachable code does not count.
    let code = [RETURN, POP, RETURN, GOTO, 0xff, 0xfe];
    let flow = build(&code, &[(0, 1, 1)]).unwrap();
    assert_eq!(flow.num_paths, 2);
}

#[test]
fn malformed_code() {
    let unreadable = "malformed code: an instruction cannot be read";
    assert_eq!(reason(&[NOP], &[]), unreadable, "falls off the end");
    assert_eq!(reason(&[ILOAD_0, IFEQ, 0], &[]), unreadable, "cut off");
    assert_eq!(reason(&[GOTO, 0x7f, 0xff], &[]), unreadable, "jumps out");
    assert_eq!(reason(&[GOTO, 0x80, 0], &[]), unreadable, "jumps out");
    assert_eq!(reason(&[0xca, RETURN], &[]), unreadable, "no such opcode");
    let size = "malformed code: the code has no or too many bytes";
    assert_eq!(reason(&[], &[]), size);
    assert_eq!(reason(&vec![RETURN; 65_536], &[]), size);
    let range = "malformed code: an exception range leaves the code";
    let code = [NOP, RETURN, POP, RETURN];
    for guard in [(0, 0, 2), (1, 0, 2), (0, 5, 2), (0, 1, 4)] {
        assert_eq!(reason(&code, &[guard]), range, "{guard:?}");
    }
    let overlap = "malformed code: instructions overlap";
    // sipush whose operand is also a way: ifeq jumps to its second byte (nop), and on to its third (return).
    let code = [ILOAD_0, IFEQ, 0, 4, SIPUSH, NOP, RETURN, POP, RETURN];
    assert_eq!(reason(&code, &[]), overlap);
    let code = [SIPUSH, NOP, RETURN, POP, RETURN];
    assert_eq!(reason(&code, &[(0, 3, 1)]), overlap, "handler inside");
    assert_eq!(reason(&code, &[(0, 3, 2)]), overlap, "handler inside");
}
