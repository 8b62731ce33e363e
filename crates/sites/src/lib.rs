//! Allocation sites in the identity-hash field: the numbering, free of any JVM.
//!
//! What lives here: the tree of a class's numbers with Search_for_next_dynamic_ID ([`tree`]), how a number and an object identifier
//! share the field ([`scheme`], [`stamp`]), who has which number and when it is reused ([`registry`]), the log from which every object
//! ever marked decodes ([`event`], [`history`], [`decode`]), hashes that the VM draws itself ([`drawn`]), the header's spare bits ([`spare`]), and the trace-driven simulator
//! ([`trace`], [`simulate`], and [`demo`] for an invented trace). What comes in: allocation sites and random bits. What goes out: fields to store, and sites for fields found. What must never happen here: knowledge of the JVM, `unsafe`, files; and a field that decodes to a site which did not allocate the object.
//!
//! Source: JP4852621B2, "Method for tracking allocation location of object in program" (the *seed*), figures 2 to 12;
//! docs/sites-numbering.md has the exact definitions and where we differ.

mod class;
pub mod decode;
pub mod demo;
pub mod drawn;
pub mod event;
pub mod history;
pub mod registry;
pub mod rng;
pub mod scheme;
pub mod simulate;
pub mod spare;
pub mod stamp;
pub mod trace;
pub mod tree;

pub use decode::{Decoded, Decoder};
pub use event::{Action, Event};
pub use history::History;
pub use registry::{Live, Registry, Sink};
pub use scheme::{Mode, Policy, Scheme, Space};
pub use stamp::Stamp;
pub use tree::{Number, Tree};

/// The class of the allocated objects. Numbers are unique in a class, so the pair (class, number) names a site (seed, figure 2B).
/// The agent may take one ID for all classes of one name: sites of both then share one set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

impl ClassId {
    /// The one class of [`Mode::Spare`], whose numbers are global.
    pub const ALL: ClassId = ClassId(0);
}

/// An allocation site of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// The method that an allocation site is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId(pub u32);

/// An allocation site with what the numbering must know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Its ID, unique in the program.
    pub id: SiteId,
    /// What it allocates.
    pub class: ClassId,
    /// Where it stands.
    pub method: MethodId,
}

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// One site: exact.
    Site(SiteId),
    /// Those sites of a method that came when numbers ran out: exact to the method.
    Method(MethodId),
    /// Sites for which not even a number for their method was left.
    Others,
}

/// What can be wrong with the input of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A scheme whose parts do not fit the field.
    #[error("numbering scheme: {0}")]
    Scheme(&'static str),
    /// Bytes that are no event or scheme.
    #[error("not a number assignment: {0}")]
    Bytes(&'static str),
    /// An event that cannot follow the ones before it.
    #[error("number assignment {epoch} contradicts the ones before it: {reason}")]
    Contradiction {
        /// The event's epoch.
        epoch: u64,
        /// Why.
        reason: &'static str,
    },
    /// A trace that cannot be read.
    #[error("trace, record {record}: {reason}")]
    Trace {
        /// Records read before it.
        record: u64,
        /// Why.
        reason: &'static str,
    },
    /// Reading or writing a trace failed.
    #[error("trace: {0}")]
    Io(#[from] std::io::Error),
}
