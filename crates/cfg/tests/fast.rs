//! What makes probes fast and changes nothing that they tell: which loops are run loops and which branches are merged, against
//! a naive reading of the rules. (tests/exact.rs compares what is told with and without.)

mod common;

use borescope_cfg::flow::{Edge, EdgeKind, Flow, Merged, StartKind};
use borescope_cfg::{Builder, Constants, Probe, Settings, Turns};
use borescope_classfile::insn::{self, *};
use borescope_classfile::{At, ClassFile, MethodEdit, Splicer};
use common::generate::{assemble, body, compile, jumble};
use common::{Asm, FAST, Label, MATH, Program, successors};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

/// The branches to merge in code of the generator's few instructions, from a flow without merging.
fn naive_merged(program: &Program, flow: &Flow) -> Vec<Merged> {
    let next =
        |block: u32| -> BTreeSet<u32> { flow.edges_of(block).iter().map(|e| e.to).collect() };
    let all = 0..flow.blocks.len() as u32;
    let before = |block: u32| -> BTreeSet<u32> {
        all.clone().filter(|&b| next(b).contains(&block)).collect()
    };
    let last = |block: u32| *common::bcis(program, flow, &[block]).last().unwrap();
    let opcode = |bci: u16| program.code[usize::from(bci)];
    let mut merged = vec![];
    for head in all.clone() {
        if !(IFEQ..=IF_ACMPNE).contains(&opcode(last(head))) || next(head).len() != 2 {
            continue;
        }
        for join in all.clone() {
            let arms: Vec<u32> = next(head).into_iter().filter(|&b| b != join).collect();
            let ways = if next(head).contains(&join) {
                vec![arms[0], head]
            } else {
                arms.clone()
            };
            let fits = join != 0
                && before(join) == ways.iter().copied().collect()
                && arms.iter().all(|&arm| {
                    let plain = successors(&program.code, last(arm)).len() == 1;
                    let alone = before(arm) == BTreeSet::from([head]);
                    arm != 0 && plain && alone && next(arm) == BTreeSet::from([join])
                });
            if fits && is_short(program, flow, &arms) {
                merged.push(Merged { head, arms, join });
            }
        }
    }
    merged
}

fn is_short(program: &Program, flow: &Flow, arms: &[u32]) -> bool {
    let mut set = BTreeSet::new();
    let (mut operations, mut left) = (0, vec![]);
    for &arm in arms {
        let mut depth = 0;
        for bci in common::bcis(program, flow, &[arm]) {
            let at = usize::from(bci);
            match program.code[at] {
                NOP | GOTO | GOTO_W => {}
                ICONST_1 | ILOAD_1 => depth += 1,
                IINC => {
                    operations += 1;
                    set.insert(program.code[at + 1]);
                }
                ISTORE_1 | ISTORE_2 if depth > 0 => {
                    depth -= 1;
                    set.insert(program.code[at] - ISTORE_0);
                }
                INVOKESTATIC | IDIV | POP => return false,
                op => panic!("the generator makes {op:#x}"),
            }
        }
        left.push(depth);
    }
    let same = left.iter().all(|&d| d == left[0]) && (left.len() == 2 || left == [0]);
    same && operations + set.len() + left[0] < 3
}

