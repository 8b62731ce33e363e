//! docs/control-flow.md shows what the builder does: each drawing, listing and table in it is made here and compared.
//! `BLESS=1 cargo test -p borescope-cfg --test docs` writes them anew.

mod common;

use borescope_cfg::flow::EdgeKind;
use borescope_classfile::insn::*;
use common::{Asm, FAST, Label, Program, show};
use std::fmt::Write;

/// Assembles a case.
fn program(write: impl FnOnce(&mut Asm)) -> Program {
    let mut asm = Asm::default();
    write(&mut asm);
    asm.finish()
}

fn straight_line() -> Program {
    program(|a| {
        a.op(&[ILOAD_0]).call().call().op(&[RETURN]);
    })
}

fn if_else() -> Program {
    program(|a| {
        let [or, end] = a.labels();
        a.op(&[ILOAD_0]).ifeq(or).call().goto(end);
        a.bind(or).call().bind(end).op(&[RETURN]);
    })
}

fn while_loop() -> Program {
    program(|a| {
        let [head, end] = a.labels();
        a.op(&[ICONST_0, ISTORE_1])
            .bind(head)
            .op(&[ILOAD_1])
            .ifeq(end);
        a.op(&[IINC, 1, 1]).goto(head).bind(end).op(&[RETURN]);
    })
}

fn loop_at_zero() -> Program {
    program(|a| {
        let [head, end] = a.labels();
        a.bind(head).call().ifeq(end).call().goto(head);
        a.bind(end).op(&[RETURN]);
    })
}

fn do_while() -> Program {
    program(|a| {
        let [head, skip] = a.labels();
        a.op(&[ICONST_0, ISTORE_1]).bind(head).op(&[ILOAD_0]);
        a.ifeq(skip).op(&[IINC, 1, 1]).bind(skip);
        a.op(&[ILOAD_1]).branch(IFLE, head).op(&[RETURN]);
    })
}

fn nested_loops() -> Program {
    program(|a| {
        let [outer, inner, inner_end, end] = a.labels();
        a.op(&[ICONST_0, ISTORE_1]);
        a.bind(outer).op(&[ILOAD_0]).ifeq(end);
        a.bind(inner).op(&[ILOAD_1]).ifeq(inner_end);
        a.op(&[IINC, 1, 1]).goto(inner);
        a.bind(inner_end).op(&[IINC, 0, 1]).goto(outer);
        a.bind(end).op(&[RETURN]);
    })
}

fn two_back_edges() -> Program {
    program(|a| {
        let [head, end] = a.labels();
        a.op(&[ICONST_0, ISTORE_1])
            .bind(head)
            .op(&[ILOAD_0])
            .ifeq(end);
        a.op(&[ILOAD_1]).ifeq(head);
        a.op(&[IINC, 1, 1]).goto(head).bind(end).op(&[RETURN]);
    })
}

fn irreducible() -> Program {
    program(|a| {
        let [first, second, end] = a.labels();
        a.op(&[ILOAD_0]).ifeq(second);
        a.bind(first).op(&[ILOAD_1]).ifeq(end);
        a.bind(second).op(&[IINC, 1, 1]).goto(first);
        a.bind(end).op(&[RETURN]);
    })
}

fn switch() -> Program {
    program(|a| {
        let [one, two, end] = a.labels();
        a.op(&[ILOAD_0]).table_switch(end, &[one, two, one, end]);
        a.bind(one).op(&[IINC, 1, 1]);
        a.bind(two).op(&[IINC, 1, 2]).bind(end).op(&[RETURN]);
    })
}

fn switch_into_loop() -> Program {
    program(|a| {
        let [fresh, resumed, head, end] = a.labels();
        a.op(&[ILOAD_0]).table_switch(end, &[fresh, resumed]);
        a.bind(fresh).op(&[ICONST_0, ISTORE_1]);
        a.bind(head).op(&[ILOAD_1]).ifeq(end);
        a.call().ifne(end);
        a.bind(resumed).op(&[IINC, 1, 1]).goto(head);
        a.bind(end).op(&[RETURN]);
    })
}

fn try_catch() -> Program {
    program(|a| {
        let [start, stop, handler, end] = a.labels();
        a.op(&[ILOAD_0]).bind(start).call().bind(stop).goto(end);
        a.bind(handler).op(&[ASTORE_1]).bind(end).op(&[RETURN]);
        a.guard(start, stop, handler);
    })
}

