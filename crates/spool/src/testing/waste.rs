//! Spools of the waste lens without a JVM: [`Samples`] fills a table as the handlers would, [`spool`] writes it with its log.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use borescope_waste::handler::table::Capacity;
use borescope_waste::handler::watches::{Detail, Shape};
use borescope_waste::profile::snapshot;
use borescope_waste::{
    Bytes, Counter, Element, End, Frame, Kind, Miss, Pair, Source, Table, Waste as Asked,
};

use super::sites::target;
use crate::meta::Record;
use crate::waste::{Access, Compiled, FILE, Method, Waste};

/// How a sample ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The question was answered: waste.
    Wasteful,
    /// It was answered: no waste.
    Useful,
    /// A collection came between.
    Lost,
}

/// One sample that was armed.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What was asked.
    pub kind: Asked,
    /// The first access's frames, outermost first.
    pub first: Vec<Frame>,
    /// The second's.
    pub second: Vec<Frame>,
    /// What came of it.
    pub ended: Ended,
    /// Both accesses' width in bytes.
    pub width: u8,
    /// What the bytes mean.
    pub element: Element,
    /// The two instructions.
    pub instructions: [Vec<u8>; 2],
    /// An access initialises a new object.
    pub initialising: bool,
    /// Something was stored to the place between.
    pub stores_between: bool,
}

impl Sample {
    /// A wasteful one of four bytes: `mov [rax+0xc], ecx`, or `mov ecx, [rax+0xc]`.
    pub fn new(kind: Asked, first: Vec<Frame>, second: Vec<Frame>) -> Sample {
        let mov = match kind {
            Asked::SilentLoad => vec![0x8B, 0x48, 0x0C],
            Asked::DeadStore | Asked::SilentStore => vec![0x89, 0x48, 0x0C],
        };
        Sample {
            kind,
            first,
            second,
            ended: Ended::Wasteful,
            width: 4,
            element: Element::Bits,
            instructions: [mov.clone(), mov],
            initialising: false,
            stores_between: false,
        }
    }
}

/// A table that is being filled.
pub struct Samples {
    words: Vec<AtomicU64>,
    capacity: Capacity,
    source: Source,
}

impl Samples {
    /// An empty one.
    pub fn new(capacity: Capacity, source: Source) -> Samples {
        let words: Vec<AtomicU64> = (0..capacity.words()).map(|_| AtomicU64::new(0)).collect();
        Table::make(&words, capacity, source.code()).expect("enough words");
        Samples {
            words,
            capacity,
            source,
        }
    }

    /// Ticks that came to nothing.
    pub fn missed(&mut self, miss: Miss, ticks: u64) {
        let tally = self.table().tally();
        tally.add_many(Counter::Tick, ticks);
        tally.add_many(Counter::Miss(miss), ticks);
    }

    /// Writing the same header again changes nothing.
    fn table(&self) -> Table<'_> {
        Table::make(&self.words, self.capacity, self.source.code()).expect("enough words")
    }

    /// Counts a sample: one tick, one watch, one question.
    pub fn add(&mut self, sample: &Sample) {
        let table = self.table();
        let tally = table.tally();
        for counter in [
            Counter::Tick,
            Counter::Reached,
            Counter::Armed,
            Counter::Asked(sample.kind),
        ] {
            tally.add(counter);
        }
        let wasteful = sample.ended == Ended::Wasteful;
        if sample.ended == Ended::Lost {
            tally.add(Counter::Ended(End::Collection));
            tally.add(Counter::Unanswered(sample.kind));
            return;
        }
        tally.add(Counter::Ended(End::Completed));
        tally.add(match wasteful {
            true => Counter::Wasteful(sample.kind),
            false => Counter::Useful(sample.kind),
        });
        let node = |frames: &[Frame]| table.context(frames.iter().copied()).map(|c| c.node);
        let leaf = sample.first.last().and_then(|frame| table.line(*frame));
        let (first, second) = match wasteful {
            true => (node(&sample.first), node(&sample.second)),
            false => (leaf, Some(0)),
        };
        let access = match sample.kind {
            Asked::SilentLoad => Kind::Load,
            Asked::DeadStore | Asked::SilentStore => Kind::Store,
        };
        let shape = Shape {
            kind: access,
            width: sample.width,
            element: sample.element,
        };
        let [a, b] = &sample.instructions;
        table.record(&Pair {
            waste: sample.kind,
            wasteful,
            first: first.unwrap_or(0),
            second: second.unwrap_or(0),
            detail: Detail {
                whole: true,
                loads_between: false,
                stores_between: sample.stores_between,
                others_between: false,
                initialising: sample.initialising,
                first: shape,
                second: shape,
            },
            first_instruction: Bytes::new(a).unwrap_or_default(),
            second_instruction: Bytes::new(b).unwrap_or_default(),
            object: 0,
        });
    }

    /// The words of the file.
    pub fn words(&self) -> Vec<u64> {
        snapshot(&self.words)
    }
}

