//! A label assembler for hand-made bytecode, and an interpreter of control flow that runs probes exactly where they are placed.

#![allow(dead_code)] // Each test file uses its part.

pub mod generate;
pub mod show;

use borescope_cfg::flow::{Block, EdgeKind, Flow};
use borescope_cfg::{Builder, Constants, Probe, Settings, Skip, Then};
use borescope_classfile::At;
use borescope_classfile::insn;

/// A method under test.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub code: Vec<u8>,
    /// (start, end, handler)
    pub guards: Vec<(u16, u16, u16)>,
}

/// The constant pool of all methods under test: index 1 is a method of anything, 2 one of Math, 3 to 8 constants
/// of these tags, 9 an int field, 10 a long, 11 an array.
pub struct Pool;

pub const MATH: u8 = 2;

impl Constants for Pool {
    fn tag(&self, index: u16) -> Option<u8> {
        match index {
            1 | 2 => Some(10),
            3..=8 => Some(index as u8),
            _ => None,
        }
    }

    fn member_class(&self, index: u16) -> Option<&[u8]> {
        match index {
            1 => Some(b"Anything"),
            2 => Some(b"java/lang/Math"),
            _ => None,
        }
    }

    fn member_type(&self, index: u16) -> Option<u8> {
        match index {
            1 | 2 => Some(b'('),
            9..=11 => Some(b"IJ["[usize::from(index) - 9]),
            _ => None,
        }
    }
}

/// Everything that the builder may do.
pub const FAST: Settings = Settings {
    merge: true,
    runs: true,
};

impl Program {
    /// Plain Ball-Larus.
    pub fn build(&self) -> Result<(Flow, Vec<Probe>), Skip> {
        self.build_with(Settings::default())
    }

    pub fn build_with(&self, settings: Settings) -> Result<(Flow, Vec<Probe>), Skip> {
        self.build_by(&mut Builder::new(), settings)
    }

