//! Methods and classes that cannot be edited stay byte-identical, with the reason in plain words.

#[path = "support/generate.rs"]
mod generate;

use borescope_classfile::insn::{ATHROW, ICONST_0, INVOKESTATIC, JSR, NOP};
use borescope_classfile::{At, ClassFile, Error, ExtraLocal, MethodEdit, Plain, Splicer};
use generate::{Block, End, Program};

fn program(padding: usize) -> Program {
    let block = |padding, end| Block {
        body: vec![(6, 1)],
        padding,
        end,
    };
    Program {
        name: "Limits".into(),
        major: 61,
        blocks: vec![block(padding, End::If(153, 1)), block(0, End::Return)],
        handlers: vec![],
        ranges: vec![],
        full_frames: false,
    }
}

/// The outcome of an edit, after a check that a failed one leaves the class as it was.
fn outcome(bytes: &[u8], edit: &MethodEdit) -> Result<(), Plain> {
    let class = ClassFile::parse(bytes).unwrap();
    let mut splicer = Splicer::new(&class);
    let result = splicer.edit(0, edit);
    assert_eq!(splicer.finish() == bytes, result.is_err());
    result
}

fn inserted(at: At, bytes: &[u8]) -> MethodEdit {
    let mut edit = MethodEdit::default();
    edit.insert(at, bytes);
    edit
}

#[test]
fn code_size() {
    let entry = |len| inserted(At::Entry, &vec![NOP; len]);
    let small = program(100).assemble();
    let room = 8000 - small.code.len();
    assert_eq!(outcome(&small.class, &entry(room)), Ok(()));
    assert_eq!(
        outcome(&small.class, &entry(room + 1)),
        Err(Plain::HugeMethodLimit)
    );
    assert_eq!(
        outcome(&small.class, &entry(70_000)),
        Err(Plain::CodeTooLarge)
    );
    let large = program(8000).assemble();
    let room = 65535 - large.code.len();
    assert_eq!(outcome(&large.class, &entry(room)), Ok(()));
    assert_eq!(
        outcome(&large.class, &entry(room + 1)),
        Err(Plain::CodeTooLarge)
    );
}

/// A copy of the old code counts, and the jump to it has 16 bits.
#[test]
fn a_copy() {
    let kept = |len: usize| {
        let mut edit = inserted(At::Entry, &vec![NOP; len]);
        edit.keep_copy(&[ICONST_0]);
        edit
    };
    let small = program(100).assemble();
    let room = 8000 - 4 - 2 * small.code.len();
    assert_eq!(outcome(&small.class, &kept(room)), Ok(()));
    assert_eq!(
        outcome(&small.class, &kept(room + 1)),
        Err(Plain::HugeMethodLimit)
    );
    let large = program(8000).assemble();
    // From the jump at 1 to the end of the edited code.
    let room = 32767 - 3 - large.code.len();
    assert_eq!(outcome(&large.class, &kept(room)), Ok(()));
    assert_eq!(
        outcome(&large.class, &kept(room + 1)),
        Err(Plain::FarBranch)
    );
    let larger = program(31_000).assemble();
    assert_eq!(
        outcome(&larger.class, &kept(65_535 - 2 * larger.code.len())),
        Err(Plain::CodeTooLarge)
    );

    let mut alone = MethodEdit::default();
    assert!(alone.is_empty());
    alone.keep_copy(&[ICONST_0]);
    assert!(!alone.is_empty());
    alone.clear();
    assert!(alone.is_empty());

    // The line of bci 0 is moved to bci 3: what comes before has none, and in a copy would get that of what stands before it.
    let mut bytes = small.class.clone();
    let second = 7 + 100u16;
    let line = [&[0, 0, 0, 1][..], &second.to_be_bytes(), &[0, 2]].concat();
    let at = bytes.windows(8).position(|part| part == line).unwrap();
    bytes[at + 1] = 3;
    assert_eq!(outcome(&bytes, &kept(0)), Err(Plain::NoLine));
    assert_eq!(outcome(&bytes, &inserted(At::Entry, &[NOP])), Ok(()));
}

#[test]
fn stack_and_locals() {
    let bytes = program(0).assemble().class;
    let mut edit = inserted(At::Entry, &[NOP]);
    edit.extra_stack = u16::MAX;
    assert_eq!(outcome(&bytes, &edit), Err(Plain::StackFull));
    edit.extra_stack = 0;
    edit.extra_locals = &[ExtraLocal::Long; 33_000];
    assert_eq!(outcome(&bytes, &edit), Err(Plain::LocalsFull));
}