fn try_finally() -> Program {
    program(|a| {
        let [start, stop, handler, end] = a.labels();
        a.bind(start).call().bind(stop).call().goto(end);
        a.bind(handler)
            .op(&[ASTORE_1])
            .call()
            .op(&[ALOAD_1, ATHROW]);
        a.bind(end).op(&[RETURN]);
        a.guard(start, stop, handler);
    })
}

fn synchronized() -> Program {
    program(|a| {
        let [start, stop, handler, handler_end, end] = a.labels();
        a.op(&[ALOAD_0, MONITORENTER]).bind(start).call();
        a.op(&[ALOAD_0, MONITOREXIT]).bind(stop).goto(end);
        a.bind(handler)
            .op(&[ASTORE_1, ALOAD_0, MONITOREXIT])
            .bind(handler_end);
        a.op(&[ALOAD_1, ATHROW]).bind(end).op(&[RETURN]);
        a.guard(start, stop, handler)
            .guard(handler, handler_end, handler);
    })
}

fn infinite_loop() -> Program {
    program(|a| {
        let head = a.label();
        a.op(&[ICONST_0, ISTORE_1])
            .bind(head)
            .call()
            .op(&[IINC, 1, 1])
            .goto(head);
    })
}

fn unreachable_code() -> Program {
    program(|a| {
        let [end, dead] = a.labels();
        a.op(&[ILOAD_0]).ifeq(end).op(&[RETURN]);
        a.bind(dead).op(&[NOP, NOP]).goto(dead);
        a.bind(end).op(&[RETURN]).op(&[NOP, ATHROW]);
    })
}

fn throw_caught_here() -> Program {
    program(|a| {
        let [start, stop, handler, ok, end] = a.labels();
        a.bind(start).op(&[ILOAD_0]).ifne(ok);
        a.op(&[ALOAD_1, ATHROW]).bind(ok).bind(stop).goto(end);
        a.bind(handler).op(&[POP]).bind(end).op(&[RETURN]);
        a.guard(start, stop, handler);
    })
}

/// The source document's graph: A to B, B to C or D, both to E, E back to B or on to F.
fn worked_example() -> Program {
    program(|a| {
        let [b, d, e] = a.labels();
        a.op(&[ICONST_0, ISTORE_1]).bind(b).op(&[ILOAD_0]).ifeq(d);
        a.op(&[IINC, 0, 1]).goto(e).bind(d).op(&[IINC, 1, 1]);
        a.bind(e).op(&[ILOAD_1]).ifne(b).op(&[RETURN]);
    })
}

fn run_loop() -> Program {
    program(|a| {
        let [head, end] = a.labels();
        a.op(&[ICONST_0, ISTORE_1]).bind(head);
        a.op(&[ILOAD_1, ILOAD_0]).branch(IF_ICMPGE, end);
        a.op(&[IINC, 1, 1]).goto(head).bind(end).op(&[RETURN]);
    })
}

fn run_loop_with_break() -> Program {
    program(|a| {
        let [outer, head, next, end] = a.labels();
        a.bind(outer).op(&[ICONST_0, ISTORE_1]).bind(head);
        a.op(&[ILOAD_1, ILOAD_0]).branch(IF_ICMPGE, next);
        a.op(&[ILOAD_1, ILOAD_2]).branch(IF_ICMPEQ, next);
        a.op(&[IINC, 1, 1]).goto(head).bind(next);
        a.op(&[IINC, 2, 1, ILOAD_2]).ifeq(end).goto(outer);
        a.bind(end).op(&[RETURN]);
    })
}

fn exception_out_of_a_run_loop() -> Program {
    program(|a| {
        let [head, end] = a.labels();
        a.op(&[ICONST_0, ISTORE_1]).bind(head);
        a.op(&[ILOAD_1, ILOAD_0]).branch(IF_ICMPGE, end);
        a.op(&[ILOAD_0, ILOAD_2, IDIV, ISTORE_2, IINC, 1, 1]);
        a.goto(head).bind(end).op(&[RETURN]);
    })
}

