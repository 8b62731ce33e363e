//! The heart of exactness: on random methods, structured ones and arbitrary jumbles, the blocks and edges are those of a naive
//! reading of the code, the IDs are a bijection, and probes executed as placed tell exactly what was executed.

mod common;

use borescope_cfg::flow::{Block, Edge, EdgeKind, Flow, PathBlocks};
use borescope_cfg::{MAX_PATHS, Probe, Settings, Skip};
use borescope_classfile::{At, insn};
use common::generate::{assemble, body, compile, jumble};
use common::{Asm, FAST, Program, Run, check, successors};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The control flow as the rules say, instruction by instruction.
struct Naive {
    reached: BTreeSet<u16>,
    leaders: BTreeSet<u16>,
    handlers: BTreeSet<u16>,
    handler_by_flow: bool,
}

fn naive(program: &Program) -> Naive {
    let code = &program.code;
    let mut reached = BTreeSet::from([0]);
    let mut handlers = BTreeSet::new();
    loop {
        let mut more = reached.clone();
        for &bci in &reached {
            more.extend(successors(code, bci).iter().map(|s| s.1));
            for guard in &program.guards {
                if (guard.0..guard.1).contains(&bci) {
                    more.insert(guard.2);
                    handlers.insert(guard.2);
                }
            }
        }
        if more == reached {
            break;
        }
        reached = more;
    }
    let mut leaders = &BTreeSet::from([0]) | &handlers;
    let mut handler_by_flow = handlers.contains(&0);
    for &bci in &reached {
        let next = successors(code, bci);
        handler_by_flow |= next.iter().any(|s| handlers.contains(&s.1));
        // Whatever follows a jump starts a block, if it can be reached.
        if next.iter().any(|s| s.0) {
            leaders.extend(next.iter().map(|s| s.1));
        }
    }
    Naive {
        reached,
        leaders,
        handlers,
        handler_by_flow,
    }
}

fn check_graph(program: &Program, flow: &Flow) {
    let naive = naive(program);
    let starts: BTreeSet<u16> = flow.blocks.iter().map(|b| b.start).collect();
    assert_eq!(starts, naive.leaders);
    let mut covered = BTreeSet::new();
    let mut edges = BTreeSet::new();
    for (from, block) in flow.blocks.iter().enumerate() {
        let bcis = common::bcis(program, flow, &[from as u32]);
        let last = *bcis.last().unwrap();
        covered.extend(bcis);
        assert!(
            naive.leaders.contains(&block.end)
                || successors(&program.code, last).iter().all(|s| s.0),
            "block ends early"
        );
        let next = successors(&program.code, last);
        if next.is_empty() {
            let throws = program.code[usize::from(last)] == insn::ATHROW;
            edges.insert((from as u32, u32::MAX, Some(throws)));
        }
        for (_, to) in next {
            let to = flow.blocks.iter().position(|b| b.start == to).unwrap();
            edges.insert((from as u32, to as u32, None));
        }
    }
    assert_eq!(covered, naive.reached);
    // What is merged is one edge; tests/fast.rs says what is.
    for merged in &flow.merged {
        edges.retain(|e| e.0 != merged.head && !merged.arms.contains(&e.0));
        edges.insert((merged.head, merged.join, None));
    }
    let got: Vec<_> = flow
        .edges
        .iter()
        .map(|e| match e.kind {
            EdgeKind::Return => (e.from, e.to, Some(false)),
            EdgeKind::Throw => (e.from, e.to, Some(true)),
            _ => (e.from, e.to, None),
        })
        .collect();
    assert_eq!(got.iter().copied().collect::<BTreeSet<_>>(), edges);
    assert_eq!(got.len(), edges.len(), "the same edge twice");

    // Starts are where they must be, for the reasons they must have.
    let target_of = |kind| -> BTreeSet<u32> {
        let edges = flow.edges.iter().filter(|e| e.kind == kind);
        edges.map(|e| e.to).collect()
    };
    let heads = target_of(EdgeKind::Back);
    let cuts = target_of(EdgeKind::Cut);
    for block in 0..flow.blocks.len() as u32 {
        let kind = flow.start_at(block).map(|s| s.kind).unwrap_or_default();
        let bci = flow.blocks[block as usize].start;
        assert_eq!(kind.entry, block == 0);
        assert_eq!(kind.handler, naive.handlers.contains(&bci));
        assert_eq!(kind.loop_head, heads.contains(&block));
        assert_eq!(kind.cut, cuts.contains(&block));
    }
    // A back edge closes a cycle of edges that are none.
    for back in flow.edges.iter().filter(|e| e.kind == EdgeKind::Back) {
        assert!(forward_from(flow, back.to).contains(&back.from));
    }
}