/// The run loops as (ID of a turn, bcis), from a flow.
fn naive_runs(program: &Program, flow: &Flow) -> BTreeSet<(u32, BTreeSet<u16>)> {
    let backs: Vec<&Edge> = flow
        .edges
        .iter()
        .filter(|e| e.kind == EdgeKind::Back)
        .collect();
    let mut runs = BTreeSet::new();
    for back in &backs {
        // What reaches the back edge's source without the head.
        let mut inside = BTreeSet::from([back.to]);
        let mut work = vec![back.from];
        while let Some(block) = work.pop() {
            if inside.insert(block) {
                let before = flow.edges.iter().filter(|e| e.to == block);
                work.extend(before.map(|e| e.from));
            }
        }
        let within = |e: &Edge| inside.contains(&e.from) && inside.contains(&e.to);
        let one_way = inside.iter().all(|&block| {
            let edges: Vec<&Edge> = flow.edges_of(block).iter().filter(|e| within(e)).collect();
            matches!(edges[..], [e] if e.value == 0 && (e == *back || e.kind == EdgeKind::Forward))
        });
        let by_head = flow
            .edges
            .iter()
            .all(|e| within(e) || !inside.contains(&e.to) || e.to == back.to);
        let starts = flow.starts.iter().all(|s| {
            let head = StartKind {
                loop_head: true,
                ..StartKind::default()
            };
            !inside.contains(&s.block) || (s.block == back.to && s.kind == head)
        });
        let one_back = backs.iter().filter(|b| b.to == back.to).count() == 1;
        let left = flow
            .edges
            .iter()
            .any(|e| inside.contains(&e.from) && !within(e));
        if !(one_way && by_head && starts && one_back && left) {
            continue;
        }
        let merged = flow.merged.iter().filter(|m| inside.contains(&m.head));
        let arms = merged.flat_map(|m| &m.arms);
        let blocks: Vec<u32> = inside.iter().chain(arms).copied().collect();
        let bcis: BTreeSet<u16> = blocks
            .iter()
            .flat_map(|&b| common::bcis(program, flow, &[b]))
            .collect();
        let quiet = bcis.iter().all(|&bci| {
            let at = usize::from(bci);
            let calls = program.code[at] == INVOKESTATIC && program.code[at + 2] != MATH;
            !calls && !program.guards.iter().any(|g| (g.0..g.1).contains(&bci))
        });
        if quiet {
            runs.insert((flow.start_at(back.to).unwrap().value, bcis));
        }
    }
    runs
}

/// Compares with the naive reading; the number of merged branches and of run loops.
fn check(program: &Program) -> (usize, usize) {
    let (split, _) = program.build().unwrap();
    let mut runs = 0;
    for merge in [false, true] {
        let (flow, probes) = program.build_with(Settings { merge, runs: true }).unwrap();
        let expected = if merge {
            naive_merged(program, &split)
        } else {
            vec![]
        };
        assert_eq!(flow.merged, expected);
        let mut found = BTreeSet::new();
        for probe in &probes {
            let Probe::Unwind { ranges, id } = probe else {
                continue;
            };
            assert!(ranges.windows(2).all(|w| w[0].1 < w[1].0), "{ranges:?}");
            let starts = insn::insns(&program.code).map(|i| i.unwrap().0);
            let bcis: BTreeSet<u16> = starts
                .filter(|bci| ranges.iter().any(|r| (r.0..r.1).contains(bci)))
                .collect();
            assert!(found.insert((*id, bcis)));
            // A whole turn.
            let path = flow.decode(*id).unwrap();
            assert_eq!(path.next, Some(path.blocks[0]));
        }
        assert_eq!(found, naive_runs(program, &flow));
        let last = probes.len() - found.len();
        let is_unwind = |p: &Probe| matches!(p, Probe::Unwind { .. });
        assert!(!probes[..last].iter().any(is_unwind), "unwinds come last");
        let turns = probes.iter().filter(|p| matches!(p, Probe::Turn { .. }));
        assert_eq!(turns.count(), found.len());
        let Probe::Enter { turns, .. } = probes[0] else {
            panic!("no entry");
        };
        assert_eq!(turns.is_some(), !found.is_empty());
        runs = found.len();
    }
    (flow_merged(program), runs)
}

fn flow_merged(program: &Program) -> usize {
    program.build_with(FAST).unwrap().0.merged.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn structured_methods(body in body()) {
        check(&compile(&body));
    }

    #[test]
    fn jumbles((insns, guards) in jumble()) {
        check(&assemble(&insns, &guards, true));
    }
}