    pub fn build_by(
        &self,
        builder: &mut Builder,
        settings: Settings,
    ) -> Result<(Flow, Vec<Probe>), Skip> {
        builder.build_parts(&self.code, self.guards.iter().copied(), &Pool, settings)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(usize);

/// Width and place of a branch offset to fill in.
struct Fixup {
    at: usize,
    from: usize,
    wide: bool,
    label: Label,
}

/// Assembles bytecode with labels.
#[derive(Default)]
pub struct Asm {
    code: Vec<u8>,
    bound: Vec<Option<usize>>,
    fixups: Vec<Fixup>,
    guards: Vec<(Label, Label, Label)>,
}

impl Asm {
    pub fn label(&mut self) -> Label {
        self.bound.push(None);
        Label(self.bound.len() - 1)
    }

    pub fn labels<const N: usize>(&mut self) -> [Label; N] {
        std::array::from_fn(|_| self.label())
    }

    pub fn bind(&mut self, label: Label) -> &mut Self {
        self.bound[label.0] = Some(self.code.len());
        self
    }

    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    pub fn op(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.extend(bytes);
        self
    }

    /// An instruction that may throw (invokestatic of anything).
    pub fn call(&mut self) -> &mut Self {
        self.op(&[insn::INVOKESTATIC, 0, 1])
    }

    /// A call that a run loop may have, which may throw.
    pub fn math(&mut self) -> &mut Self {
        self.op(&[insn::INVOKESTATIC, 0, MATH])
    }

    pub fn branch(&mut self, opcode: u8, label: Label) -> &mut Self {
        let from = self.code.len();
        let wide = opcode == insn::GOTO_W;
        self.fixups.push(Fixup {
            at: from + 1,
            from,
            wide,
            label,
        });
        self.op(&[opcode]);
        self.op(if wide { &[0; 4] } else { &[0; 2] })
    }

    pub fn goto(&mut self, label: Label) -> &mut Self {
        self.branch(insn::GOTO, label)
    }

    pub fn ifeq(&mut self, label: Label) -> &mut Self {
        self.branch(insn::IFEQ, label)
    }

    pub fn table_switch(&mut self, default: Label, cases: &[Label]) -> &mut Self {
        self.switch(insn::TABLESWITCH, default, cases)
    }

    pub fn lookup_switch(&mut self, default: Label, cases: &[Label]) -> &mut Self {
        self.switch(insn::LOOKUPSWITCH, default, cases)
    }

    fn switch(&mut self, opcode: u8, default: Label, cases: &[Label]) -> &mut Self {
        let from = self.code.len();
        self.code.push(opcode);
        while !self.code.len().is_multiple_of(4) {
            self.code.push(0);
        }
        self.wide_offset(from, default);
        let n = cases.len() as i32;
        if opcode == insn::TABLESWITCH {
            self.op(&0i32.to_be_bytes()).op(&(n - 1).to_be_bytes());
        } else {
            self.op(&n.to_be_bytes());
        }
        for (i, &case) in cases.iter().enumerate() {
            if opcode == insn::LOOKUPSWITCH {
                self.op(&(i as i32).to_be_bytes());
            }
            self.wide_offset(from, case);
        }
        self
    }

    fn wide_offset(&mut self, from: usize, label: Label) {
        self.fixups.push(Fixup {
            at: self.code.len(),
            from,
            wide: true,
            label,
        });
        self.code.extend([0; 4]);
    }

    pub fn guard(&mut self, start: Label, end: Label, handler: Label) -> &mut Self {
        self.guards.push((start, end, handler));
        self
    }

    pub fn bci(&self, label: Label) -> usize {
        self.bound[label.0].expect("unbound label")
    }

    pub fn finish(mut self) -> Program {
        for f in &self.fixups {
            let offset = self.bci(f.label) as i64 - f.from as i64;
            if f.wide {
                self.code[f.at..f.at + 4].copy_from_slice(&(offset as i32).to_be_bytes());
            } else {
                let near = i16::try_from(offset).expect("branch too far");
                self.code[f.at..f.at + 2].copy_from_slice(&near.to_be_bytes());
            }
        }
        let guards = self
            .guards
            .iter()
            .map(|&(s, e, h)| (self.bci(s) as u16, self.bci(e) as u16, self.bci(h) as u16))
            .filter(|g| g.0 < g.1)
            .collect();
        Program {
            code: self.code,
            guards,
        }
    }
}

/// Where control can go after an instruction, leaving exceptions aside: (jump, bci).
pub fn successors(code: &[u8], bci: u16) -> Vec<(bool, u16)> {
    let next = bci + insn::insn_len(code, bci.into()).unwrap() as u16;
    match insn::flow(code, bci.into()).unwrap() {
        insn::Flow::Next => vec![(false, next)],
        insn::Flow::Branch(target) => vec![(false, next), (true, target)],
        insn::Flow::Goto(target) => vec![(true, target)],
        insn::Flow::Switch { default, targets } => {
            targets.chain([default]).map(|t| (true, t)).collect()
        }
        _ => vec![],
    }
}

/// Whether the interpreter may throw at this instruction.
fn may_throw(opcode: u8) -> bool {
    [insn::INVOKESTATIC, insn::IDIV, insn::ATHROW].contains(&opcode)
}

/// What a probe told the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Enter,
    /// An ID, and what came after it.
    Id(u32, Then),
    Caught(u16),
}

/// One activation, as executed.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What the engine heard, with the number of instructions begun before.
    pub events: Vec<(usize, Event)>,
    /// Bytecode indices of the instructions, in order of execution.
    pub trace: Vec<u16>,
    /// Positions in `trace` of handlers' first instructions, after an exception.
    pub caught: Vec<usize>,
    /// Whether it left the method (else the walk was stopped).
    pub left: bool,
    /// Turns told where a run loop is left by an edge, and by an exception.
    pub turns: [u64; 2],
}

impl Run {
    /// What the engine heard, in order.
    pub fn told(&self) -> Vec<Event> {
        self.events.iter().map(|e| e.1).collect()
    }
}

/// The locals of the probes.
struct Engine<'a> {
    probes: &'a [Probe],
    r: u32,
    n: u64,
}

