//! A method, its probes, its paths and a run of it, as text and as a Mermaid drawing: what docs/control-flow.md shows.

use super::{Event, Program, check, run};
use borescope_cfg::Settings;
use borescope_cfg::flow::{EdgeKind, Flow, StartKind};
use borescope_cfg::{Probe, Then};
use borescope_classfile::{At, insn};
use std::fmt::Write;

/// A block's letter.
fn letter(block: u32) -> char {
    char::from(b'A' + u8::try_from(block).unwrap())
}

fn letters(blocks: &[u32]) -> String {
    let letters: Vec<String> = blocks.iter().map(|&b| letter(b).to_string()).collect();
    letters.join(" ")
}

fn mnemonic(program: &Program, bci: u16) -> String {
    let op = program.code[usize::from(bci)];
    let name = match op {
        insn::NOP => "nop",
        insn::ICONST_0 => "iconst_0",
        insn::ILOAD_0 => "iload_0",
        insn::ILOAD_1 => "iload_1",
        insn::ISTORE_1 => "istore_1",
        insn::IINC => "iinc",
        insn::ALOAD_0 => "aload_0",
        insn::ALOAD_1 => "aload_1",
        insn::ASTORE_1 => "astore_1",
        insn::POP => "pop",
        insn::INVOKESTATIC => "invokestatic",
        insn::MONITORENTER => "monitorenter",
        insn::MONITOREXIT => "monitorexit",
        insn::IFEQ => "ifeq",
        insn::IFNE => "ifne",
        insn::IFLE => "ifle",
        insn::IF_ICMPGE => "if_icmpge",
        insn::IF_ICMPEQ => "if_icmpeq",
        insn::IDIV => "idiv",
        insn::ISTORE_2 => "istore_2",
        insn::ILOAD_2 => "iload_2",
        insn::GOTO => "goto",
        insn::TABLESWITCH => "tableswitch",
        insn::ATHROW => "athrow",
        insn::RETURN => "return",
        _ => panic!("no name for opcode {op:#x}"),
    };
    let targets = match insn::flow(&program.code, bci.into()).unwrap() {
        insn::Flow::Branch(to) | insn::Flow::Goto(to) => format!(" {to}"),
        insn::Flow::Switch { default, targets } => {
            let cases: Vec<String> = targets.map(|t| t.to_string()).collect();
            format!(" {}, default {default}", cases.join(" "))
        }
        _ => String::new(),
    };
    format!("{name}{targets}")
}

fn sum(value: u32) -> String {
    if value == 0 {
        "r".to_owned()
    } else {
        format!("r + {value}")
    }
}

fn action(probe: &Probe) -> String {
    match *probe {
        Probe::Enter { value, turns } => {
            let turns = if turns.is_some() { "; n = 0" } else { "" };
            format!("s = enter(); r = {value}{turns}")
        }
        Probe::Turn { .. } => "n += 1".to_owned(),
        Probe::Run { id, .. } | Probe::Unwind { id, .. } => format!("run({id})"),
        Probe::Add { value, .. } => format!("r += {value}"),
        Probe::Caught { value, .. } => format!("caught(s); r = {value}"),
        Probe::Emit { add, then, .. } => match then {
            Then::Restart(value) => format!("s = hit(s, {}); r = {value}", sum(add)),
            Then::Leave => format!("exit(s, {})", sum(add)),
            Then::Continue => format!("s = hit(s, {})", sum(add)),
        },
    }
}

