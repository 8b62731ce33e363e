//! Records of `meta.log`: who was profiled, which classes were instrumented, what stayed plain and why.
//!
//! File: records back to back, each `{u32 length of payload, u32 CRC-32 of payload, payload}`, payload = `{u8 kind, fields}`. A record is
//! appended with one `write`; a torn last record (killed JVM, full disk) ends the log and is reported, not an error.

use borescope_cfg::flow::Flow;

use crate::sites::{Numbered, Owner, SiteClass, Sites, Snapshot};
use crate::waste::{Compiled, Waste};

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// First record: the JVM.
    Target(Target),
    /// A class was instrumented.
    Class(Class),
    /// A class or method stays plain.
    Skipped(Skipped),
    /// Something worth telling the user (one line).
    Notice(String),
    /// Sites lens: how it was set up. A log with this record has no `counters.bin` beside it.
    Sites(Sites),
    /// Sites lens: where a class allocates and calls.
    SiteClass(SiteClass),
    /// Sites lens: owners that came to be since the last such record.
    Owners(Vec<Owner>),
    /// Sites lens: a number that stands in identity hashes.
    Numbered(Numbered),
    /// Sites lens: a snapshot is whole.
    Snapshot(Snapshot),
    /// Waste lens: how it was set up. A log with this record has a table of pairs beside it ([`crate::waste`]) and no `counters.bin`.
    Waste(Waste),
    /// Waste lens: methods of a class that are in compiled code.
    Compiled(Compiled),
    /// Sites and waste lens: the JVM ended in order (the paths lens has that in `counters.bin`).
    Ended {
        /// Milliseconds since 1970.
        at_ms: u64,
    },
}

/// The JVM that is profiled.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Target {
    /// Process id.
    pub pid: u32,
    /// `java.version`, such as `17.0.15`.
    pub jdk: String,
    /// `java.vm.name` and `java.vm.version`.
    pub vm: String,
    /// Garbage collector: Serial, Parallel, G1, Z, Shenandoah, Epsilon or unknown.
    pub collector: String,
    /// `sun.java.command` if known, else the command line.
    pub command: String,
    /// Milliseconds since 1970.
    pub started: u64,
    /// Include globs as given.
    pub include: Vec<String>,
    /// Exclude globs as given.
    pub exclude: Vec<String>,
    /// Short branches are not told apart (`Flow::merged`).
    pub merge: bool,
    /// Methods with a single path and no loop are counted too, not only numbered in `Class::straight_line`.
    pub straight_line: bool,
    /// Burst mode: one in so many activations is chosen ([`Counting::Groups`]); 0 = all count.
    pub one_in: u32,
}

/// An instrumented class: once for each distinct (name, bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Binary name with slashes: `java/util/HashMap$Node`.
    pub name: String,
    /// Class of the defining loader, `boot` for the boot loader.
    pub loader: String,
    /// xxh3-64 of the class bytes as the agent got them.
    pub hash: u64,
    /// SourceFile attribute.
    pub source_file: Option<String>,
    /// Instrumented methods.
    pub methods: Vec<Method>,
    /// Methods left without probes because they have a single path and no loop.
    pub straight_line: u32,
}

/// An instrumented method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Index of its first slot in counters.bin. Ascending within a class, with gaps.
    pub index: u32,
    /// Where its counts are.
    pub counting: Counting,
    /// Name.
    pub name: String,
    /// Descriptor.
    pub descriptor: String,
    /// Line numbers: (first bytecode index, line), by bytecode index.
    pub lines: Vec<(u16, u16)>,
    /// The numbering that its IDs are decoded with.
    pub flow: Flow,
}

/// Where the counts of a method are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// In rows (or the nodes of a k-SF); slot `index` holds the address of the root row.
    Rows,
    /// In the slots `index .. index + num_paths` of each arena, one count a path ID: the method emits one ID an activation, or k = 1.
    /// Activations and handler entries are not counted.
    Slots,
    /// Burst mode: in rows, those of the activations that were chosen at random, each in one of [`crate::layout::GROUPS`] groups; slot
    /// `index + group` holds the address of a group's root row, and its rows have this method index.
    Groups,
}

impl Counting {
    /// How many slots a method takes that has so many paths.
    pub fn slots(self, num_paths: u32) -> u32 {
        match self {
            Counting::Rows => 1,
            Counting::Slots => num_paths,
            Counting::Groups => crate::layout::GROUPS,
        }
    }
}

/// What stays plain, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Binary name with slashes.
    pub class: String,
    /// Method name; empty = the whole class.
    pub method: String,
    /// Method descriptor.
    pub descriptor: String,
    /// Reason in words, stable wording.
    pub reason: String,
}

impl Skipped {
    /// A whole class stays plain.
    pub fn class(name: &str, reason: &str) -> Self {
        Skipped {
            class: name.to_owned(),
            method: String::new(),
            descriptor: String::new(),
            reason: reason.to_owned(),
        }
    }
}