/// The generators make what this is about, and the walks go there.
#[test]
fn enough_of_everything_is_generated() {
    let mut runner = TestRunner::deterministic();
    let (structured, jumbled) = (body(), jumble());
    let mut counts = [[0; 2]; 2];
    let mut turns = [0; 2];
    for i in 0..1_000u64 {
        let kind = i as usize % 2;
        let program = if kind == 0 {
            compile(&structured.new_tree(&mut runner).unwrap().current())
        } else {
            let (insns, guards) = jumbled.new_tree(&mut runner).unwrap().current();
            assemble(&insns, &guards, true)
        };
        let (merged, runs) = check(&program);
        counts[kind][0] += merged;
        counts[kind][1] += runs;
        let (_, probes) = program.build_with(FAST).unwrap();
        for walk in 1..=10u64 {
            let seed = (10 * i + walk).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let run = common::walk(&program, &probes, seed);
            turns[0] += run.turns[0];
            turns[1] += run.turns[1];
        }
    }
    println!(
        "merged branches and run loops {counts:?}, turns told at exits and at exceptions {turns:?}"
    );
    assert!(counts[0][0] > 300 && counts[0][1] > 300, "{counts:?}");
    assert!(counts[1][0] > 5 && counts[1][1] > 30, "{counts:?}");
    assert!(turns[0] > 2_000 && turns[1] > 50, "{turns:?}");
}

/// Whether a branch of these ways is merged.
fn merges(branch: &[u8], way: &[u8], other: Option<&[u8]>) -> bool {
    let mut asm = Asm::default();
    let [or, end] = asm.labels();
    let (last, before) = branch.split_last().unwrap();
    asm.op(before).branch(*last, or).op(way);
    if let Some(other) = other {
        asm.goto(end).bind(or).op(other).bind(end);
    } else {
        asm.bind(or);
    }
    asm.op(&[RETURN]);
    let program = asm.finish();
    let (flow, _) = program.build_with(FAST).unwrap();
    flow.validate().unwrap();
    assert_eq!(flow.num_paths, if flow.merged.is_empty() { 2 } else { 1 });
    !flow.merged.is_empty()
}