impl Engine<'_> {
    /// Runs the probes of a place.
    fn fire(&mut self, run: &mut Run, at: At) {
        for probe in self.probes.iter().filter(|p| p.at() == Some(at)) {
            let event = match *probe {
                Probe::Enter { value, .. } => {
                    (self.r, self.n) = (value, 0);
                    Event::Enter
                }
                Probe::Add { value, .. } => {
                    self.r = self.sum(value);
                    continue;
                }
                Probe::Emit { add, then, .. } => {
                    assert_eq!(self.n, 0, "turns are told late");
                    let id = self.sum(add);
                    if let Then::Restart(value) = then {
                        self.r = value;
                    }
                    Event::Id(id, then)
                }
                Probe::Turn { .. } => {
                    self.n += 1;
                    continue;
                }
                Probe::Run { id, .. } => {
                    run.turns[0] += self.flush(run, id);
                    continue;
                }
                Probe::Unwind { .. } => panic!("an unwind has no place"),
                Probe::Caught { bci, value } => {
                    self.r = value;
                    Event::Caught(bci)
                }
            };
            run.events.push((run.trace.len(), event));
        }
    }

    fn sum(&self, value: u32) -> u32 {
        self.r.checked_add(value).expect("path register overflows")
    }

    /// Tells the turns of a run loop.
    fn flush(&mut self, run: &mut Run, id: u32) -> u64 {
        let turns = std::mem::take(&mut self.n);
        for _ in 0..turns {
            let told = std::mem::replace(&mut self.r, id);
            let event = Event::Id(told, Then::Restart(id));
            run.events.push((run.trace.len(), event));
        }
        turns
    }

    /// An exception that no handler of the method's own catches, or the walk's limit.
    fn unwind(&mut self, run: &mut Run, bci: u16) {
        let covers = |range: &&(u16, u16)| (range.0..range.1).contains(&bci);
        for probe in self.probes {
            if let Probe::Unwind { ranges, id } = probe
                && ranges.iter().find(covers).is_some()
            {
                run.turns[1] += self.flush(run, *id);
            }
        }
        assert_eq!(self.n, 0, "turns are lost");
    }
}

/// Runs one activation: `choose(n)` picks one of n > 1 ways. Stops after `limit` instructions, and tells the turns up to there.
pub fn run(
    program: &Program,
    probes: &[Probe],
    limit: usize,
    mut choose: impl FnMut(usize) -> usize,
) -> Run {
    let mut choose = |n| if n > 1 { choose(n) } else { 0 };
    let mut run = Run::default();
    // Whatever the slots held.
    let mut engine = Engine {
        probes,
        r: 0xDEAD_BEEF,
        n: 0xDEAD_BEEF,
    };
    engine.fire(&mut run, At::Entry);
    let mut bci = 0u16;
    while run.trace.len() < limit {
        run.trace.push(bci);
        engine.fire(&mut run, At::Before(bci));
        let op = program.code[usize::from(bci)];
        if may_throw(op) && (op == insn::ATHROW || choose(4) == 0) {
            // The exception's class decides among the handlers: any, or none.
            let covering: Vec<u16> = program
                .guards
                .iter()
                .filter(|g| (g.0..g.1).contains(&bci))
                .map(|g| g.2)
                .collect();
            let pick = choose(covering.len() + 1);
            let Some(&handler) = covering.get(pick) else {
                engine.unwind(&mut run, bci);
                run.left = true;
                return run;
            };
            run.caught.push(run.trace.len());
            bci = handler;
            continue;
        }
        let ways = successors(&program.code, bci);
        if ways.is_empty() {
            run.left = true;
            return run;
        }
        let (jump, target) = ways[choose(ways.len())];
        engine.fire(
            &mut run,
            if jump {
                At::Taken { from: bci, target }
            } else {
                At::FallThrough(target)
            },
        );
        bci = target;
    }
    // What stands before the next instruction has not run.
    let last = *run.trace.last().unwrap();
    engine.unwind(&mut run, last);
    run
}

/// Runs one activation that goes its way at random (xorshift64*).
pub fn walk(program: &Program, probes: &[Probe], seed: u64) -> Run {
    let mut state = seed | 1;
    run(program, probes, 400, |n| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    })
}

/// Instructions in a path, in order.
pub fn bcis(program: &Program, flow: &Flow, blocks: &[u32]) -> Vec<u16> {
    let mut out = vec![];
    for (start, end) in flow.path_bcis(blocks) {
        let mut bci = usize::from(start);
        while bci < usize::from(end) {
            out.push(bci as u16);
            bci += insn::insn_len(&program.code, bci).unwrap();
        }
        assert_eq!(bci, usize::from(end), "a block ends inside an instruction");
    }
    out
}

