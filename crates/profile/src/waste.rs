//! Profiles of the waste lens: which two lines together made memory operations that did no useful work.
//!
//! In: a spool with a table of pairs ([`borescope_spool::waste`]). Out: `manifest.json` with `lens` = `waste`, `pairs.parquet`, `contexts.parquet` and
//! `skipped.parquet`. All of it is in memory: the table has a fixed size.

mod log;
mod read;
mod seal;
pub(crate) mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use borescope_waste::analysis::accounts::Accounts;
use borescope_waste::{Counter, Source, Waste};
use serde::{Deserialize, Serialize};

pub use crate::sites::Place;
pub use seal::seal;

use crate::model::{Skipped, Target};
use crate::{Checksum, Error};

/// [`Manifest::lens`].
pub const LENS: &str = "waste";

/// Whether a spool is of this lens.
pub(crate) fn is_spool(dir: &Path) -> bool {
    dir.join(borescope_spool::waste::FILE).exists()
}

/// `manifest.json` of the waste lens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of borescope that sealed the profile.
    pub borescope: String,
    /// Version of the profile format.
    pub schema: u32,
    /// [`LENS`].
    pub lens: String,
    /// The JVM.
    pub target: Target,
    /// Where samples come from: `software`, `pebs` or `ibs`.
    pub source: String,
    /// What a sample stands for: `cpu-time` or `accesses`.
    pub weight: String,
    /// Ticks for each second of CPU time, or accesses for each sample.
    pub rate: u32,
    /// How far two floating-point values may differ and be the same, in parts per million.
    pub tolerance_ppm: u32,
    /// Debug registers of a thread that watch data.
    pub watches: u8,
    /// The agent came after the start.
    pub attached: bool,
    /// The way of all samples: ticks, what they came to, how watches ended (`borescope_waste::Counter::name`).
    pub samples: BTreeMap<String, u64>,
    /// What was asked of each kind of waste, and answered.
    pub kinds: BTreeMap<String, Kind>,
    /// What there is.
    pub totals: Totals,
    /// One line each: what the user should know (from the agent, and what sealing found).
    pub notices: Vec<String>,
    /// What of `meta.log` could not be read; `None` = all of it was.
    pub log_torn: Option<String>,
    /// What of the table of pairs could not be read; `None` = all of it was.
    pub table_torn: Option<String>,
    /// Size and checksum of each table.
    pub files: BTreeMap<String, Checksum>,
}

/// Questions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// Asked.
    pub asked: u64,
    /// Answered: waste.
    pub wasteful: u64,
    /// Answered: no waste.
    pub useful: u64,
    /// Not answered: the watch ended before.
    pub unanswered: u64,
}

/// What there is in the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Rows of `contexts.parquet`.
    pub contexts: u64,
    /// Rows of `pairs.parquet`.
    pub pairs: u64,
    /// Methods that the log names.
    pub methods: u64,
    /// Entries that were being written when the table was read or the process was killed: at most one answer or context each.
    pub unfinished: u64,
}

impl Manifest {
    /// The counters, as the pure crate has them.
    pub fn accounts(&self) -> Accounts {
        let mut words = [0; borescope_waste::handler::tally::WORDS];
        for counter in Accounts::counters() {
            let kind = |waste: Waste| self.kinds.get(waste.name()).copied().unwrap_or_default();
            words[counter.index()] = match counter {
                Counter::Asked(waste) => kind(waste).asked,
                Counter::Wasteful(waste) => kind(waste).wasteful,
                Counter::Useful(waste) => kind(waste).useful,
                Counter::Unanswered(waste) => kind(waste).unanswered,
                other => {
                    let name = other.name().unwrap_or_default();
                    self.samples.get(name).copied().unwrap_or(0)
                }
            };
        }
        Accounts::from_words(&words)
    }

    /// The source; one of an unknown name is taken for the software one.
    pub fn source(&self) -> Source {
        let mut all = Source::ALL.into_iter();
        all.find(|source| source.name() == self.source)
            .unwrap_or(Source::Software)
    }
}

/// What a frame of a context stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    /// A place in a method, and its bytecode index (below 0: none, such as in a native method).
    At(Place, i32),
    /// A method that the log does not name: its class was unloaded, or the JVM was killed, before it was asked.
    Unnamed,
    /// Callers that found no room in the table.
    Cut,
    /// Callers beyond the depth that was read.
    Deeper,
    /// A context that could not be had.
    Unknown,
}

/// A frame and its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The context of its caller; `None` = it is the outermost. Below its own number.
    pub caller: Option<u32>,
    /// The frame.
    pub what: What,
}

/// How often two accesses were found to be a pair, or an access found to be of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Kind, instructions and what else the table has; its contexts are indexes of [`Profile::contexts`] plus one.
    pub pair: borescope_waste::Pair,
    /// Samples.
    pub count: u64,
    /// What the bytecode of each access's line says of the value: `int`, `reference`; `None` = it does not tell.
    pub types: [Option<String>; 2],
    /// Whether that bytecode cannot do the access, so that the line is doubtful; `None` = not known.
    pub doubtful: [Option<bool>; 2],
}

/// A profile of the waste lens to read, all in memory.
#[derive(Debug)]
pub struct Profile {
    pub(crate) manifest: Manifest,
    pub(crate) contexts: Vec<Context>,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) skipped: Vec<Skipped>,
}

impl Profile {
    /// Opens the profile directory `dir`. Every file is checked against the manifest.
    pub fn open(dir: impl AsRef<Path>) -> Result<Profile, Error> {
        read::open(dir.as_ref())
    }

    /// What was profiled.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All contexts; number n stands at index n - 1.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// All pairs.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// What is not measured, and why.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }
}
