//! Known answers, from ticks to the ranking: programs are executed, the four debug registers and the breakpoint are played by the test, and the
//! handler side is used as the agent must use it.

use crate::common::machine::{Did, HEAP, Machine, Op, Program, STACK};
use borescope_waste::handler::reservoir::{Draw, Random};
use borescope_waste::profile::snapshot;
use borescope_waste::rank::{Ranking, rank};
use borescope_waste::*;
use std::sync::atomic::AtomicU64;

/// A thread of the program under the profiler.
struct Run<'a> {
    program: &'a Program,
    machine: Machine,
    reader: Reader,
    watches: Watches<4>,
    random: Random,
    table: Table<'a>,
}

/// Content of a place, read as process_vm_readv would.
fn content(machine: &Machine, place: &Place) -> u64 {
    let byte = |n: u8| {
        machine
            .memory
            .get(&(place.start() + u64::from(n)))
            .copied()
            .unwrap_or(7)
    };
    (0..place.len())
        .map(|n| u64::from(byte(n)) << (8 * n))
        .sum()
}

fn touches(place: &Place, did: &Did) -> bool {
    did.address < place.start() + u64::from(place.len())
        && place.start() < did.address + u64::from(did.width)
}

impl Run<'_> {
    /// One instruction, and the traps it makes.
    fn step(&mut self) {
        // A program that has ended begins again: an endless loop around it.
        let Some(did) = self.machine.step(self.program) else {
            self.machine.registers.rip = self.program.starts[0];
            return;
        };
        for slot in 0..4 {
            let Some(armed) = self.watches.get(slot) else {
                continue;
            };
            let (place, mode) = (armed.watch.place(), armed.watch.mode());
            let traps = |d: &&Did| {
                touches(&place, d) && (mode == Some(Mode::ReadWrite) || d.kind != Kind::Load)
            };
            if did.iter().any(|d| traps(&d)) {
                self.trap(slot, &place);
            }
        }
    }

    fn trap(&mut self, slot: usize, place: &Place) {
        let tally = self.table.tally();
        let start = self.program.starts[0];
        let registers = self.machine.registers;
        let Ok(trapped) = trap::trapped(
            &mut self.reader,
            &self.program.code(),
            start,
            &registers,
            place,
        ) else {
            return self.watches.end(slot, End::UnknownAccess, &tally);
        };
        let after = content(&self.machine, place);
        let origin = self.origin(trapped.instruction.pc(), trapped.instruction.bytes);
        let trap = self
            .watches
            .trapped(slot, &trapped.access, None, after, &tally)
            .unwrap();
        for answer in trap.seen.answers() {
            self.table
                .record(&Pair::new(&trap.armed, &answer, &origin, &trapped.access));
        }
    }

    /// The context of an instruction: one frame whose place is the instruction's number.
    fn origin(&self, pc: u64, instruction: Bytes) -> Origin {
        let number = self.program.starts.partition_point(|start| *start <= pc) - 1;
        let frame = Frame::new(Frame::FIRST_METHOD, number as i32).unwrap();
        let main = Frame::new(Frame::FIRST_METHOD + 1, 0).unwrap();
        Origin {
            context: self.table.context([main, frame]).unwrap().node,
            line: self.table.line(frame).unwrap(),
            instruction,
            initialising: false,
        }
    }

    /// A tick where the thread stands.
    fn tick(&mut self) {
        let tally = self.table.tally();
        self.watches.tick(&tally);
        let scope = Scope {
            heap: (HEAP / 2, HEAP * 16),
            stack: (STACK - 4096, STACK + 4096),
            layout: Layout::COMPRESSED,
        };
        let object = Some(Object {
            start: 0,
            array: false,
        });
        let skip = self.random.below(4) as u32;
        let mut seek = Seek::new(self.machine.registers.rip, skip, 40);
        let found = loop {
            let registers = self.machine.registers;
            let mut accept = |operand: &handler::code::Operand| scope.judge(operand, object).ok();
            match seek.event(
                &mut self.reader,
                &self.program.code(),
                &registers,
                &mut accept,
            ) {
                Step::Reached(found) => break found,
                Step::BreakAt(pc) => {
                    self.step();
                    while self.machine.registers.rip != pc {
                        self.step();
                    }
                    seek.stopped(pc);
                }
                // The program's end: it begins again.
                Step::Elsewhere(_) => {
                    self.step();
                    while self.machine.registers.rip != self.program.starts[0] {
                        self.step();
                    }
                    seek.stopped(self.program.starts[0]);
                }
                Step::Miss(miss) => return self.watches.missed(miss, &tally),
                step => panic!("{step:?}"),
            }
        };
        self.watches.reached(&tally);
        let Some(slot) = self.watches.choose(&tally) else {
            return;
        };
        let place = Place::within(&found.access, &mut self.random);
        let before = content(&self.machine, &place);
        let origin = self.origin(found.instruction.pc(), found.instruction.bytes);
        match Watch::ahead(place, found.access, before, Asked::ALL) {
            Some(watch) => {
                self.watches.arm(
                    slot,
                    Armed {
                        watch,
                        origin,
                        object: 0,
                    },
                    &tally,
                );
            }
            None => self.watches.refuse(Refusal::NotAsked, &tally),
        }
    }
}