/// Compares what the probes told with what was executed: each ID decodes to exactly the instructions executed since the path's
/// start (but those on the ways of merged branches), all are accounted for, and unfinished paths = activations + handler entries - IDs emitted at returns and throws.
///
/// Where each ID was emitted counts, so this is for probes without run loops.
pub fn check(program: &Program, flow: &Flow, run: &Run) {
    let arms: Vec<&Block> = flow
        .merged
        .iter()
        .flat_map(|m| &m.arms)
        .map(|&arm| &flow.blocks[arm as usize])
        .collect();
    let on_arm = |bci: &u16| arms.iter().any(|arm| (arm.start..arm.end).contains(bci));
    let mut events = run.events.iter().peekable();
    assert_eq!(events.next(), Some(&(0, Event::Enter)));
    let mut caught = run.caught.iter().peekable();
    let (mut segment, mut unfinished, mut starts, mut ends) = (0, 0, 1, 0);
    // The block where the current path must have started; None between an athrow and its handler.
    let mut start = Some((0, "entry"));
    loop {
        let (at, event) = match events.next() {
            Some(&(at, event)) => (at, Some(event)),
            None => (run.trace.len(), None),
        };
        let is_caught = matches!(event, Some(Event::Caught(_)));
        // In a handler that covers itself the probe stands some instructions behind the handler's start.
        let late = match event {
            Some(Event::Caught(bci)) => {
                let block = flow
                    .blocks
                    .iter()
                    .find(|b| (b.start..b.end).contains(&bci))
                    .unwrap();
                insn::insns(&program.code[..usize::from(bci)])
                    .filter(|i| i.as_ref().unwrap().0 >= block.start)
                    .count()
            }
            _ => 0,
        };
        if is_caught || event.is_none() {
            // No ID between: what was executed since is part of no finished path.
            let end = if is_caught { at - 1 - late } else { at };
            if start.is_some() {
                unfinished += 1;
                // Only an exception in the middle or the walk's limit leaves a path unfinished.
                if is_caught || run.left {
                    let last = program.code[usize::from(run.trace[end - 1])];
                    assert!(may_throw(last) && last != insn::ATHROW, "lost path");
                }
            } else {
                assert_eq!(segment, end, "instructions outside any path");
            }
            let Some(Event::Caught(bci)) = event else {
                break;
            };
            assert_eq!(
                caught.next(),
                Some(&end),
                "caught exactly once an exception"
            );
            let block = flow
                .blocks
                .iter()
                .position(|b| (b.start..b.end).contains(&bci))
                .unwrap();
            assert_eq!(run.trace[end], flow.blocks[block].start);
            start = Some((block as u32, "handler"));
            starts += 1;
            segment = end;
            continue;
        }
        let Some(Event::Id(id, then)) = event else {
            panic!("entered twice");
        };
        let path = flow.decode(id).expect("an emitted ID decodes");
        let (block, why) = start.expect("an ID where no path started");
        assert_eq!(path.blocks[0], block, "ID {id} starts elsewhere");
        let kind = path.start;
        assert!(match why {
            "entry" => kind.entry,
            "handler" => kind.handler,
            "loop" => kind.loop_head,
            _ => kind.cut,
        });
        let executed = run.trace[segment..at].iter().copied();
        let executed: Vec<u16> = executed.filter(|bci| !on_arm(bci)).collect();
        assert_eq!(bcis(program, flow, &path.blocks), executed, "ID {id}");
        assert_eq!(flow.encode(&path.blocks, path.end, path.next), Some(id));
        segment = at;
        match then {
            Then::Restart(_) => {
                let why = if path.end == EdgeKind::Back {
                    "loop"
                } else {
                    "cut"
                };
                assert!(matches!(path.end, EdgeKind::Back | EdgeKind::Cut));
                start = Some((path.next.unwrap(), why));
                if let Some(&bci) = run.trace[at..].iter().find(|bci| !on_arm(bci)) {
                    assert_eq!(flow.blocks[path.next.unwrap() as usize].start, bci);
                }
            }
            Then::Leave | Then::Continue => {
                assert!(matches!(path.end, EdgeKind::Return | EdgeKind::Throw));
                assert_eq!(path.next, None);
                start = None;
                ends += 1;
                let last = run.trace[at - 1];
                let covered = program.guards.iter().any(|g| (g.0..g.1).contains(&last));
                let throws = path.end == EdgeKind::Throw;
                assert_eq!(then == Then::Continue, throws && covered);
            }
        }
    }
    assert_eq!(caught.next(), None, "caught exactly once an exception");
    assert_eq!(unfinished, starts - ends);
}
