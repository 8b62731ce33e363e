//! Splicing checked against an interpreter: with random code inserted at random places of random methods, the old instructions
//! run in the old order in the old states and on the old lines, and each inserted marker runs exactly when its place says, covered
//! by exactly the handlers that its place says. What no old handler catches goes through the handlers added for its place. Where a copy of the
//! old code is kept and chosen, that runs as if nothing had been inserted.

#[path = "support/generate.rs"]
mod generate;

use borescope_classfile::insn::{self, *};
use borescope_classfile::{At, ClassFile, Code, MethodEdit, Plain, Splicer};
use generate::{Assembled, Program};
use proptest::prelude::*;

/// Events compared before an endless loop is left.
const EVENTS: usize = 1500;
/// First marker of added handlers.
const UNWIND: u16 = 1000;
/// Steps without an event before a loop of gotos and nops is left: more than any method has instructions.
const SILENT_STEPS: usize = 70_000;

#[derive(Clone, Debug, PartialEq)]
enum Event {
    /// An old instruction other than goto and nop (which are also inserted): opcode, line, locals, stack.
    Old(u8, u16, [i32; 4], Vec<i32>),
    /// A marker, and the indices of the exception table entries that cover it.
    Marker(u16, Vec<usize>),
    /// The marker of an added handler, which throws on.
    Unwind(u16),
}

/// How control came to an instruction.
enum Arrival {
    Entry,
    Fall,
    Jump(u16),
    Handler,
}

#[derive(Default)]
struct Patience {
    events: usize,
    silent_steps: usize,
}

impl Patience {
    fn lasts(&mut self, events: usize) -> bool {
        self.silent_steps = if events > self.events {
            0
        } else {
            self.silent_steps + 1
        };
        self.events = events;
        events < EVENTS && self.silent_steps < SILENT_STEPS
    }
}

/// A handler added: the bcis that it covers, and its marker.
type Unwind = (Vec<(u16, u16)>, u16);

struct Machine<'a> {
    code: Code<'a>,
    /// Handlers that the code shall have besides its own.
    unwinds: &'a [Unwind],
    lines: Vec<(u16, u16)>,
    locals: [i32; 4],
    stack: Vec<i32>,
    events: Vec<Event>,
}

impl<'a> Machine<'a> {
    fn new(class: &ClassFile<'a>, arguments: [i32; 4]) -> Self {
        let code = class.methods()[0].code().unwrap();
        let lines = code.line_numbers();
        Self {
            code,
            unwinds: &[],
            lines,
            locals: arguments,
            stack: Vec::new(),
            events: Vec::new(),
        }
    }

    fn covering(&self, bci: u16) -> Vec<usize> {
        let own = self.code.exceptions().map(|e| (e.start, e.end));
        own.chain(self.unwinds.iter().flat_map(|u| u.0.iter().copied()))
            .enumerate()
            .filter(|(_, (start, end))| (*start..*end).contains(&bci))
            .map(|(i, _)| i)
            .collect()
    }

    fn marker(&mut self, id: u16, covered_as: Option<u16>) {
        let covering = covered_as.map_or(Vec::new(), |bci| self.covering(bci));
        self.events.push(Event::Marker(id, covering));
    }