/// The code with the probes where they run.
fn listing(program: &Program, flow: &Flow, probes: &[Probe], out: &mut String) {
    let mut line = |text: String| writeln!(out, "{}", text.trim_end()).unwrap();
    let at = |place: At| probes.iter().filter(move |p| p.at() == Some(place));
    for probe in at(At::Entry) {
        line(format!("          {}", action(probe)));
    }
    for item in insn::insns(&program.code) {
        let (bci, _) = item.unwrap();
        let block = flow.blocks.iter().position(|b| b.start == bci);
        for probe in at(At::FallThrough(bci)) {
            line(format!("          falling through: {}", action(probe)));
        }
        for probe in at(At::Before(bci)) {
            line(format!("          {}", action(probe)));
        }
        let inside = flow.blocks.iter().any(|b| (b.start..b.end).contains(&bci));
        let name = match block {
            Some(block) => letter(block as u32),
            None if inside => ' ',
            None => '-',
        };
        line(format!("{name} {bci:4}  {}", mnemonic(program, bci)));
        for probe in probes {
            if let Some(At::Taken { from, target }) = probe.at()
                && from == bci
            {
                line(format!("          jumping to {target}: {}", action(probe)));
            }
        }
    }
    for &(start, end, handler) in &program.guards {
        line(format!("exceptions in {start}..{end} go to {handler}"));
    }
    for probe in probes {
        if let Probe::Unwind { ranges, .. } = probe {
            let ranges: Vec<String> = ranges.iter().map(|r| format!("{}..{}", r.0, r.1)).collect();
            let (ranges, run) = (ranges.join(", "), action(probe));
            line(format!("exceptions in {ranges}: {run}, and on they go"));
        }
    }
}

fn why(kind: StartKind) -> String {
    let reasons = [
        (kind.entry, "entry"),
        (kind.loop_head, "loop head"),
        (kind.handler, "handler"),
        (kind.cut, "cut"),
    ];
    let reasons: Vec<&str> = reasons.iter().filter(|r| r.0).map(|r| r.1).collect();
    reasons.join(", ")
}

fn how(end: EdgeKind, next: Option<u32>) -> String {
    match (end, next) {
        (EdgeKind::Back, Some(to)) => format!("back to {}", letter(to)),
        (EdgeKind::Cut, Some(to)) => format!("cut before {}", letter(to)),
        (EdgeKind::Return, None) => "return".to_owned(),
        (EdgeKind::Throw, None) => "throw".to_owned(),
        other => panic!("a path ends by {other:?}"),
    }
}

/// All paths with their IDs.
fn paths(flow: &Flow, out: &mut String) {
    writeln!(out, "ID  path          starts at         ends by").unwrap();
    for id in 0..flow.num_paths {
        let path = flow.decode(id).unwrap();
        let (blocks, start) = (letters(&path.blocks), why(path.start));
        let end = how(path.end, path.next);
        writeln!(out, "{id:2}  {blocks:12}  {start:16}  {end}").unwrap();
    }
}

/// One activation that takes the given ways, and what is counted.
fn example(program: &Program, flow: &Flow, probes: &[Probe], ways: &[usize], out: &mut String) {
    let go = |probes: &[Probe]| {
        let (mut ways, mut exhausted) = (ways.iter(), false);
        let run = run(program, probes, 200, |n| {
            let way = ways.next().copied();
            exhausted |= way.is_none();
            way.unwrap_or(0) % n
        });
        assert!(
            run.left && !exhausted && ways.next().is_none(),
            "ways do not fit"
        );
        run
    };
    let run = go(probes);
    let merge = !flow.merged.is_empty();
    let (same_flow, plain) = program.build_with(Settings { merge, runs: false }).unwrap();
    assert_eq!(&same_flow, flow);
    let by_plain = go(&plain);
    check(program, flow, &by_plain);
    assert_eq!(by_plain.told(), run.told());
    let starts = |bci: &u16| flow.blocks.iter().position(|b| b.start == *bci);
    let blocks: Vec<u32> = run
        .trace
        .iter()
        .filter_map(starts)
        .map(|b| b as u32)
        .collect();
    let mut stream = vec![];
    let (mut begun, mut ended) = (1, 0);
    for (_, event) in &run.events {
        match event {
            Event::Enter => stream.push("*".to_owned()),
            Event::Id(id, then) => {
                stream.push(id.to_string());
                ended += u32::from(!matches!(then, Then::Restart(_)));
            }
            Event::Caught(_) => begun += 1,
        }
    }
    writeln!(out, "run         {}", letters(&blocks)).unwrap();
    writeln!(out, "stream      {}", stream.join(" ")).unwrap();
    writeln!(out, "unfinished  {}", begun - ended).unwrap();
}

