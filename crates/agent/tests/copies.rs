//! Burst mode's second copy of a method: who gets one, and that a method whose code cannot stand twice counts all its activations.

#[path = "../../classfile/tests/support/generate.rs"]
mod generate;

use borescope::instrument::{HELPER, Instrumented, Instrumenter, Settings, numbered};
use borescope_classfile::ClassFile;
use borescope_classfile::insn::{self, Flow, IFEQ, IFLT, LCMP, LCONST_0};
use borescope_spool::layout::Engine;
use borescope_spool::meta::Counting;
use cafebabe::attributes::AttributeData;
use cafebabe::bytecode::Opcode;
use generate::{Assembled, Block, End, Program};

/// One loop with two ways round, and so much padding in front of it.
fn looping(padding: usize) -> Assembled {
    let block = |padding, end| Block {
        body: vec![(6, 1)],
        padding,
        end,
    };
    let program = Program {
        name: "Looping".into(),
        major: 61,
        blocks: vec![
            block(padding, End::Fall),
            block(0, End::If(IFLT, 3)),
            block(0, End::If(IFEQ, 1)),
            block(0, End::If(IFLT, 1)),
            block(0, End::Return),
        ],
        handlers: vec![],
        ranges: vec![],
        full_frames: false,
    };
    program.assemble()
}

fn instrumented(bytes: &[u8], k: u32, burst: bool) -> Instrumented {
    let class = ClassFile::parse(bytes).unwrap();
    let settings = Settings {
        burst,
        ..Settings::new(Engine::Automaton, k)
    };
    let done = Instrumenter::default().instrument(&class, settings, numbered);
    done.unwrap()
}

/// Names of the helper's methods that the code calls, in the order of the code, and the new code itself.
fn calls(done: &Instrumented) -> (Vec<String>, Vec<u8>) {
    let class = cafebabe::parse_class(done.bytes.as_ref().unwrap()).unwrap();
    let AttributeData::Code(code) = &class.methods[0].attributes[0].data else {
        panic!("no code")
    };
    let mut names = Vec::new();
    for (_, op) in &code.bytecode.as_ref().unwrap().opcodes {
        if let Opcode::Invokestatic(method) = op {
            assert_eq!(method.class_name, HELPER);
            names.push(method.name_and_type.name.to_string());
        }
    }
    (names, code.code.to_vec())
}

#[test]
fn the_entry_chooses_between_probes_and_the_code_as_it_was() {
    for k in [1, 4] {
        let old = looping(100);
        let done = instrumented(&old.class, k, true);
        assert_eq!(done.methods[0].counting, Counting::Groups);
        let (names, code) = calls(&done);
        assert_eq!(names[0], "enterBurst");
        assert!(
            names[1..]
                .iter()
                .all(|n| n == "hitChosen" || n == "exitChosen"),
            "{names:?}"
        );
        assert!(
            names.contains(&"hitChosen".to_owned()) && names.contains(&"exitChosen".to_owned())
        );
        // What is not chosen meets no probe.
        assert!(code.ends_with(&old.code));
        let jump = code
            .windows(3)
            .position(|w| w[1..] == [LCMP, IFEQ])
            .unwrap()
            + 2;
        assert_eq!(code[jump - 2], LCONST_0);
        let Flow::Branch(copy) = insn::flow(&code, jump).unwrap() else {
            panic!("no jump")
        };
        assert_eq!(usize::from(copy), code.len() - old.code.len());
    }
}

/// Too long to stand twice within the 8,000 bytes that HotSpot compiles: as without burst mode in rows, at any k.
#[test]
fn a_long_method_counts_all_activations() {
    for k in [1, 4] {
        let old = looping(3990);
        let done = instrumented(&old.class, k, true);
        assert_eq!(done.methods[0].counting, Counting::Rows);
        assert!(done.skipped.is_empty());
        let (names, code) = calls(&done);
        assert_eq!(names[0], "enter");
        assert!(!names.contains(&"enterBurst".to_owned()));
        assert!(code.len() < 4200);
        if k == 4 {
            // At k = 1 it counts in slots without burst mode. The constants called may lie elsewhere in the pool.
            let (exact_names, exact_code) = calls(&instrumented(&old.class, k, false));
            assert_eq!((exact_names, exact_code.len()), (names, code.len()));
        }
    }
    // So long that it has no room for probes at all.
    let done = instrumented(&looping(7940).class, 4, true);
    assert!(done.methods.is_empty() && done.bytes.is_none());
    let reason = &done.skipped[0].reason;
    assert!(reason.contains("8,000"), "{reason}");
}