    /// Executes the instruction; where control goes next, if the method goes on.
    fn step(&mut self, bci: u16) -> Option<(u16, Arrival)> {
        let code = self.code.code;
        let at = usize::from(bci);
        let op = code[at];
        if ![GOTO, GOTO_W, NOP].contains(&op) {
            let line = self
                .lines
                .iter()
                .rev()
                .find(|(start, _)| *start <= bci)
                .unwrap()
                .1;
            self.events
                .push(Event::Old(op, line, self.locals, self.stack.clone()));
        }
        let len = insn::insn_len(code, at).unwrap();
        let next = Some((bci.wrapping_add(len as u16), Arrival::Fall));
        let byte = |i: usize| code[at + i];
        match op {
            NOP => {}
            ACONST_NULL => self.stack.push(0),
            BIPUSH => self.stack.push(i32::from(byte(1) as i8)),
            ILOAD_0..=ILOAD_3 => self.stack.push(self.locals[usize::from(op - ILOAD_0)]),
            ISTORE_0..=ISTORE_3 => {
                self.locals[usize::from(op - ISTORE_0)] = self.stack.pop().unwrap()
            }
            POP => drop(self.stack.pop().unwrap()),
            IADD => {
                let (a, b) = (self.stack.pop().unwrap(), self.stack.pop().unwrap());
                self.stack.push(a.wrapping_add(b));
            }
            IINC => {
                let local = &mut self.locals[usize::from(byte(1))];
                *local = local.wrapping_add(i32::from(byte(2) as i8));
            }
            WIDE => {
                let local = &mut self.locals[usize::from(byte(3))];
                *local = local.wrapping_add(i32::from(i16::from_be_bytes([byte(4), byte(5)])));
            }
            IRETURN => return None,
            ATHROW => {
                let covers = |&(start, end): &(u16, u16)| (start..end).contains(&bci);
                self.stack = vec![0];
                let mut own = self.code.exceptions();
                if let Some(handler) = own.find(|e| covers(&(e.start, e.end))) {
                    return Some((handler.handler, Arrival::Handler));
                }
                let (_, id) = self.unwinds.iter().find(|u| u.0.iter().any(covers))?;
                self.events.push(Event::Unwind(*id));
                return None;
            }
            _ => match insn::flow(code, at).unwrap() {
                Flow::Goto(target) => return Some((target, Arrival::Jump(bci))),
                Flow::Branch(target) => {
                    let b = if op >= IF_ICMPEQ {
                        self.stack.pop().unwrap()
                    } else {
                        0
                    };
                    let a = self.stack.pop().unwrap();
                    let jumps = match if op >= IF_ICMPEQ {
                        op - IF_ICMPEQ
                    } else {
                        op - IFEQ
                    } {
                        0 => a == b,
                        1 => a != b,
                        2 => a < b,
                        3 => a >= b,
                        4 => a > b,
                        _ => a <= b,
                    };
                    return if jumps {
                        Some((target, Arrival::Jump(bci)))
                    } else {
                        next
                    };
                }
                Flow::Switch { default, targets } => {
                    let key = self.stack.pop().unwrap();
                    let table = (at + 4) & !3;
                    let int = |i: usize| {
                        i32::from_be_bytes(
                            code[table + 4 * i..table + 4 * i + 4].try_into().unwrap(),
                        )
                    };
                    let case = if op == TABLESWITCH {
                        usize::try_from(i64::from(key) - i64::from(int(1))).ok()
                    } else {
                        (0..targets.len()).find(|i| int(2 + 2 * i) == key)
                    };
                    let target = case
                        .and_then(|case| targets.clone().nth(case))
                        .unwrap_or(default);
                    return Some((target, Arrival::Jump(bci)));
                }
                other => panic!("{op} {other:?}"),
            },
        }
        next
    }

    /// Runs the old code and says what the spliced code shall do.
    fn expect(mut self, insertions: &[(At, u16)], unwinds: &'a [Unwind]) -> Vec<Event> {
        self.unwinds = unwinds;
        let mut now = Some((0, Arrival::Entry));
        let mut patience = Patience::default();
        while let Some((bci, arrival)) = now.filter(|_| patience.lasts(self.events.len())) {
            for &(at, id) in insertions {
                match (at, &arrival) {
                    (At::Entry, Arrival::Entry) => self.marker(id, None),
                    (At::FallThrough(x), Arrival::Fall) if x == bci => self.marker(id, Some(bci)),
                    (At::Taken { from, target }, Arrival::Jump(jump))
                        if (from, target) == (*jump, bci) =>
                    {
                        let goto = [GOTO, GOTO_W].contains(&self.code.code[usize::from(from)]);
                        self.marker(id, Some(if goto { from } else { target }));
                    }
                    _ => {}
                }
            }
            for &(at, id) in insertions {
                if at == At::Before(bci) {
                    self.marker(id, Some(bci));
                }
            }
            now = self.step(bci);
        }
        self.events
    }

    /// Runs spliced code, from its test on where a copy of the old code is kept.
    fn run(mut self, edited: Option<bool>) -> Vec<Event> {
        let mut start = 0;
        if let Some(edited) = edited {
            let code = self.code.code;
            assert_eq!(code[..2], [ICONST_0 + u8::from(edited), IFEQ]);
            let Flow::Branch(copy) = insn::flow(code, 1).unwrap() else {
                panic!("no jump")
            };
            assert!((0..4).all(|bci| self.covering(bci).is_empty()));
            start = if edited { 4 } else { copy };
        }
        let mut now = Some((start, Arrival::Entry));
        let mut patience = Patience::default();
        while let Some((bci, _)) = now.filter(|_| patience.lasts(self.events.len())) {
            let at = usize::from(bci);
            now = if self.code.code[at] == SIPUSH {
                let id = u16::from_be_bytes([self.code.code[at + 1], self.code.code[at + 2]]);
                assert_eq!(self.code.code[at + 3], POP);
                if id >= UNWIND {
                    assert!(self.covering(bci).is_empty());
                    assert_eq!(
                        (&self.stack[..], self.code.code[at + 4]),
                        (&[0][..], ATHROW)
                    );
                    self.events.push(Event::Unwind(id));
                    break;
                }
                self.marker(id, Some(bci));
                Some((bci + 4, Arrival::Fall))
            } else {
                self.step(bci)
            };
        }
        self.events
    }
}