fn short_branch() -> Program {
    program(|a| {
        let [or, end] = a.labels();
        a.op(&[ILOAD_0, ILOAD_1]).branch(IF_ICMPGE, or);
        a.op(&[ILOAD_0]).goto(end).bind(or).op(&[ILOAD_1]);
        a.bind(end).op(&[ISTORE_2, RETURN]);
    })
}

fn short_branch_in_a_run_loop() -> Program {
    program(|a| {
        let [head, join, end] = a.labels();
        a.op(&[ICONST_0, ISTORE_1]).bind(head);
        a.op(&[ILOAD_1, ILOAD_0]).branch(IF_ICMPGE, end);
        a.op(&[ILOAD_1, ILOAD_2]).branch(IF_ICMPGE, join);
        a.op(&[ILOAD_1, ISTORE_2]).bind(join);
        a.op(&[IINC, 1, 1]).goto(head).bind(end).op(&[RETURN]);
    })
}

/// `n` if-elses one after another: uncut paths, and what cutting makes of them.
fn many_paths() -> String {
    let mut out = "```text\nif-elses  paths without cuts        cuts before  IDs\n".to_owned();
    for n in [10usize, 29, 30, 31, 60, 90] {
        let program = program(|a| {
            for _ in 0..n {
                let [or, end] = a.labels();
                a.op(&[ILOAD_0]).ifeq(or).call().goto(end);
                a.bind(or).call().bind(end);
            }
            a.op(&[RETURN]);
        });
        let (flow, _) = program.build().unwrap();
        let cut: Vec<String> = flow
            .starts
            .iter()
            .filter(|s| s.kind.cut)
            .map(|s| flow.blocks[s.block as usize].start.to_string())
            .collect();
        let into = flow
            .edges
            .iter()
            .filter(|e| e.kind == EdgeKind::Cut)
            .count();
        assert_eq!(into, 2 * cut.len(), "both ways into a join are cut");
        let cut = if cut.is_empty() {
            "-".to_owned()
        } else {
            cut.join(", ")
        };
        let (uncut, ids) = (&flow.uncut_paths, flow.num_paths);
        writeln!(out, "{n:8}  {uncut:28}  {cut:11}  {ids}").unwrap();
    }
    out.push_str("```\n");
    out
}

/// Every case by the name that its marker in the page has. Ways of a run: at a branch 0 = falls through, 1 = jumps; at a switch
/// the case, default last; at a call 0 = throws, else not; after a throw the handler, one too many = leaves.
fn cases() -> Vec<(&'static str, String)> {
    vec![
        (
            "straight line",
            show::case(&straight_line(), &[&[1, 1], &[1, 0]]),
        ),
        ("if else", show::case(&if_else(), &[&[0, 1], &[1, 1]])),
        ("loop", show::case(&while_loop(), &[&[0, 0, 0, 1], &[1]])),
        (
            "loop at bci 0",
            show::case(&loop_at_zero(), &[&[1, 0, 1, 1, 0, 1, 1, 1]]),
        ),
        ("do while", show::case(&do_while(), &[&[0, 1, 1, 1, 0, 0]])),
        (
            "nested",
            show::case(&nested_loops(), &[&[0, 0, 0, 1, 0, 1, 1]]),
        ),
        (
            "two back edges",
            show::case(&two_back_edges(), &[&[0, 1, 0, 0, 0, 1, 1]]),
        ),
        (
            "irreducible",
            show::case(&irreducible(), &[&[0, 0, 0, 1], &[1, 0, 1]]),
        ),
        ("switch", show::case(&switch(), &[&[2], &[1], &[4]])),
        (
            "switch into a loop",
            show::case(&switch_into_loop(), &[&[0, 0, 1, 1], &[1, 0, 1, 0, 1]]),
        ),
        (
            "try catch",
            show::case(&try_catch(), &[&[1], &[0, 0], &[0, 1]]),
        ),
        (
            "try finally",
            show::case(&try_finally(), &[&[1, 1], &[0, 0, 1]]),
        ),
        (
            "synchronized",
            show::case(&synchronized(), &[&[1], &[0, 0]]),
        ),
        ("infinite loop", show::case(&infinite_loop(), &[&[1, 1, 0]])),
        ("unreachable code", show::case(&unreachable_code(), &[&[1]])),
        (
            "throw caught",
            show::case(&throw_caught_here(), &[&[0, 0], &[1]]),
        ),
        (
            "run loop",
            show::case_with(FAST, &run_loop(), &[&[0, 0, 0, 1], &[1]]),
        ),
        (
            "run loop with break",
            show::case_with(
                FAST,
                &run_loop_with_break(),
                &[&[0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1]],
            ),
        ),
        (
            "exception out of a run loop",
            show::case_with(
                FAST,
                &exception_out_of_a_run_loop(),
                &[&[0, 1, 0, 1, 0, 0], &[0, 0]],
            ),
        ),
        (
            "short branch",
            show::case_with(FAST, &short_branch(), &[&[0], &[1]]),
        ),
        (
            "short branch in a run loop",
            show::case_with(
                FAST,
                &short_branch_in_a_run_loop(),
                &[&[0, 0, 0, 1, 0, 0, 1]],
            ),
        ),
        ("many paths", many_paths()),
        (
            "worked example",
            show::case(&worked_example(), &[&worked_example_ways()]),
        ),
    ]
}

