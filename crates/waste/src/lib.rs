//! Wasteful memory operations: which loads and stores of the machine code did no useful work, found by sampling; free of any JVM.
//!
//! What lives here: everything between a sampled access and a ranked list of findings that needs neither JVM nor kernel. What comes in: machine code,
//! register values, contents of watched bytes, calling contexts, bytes of the kernel's ring buffer. What goes out: which access to
//! watch, what a trap means, a table of pairs, and from it the ranking. What must never happen here: system calls, files, `unsafe`; and in [`handler`], allocation or waiting.
//!
//! Source: Su, Wang, Chabbi, Liu, "Pinpointing Performance Inefficiencies in Java" (the *seed*, JXPerf).
//!
//! # Two halves
//!
//! [`handler`] (with [`source`] and [`pmu`]) runs in signal handlers of the application's threads: fixed-size types, atomics, no heap. [`analysis`] reads what these leave.
//! Between them is [`handler::table`]: calling contexts, pairs and counters in shared words of fixed size, which outlive a killed process.
//!
//! # From a tick to a pair
//!
//! 1. [`Watches::tick`]. [`AccessSource::event`] goes from the tick to an access: [`Seek`] through breakpoints, [`source::Pmu`] at once.
//! 2. [`Watches::reached`]; [`Scope::judge`] drops what is not the program's. [`Watches::choose`] asks the reservoir for a register.
//! 3. [`Table::context`] and [`Table::line`] intern the calling context; [`Place::within`] picks the bytes; [`Watch::new`], [`Watches::arm`].
//! 4. The place traps: [`trap::trapped`] tells which access it was, [`Watches::trapped`] what that answers, [`Pair::new`] and [`Table::record`] keep it.
//! 5. Outside: [`profile::snapshot`], [`Profile::read`], [`Profile::merge`], [`rank::rank`].
//!
//! # What the agent must bring
//!
//! - **One [`Reader`] a thread and handler**, made before the handler can run. A tick's handler may be interrupted by a trap's: two of them, or block one signal in the other.
//! - **One [`Watches`] a thread**, and nobody else's hands on it: traps are synchronous, so blocking the tick's signal in the trap's handler is enough.
//! - **Contents**: the watched bytes as a little-endian u64, read without touching them (process_vm_readv, or disarmed), or the watch traps for its own reader.
//! - **The value of the first access.** A seek stops before it: [`Watch::ahead`] takes the first trap for the access itself. A PMU's sample has happened: [`Watch::new`].
//! - **Order for a trap**: generational ZGC's own look at the field ([`handler::barrier::is_store_check`]) is skipped and the watch stays (as a sample it is [`Refusal::Barrier`]); a second access that initialises a new object ends the
//!   watch with [`End::NewObject`]; an [`trap::Unknown`] ends it with [`End::UnknownAccess`]; then [`Watches::trapped`]. Where the second context cannot be had, the line [`Frame::UNKNOWN`] stands for it.
//! - **[`End`]s**: collections, thread ends, another virtual thread on the carrier, stop. The sums of [`handler::tally`] tell when one is forgotten.
//! - **Contexts**: frames from the outermost in; [`Frame::DEEPER`] as the outermost if there were more.
//! - **Elements**: C2 moves vectors of `float` and `double` as integers. Where the bytecode says what they are, make the [`Access`] with that [`Element`], or these compare by their bits.
//! - **What a method number means**, bytecodes for [`analysis::bytecode::fits`], and what a pair's `object` numbers.
//!
//! # What is an estimate
//!
//! Everything but the sums of the counters. A share is one of samples ([`source::Weight`] says of what), with its interval; the weight of a hint is a judgement; a finding holds for one thread's view of
//! memory. What other threads load is not seen.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod handler;
pub mod pmu;
pub mod source;

pub use analysis::{profile, profile::Profile, rank};
pub use handler::access::{Access, Element, Kind, Place};
pub use handler::code::{Bytes, Code, Reader};
pub use handler::filter::{Layout, Object, Scope};
pub use handler::registers::Registers;
pub use handler::seek::{Seek, Step};
pub use handler::table::{Capacity, Frame, Table};
pub use handler::tally::{Counter, End, Miss, Refusal, Tally};
pub use handler::trap;
pub use handler::value::Tolerance;
pub use handler::watch::{Answer, Asked, Mode, Waste, Watch};
pub use handler::watches::{Armed, Origin, Pair, Watches};
pub use source::{AccessSource, Source};

/// What can be wrong with the input of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Words that are no table.
    #[error("table of pairs: {0}")]
    Table(&'static str),
    /// Profiles of different sources.
    #[error("profiles of sources {0} and {1} cannot be added")]
    Sources(&'static str, &'static str),
}