/// Every place of the method where something can be inserted.
fn places(code: &[u8]) -> Vec<At> {
    let mut places = vec![At::Entry];
    for item in insn::insns(code) {
        let (bci, _) = item.unwrap();
        places.push(At::Before(bci));
        if bci > 0 {
            places.push(At::FallThrough(bci));
        }
        match insn::flow(code, usize::from(bci)).unwrap() {
            Flow::Branch(target) | Flow::Goto(target) => {
                places.push(At::Taken { from: bci, target })
            }
            Flow::Switch { default, targets } => {
                let mut all: Vec<u16> = targets.chain([default]).collect();
                all.sort_unstable();
                all.dedup();
                places.extend(
                    all.into_iter()
                        .map(|target| At::Taken { from: bci, target }),
                );
            }
            _ => {}
        }
    }
    places
}

/// Makes an edit of markers at the places chosen, each followed by `filler` nops.
fn edit_of(
    places: &[At],
    choices: &[(prop::sample::Index, usize)],
) -> (MethodEdit, Vec<(At, u16)>) {
    let mut edit = MethodEdit::default();
    let mut insertions = Vec::new();
    for (i, (index, filler)) in choices.iter().enumerate() {
        let at = *index.get(places);
        let id = i as u16;
        let [hi, lo] = id.to_be_bytes();
        let mut bytes = vec![SIPUSH, hi, lo, POP];
        bytes.extend(std::iter::repeat_n(NOP, *filler));
        edit.insert(at, &bytes);
        insertions.push((at, id));
    }
    edit.extra_stack = 1;
    (edit, insertions)
}

/// Adds handlers with markers: for each of `choices` one for the ranges between pairs of its bcis.
fn unwinds_of(
    code: &[u8],
    choices: &[Vec<prop::sample::Index>],
    edit: &mut MethodEdit,
) -> Vec<Unwind> {
    let starts = insn::insns(code).map(|item| item.unwrap().0);
    let bcis: Vec<u16> = starts.chain([code.len() as u16]).collect();
    let mut unwinds = Vec::new();
    for (id, choice) in (UNWIND..).zip(choices) {
        let mut ends: Vec<u16> = choice.iter().map(|index| *index.get(&bcis)).collect();
        ends.sort_unstable();
        ends.dedup();
        let ranges: Vec<_> = ends
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        let [hi, lo] = id.to_be_bytes();
        edit.unwind(&ranges, &[SIPUSH, hi, lo, POP, ATHROW]);
        unwinds.push((ranges, id));
    }
    unwinds
}

fn check(
    program: &Program,
    choices: &[(prop::sample::Index, usize)],
    unwind_choices: &[Vec<prop::sample::Index>],
    edited: Option<bool>,
    arguments: [i32; 4],
) -> Result<Result<Vec<u8>, Plain>, TestCaseError> {
    let assembled = program.assemble();
    let class = ClassFile::parse(&assembled.class).unwrap();
    prop_assert_eq!(class.methods()[0].code().unwrap().code, &assembled.code[..]);
    prop_assert_eq!(Splicer::new(&class).finish(), assembled.class.clone());

    let (mut edit, insertions) = edit_of(&places(&assembled.code), choices);
    let unwinds = unwinds_of(&assembled.code, unwind_choices, &mut edit);
    if let Some(edited) = edited {
        edit.keep_copy(&[ICONST_0 + u8::from(edited)]);
    }
    let mut splicer = Splicer::new(&class);
    if let Err(plain) = splicer.edit(0, &edit) {
        prop_assert_eq!(splicer.finish(), assembled.class.clone());
        return Ok(Err(plain));
    }
    let spliced = splicer.finish();
    let new = ClassFile::parse(&spliced).unwrap();
    let (insertions, unwinds) = match edited {
        Some(false) => (vec![], vec![]),
        _ => (insertions, unwinds),
    };
    if edited.is_some() {
        prop_assert!(
            new.methods()[0]
                .code()
                .unwrap()
                .code
                .ends_with(&assembled.code)
        );
    }
    let expected = Machine::new(&class, arguments).expect(&insertions, &unwinds);
    let actual = Machine::new(&new, arguments).run(edited);
    let events = expected.len().min(EVENTS);
    prop_assert_eq!(&actual[..actual.len().min(EVENTS)], &expected[..events]);
    Ok(Ok(spliced))
}

