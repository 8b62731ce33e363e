//! Flows as decoders meet them: from untrusted files, and turned into bytecode ranges and source lines.

mod common;

use borescope_cfg::flow::{Block, Edge, EdgeKind, Flow, Start, StartKind};
use borescope_cfg::{Probe, Skip, Then};
use borescope_classfile::{At, insn};
use common::generate::{body, compile};
use common::{Asm, FAST};
use proptest::prelude::*;

/// Changes one number or one piece of a flow.
fn mutate(flow: &mut Flow, what: usize, at: prop::sample::Index, to: u32) {
    let block = at.index(flow.blocks.len());
    let start = at.index(flow.starts.len());
    let edge = at.index(flow.edges.len());
    let kinds = [
        EdgeKind::Forward,
        EdgeKind::Back,
        EdgeKind::Cut,
        EdgeKind::Return,
        EdgeKind::Throw,
    ];
    match what {
        0 => flow.blocks[block].start = to as u16,
        1 => flow.blocks[block].end = to as u16,
        2 => flow.starts[start].block = to,
        3 => flow.starts[start].value = to,
        4 => flow.starts[start].paths = to,
        5 => flow.edges[edge].from = to,
        6 => flow.edges[edge].to = to,
        7 => flow.edges[edge].kind = kinds[to as usize % kinds.len()],
        8 => flow.edges[edge].value = to,
        9 => flow.num_paths = to,
        10 => flow.uncut_paths = format!("{to}x"),
        11 => drop(flow.blocks.remove(block)),
        12 => drop(flow.starts.remove(start)),
        13 => drop(flow.edges.remove(edge)),
        14 => flow.starts[start].kind.entry ^= true,
        15 => {
            let other = to as usize % flow.edges.len();
            flow.edges.swap(edge, other);
        }
        16 => flow.edges.push(flow.edges[edge]),
        17..=19 if !flow.merged.is_empty() => {
            let merged = at.index(flow.merged.len());
            match what {
                17 => flow.merged[merged].head = to,
                18 => flow.merged[merged].arms[0] = to,
                _ => drop(flow.merged.remove(merged)),
            }
        }
        _ => flow.starts.push(flow.starts[start]),
    }
}