#[test]
fn what_a_short_branch_is() {
    let int = [ILOAD_0, IFLT];
    let one = |way: &[u8]| merges(&int, way, None);
    let two = |way: &[u8], other: &[u8]| merges(&int, way, Some(other));
    // Which branches.
    for branch in [
        IFEQ, IFLE, IF_ICMPEQ, IF_ICMPLE, IF_ACMPEQ, IF_ACMPNE, IFNULL, IFNONNULL,
    ] {
        assert!(merges(&[branch], &[IINC, 1, 1], None));
    }
    assert!(merges(&[LCMP, IFGT], &[IINC, 1, 1], None));
    for compare in [FCMPL, FCMPG, DCMPL, DCMPG] {
        // Behind a comparison of floats one local or value.
        let floats = |way: &[u8], other| merges(&[compare, IFGT], way, other);
        let twice = [ICONST_0, ISTORE_1, ICONST_0, ISTORE_2];
        assert!(floats(&[IINC, 1, 1], None) && floats(&[ICONST_0], Some(&[ILOAD_1])));
        assert!(!floats(&twice, None));
        assert!(!floats(&[ICONST_0, ICONST_1], Some(&[ILOAD_1, ILOAD_1])));
        // The same byte as an operand.
        assert!(merges(&[BIPUSH, compare, IFGT], &twice, None));
    }
    // Locals that are set: fewer than three, not float or double.
    assert!(
        one(&[ILOAD_1, ISTORE_2]) && one(&[LLOAD_1, LSTORE_3]) && one(&[ACONST_NULL, ASTORE_2])
    );
    assert!(!one(&[FCONST_0, FSTORE_2]) && !one(&[DCONST_1, DSTORE_2]));
    assert!(two(&[ICONST_0, ISTORE_1], &[ICONST_1, ISTORE_2]));
    assert!(two(&[ICONST_0, ISTORE, 1], &[ICONST_1, ISTORE_1]));
    assert!(!one(&[
        ICONST_0, ISTORE_1, ICONST_0, ISTORE_2, ICONST_0, ISTORE_3
    ]));
    assert!(one(&[
        ICONST_0, ISTORE_1, ICONST_0, ISTORE_2, ICONST_1, ISTORE_1
    ]));
    // Operations.
    assert!(one(&[NOP]) && one(&[IINC, 1, 1]) && one(&[WIDE, IINC, 0, 1, 0, 1]));
    assert!(!one(&[IINC, 1, 1, IINC, 1, 1]) && !one(&[IINC, 1, 1, ICONST_0, ISTORE_2]));
    assert!(!two(&[IINC, 1, 1], &[IINC, 2, 1]) && two(&[IINC, 1, 1], &[ICONST_0, ISTORE_1]));
    assert!(one(&[ILOAD_1, ILOAD_2, IADD, ISTORE_1]) && one(&[ILOAD_1, INEG, ISTORE_1]));
    assert!(!one(&[ILOAD_1, ILOAD_2, ILOAD_3, IADD, IADD, ISTORE_1]));
    assert!(one(&[LLOAD_0, ILOAD_2, LSHL, LSTORE_0]) && one(&[LLOAD_0, LLOAD_2, LXOR, LSTORE_0]));
    assert!(one(&[LLOAD_0, LLOAD_2, LCMP, ISTORE_0]) && one(&[LLOAD_0, L2I, ISTORE_2]));
    assert!(one(&[DLOAD_0, D2L, LSTORE_2]) && one(&[FLOAD_0, F2I, ISTORE_2]));
    assert!(one(&[ILOAD_0, I2C, ISTORE_2]) && one(&[ILOAD_0, I2L, LSTORE_2]));
    assert!(one(&[FCONST_0, FCONST_1, FDIV, POP]) && !one(&[FCONST_0, FCONST_1, FREM, POP]));
    // What may throw, or goes to memory.
    for op in [IDIV, IREM] {
        assert!(!one(&[ILOAD_0, ILOAD_1, op, ISTORE_2]));
    }
    for op in [LDIV, LREM] {
        assert!(!one(&[LLOAD_0, LLOAD_2, op, LSTORE_0]));
    }
    assert!(!one(&[ALOAD_0, ILOAD_1, IALOAD, ISTORE_2]) && !one(&[ALOAD_0, ARRAYLENGTH, ISTORE_2]));
    assert!(!one(&[GETSTATIC, 0, 1, ISTORE_2]) && !one(&[INVOKESTATIC, 0, MATH]));
    // Constants of the pool, by their tags.
    assert!(one(&[LDC, 3, ISTORE_2]) && one(&[LDC_W, 0, 3, ISTORE_2]) && one(&[LDC, 8, ASTORE_2]));
    assert!(one(&[LDC2_W, 0, 5, LSTORE_2]) && one(&[LDC2_W, 0, 6, POP2]) && one(&[LDC, 4, POP]));
    assert!(!one(&[LDC, 7, ASTORE_2]) && !one(&[LDC, 99, ASTORE_2]));
    // Values left on the stack.
    assert!(
        two(&[ICONST_0], &[ILOAD_1])
            && two(&[LCONST_0], &[LLOAD_1])
            && two(&[ALOAD_1], &[ACONST_NULL])
    );
    assert!(two(&[ICONST_0, ICONST_1], &[ILOAD_1, ILOAD_1]));
    assert!(!two(
        &[ICONST_0, ICONST_1, ICONST_0],
        &[ILOAD_1, ILOAD_1, ILOAD_0]
    ));
    assert!(!two(&[FCONST_0], &[FLOAD_1]) && !two(&[DCONST_0], &[DLOAD_1]));
    assert!(two(&[ILOAD_1, ICONST_1, IADD], &[ILOAD_1]));
    assert!(!two(&[ILOAD_1, ICONST_1, IADD], &[ILOAD_1, ICONST_2, ISUB]));
    // Shuffles; what was on the stack before is not touched.
    assert!(
        one(&[ICONST_0, DUP, ISTORE_1, ISTORE_2]) && one(&[LCONST_0, DUP2, LSTORE_1, LSTORE_3])
    );
    assert!(one(&[ICONST_0, ACONST_NULL, SWAP, ISTORE_1, ASTORE_2]));
    assert!(one(&[
        ICONST_0,
        ACONST_NULL,
        DUP_X1,
        ASTORE_1,
        ISTORE_2,
        POP
    ]));
    assert!(!one(&[
        ICONST_0,
        ACONST_NULL,
        DUP_X1,
        ASTORE_1,
        ASTORE_2,
        POP
    ]));
    assert!(one(&[LCONST_0, ACONST_NULL, DUP_X2, POP, LSTORE_1, POP]));
    assert!(one(&[
        ACONST_NULL,
        LCONST_0,
        DUP2_X1,
        POP2,
        ASTORE_1,
        LSTORE_2
    ]));
    assert!(one(&[DCONST_0, LCONST_0, DUP2_X2, POP2, POP2, LSTORE_2]));
    assert!(!one(&[DUP, POP]) && !one(&[SWAP]) && !one(&[ISTORE_1]) && !one(&[POP]));
    assert!(!two(&[ICONST_0], &[ICONST_0, ICONST_0]) && !two(&[ICONST_0], &[ACONST_NULL]));
}