/// Profiles an endless repetition of some instructions. rbx (3) points into the heap, as do the others.
fn profile(ops: &[Op], values: [u64; 16], ticks: u32) -> (Ranking, Profile) {
    let program = Program::new(ops.to_vec());
    let capacity = Capacity::new(256, 256).unwrap();
    let words: Vec<AtomicU64> = (0..capacity.words()).map(|_| AtomicU64::new(0)).collect();
    let mut run = Run {
        program: &program,
        machine: Machine::new(&values),
        reader: Reader::new(),
        watches: Watches::new(3, Tolerance::default()),
        random: Random::new(4),
        table: Table::make(&words, capacity, Source::Software.code()).unwrap(),
    };
    for _ in 0..ticks {
        for _ in 0..50 + run.random.below(100) {
            run.step();
        }
        run.tick();
    }
    run.watches.end_all(End::Stopped, &run.table.tally());
    let profile = Profile::read(&snapshot(&words)).unwrap();
    assert_eq!(profile.accounts.check(true), Ok(()));
    assert_eq!(profile.accounts.get(Counter::NoRoom), 0);
    (rank(&profile), profile)
}

/// Wasteful share of a kind in percent, which must have been asked often enough to say so.
fn percent(ranking: &Ranking, waste: Waste) -> f64 {
    let kind = ranking.kinds[waste as usize];
    assert!(kind.completed >= 200, "{kind:?}");
    assert!(kind.fraction.lo <= kind.fraction.share && kind.fraction.share <= kind.fraction.hi);
    100.0 * kind.fraction.share
}

const A: u8 = 3;
const B: u8 = 5;
/// rbx and rbp point to different places; rsi and others hold other values.
const VALUES: [u64; 16] = [1, 2, 3, 100, 0, 50, 20, 30, 8, 9, 10, 11, 12, 13, 14, 15];

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 5.0, "{found} is not {expected}");
}

#[test]
fn dead_stores() {
    // Overwritten at once; read at once; every second one read.
    let two = [Op::Store(A, 0, 6), Op::Store(A, 0, 7)];
    let (ranking, _) = profile(&two, VALUES, 1500);
    near(percent(&ranking, Waste::DeadStore), 100.0);
    let read = [Op::Store(A, 0, 6), Op::Load(8, A, 0)];
    let (ranking, _) = profile(&read, VALUES, 1500);
    near(percent(&ranking, Waste::DeadStore), 0.0);
    let half = [Op::Store(A, 0, 6), Op::Store(A, 0, 7), Op::Load(8, A, 0)];
    let (ranking, profile) = profile(&half, VALUES, 4000);
    near(percent(&ranking, Waste::DeadStore), 50.0);
    // The one pair is the first store, overwritten by the second.
    let dead: Vec<_> = ranking
        .pairs
        .iter()
        .filter(|p| p.waste == Waste::DeadStore)
        .collect();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].first.bci, dead[0].second.bci), (0, 1));
    assert_eq!(dead[0].count, dead[0].of_first, "all of the first store's");
    assert_eq!(dead[0].partial, 0);
    assert_eq!(profile.contexts.depth(dead[0].contexts[0].first), 2);
    // Halves of a place: dead once both are overwritten.
    let parts = [
        Op::Store(A, 0, 6),
        Op::Store8(A, 0, 7),
        Op::Store8(A, 1, 7),
        Op::Store8(A, 2, 7),
        Op::Store8(A, 3, 7),
        Op::Store8(A, 4, 7),
        Op::Store8(A, 5, 7),
        Op::Store8(A, 6, 7),
        Op::Store8(A, 7, 7),
        Op::Load(8, A, 0),
    ];
    let (ranking, _) = self::profile(&parts, VALUES, 3000);
    let of_first = ranking
        .pairs
        .iter()
        .find(|p| p.waste == Waste::DeadStore && p.first.bci == 0)
        .unwrap();
    assert_eq!(
        (of_first.second.bci, of_first.count, of_first.partial),
        (8, of_first.of_first, of_first.count)
    );
}