/// A file's content.
pub fn bytes(words: Vec<u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// How the lens is set up by default.
pub fn software() -> Waste {
    Waste {
        source: Source::Software,
        rate: 100,
        tolerance_ppm: 10_000,
        watches: 3,
        attached: false,
    }
}

/// Writes a spool into `dir`, which is made: the JVM of [`target`], the lens's set-up, `records` and the table.
pub fn spool(dir: &Path, waste: Waste, records: &[Record], samples: &Samples) {
    fs::create_dir_all(dir).expect("a directory");
    let head = [Record::Target(target()), Record::Waste(waste)];
    let log: Vec<u8> = head
        .iter()
        .chain(records)
        .flat_map(Record::encode)
        .collect();
    fs::write(dir.join("meta.log"), log).expect("a log");
    fs::write(dir.join(FILE), bytes(samples.words())).expect("a table");
}

/// Frames of the program that [`ledger`] describes, by what they do; the numbers are bytecode indexes.
pub mod frames {
    use borescope_waste::Frame;

    const fn frame(method: u64, bci: i32) -> Frame {
        Frame {
            method: Frame::FIRST_METHOD + method,
            bci,
        }
    }

    /// `acme.Main.main`, line 10, calls `run`.
    pub const MAIN: Frame = frame(0, 3);
    /// `acme.Main.run`, line 20, calls `post` and `sum`.
    pub const RUN: Frame = frame(1, 4);
    /// `acme.Ledger.post`, line 41, stores a `long` into a field.
    pub const STORE: Frame = frame(2, 5);
    /// `acme.Ledger.post`, line 43, stores into it again.
    pub const STORE_AGAIN: Frame = frame(2, 12);
    /// `acme.Ledger.sum`, line 52, loads a `double` of an array.
    pub const LOAD: Frame = frame(3, 7);
    /// `acme.Ledger.sum`, line 53: an addition, which touches no memory; only line 52 of the method can load.
    pub const ADD: Frame = frame(3, 9);
    /// `acme.Ledger.post`, line 43: a constant, which touches no memory; two other places of the method can store.
    pub const CONSTANT: Frame = frame(2, 9);
    /// A method that no record names.
    pub const UNNAMED: Frame = frame(9, 0);
}

/// The methods of [`frames`].
pub fn ledger_methods() -> Vec<Record> {
    let access = |bci, opcode, descriptor| Access {
        bci,
        opcode,
        descriptor,
    };
    let method =
        |number, name: &str, descriptor: &str, lines: &[(u16, u16)], accesses: &[Access]| Method {
            number: frames::MAIN.method + number,
            name: name.into(),
            descriptor: descriptor.into(),
            lines: lines.to_vec(),
            accesses: Some(accesses.to_vec()),
        };
    let (putfield, daload, invoke) = (0xB5, 0x31, 0xB6);
    vec![
        Record::Compiled(Compiled {
            class: "acme/Main".into(),
            source_file: Some("Main.java".into()),
            methods: vec![
                method(
                    0,
                    "main",
                    "([Ljava/lang/String;)V",
                    &[(0, 10)],
                    &[access(3, invoke, None)],
                ),
                method(
                    1,
                    "run",
                    "()V",
                    &[(0, 19), (2, 20)],
                    &[access(4, invoke, None)],
                ),
            ],
        }),
        Record::Compiled(Compiled {
            class: "acme/Ledger".into(),
            source_file: Some("Ledger.java".into()),
            methods: vec![
                method(
                    2,
                    "post",
                    "(J)V",
                    &[(0, 41), (8, 43)],
                    &[
                        access(5, putfield, Some(b'J')),
                        access(12, putfield, Some(b'J')),
                    ],
                ),
                method(
                    3,
                    "sum",
                    "()D",
                    &[(0, 52), (8, 53)],
                    &[access(7, daload, None)],
                ),
            ],
        }),
    ]
}

/// A sample with the callers `main` and `run`.
pub fn sample(kind: Asked, first: Frame, second: Frame) -> Sample {
    let below = |leaf| vec![frames::MAIN, frames::RUN, leaf];
    let (width, element, code) = match kind {
        // movsd xmm0, [rax+rcx*8+0x10]
        Asked::SilentLoad => (8, Element::F64, vec![0xF2, 0x0F, 0x10, 0x44, 0xC8, 0x10]),
        // mov [rax+0x10], rcx
        Asked::DeadStore | Asked::SilentStore => (8, Element::Bits, vec![0x48, 0x89, 0x48, 0x10]),
    };
    Sample {
        width,
        element,
        instructions: [code.clone(), code],
        ..Sample::new(kind, below(first), below(second))
    }
}

/// Samples of a program that posts to a ledger and sums it up: `dead` times line 41 of `post` stores what line 43 overwrites, 10 times it does not; 30 of 40 loads in `sum` are silent;
/// 5 silent stores of new objects, 3 others; 7 watches lost to collections; 100 ticks in the interpreter.
pub fn ledger_samples(dead: usize) -> Samples {
    let mut all = Samples::new(
        Capacity::new(256, 64).expect("powers of two"),
        Source::Software,
    );
    all.missed(Miss::NotCompiled, 100);
    let mut add = |times: usize, ended: Ended, initialising: bool, of: Sample| {
        let of = Sample {
            ended,
            initialising,
            ..of
        };
        (0..times).for_each(|_| all.add(&of));
    };
    use frames::{ADD, CONSTANT, LOAD, STORE, STORE_AGAIN, UNNAMED};
    add(
        dead,
        Ended::Wasteful,
        false,
        sample(Asked::DeadStore, STORE, STORE_AGAIN),
    );
    add(
        10,
        Ended::Useful,
        false,
        sample(Asked::DeadStore, STORE, STORE_AGAIN),
    );
    add(
        25,
        Ended::Wasteful,
        false,
        sample(Asked::SilentLoad, LOAD, LOAD),
    );
    add(
        4,
        Ended::Wasteful,
        false,
        sample(Asked::SilentLoad, LOAD, ADD),
    );
    add(
        1,
        Ended::Wasteful,
        false,
        sample(Asked::SilentLoad, LOAD, UNNAMED),
    );
    add(
        10,
        Ended::Useful,
        false,
        sample(Asked::SilentLoad, LOAD, LOAD),
    );
    add(
        3,
        Ended::Wasteful,
        false,
        sample(Asked::SilentStore, CONSTANT, STORE_AGAIN),
    );
    add(
        5,
        Ended::Wasteful,
        true,
        sample(Asked::SilentStore, STORE, STORE),
    );
    add(7, Ended::Lost, false, sample(Asked::SilentLoad, LOAD, LOAD));
    all
}

/// Writes the spool of such a program into `dir`, as a JVM that ended in order.
pub fn ledger(dir: &Path, dead: usize) {
    let mut records = vec![Record::Notice("samples come from ticks of CPU time".into())];
    records.extend(ledger_methods());
    records.push(Record::Ended {
        at_ms: target().started + 12_345,
    });
    spool(dir, software(), &records, &ledger_samples(dead));
}
