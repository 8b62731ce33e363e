//! Every tick and every watch is accounted for: what was sampled, armed, completed, lost, replaced.
//!
//! Three sums must come out (tests/watches.rs; [`crate::analysis::accounts`] checks them in what was read):
//!
//! - ticks = reached + misses (+ seeks under way);
//! - reached = armed + refusals (+ a sample between being reached and being armed);
//! - armed = ends (+ watches that are armed now);
//!
//! and for each kind of waste: asked = wasteful + useful + unanswered (+ open questions of armed watches).
//!
//! Counters are relaxed atomics in shared memory: exact once the threads stand still, at most one step apart before.

use super::watch::Waste;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a tick reached no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Miss {
    /// The thread was in no compiled code: interpreter, VM, kernel, native code.
    NotCompiled,
    /// The way led out of compiled code, or where the registers do not tell.
    LeftCode,
    /// No access within the steps allowed.
    StepLimit,
    /// Bytes that are no instruction.
    Undecodable,
    /// The seek was ended: by a collection, the thread's end, another thread's breakpoint, the profiler's stop.
    Ended,
    /// A sample of the PMU whose instruction makes no access of the sampled kind: the record's address cannot be trusted.
    Mismatch,
}

/// Why an access that was reached was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Its bytes cannot be said ([`super::code::Hidden`]).
    Hidden,
    /// On the thread's stack.
    Stack,
    /// Outside of the heap.
    OutsideHeap,
    /// An object's class word, or its mark word: the VM's business, and loading a class is always silent.
    Header,
    /// The length of an array, which never changes.
    ArrayLength,
    /// A collector's own look at a field ([`super::barrier`]).
    Barrier,
    /// None of its questions is wanted.
    NotAsked,
    /// All registers are busy and chance was against it.
    PassedOver,
    /// The system gave no register.
    NoRegister,
    /// Its calling context could not be had.
    NoStack,
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// All its questions are answered.
    Completed,
    /// Another sample took its register.
    Replaced,
    /// A collection began: objects move.
    Collection,
    /// Another virtual thread was mounted on its thread.
    Unmounted,
    /// Its thread ended.
    ThreadEnd,
    /// What trapped could not be told.
    UnknownAccess,
    /// The second access initialises a new object at the address of a dead one.
    NewObject,
    /// The profiler stopped.
    Stopped,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// The sampler fired.
    Tick,
    /// An access was reached.
    Reached,
    /// A watch was armed.
    Armed,
    /// A tick came to nothing.
    Miss(Miss),
    /// An access was not armed.
    Refused(Refusal),
    /// A watch ended.
    Ended(End),
    /// A question was asked.
    Asked(Waste),
    /// The answer: waste.
    Wasteful(Waste),
    /// The answer: no waste.
    Useful(Waste),
    /// The watch ended before.
    Unanswered(Waste),
    /// Answers that are in the table with both contexts (or, not wasteful, with the first's line).
    Recorded,
    /// Answers for which the table had no room: they count above, but no pair shows them.
    NoRoom,
    /// Contexts of which only the innermost frame found room.
    ContextCut,
    /// Records that the kernel lost before anyone read them (PMU). In no sum: how many ticks they were is not known.
    RecordsLost,
}

const MISSES: [Miss; 6] = [
    Miss::NotCompiled,
    Miss::LeftCode,
    Miss::StepLimit,
    Miss::Undecodable,
    Miss::Ended,
    Miss::Mismatch,
];
const REFUSALS: [Refusal; 10] = [
    Refusal::Hidden,
    Refusal::Stack,
    Refusal::OutsideHeap,
    Refusal::Header,
    Refusal::ArrayLength,
    Refusal::Barrier,
    Refusal::NotAsked,
    Refusal::PassedOver,
    Refusal::NoRegister,
    Refusal::NoStack,
];
const ENDS: [End; 8] = [
    End::Completed,
    End::Replaced,
    End::Collection,
    End::Unmounted,
    End::ThreadEnd,
    End::UnknownAccess,
    End::NewObject,
    End::Stopped,
];

impl Miss {
    /// All.
    pub const ALL: [Miss; 6] = MISSES;
}
impl Refusal {
    /// All.
    pub const ALL: [Refusal; 10] = REFUSALS;
}
impl End {
    /// All.
    pub const ALL: [End; 8] = ENDS;
}