/// What the block of the branch has done already is free, and may be what is not allowed otherwise.
#[test]
fn what_is_done_before_a_short_branch() {
    let load = [ALOAD_0, ILOAD_1, IALOAD];
    // `before` stands in front of the load in the branch's block, `after` behind it.
    let again = |before: &[u8], after: &[u8], way: &[u8]| {
        let branch = [before, &load, after, &[ILOAD_2, IF_ICMPLE]].concat();
        merges(&branch, way, None)
    };
    let max = [&load[..], &[ISTORE_2]].concat();
    assert!(again(&[], &[], &max) && again(&[NOP, ICONST_0, POP], &[], &max));
    let index = [ALOAD_0, ILOAD_2, IALOAD, ISTORE_2];
    let array = [ALOAD_1, ILOAD_1, IALOAD, ISTORE_2];
    let bytes = [ALOAD_0, ILOAD_1, BALOAD, ISTORE_2];
    for way in [&index, &array, &bytes] {
        assert!(!again(&[], &[], way), "another load");
    }
    // Something in between that changes what is loaded, or may.
    for change in [ISTORE_1, ASTORE_0, LSTORE_0] {
        assert!(!again(&[], &[ICONST_0, change], &max));
    }
    assert!(!again(&[], &[IINC, 1, 1], &max) && !again(&[], &[WIDE, IINC, 0, 1, 0, 1], &max));
    assert!(again(&[IINC, 1, 1], &[ICONST_0, ISTORE_2], &max));
    assert!(again(&[ICONST_0, ISTORE_1], &[IINC, 2, 1], &max));
    assert!(!again(&[], &[INVOKESTATIC, 0, MATH], &max) && !again(&[], &[MONITOREXIT], &max));
    assert!(!again(&[], &[PUTSTATIC, 0, 9], &max) && !again(&[], &[IASTORE], &max));
    assert!(again(
        &[PUTSTATIC, 0, 9, INVOKESTATIC, 0, 1],
        &[GETSTATIC, 0, 9],
        &max
    ));
    // Or on the way itself.
    assert!(!again(
        &[],
        &[],
        &[&[IINC, 1, 1], &load[..], &[POP]].concat()
    ));
    assert!(!again(
        &[],
        &[],
        &[&[ICONST_0, ISTORE_1], &max[..]].concat()
    ));
    assert!(again(&[], &[], &[&max[..], &[ICONST_0, ISTORE_1]].concat()));
    // Of two the last counts.
    assert!(again(
        &[&load[..], &[ICONST_0, ISTORE_1]].concat(),
        &[],
        &max
    ));
    assert!(!again(&load, &[ICONST_0, ISTORE_1], &max));
    // Fields, of which kind; a[i + 1].b[j] with operations in between; a division.
    let same = |text: &[u8], store: &[u8]| {
        let branch = [text, &[POP, ILOAD_2, IFEQ]].concat();
        merges(&branch, &[text, store].concat(), None)
    };
    assert!(same(&[ALOAD_0, GETFIELD, 0, 9], &[ISTORE_1]));
    assert!(same(&[ALOAD_0, GETFIELD, 0, 10], &[LSTORE_1]));
    assert!(
        !same(&[ALOAD_0, GETFIELD, 0, 10], &[ISTORE_1]),
        "not verified"
    );
    assert!(same(&[GETSTATIC, 0, 11, ARRAYLENGTH], &[ISTORE_1]));
    let long = [
        ALOAD_0, ILOAD_1, ICONST_1, IADD, AALOAD, GETFIELD, 0, 11, ILOAD_3, ICONST_1, ISUB,
    ];
    assert!(same(&[&long[..], &[LALOAD]].concat(), &[LSTORE, 9]));
    assert!(
        same(&[ILOAD_1, ILOAD_2, IDIV], &[ISTORE_1]) && same(&[LLOAD_0, LLOAD_2, LREM], &[POP2])
    );
    // Three operations that were done, and one more.
    let sum = [ILOAD_0, ILOAD_1, IADD, ILOAD_1, IADD, ILOAD_1, IADD];
    assert!(same(&sum, &[ISTORE_3]) && same(&sum, &[ICONST_2, IMUL, ISTORE_3]));
    assert!(!same(&sum, &[ICONST_2, IMUL, ICONST_2, IMUL, ISTORE_3]));
    // Longer than what is searched for.
    let padded = [&[ALOAD_0, ILOAD_1][..], &[NOP; 70], &[IALOAD]].concat();
    assert!(!same(&padded, &[ISTORE_3]));
}

