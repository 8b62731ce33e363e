//! Where sampled accesses come from: one trait, two sources.
//!
//! | | `software` | `pmu` (PEBS, IBS) |
//! |---|---|---|
//! | event | a tick of CPU time, then breakpoints | a record of the kernel's ring buffer |
//! | the access | the next one after the tick ([`Seek`]) | the one in the record ([`crate::pmu`]) |
//! | has it run? | no: the thread is stopped before it | yes, some time ago |
//! | weight of a sample | CPU time | accesses |
//! | tested on | everything | synthetic records only: not tested on hardware |
//!
//! Both give a [`Reached`]; from there on one thing differs. A `software` access has not run when its watch is armed, so the watch traps for
//! it first, which shows the value ([`crate::Watch::ahead`]); a `pmu` access's value is what the place holds when the record is read, which may be a later one
//! ([`crate::Watch::new`]).

use crate::handler::access::{Access, Kind};
use crate::handler::code::{Code, Hidden, Operand, Reader};
use crate::handler::registers::Registers;
use crate::handler::seek::{Reached, Seek, Step};
use crate::handler::tally::Miss;
use crate::pmu::{Operation, Sample};

/// A source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Ticks of CPU time, no PMU needed.
    Software,
    /// Intel's precise events.
    Pebs,
    /// AMD's instruction-based sampling.
    Ibs,
}

/// What a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A slice of CPU time: a slow place is sampled more often than its accesses are many.
    CpuTime,
    /// A number of accesses.
    Accesses,
}

impl Source {
    /// All.
    pub const ALL: [Source; 3] = [Source::Software, Source::Pebs, Source::Ibs];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Source::Software => "software",
            Source::Pebs => "pebs",
            Source::Ibs => "ibs",
        }
    }

    /// Its number in a table.
    pub fn code(self) -> u64 {
        self as u64
    }

    /// The source of a number.
    pub fn from_code(code: u64) -> Option<Source> {
        Source::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// What its samples stand for.
    pub fn weight(self) -> Weight {
        match self {
            Source::Software => Weight::CpuTime,
            Source::Pebs | Source::Ibs => Weight::Accesses,
        }
    }

    /// What must be said in its first line of output.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Source::Software => None,
            Source::Pebs | Source::Ibs => Some("not tested on hardware"),
        }
    }
}

impl Weight {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Weight::CpuTime => "cpu-time",
            Weight::Accesses => "accesses",
        }
    }

    /// How a share of samples is called.
    pub fn words(self) -> &'static str {
        match self {
            Weight::CpuTime => "of sampled CPU time",
            Weight::Accesses => "of sampled accesses",
        }
    }
}

/// A source of accesses. All of it may run in a handler.
pub trait AccessSource {
    /// What happens to it.
    type Event<'a>;

    /// Which it is.
    fn source(&self) -> Source;

    /// An event: `code` is the blob that it happened in. `accept` says of an operand whether it may be watched, and is asked only where registers or record tell its
    /// bytes ([`crate::handler::filter::Scope::judge`] is meant).
    fn event(
        &mut self,
        reader: &mut Reader,
        code: &Code<'_>,
        event: Self::Event<'_>,
        accept: &mut dyn FnMut(&Operand) -> Option<Access>,
    ) -> Step;
}

impl AccessSource for Seek {
    /// The registers of the stopped thread. Each stop is announced with [`Seek::new`] or [`Seek::stopped`].
    type Event<'a> = &'a Registers;

    fn source(&self) -> Source {
        Source::Software
    }

    fn event(
        &mut self,
        reader: &mut Reader,
        code: &Code<'_>,
        event: &Registers,
        accept: &mut dyn FnMut(&Operand) -> Option<Access>,
    ) -> Step {
        self.run(reader, code, event, accept)
    }
}

/// The source of a PMU's samples.
#[derive(Clone, Copy, Debug)]
pub struct Pmu {
    source: Source,
    /// Where to decode from for samples whose instruction pointer is not exact.
    pub anchor: u64,
}

impl Pmu {
    /// Of Intel's events.
    pub fn pebs() -> Pmu {
        Pmu {
            source: Source::Pebs,
            anchor: 0,
        }
    }

    /// Of AMD's.
    pub fn ibs() -> Pmu {
        Pmu {
            source: Source::Ibs,
            anchor: 0,
        }
    }
}

impl AccessSource for Pmu {
    type Event<'a> = &'a Sample<'a>;

    fn source(&self) -> Source {
        self.source
    }

    /// The access of a sample: what and how wide by its instruction, where by the record.
    fn event(
        &mut self,
        reader: &mut Reader,
        code: &Code<'_>,
        sample: &Sample<'_>,
        accept: &mut dyn FnMut(&Operand) -> Option<Access>,
    ) -> Step {
        if !code.contains(sample.ip) {
            return Step::Miss(Miss::NotCompiled);
        }
        // An instruction pointer that is not exact is one instruction late (precise_ip = 1).
        let instruction = match sample.exact {
            true => reader.at(code, sample.ip),
            false => code.before(self.anchor, sample.ip),
        };
        let Some(instruction) = instruction else {
            return Step::Miss(Miss::Undecodable);
        };
        let wanted = |kind: Kind| match sample.operation {
            Some(Operation::Load) => kind.loads(),
            Some(Operation::Store) => kind != Kind::Load,
            Some(Operation::Other) => false,
            None => true,
        };
        let operands = reader.operands(&instruction, None);
        let mut of_kind = operands.iter().filter(|operand| wanted(operand.kind));
        let (Some(mut operand), Some(address)) = (of_kind.next(), sample.address) else {
            return Step::Miss(Miss::Mismatch);
        };
        // Masks, gathers and odd widths stay hidden: the record's address is only that of some element.
        if matches!(operand.access, Ok(_) | Err(Hidden::Base)) {
            let width = u8::try_from(operand.width).unwrap_or(0);
            operand.access =
                Access::new(address, width, operand.kind, operand.element).ok_or(Hidden::Base);
        }
        match accept(&operand) {
            Some(access) => Step::Reached(Reached {
                instruction,
                access,
            }),
            None => Step::Refused(operand),
        }
    }
}
