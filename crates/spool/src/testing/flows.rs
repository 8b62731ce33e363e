//! A few flows to describe methods with.

use borescope_cfg::flow::{Block, Edge, EdgeKind, Flow, Merged, Start, StartKind};

/// The worked example of seed 000: A->B, B->{C,D}, C->E, D->E, E->{B,F}; each block has 3 bytes, A at 0 .. F at 15. IDs: ABCE(back) 0,
/// ABCEF 1, ABDE(back) 2, ABDEF 3, BCE(back) 4, BCEF 5, BDE(back) 6, BDEF 7.
pub fn worked_example() -> Flow {
    let edge = |from, to, kind, value| Edge {
        from,
        to,
        kind,
        value,
    };
    let start = |block, value, kind| Start {
        block,
        value,
        paths: 4,
        kind,
    };
    Flow {
        blocks: (0..6)
            .map(|block| Block {
                start: block * 3,
                end: block * 3 + 3,
            })
            .collect(),
        starts: vec![
            start(
                0,
                0,
                StartKind {
                    entry: true,
                    ..StartKind::default()
                },
            ),
            start(
                1,
                4,
                StartKind {
                    loop_head: true,
                    ..StartKind::default()
                },
            ),
        ],
        edges: vec![
            edge(0, 1, EdgeKind::Forward, 0),
            edge(1, 2, EdgeKind::Forward, 0),
            edge(1, 3, EdgeKind::Forward, 2),
            edge(2, 4, EdgeKind::Forward, 0),
            edge(3, 4, EdgeKind::Forward, 0),
            edge(4, 1, EdgeKind::Back, 0),
            edge(4, 5, EdgeKind::Forward, 1),
            edge(5, u32::MAX, EdgeKind::Return, 0),
        ],
        num_paths: 8,
        merged: Vec::new(),
        uncut_paths: "8".into(),
    }
}

/// The worked example with C and D not told apart. IDs: ABE(back) 0, ABEF 1, BE(back) 2, BEF 3.
pub fn merged_example() -> Flow {
    let mut flow = worked_example();
    flow.edges
        .retain(|edge| !(1..4).contains(&edge.from) || edge.from == 1 && edge.to == 2);
    for edge in &mut flow.edges {
        if edge.from == 1 {
            edge.to = 4;
        }
    }
    for (start, value) in flow.starts.iter_mut().zip([0, 2]) {
        (start.value, start.paths) = (value, 2);
    }
    flow.merged = vec![Merged {
        head: 1,
        arms: vec![2, 3],
        join: 4,
    }];
    flow.num_paths = 4;
    flow.uncut_paths = "4".into();
    flow
}

/// The switch of [`switch_loop`] without its loop: all cases return but the last one but one, which throws.
pub fn switch(paths: u16) -> Flow {
    let mut flow = switch_loop(paths);
    for edge in &mut flow.edges {
        if edge.kind == EdgeKind::Back {
            (edge.kind, edge.to) = (EdgeKind::Return, u32::MAX);
        }
    }
    for start in &mut flow.starts {
        start.kind.loop_head = false;
    }
    flow
}

/// A loop over a switch of `paths` cases (at most 20,000) whose head is the entry: block 0 (bytes 0 to 3) is the switch, case i has two
/// bytes from 3 + 2 i and the path ID i. The last case returns, the one before it throws if there are at least three; the others go back.
pub fn switch_loop(paths: u16) -> Flow {
    let n = u32::from(paths);
    let ends = (0..n).map(|case| {
        let (to, kind) = match n - case {
            1 => (u32::MAX, EdgeKind::Return),
            2 if n > 2 => (u32::MAX, EdgeKind::Throw),
            _ => (0, EdgeKind::Back),
        };
        Edge {
            from: case + 1,
            to,
            kind,
            value: 0,
        }
    });
    let cases = (0..n).map(|case| Edge {
        from: 0,
        to: case + 1,
        kind: EdgeKind::Forward,
        value: case,
    });
    let block = |case| Block {
        start: 3 + 2 * case,
        end: 5 + 2 * case,
    };
    let kind = StartKind {
        entry: true,
        loop_head: true,
        ..StartKind::default()
    };
    Flow {
        blocks: std::iter::once(Block { start: 0, end: 3 })
            .chain((0..paths).map(block))
            .collect(),
        starts: vec![Start {
            block: 0,
            value: 0,
            paths: n,
            kind,
        }],
        edges: cases.chain(ends).collect(),
        num_paths: n,
        merged: Vec::new(),
        uncut_paths: n.to_string(),
    }
}