/// Blocks that forward and cut edges lead to.
fn forward_from(flow: &Flow, block: u32) -> BTreeSet<u32> {
    let mut met = BTreeSet::from([block]);
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for edge in flow.edges_of(block) {
            if matches!(edge.kind, EdgeKind::Forward | EdgeKind::Cut) && met.insert(edge.to) {
                work.push(edge.to);
            }
        }
    }
    met
}

/// All paths by brute force, or None if there are more than `limit`.
fn all_paths(flow: &Flow, limit: usize) -> Option<Vec<(Vec<u32>, Edge)>> {
    fn walk(flow: &Flow, path: &mut Vec<u32>, out: &mut Vec<(Vec<u32>, Edge)>, limit: usize) {
        for edge in flow.edges_of(*path.last().unwrap()) {
            if out.len() > limit {
                return;
            }
            if edge.kind == EdgeKind::Forward {
                path.push(edge.to);
                walk(flow, path, out, limit);
                path.pop();
            } else {
                out.push((path.clone(), *edge));
            }
        }
    }
    let mut out = vec![];
    for start in &flow.starts {
        walk(flow, &mut vec![start.block], &mut out, limit);
    }
    (out.len() <= limit).then_some(out)
}

fn check_numbers(flow: &Flow) {
    flow.validate().unwrap();
    assert!(flow.num_paths <= MAX_PATHS);
    assert_eq!(flow.decode(flow.num_paths), None);
    let Some(paths) = all_paths(flow, 5_000) else {
        return;
    };
    assert_eq!(paths.len(), flow.num_paths as usize);
    if flow.edges.iter().all(|e| e.kind != EdgeKind::Cut) {
        assert_eq!(flow.uncut_paths, flow.num_paths.to_string());
    }
    let mut ids = BTreeSet::new();
    for (blocks, last) in paths {
        let next = (last.to != u32::MAX).then_some(last.to);
        let id = flow.encode(&blocks, last.kind, next).unwrap();
        assert!(id < flow.num_paths && ids.insert(id), "an ID twice");
        let start = flow.start_at(blocks[0]).unwrap();
        assert!((start.value..start.value + start.paths).contains(&id));
        let path = PathBlocks {
            start: start.kind,
            blocks,
            end: last.kind,
            next,
        };
        assert_eq!(flow.decode(id), Some(path));
    }
}

/// Every probe is where the splicer can put it, and none is idle.
fn check_probes(program: &Program, flow: &Flow, probes: &[Probe]) {
    assert!(matches!(probes[0], Probe::Enter { value: 0, .. }));
    let reached = naive(program).reached;
    let mut caught = BTreeMap::new();
    for probe in &probes[1..] {
        match *probe {
            Probe::Enter { .. } => panic!("entered twice"),
            Probe::Add { value, .. } => assert_ne!(value, 0),
            Probe::Emit { .. } => {}
            Probe::Caught { bci, value } => assert_eq!(caught.insert(bci, value), None),
            // tests/fast.rs says where and why.
            Probe::Turn { .. } | Probe::Run { .. } | Probe::Unwind { .. } => {}
        }
        let Some(at) = probe.at() else { continue };
        match at {
            At::Entry => panic!("only Enter is at the entry"),
            At::Before(bci) => assert!(reached.contains(&bci)),
            At::FallThrough(to) => assert!(
                reached
                    .iter()
                    .any(|&bci| successors(&program.code, bci).contains(&(false, to)))
            ),
            At::Taken { from, target } => {
                assert!(successors(&program.code, from).contains(&(true, target)));
                assert!(reached.contains(&from));
            }
        }
    }
    let handlers: Vec<_> = flow.starts.iter().filter(|s| s.kind.handler).collect();
    assert_eq!(caught.len(), handlers.len());
    for (bci, value) in caught {
        let within = |b: &Block| (b.start..b.end).contains(&bci);
        assert!(
            handlers
                .iter()
                .any(|s| s.value == value && within(&flow.blocks[s.block as usize]))
        );
    }
}