impl Counter {
    /// Its name in the report: what of a sample's way it counts, `None` for what the kinds of waste have to themselves.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Counter::Tick => "ticks",
            Counter::Reached => "reached",
            Counter::Armed => "armed",
            Counter::Miss(Miss::NotCompiled) => "not_compiled",
            Counter::Miss(Miss::LeftCode) => "left_code",
            Counter::Miss(Miss::StepLimit) => "step_limit",
            Counter::Miss(Miss::Undecodable) => "undecodable",
            Counter::Miss(Miss::Ended) => "seek_ended",
            Counter::Miss(Miss::Mismatch) => "mismatch",
            Counter::Refused(Refusal::Hidden) => "hidden_address",
            Counter::Refused(Refusal::Stack) => "stack",
            Counter::Refused(Refusal::OutsideHeap) => "outside_heap",
            Counter::Refused(Refusal::Header) => "header",
            Counter::Refused(Refusal::ArrayLength) => "array_length",
            Counter::Refused(Refusal::Barrier) => "barrier",
            Counter::Refused(Refusal::NotAsked) => "not_asked",
            Counter::Refused(Refusal::PassedOver) => "passed_over",
            Counter::Refused(Refusal::NoRegister) => "no_register",
            Counter::Refused(Refusal::NoStack) => "no_stack",
            Counter::Ended(End::Completed) => "completed",
            Counter::Ended(End::Replaced) => "replaced",
            Counter::Ended(End::Collection) => "lost_to_gc",
            Counter::Ended(End::Unmounted) => "lost_to_unmount",
            Counter::Ended(End::ThreadEnd) => "lost_to_thread_end",
            Counter::Ended(End::UnknownAccess) => "unknown_access",
            Counter::Ended(End::NewObject) => "new_object",
            Counter::Ended(End::Stopped) => "open_at_stop",
            Counter::Recorded => "recorded",
            Counter::NoRoom => "no_room",
            Counter::ContextCut => "contexts_cut",
            Counter::RecordsLost => "records_lost",
            Counter::Asked(_)
            | Counter::Wasteful(_)
            | Counter::Useful(_)
            | Counter::Unanswered(_) => return None,
        })
    }
}

/// Words that the counters take.
pub const WORDS: usize = 64;

/// Where each group of counters begins. Groups have room to grow without moving the others.
const MISS_AT: usize = 8;
const REFUSED_AT: usize = 16;
const ENDED_AT: usize = 32;
const KINDS_AT: usize = 48;

impl Counter {
    /// Its word.
    pub fn index(self) -> usize {
        match self {
            Counter::Tick => 0,
            Counter::Reached => 1,
            Counter::Armed => 2,
            Counter::Recorded => 3,
            Counter::NoRoom => 4,
            Counter::ContextCut => 5,
            Counter::RecordsLost => 6,
            Counter::Miss(miss) => MISS_AT + miss as usize,
            Counter::Refused(refusal) => REFUSED_AT + refusal as usize,
            Counter::Ended(end) => ENDED_AT + end as usize,
            Counter::Asked(waste) => KINDS_AT + 4 * waste as usize,
            Counter::Wasteful(waste) => KINDS_AT + 4 * waste as usize + 1,
            Counter::Useful(waste) => KINDS_AT + 4 * waste as usize + 2,
            Counter::Unanswered(waste) => KINDS_AT + 4 * waste as usize + 3,
        }
    }
}

/// The counters of one table.
#[derive(Clone, Copy, Debug)]
pub struct Tally<'a>(&'a [AtomicU64]);

impl<'a> Tally<'a> {
    /// Over [`WORDS`] words; `None` if there are fewer.
    pub fn new(words: &'a [AtomicU64]) -> Option<Tally<'a>> {
        words.get(..WORDS).map(Tally)
    }

    /// One more.
    pub fn add(&self, counter: Counter) {
        self.add_many(counter, 1);
    }

    /// So many more.
    pub fn add_many(&self, counter: Counter, n: u64) {
        if let Some(word) = self.0.get(counter.index()) {
            word.fetch_add(n, Relaxed);
        }
    }

    /// How many.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter.index()).map_or(0, |w| w.load(Relaxed))
    }
}