#[test]
fn handlers() {
    let unwinding = |ranges: &[(u16, u16)], len: usize| {
        let mut edit = MethodEdit::default();
        let code = [&vec![NOP; len - 1][..], &[ATHROW]].concat();
        edit.unwind(ranges, &code);
        assert!(!edit.is_empty());
        edit
    };
    let small = program(100).assemble();
    let end = small.code.len() as u16;
    let room = 8000 - small.code.len();
    assert_eq!(outcome(&small.class, &unwinding(&[(0, end)], room)), Ok(()));
    assert_eq!(
        outcome(&small.class, &unwinding(&[(0, end)], room + 1)),
        Err(Plain::HugeMethodLimit)
    );
    let large = program(8000).assemble();
    let room = 65535 - large.code.len();
    assert_eq!(outcome(&large.class, &unwinding(&[(0, 3)], room)), Ok(()));
    assert_eq!(
        outcome(&large.class, &unwinding(&[(0, 3)], room + 1)),
        Err(Plain::CodeTooLarge)
    );
    assert_eq!(
        outcome(&small.class, &unwinding(&[(0, 3); 65_535], 1)),
        Ok(())
    );
    assert_eq!(
        outcome(&small.class, &unwinding(&[(0, 3); 65_536], 1)),
        Err(Plain::HandlersFull)
    );
    // Inside iinc, at both ends; empty; the wrong way round; beyond the code.
    for (start, end) in [(1, end), (0, 1 + end), (3, 3), (4, 3), (0, 2)] {
        assert_eq!(
            outcome(&small.class, &unwinding(&[(0, 3), (start, end)], 1)),
            Err(Plain::BadInsertion(start)),
            "{start}..{end}"
        );
    }
    // The exception needs a stack slot, besides what the handler asks for.
    let mut edit = unwinding(&[(0, end)], 1);
    edit.extra_stack = 65_535;
    assert_eq!(outcome(&small.class, &edit), Err(Plain::StackFull));
    edit.clear();
    assert!(edit.is_empty());
    assert_eq!(small.class, {
        let class = ClassFile::parse(&small.class).unwrap();
        Splicer::new(&class).finish()
    });
}

#[test]
fn places_that_do_not_exist() {
    let bytes = program(0).assemble().class;
    for at in [
        At::Before(1), // inside iinc
        At::Before(9999),
        At::FallThrough(0),
        At::Taken { from: 0, target: 0 },
        At::Taken { from: 4, target: 0 }, // the conditional jump goes to 7
    ] {
        assert!(
            matches!(
                outcome(&bytes, &inserted(at, &[NOP])),
                Err(Plain::BadInsertion(_))
            ),
            "{at:?}"
        );
    }
    assert_eq!(
        outcome(&bytes, &inserted(At::Taken { from: 4, target: 7 }, &[NOP])),
        Ok(())
    );
    let class = ClassFile::parse(&bytes).unwrap();
    assert_eq!(
        Splicer::new(&class).edit(1, &MethodEdit::default()),
        Err(Plain::NoCode)
    );
}

#[test]
fn subroutines_and_damaged_code() {
    let assembled = program(10).assemble();
    let at = assembled
        .class
        .windows(assembled.code.len())
        .position(|part| part == assembled.code)
        .unwrap();
    let with = |opcode| {
        let mut bytes = assembled.class.clone();
        bytes[at + 3] = opcode; // one of the nops
        outcome(&bytes, &inserted(At::Entry, &[NOP]))
    };
    assert_eq!(with(JSR), Err(Plain::JsrRet));
    assert_eq!(
        with(0xfe),
        Err(Plain::Malformed(Error::BadOpcode {
            bci: 3,
            opcode: 0xfe
        }))
    );
}

#[test]
fn constant_pool() {
    let bytes = program(0).assemble().class;
    let class = ClassFile::parse(&bytes).unwrap();
    let mut splicer = Splicer::new(&class);
    let call = splicer
        .methodref("java/lang/Thread", "yield", "()V")
        .unwrap();
    assert_eq!(
        splicer.methodref("java/lang/Thread", "yield", "()V"),
        Ok(call),
        "added once"
    );
    let mut value = 0;
    while splicer.long(value).is_ok() {
        value += 1;
    }
    assert_eq!(splicer.long(value), Err(Plain::ConstantPoolFull));
    assert_eq!(
        splicer.long(0),
        splicer.long(0),
        "what is there can still be used"
    );
    while splicer.integer(value as i32).is_ok() {
        value += 1;
    }
    let [hi, lo] = call.to_be_bytes();
    splicer
        .edit(0, &inserted(At::Entry, &[INVOKESTATIC, hi, lo]))
        .unwrap();
    let spliced = splicer.finish();
    let class = ClassFile::parse(&spliced).unwrap();
    assert_eq!(class.pool_count(), 65535);
    assert_eq!(
        class.class_name(call - 4).as_deref(),
        Some("java/lang/Thread")
    );
    assert_eq!(class.constant_tag(call), Some(10));
    assert_eq!(
        class.member_class_bytes(call),
        Some(&b"java/lang/Thread"[..])
    );
    assert_eq!(class.member_descriptor_bytes(call), Some(&b"()V"[..]));
    // A class is no member; index 0 and what is beyond the pool are nothing.
    assert_eq!(class.member_class_bytes(call - 4), None);
    assert_eq!(class.member_descriptor_bytes(call - 4), None);
    assert_eq!(class.constant_tag(0), None);
    assert_eq!(class.constant_tag(65535), None);
}

#[test]
fn the_last_edit_counts_and_reasons_are_stable() {
    let bytes = program(0).assemble().class;
    let class = ClassFile::parse(&bytes).unwrap();
    let mut splicer = Splicer::new(&class);
    splicer.edit(0, &inserted(At::Entry, &[NOP; 9])).unwrap();
    splicer.edit(0, &inserted(At::Entry, &[NOP])).unwrap();
    assert_eq!(
        splicer.edit(0, &inserted(At::Entry, &[NOP; 9000])),
        Err(Plain::HugeMethodLimit)
    );
    let (spliced, buffers) = splicer.finish_keeping();
    assert_eq!(spliced.len(), bytes.len() + 1);
    let again = Splicer::with_buffers(&class, buffers);
    assert_eq!(again.finish(), bytes);
    assert_eq!(
        Plain::HugeMethodLimit.to_string(),
        "its code would pass 8,000 bytes and so never be compiled"
    );
    assert_eq!(Plain::JsrRet.to_string(), "it uses jsr or ret");
}