/// Everything about one method; `seeds` choose the ways of the walks.
fn check_all(program: &Program, seeds: &[u64]) {
    for merge in [false, true] {
        let plain = Settings { merge, runs: false };
        let built = program.build_with(plain);
        if naive(program).handler_by_flow {
            assert_eq!(built, Err(Skip::HandlerByFlow));
            continue;
        }
        let (flow, probes) = built.unwrap();
        check_graph(program, &flow);
        check_numbers(&flow);
        check_probes(program, &flow, &probes);
        let (same_flow, run_probes) = program.build_with(Settings { merge, runs: true }).unwrap();
        assert_eq!(same_flow, flow);
        check_probes(program, &flow, &run_probes);
        for &seed in seeds {
            let run = walk(program, &flow, &probes, seed);
            let by_runs = common::walk(program, &run_probes, seed);
            assert_eq!(by_runs.told(), run.told(), "run probes tell something else");
        }
    }
}

/// Walks at random and checks what the probes told; not for run probes.
fn walk(program: &Program, flow: &Flow, probes: &[Probe], seed: u64) -> Run {
    let run = common::walk(program, probes, seed);
    check(program, flow, &run);
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn structured_methods(body in body(), seeds in any::<[u64; 8]>()) {
        check_all(&compile(&body), &seeds);
    }

    #[test]
    fn jumbles((insns, guards) in jumble(), seeds in any::<[u64; 8]>()) {
        check_all(&assemble(&insns, &guards, true), &seeds);
    }

    #[test]
    fn handlers_reached_by_flow_are_refused((insns, guards) in jumble(), seeds in any::<[u64; 2]>()) {
        check_all(&assemble(&insns, &guards, false), &seeds);
    }

    /// The builder's buffers carry nothing over from method to method.
    #[test]
    fn buffers_are_reused(bodies in prop::collection::vec(body(), 2..6)) {
        let mut builder = borescope_cfg::Builder::new();
        for body in &bodies {
            let program = compile(body);
            let reused = program.build_by(&mut builder, FAST);
            prop_assert_eq!(reused, program.build_with(FAST));
            let reused = program.build_by(&mut builder, Settings::default());
            prop_assert_eq!(reused, program.build());
        }
    }

    /// In a structured method, which is reducible, each back edge goes to a block that is on every way to its source, and an
    /// innermost loop's only way round has value 0 from its head's start value.
    #[test]
    fn loops_of_structured_methods(body in body()) {
        let program = compile(&body);
        let (flow, _) = program.build().unwrap();
        for back in flow.edges.iter().filter(|e| e.kind == EdgeKind::Back) {
            prop_assert!(dominates(&program, &flow, back.to, back.from));
        }
        for start in flow.starts.iter().filter(|s| s.kind.loop_head) {
            let rounds: Vec<u32> = (start.value..start.value + start.paths.min(300))
                .filter(|&id| {
                    let path = flow.decode(id).unwrap();
                    path.next == Some(start.block)
                })
                .collect();
            if let [only] = rounds[..] && start.paths <= 300 && is_innermost(&flow, start.block) {
                prop_assert_eq!(only, start.value);
            }
        }
    }

    /// Garbage is refused, not fatal.
    #[test]
    fn hostile_code(code in prop::collection::vec(any::<u8>(), 0..60), guards in prop::collection::vec(any::<(u16, u16, u16)>(), 0..3)) {
        if let Ok((flow, _)) = (Program { code, guards }).build_with(FAST) {
            prop_assert_eq!(flow.validate(), Ok(()));
        }
    }

    /// Code with one byte changed, which makes instructions overlap, jump into each other or fall off the end.
    #[test]
    fn damaged_code(body in body(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut program = compile(&body);
        let at = at.index(program.code.len());
        program.code[at] = byte;
        if let Ok((flow, _)) = program.build_with(FAST) {
            prop_assert_eq!(flow.validate(), Ok(()));
        }
    }
}

/// Whether every way from the entry to `block`, by exceptions too, goes through `head`.
fn dominates(program: &Program, flow: &Flow, head: u32, block: u32) -> bool {
    let mut met: BTreeSet<u32> = BTreeSet::new();
    let mut work: Vec<u32> = Vec::from_iter((head != 0).then_some(0));
    while let Some(at) = work.pop() {
        if !met.insert(at) {
            continue;
        }
        let next = flow.edges_of(at).iter().map(|e| e.to);
        let bcis = common::bcis(program, flow, &[at]);
        let guards = program.guards.iter();
        let caught = guards.filter(|g| bcis.iter().any(|bci| (g.0..g.1).contains(bci)));
        let caught =
            caught.map(|g| flow.blocks.iter().position(|b| b.start == g.2).unwrap() as u32);
        work.extend(
            next.chain(caught)
                .filter(|&to| to != u32::MAX && to != head),
        );
    }
    !met.contains(&block)
}

/// Whether no other loop lies in the loop of `head`: no back edge's target but `head` is between `head` and its back edges.
fn is_innermost(flow: &Flow, head: u32) -> bool {
    let latches: Vec<u32> = flow
        .edges
        .iter()
        .filter(|e| e.kind == EdgeKind::Back && e.to == head)
        .map(|e| e.from)
        .collect();
    forward_from(flow, head).iter().all(|&block| {
        let inside = forward_from(flow, block);
        block == head
            || !flow.start_at(block).is_some_and(|s| s.kind.loop_head)
            || !latches.iter().any(|latch| inside.contains(latch))
    })
}

/// `n` if-elses one after another have 2^n paths.
fn diamonds(n: usize) -> Program {
    let mut asm = Asm::default();
    for _ in 0..n {
        let [or, end] = asm.labels();
        asm.ifeq(or).op(&[insn::NOP]).goto(end);
        asm.bind(or).op(&[insn::NOP]).bind(end);
    }
    asm.op(&[insn::RETURN]);
    asm.finish()
}

#[test]
fn chains_of_diamonds_are_cut_and_counted() {
    // 2^n in decimal, by doubling digit by digit.
    let mut digits = vec![1u8];
    for n in 0..=200 {
        let expected: String = digits.iter().rev().map(|d| char::from(b'0' + d)).collect();
        let program = diamonds(n);
        let (flow, probes) = program.build().unwrap();
        flow.validate().unwrap();
        assert_eq!(flow.uncut_paths, expected, "2^{n}");
        let cuts = flow.starts.iter().filter(|s| s.kind.cut).count();
        assert_eq!(cuts == 0, n <= 30, "{n} diamonds, {cuts} cuts");
        // 2^30 IDs hold 29 diamonds a cut at best.
        assert!(cuts <= n.div_ceil(25), "{n} diamonds, {cuts} cuts");
        for seed in (1u64..20).filter(|_| n % 10 == 0) {
            walk(
                &program,
                &flow,
                &probes,
                seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            );
        }
        let mut carry = 0;
        for digit in &mut digits {
            let double = *digit * 2 + carry;
            carry = double / 10;
            *digit = double % 10;
        }
        if carry > 0 {
            digits.push(carry);
        }
    }
}

#[test]
fn many_paths_in_nested_loops_and_wide_switches_are_cut() {
    // A loop around a switch whose cases are chains of diamonds, with a loop in the middle of each.
    let mut asm = Asm::default();
    let [head, end] = asm.labels();
    let cases: [_; 40] = asm.labels();
    asm.bind(head).ifeq(end);
    asm.table_switch(end, &cases);
    for case in cases {
        asm.bind(case);
        for i in 0..40 {
            let [inner, or, join] = asm.labels();
            asm.bind(inner).ifeq(or).op(&[insn::NOP]).goto(join);
            asm.bind(or).op(&[insn::NOP]).bind(join);
            if i % 10 == 3 {
                asm.ifeq(inner);
            }
        }
        asm.goto(head);
    }
    asm.bind(end).op(&[insn::RETURN]);
    let program = asm.finish();
    let (flow, probes) = program.build().unwrap();
    flow.validate().unwrap();
    // Uncut: each case's 40 diamonds in full (2^40), and the starts at the inner loops: 2^37 + 2^27 + 2^17 + 2^7; with a loop's
    // exit or back edge after its diamond doubling nothing but adding one: counted by hand in the next line.
    let mut case: u128 = 1;
    let mut starts: u128 = 0;
    for i in (0..40).rev() {
        if i % 10 == 3 {
            case += 1;
        }
        case *= 2;
        if i % 10 == 3 {
            starts += case;
        }
    }
    let round = 1 + 1 + 40 * case; // exit at the head, exit by the default, a case
    assert_eq!(flow.uncut_paths, (round + 40 * starts).to_string());
    assert!(flow.starts.iter().any(|s| s.kind.cut));
    for seed in 1u64..200 {
        walk(
            &program,
            &flow,
            &probes,
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
    }
}