/// The builder asks the class what is called: a loop with a call of Math is a run loop, with any other it is none.
#[test]
fn calls_in_real_constant_pools() {
    let bytes = include_bytes!("../../classfile/tests/data/Shapes.class");
    let class = ClassFile::parse(bytes).unwrap();
    let mut splicer = Splicer::new(&class);
    let mut calls = vec![];
    for owner in [
        "java/lang/Math",
        "java/lang/StrictMath",
        "java/lang/Integer",
    ] {
        calls.push(splicer.methodref(owner, "abs", "(I)I").unwrap());
    }
    let method = class.methods().iter().position(|m| m.code().is_some());
    let mut edit = MethodEdit::default();
    edit.insert(At::Entry, &[NOP]);
    splicer.edit(method.unwrap(), &edit).unwrap();
    let spliced = splicer.finish();
    let class = ClassFile::parse(&spliced).unwrap();
    let runs = calls.iter().map(|call| {
        let [hi, lo] = call.to_be_bytes();
        let test = |asm: &mut Asm, end| {
            asm.op(&[ILOAD_1]).ifeq(end);
        };
        let program = looping(test, &[ILOAD_1, INVOKESTATIC, hi, lo, ISTORE_1]);
        let built = Builder::new().build_parts(&program.code, [], &class, FAST);
        let is_turn = |p: &Probe| matches!(p, Probe::Turn { .. });
        built.unwrap().1.iter().any(is_turn)
    });
    assert_eq!(runs.collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(class.member_type(calls[0]), Some(b'('));
    assert_eq!(class.tag(calls[0]), Some(10));
}

/// A branch whose ways are merged in one that is not: only the inner one is.
#[test]
fn shapes_of_short_branches() {
    let mut asm = Asm::default();
    let [outer, inner] = asm.labels();
    asm.op(&[ILOAD_0]).ifeq(outer).op(&[ILOAD_1]).ifeq(inner);
    asm.op(&[IINC, 1, 1])
        .bind(inner)
        .op(&[NOP])
        .bind(outer)
        .op(&[RETURN]);
    let (flow, _) = asm.finish().build_with(FAST).unwrap();
    let merged = |head, arms: &[u32], join| Merged {
        head,
        arms: arms.to_vec(),
        join,
    };
    assert_eq!(flow.merged, [merged(1, &[2], 3)]);
    assert_eq!(flow.num_paths, 2);
    // One after another; the join of the first is the head of the second.
    let mut asm = Asm::default();
    for _ in 0..2 {
        let end = asm.label();
        asm.op(&[ILOAD_0]).ifeq(end).op(&[IINC, 1, 1]).bind(end);
    }
    asm.op(&[RETURN]);
    let (flow, _) = asm.finish().build_with(FAST).unwrap();
    assert_eq!(flow.merged, [merged(0, &[1], 2), merged(2, &[3], 4)]);
    assert_eq!((flow.num_paths, flow.uncut_paths.as_str()), (1, "1"));
    assert_eq!(flow.decode(0).unwrap().blocks, [0, 2, 4]);
    // `a && b`: two ways to the join besides the one between.
    let mut asm = Asm::default();
    let end = asm.label();
    asm.op(&[ILOAD_0]).ifeq(end).op(&[ILOAD_1]).ifeq(end);
    asm.op(&[IINC, 1, 1]).bind(end).op(&[RETURN]);
    let (flow, _) = asm.finish().build_with(FAST).unwrap();
    assert!(flow.merged.is_empty());
    // The join is the method's first block.
    let mut asm = Asm::default();
    let [start, or] = asm.labels();
    asm.bind(start)
        .op(&[ILOAD_0])
        .ifeq(or)
        .op(&[NOP])
        .goto(start);
    asm.bind(or).op(&[NOP]).goto(start);
    let (flow, _) = asm.finish().build_with(FAST).unwrap();
    assert!(flow.merged.is_empty());
    // Before a switch whose cases are too many paths the join is cut: the ID is emitted before the branch.
    let mut asm = Asm::default();
    for _ in 0..40 {
        let [or, end] = asm.labels();
        asm.ifeq(or).call().goto(end).bind(or).call().bind(end);
        let end = asm.label();
        asm.op(&[ILOAD_0]).ifeq(end).op(&[IINC, 1, 1]).bind(end);
    }
    asm.op(&[RETURN]);
    let program = asm.finish();
    let (flow, probes) = program.build_with(FAST).unwrap();
    flow.validate().unwrap();
    assert_eq!(flow.merged.len(), 40);
    for seed in 1..20u64 {
        let run = common::walk(&program, &probes, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        common::check(&program, &flow, &run);
    }
}

/// A loop from its test, which leaves to `end`, and its body.
fn looping(test: impl FnOnce(&mut Asm, Label), body: &[u8]) -> Program {
    let mut asm = Asm::default();
    let [head, end] = asm.labels();
    asm.op(&[ICONST_0, ISTORE_1]).bind(head);
    test(&mut asm, end);
    asm.op(body).goto(head).bind(end).op(&[RETURN]);
    asm.finish()
}

fn turns(program: &Program) -> Option<Turns> {
    let (_, probes) = program.build_with(FAST).unwrap();
    let Probe::Enter { turns, .. } = probes[0] else {
        panic!("no entry");
    };
    turns
}

/// The counter is an int only where a loop ends before 2^32 turns whatever the values.
#[test]
fn turn_counters() {
    let of = |operands: &[u8], branch: u8, body: &[u8]| {
        let test = |asm: &mut Asm, end| {
            asm.op(operands).branch(branch, end);
        };
        turns(&looping(test, body)).unwrap()
    };
    let up = [IINC, 1, 1];
    // for (; i < n; i++), with several kinds of n, and mirrored.
    let bounds: [&[u8]; 8] = [
        &[ILOAD_2],
        &[ILOAD, 9],
        &[WIDE, ILOAD, 0, 9],
        &[ALOAD_0, ARRAYLENGTH],
        &[ALOAD_0, GETFIELD, 0, 9],
        &[GETSTATIC, 0, 9],
        &[ILOAD_2, ICONST_1, ISUB],
        &[ALOAD_0, ILOAD_2, IALOAD, ALOAD_0, ARRAYLENGTH, IADD],
    ];
    for bound in bounds {
        let i_first = [&[ILOAD_1], bound].concat();
        let i_last = [bound, &[ILOAD_1]].concat();
        for operands in [&i_first, &i_last] {
            assert_eq!(of(operands, IF_ICMPGE, &up), Turns::Int);
            assert_eq!(of(operands, IF_ICMPLE, &[IINC, 1, 0xff]), Turns::Int);
            assert_eq!(
                of(operands, IF_ICMPGE, &[WIDE, IINC, 0, 1, 1, 1]),
                Turns::Int
            );
            // n may be the largest or the smallest int, or change.
            for branch in [IF_ICMPGT, IF_ICMPLT, IF_ICMPEQ, IF_ICMPNE] {
                assert_eq!(of(operands, branch, &up), Turns::Long);
            }
            // Even numbers need not meet the largest int.
            assert_eq!(of(operands, IF_ICMPGE, &[IINC, 1, 2]), Turns::Long);
        }
    }
    // Against constants.
    for constant in [&[ICONST_5][..], &[BIPUSH, 100], &[SIPUSH, 0x80, 0]] {
        let operands = [&[ILOAD_1], constant].concat();
        for branch in [IF_ICMPLT, IF_ICMPGE, IF_ICMPGT, IF_ICMPLE, IF_ICMPNE] {
            assert_eq!(of(&operands, branch, &[IINC, 1, 2]), Turns::Int);
        }
        assert_eq!(of(&operands, IF_ICMPEQ, &up), Turns::Int);
        assert_eq!(of(&operands, IF_ICMPEQ, &[IINC, 1, 2]), Turns::Long);
    }
    for branch in [IFNE, IFLT, IFGE, IFGT, IFLE] {
        assert_eq!(of(&[ILOAD_1], branch, &[IINC, 1, 0xfe]), Turns::Int);
        assert_eq!(of(&[ILOAD_1], branch, &[IINC, 1, 0]), Turns::Long);
        assert_eq!(of(&[ILOAD_1], branch, &[NOP]), Turns::Long);
        assert_eq!(of(&[ILOAD_2], branch, &up), Turns::Long);
    }
    assert_eq!(of(&[ILOAD_1], IFEQ, &up), Turns::Int);
    assert_eq!(of(&[ILOAD_1], IFEQ, &[IINC, 1, 2]), Turns::Long);
    // while (i-- > 0)
    assert_eq!(of(&[ILOAD_1, IINC, 1, 0xff], IFLE, &[NOP]), Turns::Int);
    // Other changes of the local, or not in each turn.
    let changes: [&[u8]; 5] = [
        &[IINC, 1, 1, IINC, 1, 0xff],
        &[IINC, 1, 1, ICONST_0, ISTORE_1],
        &[IINC, 1, 1, ICONST_0, ISTORE, 1],
        &[IINC, 1, 1, LCONST_0, LSTORE_0],
        &[ILOAD_0, IFEQ, 0, 6, IINC, 1, 1],
    ];
    for body in changes {
        assert_eq!(of(&[ILOAD_1], IFLE, body), Turns::Long, "{body:?}");
    }
    assert_eq!(
        of(&[ILOAD_1], IFLE, &[IINC, 1, 1, LCONST_0, LSTORE_1]),
        Turns::Long
    );
    assert_eq!(
        of(&[ILOAD_1], IFLE, &[IINC, 1, 1, LCONST_0, LSTORE_2]),
        Turns::Int
    );
    // Not the local itself, or not an int.
    assert_eq!(of(&[ILOAD_1, ICONST_5, IAND], IFEQ, &up), Turns::Long);
    assert_eq!(of(&[ILOAD_1, I2B, ILOAD_2], IF_ICMPGE, &up), Turns::Long);
    assert_eq!(of(&[LLOAD_1, LLOAD_3, LCMP], IFGE, &up), Turns::Long);
    assert_eq!(of(&[ALOAD_1], IFNULL, &up), Turns::Long);
    // The test at the bottom, where the jump stays.
    let mut asm = Asm::default();
    let head = asm.label();
    asm.op(&[ICONST_0, ISTORE_1]).bind(head).op(&up);
    asm.op(&[ILOAD_1, ILOAD_2])
        .branch(IF_ICMPLT, head)
        .op(&[RETURN]);
    assert_eq!(turns(&asm.finish()), Some(Turns::Int));
    // One loop of two without a bound: one counter for both.
    let mut asm = Asm::default();
    for bound in [ILOAD_1, ILOAD_2] {
        let [head, end] = asm.labels();
        asm.op(&[NOP])
            .bind(head)
            .op(&[bound])
            .ifeq(end)
            .op(&up)
            .goto(head)
            .bind(end);
    }
    asm.op(&[RETURN]);
    assert_eq!(turns(&asm.finish()), Some(Turns::Long));
    assert_eq!(
        turns(&looping(
            |asm, end| {
                asm.ifeq(end).call();
            },
            &[]
        )),
        None
    );
}