#[test]
fn silent_stores() {
    let same = [Op::Store(A, 0, 6), Op::Load(8, A, 0)];
    let (ranking, _) = profile(&same, VALUES, 2000);
    near(percent(&ranking, Waste::SilentStore), 100.0);
    let other = [Op::Store(A, 0, 6), Op::Load(8, A, 0), Op::Store(A, 0, 7)];
    let (ranking, _) = profile(&other, VALUES, 2000);
    near(percent(&ranking, Waste::SilentStore), 0.0);
    // x, x, y: of three stores one writes what is there.
    let third = [Op::Store(A, 0, 6), Op::Store(A, 0, 6), Op::Store(A, 0, 7)];
    let (ranking, _) = profile(&third, VALUES, 4000);
    near(percent(&ranking, Waste::SilentStore), 100.0 / 3.0);
}

#[test]
fn silent_loads() {
    let same = [Op::Load(8, A, 0), Op::Load(9, B, 8)];
    let (ranking, _) = profile(&same, VALUES, 1500);
    near(percent(&ranking, Waste::SilentLoad), 100.0);
    assert!(
        ranking.pairs.iter().all(|p| p.first == p.second),
        "each line reloads what it loaded"
    );
    let hint = ranking.pairs[0].hint.words();
    assert!(
        hint.starts_with("the value is reloaded in each iteration though nothing stores to it"),
        "{hint}"
    );
    // A counter: each load reads another value.
    let counter = [Op::Load(8, A, 0), Op::AddTo(A, 0, 6)];
    let (ranking, _) = profile(&counter, VALUES, 2500);
    near(percent(&ranking, Waste::SilentLoad), 50.0);
    // Loaded twice between two additions: the addition's own load is the third.
    let twice = [
        Op::Load(8, A, 0),
        Op::Load(9, A, 0),
        Op::Load(10, A, 0),
        Op::AddTo(A, 0, 6),
    ];
    let (ranking, _) = profile(&twice, VALUES, 4000);
    near(percent(&ranking, Waste::SilentLoad), 75.0);
    // A load that overwrites its own base.
    let chase = [Op::Lea(8, A, 0), Op::Load(8, 8, 0), Op::Load(9, A, 0)];
    let (ranking, _) = profile(&chase, VALUES, 1500);
    near(percent(&ranking, Waste::SilentLoad), 100.0);
}

/// Four registers and many places: a place is kept with the same probability as any other, so shares are those of the program.
#[test]
fn shares_among_many_places() {
    // 12 stores that die, 12 that are read.
    let mut ops = Vec::new();
    for n in 0..12 {
        ops.push(Op::Store(A, 16 * n, 6));
        ops.push(Op::Store(B, 4096 + 16 * n, 6));
    }
    for n in 0..12 {
        ops.push(Op::Load(8, B, 4096 + 16 * n));
        ops.push(Op::Nop);
    }
    let (ranking, profile) = profile(&ops, VALUES, 6000);
    near(percent(&ranking, Waste::DeadStore), 50.0);
    assert!(profile.accounts.get(Counter::Ended(End::Completed)) > 1000);
    let dead: Vec<u64> = ranking
        .pairs
        .iter()
        .filter(|p| p.waste == Waste::DeadStore)
        .map(|p| p.count)
        .collect();
    assert_eq!(dead.len(), 12, "each place is found");
}