fn choices(
    count: usize,
    filler: usize,
) -> impl Strategy<Value = Vec<(prop::sample::Index, usize)>> {
    let filler = prop_oneof![4 => Just(0), 1 => 0..=filler];
    prop::collection::vec((any::<prop::sample::Index>(), filler), 0..count)
}

fn unwind_choices() -> impl Strategy<Value = Vec<Vec<prop::sample::Index>>> {
    prop::collection::vec(
        prop::collection::vec(any::<prop::sample::Index>(), 2..8),
        0..4,
    )
}

fn small() -> impl Strategy<Value = [i32; 4]> {
    prop::array::uniform4(-4..5i32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn markers_run_exactly_at_their_places(
        program in generate::program(1..10, 30),
        choices in choices(40, 40),
        unwinds in unwind_choices(),
        edited in any::<Option<bool>>(),
        arguments in small(),
    ) {
        let spliced = check(&program, &choices, &unwinds, edited, arguments)?;
        prop_assert!(spliced.is_ok(), "{:?}", spliced);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Methods from 9 KB on that grow past 32 KB: jumps are widened, Taken code moves.
    #[test]
    fn long_jumps(
        mut program in generate::program(4..20, 1000),
        choices in choices(60, 1500),
        unwinds in unwind_choices(),
        edited in any::<Option<bool>>(),
        arguments in small(),
    ) {
        program.blocks[2].padding += 9000;
        match check(&program, &choices, &unwinds, edited, arguments)? {
            Ok(_) | Err(Plain::CodeTooLarge | Plain::FarBranch) => {}
            Err(plain) => prop_assert!(false, "{}", plain),
        }
    }
}

/// One conditional jump, one goto and one switch over 40 KB, with frames and without. The frame in reach is in front of the gap.
#[test]
fn jumps_over_the_middle_of_a_long_method() {
    use generate::{Block, End};
    let block = |padding, end| Block {
        body: vec![(6, 1)],
        padding,
        end,
    };
    for major in [49, 61] {
        let program = Program {
            name: "Long".into(),
            major,
            blocks: vec![
                block(0, End::If(IFEQ, 5)),
                block(0, End::If(IFLT, 1)),
                block(0, End::TableSwitch(0, vec![5, 3], 5)),
                block(0, End::Goto(5)),
                block(9000, End::Return),
                block(0, End::If(IFGT, 2)),
                block(0, End::Return),
            ],
            handlers: vec![],
            ranges: vec![],
            full_frames: false,
        };
        let Assembled { class: bytes, code } = program.assemble();
        let class = ClassFile::parse(&bytes).unwrap();
        let middle = class.methods()[0].code().unwrap().line_numbers()[4].0;
        let places = places(&code);
        for arguments in [[0; 4], [-1, 0, 0, 0], [-3, 0, 1, 0], [5, 0, 0, 9]] {
            for with_markers in [false, true] {
                let mut edit = MethodEdit::default();
                let mut insertions = Vec::new();
                edit.insert(At::Before(middle + 3), &[NOP; 40_000]);
                for (id, &at) in (0u16..).zip(places.iter().take(if with_markers { 40 } else { 0 }))
                {
                    let [hi, lo] = id.to_be_bytes();
                    edit.insert(at, &[SIPUSH, hi, lo, POP]);
                    insertions.push((at, id));
                }
                let mut splicer = Splicer::new(&class);
                splicer.edit(0, &edit).unwrap();
                let spliced = splicer.finish();
                let new = ClassFile::parse(&spliced).unwrap();
                let expected = Machine::new(&class, arguments).expect(&insertions, &[]);
                assert_eq!(Machine::new(&new, arguments).run(None), expected);
                let new_code = new.methods()[0].code().unwrap().code;
                let wide = insn::insns(new_code).filter(|item| item.as_ref().unwrap().1 == GOTO_W);
                assert!(
                    wide.count() >= 3,
                    "two conditional jumps and a goto are long"
                );
            }
        }
    }
}