/// The graph in Mermaid, with what the edges do to `r` and which IDs they emit.
fn drawing(flow: &Flow, probes: &[Probe], out: &mut String) {
    // The run loop that a block is in, as the ID of a turn.
    let run = |block: u32| {
        let start = flow.blocks.get(block as usize)?.start;
        probes.iter().find_map(|p| match p {
            Probe::Unwind { ranges, id } => {
                let inside = ranges.iter().any(|r| (r.0..r.1).contains(&start));
                inside.then_some(*id)
            }
            _ => None,
        })
    };
    let is_arm = |block: u32| flow.merged.iter().any(|m| m.arms.contains(&block));
    writeln!(out, "flowchart TD").unwrap();
    for start in &flow.starts {
        let (block, value) = (letter(start.block), start.value);
        if start.kind.entry {
            writeln!(out, "    entry([entry]) -->|\"r = {value}\"| {block}").unwrap();
        }
        if start.kind.handler {
            writeln!(
                out,
                "    caught{block}([exception]) -->|\"r = {value}\"| {block}"
            )
            .unwrap();
        }
    }
    for (i, block) in flow.blocks.iter().enumerate() {
        if is_arm(i as u32) {
            continue;
        }
        let name = letter(i as u32);
        writeln!(
            out,
            "    {name}[\"{name}: {}..{}\"]",
            block.start, block.end
        )
        .unwrap();
    }
    for edge in &flow.edges {
        let left = run(edge.from).filter(|_| run(edge.to) != run(edge.from));
        let first = left.map_or(String::new(), |id| format!("run({id}), "));
        let (from, emit) = (
            letter(edge.from),
            format!("{first}emit {}", sum(edge.value)),
        );
        let restart = || flow.start_at(edge.to).unwrap().value;
        let text = match edge.kind {
            EdgeKind::Forward => {
                let merged = flow.merged.iter().find(|m| m.head == edge.from);
                let text = match (merged, edge.value) {
                    (Some(m), _) if m.arms.len() == 1 => format!("by {} or not", letters(&m.arms)),
                    (Some(m), _) => format!("by {} or {}", letter(m.arms[0]), letter(m.arms[1])),
                    (None, 0) => first.trim_end_matches(", ").to_owned(),
                    (None, value) => format!("{first}r += {value}"),
                };
                let text = match &text[..] {
                    "" => String::new(),
                    text => format!("|\"{text}\"|"),
                };
                format!("{from} -->{text} {}", letter(edge.to))
            }
            EdgeKind::Back if run(edge.from).is_some() && left.is_none() => {
                format!("{from} -.->|\"n += 1\"| {}", letter(edge.to))
            }
            EdgeKind::Back | EdgeKind::Cut => {
                format!(
                    "{from} -.->|\"{emit}, r = {}\"| {}",
                    restart(),
                    letter(edge.to)
                )
            }
            EdgeKind::Return => format!("{from} -->|\"{emit}\"| return([return])"),
            EdgeKind::Throw => format!("{from} -->|\"{emit}\"| throw([throw])"),
        };
        writeln!(out, "    {text}").unwrap();
    }
}

/// A case as docs/control-flow.md has it, by plain probes: drawing, code with probes, paths, example runs.
pub fn case(program: &Program, runs: &[&[usize]]) -> String {
    case_with(Settings::default(), program, runs)
}

/// The same by other probes.
pub fn case_with(settings: Settings, program: &Program, runs: &[&[usize]]) -> String {
    let (flow, probes) = program.build_with(settings).unwrap();
    let mut out = "```mermaid\n".to_owned();
    drawing(&flow, &probes, &mut out);
    out.push_str("```\n\n```text\n");
    listing(program, &flow, &probes, &mut out);
    out.push('\n');
    paths(&flow, &mut out);
    for ways in runs {
        out.push('\n');
        example(program, &flow, &probes, ways, &mut out);
    }
    out.push_str("```\n");
    out
}