/// The iterations of the source document's trace (its figure 3, IDs 6 2 0 0 2 2 0 0 2 2 0 0 2 3): true = by C.
const BY_C: [bool; 14] = [
    true, true, false, false, true, true, false, false, true, true, false, false, true, true,
];

fn worked_example_ways() -> Vec<usize> {
    let last = BY_C.len() - 1;
    let round = |(i, &c): (usize, &bool)| [usize::from(!c), usize::from(i != last)];
    BY_C.iter().enumerate().flat_map(round).collect()
}

#[test]
fn the_page_shows_what_the_builder_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-flow.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut made = page.clone();
    for (name, text) in cases() {
        let open = format!("<!-- case: {name} -->\n");
        let parts: Vec<&str> = made.split(&open).collect();
        let [before, after] = parts[..] else {
            panic!("the page must have the case {name:?} once");
        };
        let (_, rest) = after.split_once("<!-- end -->").expect("a case ends");
        made = format!("{before}{open}{text}<!-- end -->{rest}");
    }
    assert_eq!(made.matches("<!-- case: ").count(), cases().len());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, made).unwrap();
    } else {
        assert_eq!(
            page, made,
            "docs/control-flow.md is not what the builder does"
        );
    }
}

/// The worked example counts what the source document counts, whatever the numbers.
#[test]
fn the_worked_example_of_the_source_document() {
    let program = worked_example();
    let (flow, probes) = program.build().unwrap();
    assert_eq!((flow.num_paths, flow.uncut_paths.as_str()), (8, "8"));
    let mut ways = worked_example_ways().into_iter();
    let run = common::run(&program, &probes, 1_000, |_| ways.next().unwrap());
    common::check(&program, &flow, &run);
    let ids: Vec<u32> = run
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            common::Event::Id(id, _) => Some(*id),
            _ => None,
        })
        .collect();
    // The document's IDs by their blocks (A..F = 0..5).
    let documented = |blocks: &[u32], back: bool| {
        let (end, next) = if back {
            (EdgeKind::Back, Some(1))
        } else {
            (EdgeKind::Return, None)
        };
        flow.encode(blocks, end, next).unwrap()
    };
    let [p0, p2, p3, p6] = [
        documented(&[1, 3, 4], true),
        documented(&[1, 2, 4], true),
        documented(&[1, 2, 4, 5], false),
        documented(&[0, 1, 2, 4], true),
    ];
    assert_eq!(
        ids,
        [p6, p2, p0, p0, p2, p2, p0, p0, p2, p2, p0, p0, p2, p3]
    );
    let grams = ids.windows(4).filter(|w| *w == [p2, p0, p0, p2]).count();
    assert_eq!(grams, 3);
    let blocks = |&bci: &u16| flow.blocks.iter().any(|b| b.start == bci);
    assert_eq!(run.trace.iter().filter(|bci| blocks(bci)).count(), 44);
}

/// Reads as part of [`Asm`]: the inverse of [`Asm::ifeq`].
trait IfNe {
    fn ifne(&mut self, label: Label) -> &mut Self;
}

impl IfNe for Asm {
    fn ifne(&mut self, label: Label) -> &mut Self {
        self.branch(IFNE, label)
    }
}