/// Decoding each of some IDs must not panic, and must succeed in a flow that passed validation.
fn decode_some(flow: &Flow) {
    let valid = flow.validate().is_ok();
    let last = flow.num_paths.saturating_sub(1);
    for id in (0..40).chain([last / 2, last, flow.num_paths, u32::MAX]) {
        let path = flow.decode(id);
        if valid {
            assert_eq!(path.is_some(), id < flow.num_paths);
        }
        if let Some(path) = path {
            flow.path_bcis(&path.blocks);
            flow.path_lines(&path.blocks, &[(0, 1), (3, 2), (9, 1)]);
            let again = flow.encode(&path.blocks, path.end, path.next);
            assert!(!valid || again == Some(id));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn damaged_flows(
        body in body(),
        damage in prop::collection::vec((0usize..21, any::<prop::sample::Index>(), prop_oneof![0u32..20, any::<u32>()]), 1..4),
    ) {
        let (mut flow, _) = compile(&body).build_with(FAST).unwrap();
        prop_assert_eq!(flow.validate(), Ok(()));
        for (what, at, to) in damage {
            if flow.blocks.is_empty() || flow.starts.is_empty() || flow.edges.is_empty() {
                break;
            }
            mutate(&mut flow, what, at, to);
        }
        decode_some(&flow);
    }

    #[test]
    fn flows_of_random_numbers(
        blocks in prop::collection::vec(any::<(u16, u16)>(), 0..5),
        starts in prop::collection::vec((0u32..5, any::<u32>(), any::<u32>()), 0..5),
        edges in prop::collection::vec((0u32..5, 0u32..5, 0u32..3), 0..9),
        num_paths in any::<u32>(),
    ) {
        let flow = Flow {
            blocks: blocks.iter().map(|&(start, end)| Block { start, end }).collect(),
            starts: starts
                .iter()
                .map(|&(block, value, paths)| Start { block, value, paths, kind: StartKind::default() })
                .collect(),
            edges: edges
                .iter()
                .map(|&(from, to, value)| Edge { from, to, kind: EdgeKind::Forward, value })
                .collect(),
            num_paths,
            merged: vec![],
            uncut_paths: String::new(),
        };
        prop_assert!(flow.validate().is_err());
        decode_some(&flow);
    }
}

/// Each rule of validation refuses something that breaks no other rule.
#[test]
fn each_rule_of_validation_counts() {
    // if (..) nop; while (..) nop; return
    let mut asm = Asm::default();
    let [join, head, end] = asm.labels();
    asm.ifeq(join).op(&[insn::NOP]).bind(join);
    asm.bind(head).ifeq(end).op(&[insn::NOP]).goto(head);
    asm.bind(end).op(&[insn::RETURN]);
    let (good, _) = asm.finish().build().unwrap();
    assert_eq!(good.validate(), Ok(()));
    assert_eq!((good.blocks.len(), good.starts.len()), (5, 2));
    let refused = |what: &str, change: fn(&mut Flow)| {
        let mut flow = good.clone();
        change(&mut flow);
        let error = flow.validate().unwrap_err().to_string();
        assert_eq!(error, format!("not a numbered control flow: {what}"));
    };
    refused("number of blocks", |f| f.blocks.clear());
    refused("empty block", |f| f.blocks[1].end = f.blocks[1].start);
    refused("blocks out of order", |f| f.blocks.swap(1, 2));
    refused("edge to or from no block", |f| f.edges[0].to = 5);
    refused("edge to or from no block", |f| f.edges[6].to = 0);
    refused("edges out of order", |f| f.edges.reverse());
    refused("two edges from one block to another", |f| {
        f.edges[1].to = f.edges[0].to;
    });
    refused("start at no block", |f| f.starts[1].block = 5);
    refused("two starts at one block", |f| f.starts[1].block = 0);
    refused("no start where a path ends", |f| f.starts[1].block = 3);
    refused("entry not first", |f| f.starts[0].kind.entry = false);
    refused("entry not first", |f| f.starts[1].kind.entry = true);
    refused("start values", |f| f.starts[1].value += 1);
    refused("start's paths", |f| f.starts[1].paths += 1);
    refused("number of paths", |f| f.num_paths += 1);
    refused("number of paths without cuts", |f| f.uncut_paths.push('-'));
    refused("edge values", |f| f.edges[1].value += 1);
    refused("block without a way out", |f| f.edges.truncate(6));
    refused("cycle of forward edges", |f| {
        for edge in &mut f.edges {
            if edge.kind == EdgeKind::Back {
                edge.kind = EdgeKind::Forward;
            }
        }
    });
}

#[test]
fn each_rule_of_merged_branches_counts() {
    // if (..) a = 1; else b = 1; if (..) a++; return
    let mut asm = Asm::default();
    let [or, join, end] = asm.labels();
    asm.ifeq(or)
        .op(&[insn::ICONST_1, insn::ISTORE_1])
        .goto(join);
    asm.bind(or).op(&[insn::ICONST_1, insn::ISTORE_2]);
    asm.bind(join).ifeq(end).op(&[insn::IINC, 1, 1]);
    asm.bind(end).op(&[insn::RETURN]);
    let (good, _) = asm.finish().build_with(FAST).unwrap();
    assert_eq!(good.validate(), Ok(()));
    let arms: Vec<_> = good.merged.iter().map(|m| &m.arms[..]).collect();
    assert_eq!((good.blocks.len(), arms), (6, vec![&[1, 2][..], &[4]]));
    // Short branches are in the lines of a path only as far as the branch and the join are.
    let lines = [(0, 1), (3, 2), (8, 3), (10, 4), (13, 5), (16, 6)];
    let path = good.decode(0).unwrap();
    assert_eq!(path.blocks, [0, 3, 5]);
    assert_eq!(good.path_lines(&path.blocks, &lines), [1, 4, 6]);
    assert_eq!(good.path_bcis(&path.blocks), [(0, 3), (10, 13), (16, 17)]);
    let refused = |what: &str, change: fn(&mut Flow)| {
        let mut flow = good.clone();
        change(&mut flow);
        let error = flow.validate().unwrap_err().to_string();
        assert_eq!(error, format!("not a numbered control flow: {what}"));
    };
    let merged = "merged branches";
    refused(merged, |f| f.merged.swap(0, 1));
    refused(merged, |f| f.merged[0].arms.clear());
    refused(merged, |f| f.merged[0].arms.push(5));
    refused(merged, |f| f.merged[0].arms.reverse());
    refused(merged, |f| f.merged[1].arms[0] = 1);
    refused(merged, |f| f.merged[1].arms[0] = 6);
    refused(merged, |f| f.merged[1].arms[0] = 5);
    refused(merged, |f| f.merged[1].join = 4);
    refused(merged, |f| f.merged[1].head = 5);
    refused(merged, |f| f.merged[1].head = u32::MAX);
    refused("block without a way out", |f| f.merged.truncate(1));
    refused("block without a way out", |f| {
        f.merged[0].arms.pop();
    });
    refused(merged, |f| {
        f.starts.push(Start {
            block: 1,
            value: 1,
            paths: 1,
            kind: StartKind::default(),
        });
    });
}

#[test]
fn ranges_and_lines_in_order_of_execution() {
    //  0: ifeq 7      line 10
    //  3: nop         line 11
    //  4: goto 9      line 11
    //  7: nop, nop    line 12
    //  9: ifeq 13     line 10 (as in a one-line for loop)
    // 12: nop         no entry of its own
    // 13: return      line 13
    let mut asm = Asm::default();
    let [or, join, end] = asm.labels();
    asm.ifeq(or).op(&[insn::NOP]).goto(join);
    asm.bind(or).op(&[insn::NOP, insn::NOP]);
    asm.bind(join).ifeq(end).op(&[insn::NOP]);
    asm.bind(end).op(&[insn::RETURN]);
    let (flow, _) = asm.finish().build().unwrap();
    let lines = [(0, 10), (3, 11), (7, 12), (9, 10), (13, 13)];
    let blocks = |starts: &[u16]| -> Vec<u32> {
        let at = |bci: &u16| flow.blocks.iter().position(|b| b.start == *bci).unwrap() as u32;
        starts.iter().map(at).collect()
    };
    let short = blocks(&[0, 3, 9, 12, 13]);
    assert_eq!(flow.path_bcis(&short), [(0, 7), (9, 14)]);
    assert_eq!(flow.path_lines(&short, &lines), [10, 11, 10, 13]);
    let long = blocks(&[0, 7, 9, 13]);
    assert_eq!(flow.path_bcis(&long), [(0, 3), (7, 12), (13, 14)]);
    assert_eq!(flow.path_lines(&long, &lines), [10, 12, 10, 13]);
    // Two entries at one place: the first covers nothing.
    assert_eq!(
        flow.path_lines(&blocks(&[3]), &[(0, 10), (4, 11), (4, 12)]),
        [10, 12]
    );
    assert_eq!(flow.path_lines(&long, &[]), [0u16; 0]);
    // Code before the first entry has no line.
    assert_eq!(flow.path_lines(&blocks(&[0, 7]), &[(7, 12)]), [12]);
}

/// The longest code there can be: bytecode indices up to 65534, and an end of 65535.
#[test]
fn the_largest_method() {
    let mut code = vec![insn::NOP; 65_535];
    code[65_531..].copy_from_slice(&[insn::IFEQ, 0x80, 0x00, insn::RETURN]);
    let program = common::Program {
        code,
        guards: vec![(0, 65_535, 65_534)],
    };
    // The handler is where the branch falls to.
    assert_eq!(program.build(), Err(Skip::HandlerByFlow));
    let program = common::Program {
        guards: vec![],
        ..program
    };
    let (flow, probes) = program.build().unwrap();
    flow.validate().unwrap();
    let blocks: Vec<(u16, u16)> = flow.blocks.iter().map(|b| (b.start, b.end)).collect();
    assert_eq!(blocks, [(0, 32_763), (32_763, 65_534), (65_534, 65_535)]);
    let ranges: Vec<_> = (0..flow.num_paths)
        .map(|id| flow.path_bcis(&flow.decode(id).unwrap().blocks))
        .collect();
    assert_eq!(
        ranges,
        [
            [(0, 65_534)],
            [(0, 65_535)],
            [(32_763, 65_534)],
            [(32_763, 65_535)]
        ]
    );
    // Enter, one ID on the jump back, one (plus 1) at the return.
    let jump = At::Taken {
        from: 65_531,
        target: 32_763,
    };
    let places: Vec<At> = probes.iter().filter_map(|p| p.at()).collect();
    assert_eq!(places, [At::Entry, jump, At::Before(65_534)]);
    let too_long = common::Program {
        code: vec![insn::NOP; 65_536],
        guards: vec![],
    };
    let refused = too_long.build();
    assert!(matches!(refused, Err(Skip::Malformed(_))));
}

/// As many handlers as there can be, each reachable only through the one before it: found at once in the table's order, given up
/// in the opposite one.
#[test]
fn chains_of_handlers() {
    let code = vec![insn::ATHROW; 65_535];
    let mut guards: Vec<_> = (1..65_535).map(|h| (h - 1, h, h)).collect();
    let in_order = common::Program {
        code,
        guards: guards.clone(),
    };
    let (flow, probes) = in_order.build().unwrap();
    assert_eq!((flow.blocks.len(), flow.num_paths), (65_535, 65_535));
    let caught = |p: &&Probe| matches!(p, Probe::Caught { .. });
    assert_eq!(probes.iter().filter(caught).count(), 65_534);
    // No handler covers the last athrow.
    let leaving = |p: &&Probe| {
        matches!(
            p,
            Probe::Emit {
                then: Then::Leave,
                ..
            }
        )
    };
    assert_eq!(probes.iter().filter(leaving).count(), 1);
    guards.reverse();
    let reversed = common::Program { guards, ..in_order };
    assert_eq!(reversed.build(), Err(Skip::TooManyHandlers));
}
