//! Profiles of the sites lens: which line allocated the objects that were alive at each snapshot.
//!
//! In: a spool without `counters.bin`. Out: `manifest.json` with `lens` = `sites`, `sites.parquet`, `live.parquet`, `skipped.parquet` and, if
//! asked for, `objects.parquet`. Memory: the decoded log and one snapshot at a time; objects are streamed.

mod log;
pub(crate) mod names;
mod read;
mod seal;
pub(crate) mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use read::Objects;
pub use seal::seal;

use crate::model::{Skipped, Target};
use crate::{Checksum, Error};

/// [`Manifest::lens`].
pub const LENS: &str = "sites";

/// Whether a spool is of this lens.
pub(crate) fn is_spool(dir: &Path) -> bool {
    !dir.join("counters.bin").exists() && dir.join("meta.log").exists()
}

/// `manifest.json` of the sites lens.
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
    /// How numbers stood in headers: `spare`, `static`, `dynamic` or `hybrid`.
    pub mode: String,
    /// Where they stood.
    pub header: Header,
    /// Classes of the JDK were instrumented.
    pub jdk: bool,
    /// Sites of the JDK are told apart by the application's call site.
    pub attribute: bool,
    /// The agent came after the start: objects without a mark may be older.
    pub attached: bool,
    /// Snapshots by number.
    pub snapshots: Vec<Snapshot>,
    /// What there is.
    pub totals: Totals,
    /// One line each: what the user should know (from the agent, and what sealing found).
    pub notices: Vec<String>,
    /// What of `meta.log` could not be read; `None` = all of it was.
    pub log_torn: Option<String>,
    /// Snapshots that could not be read, and why; `None` = all were.
    pub snapshots_torn: Option<String>,
    /// Size and checksum of each table.
    pub files: BTreeMap<String, Checksum>,
}

/// Where numbers stood in the header word, as the agent probed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// First bit of the identity hash.
    pub hash_shift: u8,
    /// Bits above it that the VM does not use.
    pub spare_bits: u8,
}

/// A number of objects and their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, more: Sum) {
        self.objects = self.objects.saturating_add(more.objects);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// What was alive at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// From 1 on; may have gaps.
    pub number: u32,
    /// Milliseconds since 1970.
    pub at: u64,
    /// How long the application stood still for it, in milliseconds.
    pub took_ms: u64,
    /// `exit`, `request`, `oom` or `interval`.
    pub cause: String,
    /// The heap was collected before. False: some of the objects may have been dead.
    pub live_only: bool,
    /// `objects.parquet` has each object.
    pub listed: bool,
    /// All objects.
    pub live: Sum,
    /// Those whose site is known.
    pub with_site: Sum,
    /// Those whose application line is known.
    pub with_app: Sum,
    /// The others, by reason ([`Live::reason`]).
    pub unknown: BTreeMap<String, Sum>,
}

/// What there is in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Instrumented classes: distinct pairs of name and bytes.
    pub classes: u64,
    /// Allocation sites in them.
    pub sites: u64,
    /// Call sites in them.
    pub calls: u64,
    /// Sites, and sites of the JDK with a call site, that objects were allocated by or could be.
    pub owners: u64,
    /// Sites that get no mark.
    pub skipped_sites: u64,
    /// Rows of `sites.parquet`.
    pub live_sites: u64,
}

/// A place in source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Class as in Java source.
    pub class: String,
    /// Method.
    pub method: String,
    /// Its descriptor.
    pub descriptor: String,
    /// SourceFile attribute.
    pub source_file: Option<String>,
    /// Line, 0 = unknown.
    pub line: u16,
}

/// What allocated objects: a site, or a site of the JDK with the line in the application that called into it. Those that agree in all fields but
/// `index` are one (several calls on a line, for instance).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Key of the tables.
    pub index: u32,
    /// What it allocates as declared, as in Java source; the objects may be of a subclass ([`Live::ty`]).
    pub ty: String,
    /// The instruction that allocates.
    pub at: Place,
    /// Its bytecode index.
    pub bci: u16,
    /// `new`, `newarray`, `anewarray`, `multianewarray`, `clone`, `invokedynamic`, `reflection` or
    /// `intrinsic`.
    pub kind: String,
    /// The nearest place in the application: `at` itself, or the call into the JDK. `None` = a site of the JDK whose caller is not known.
    pub app: Option<Place>,
}

/// Live objects of a type and a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// [`Site::index`]; `None` = not known.
    pub site: Option<u32>,
    /// Class of the objects as in Java source.
    pub ty: String,
    /// How many, and their sizes.
    pub sum: Sum,
    /// Why the site is not known.
    pub reason: Option<String>,
}

/// A live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// [`Snapshot::number`].
    pub snapshot: u32,
    /// Where it was at the time.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// [`Site::index`]; `None` = not known.
    pub site: Option<u32>,
    /// Class as in Java source.
    pub ty: String,
    /// Why the site is not known.
    pub reason: Option<String>,
}

/// A profile of the sites lens to read. Sites are in memory, snapshots are read one at a time.
#[derive(Debug)]
pub struct Profile {
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) sites: Vec<Site>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) live: crate::table::TableReader,
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

    /// Sites that had live objects in some snapshot, by index, without gaps.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The site of this index.
    pub fn site(&self, index: u32) -> Option<&Site> {
        self.sites.get(usize::try_from(index).ok()?)
    }

    /// What gets no mark.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// What was alive in the snapshot of this number, the most bytes first.
    pub fn live(&self, snapshot: u32) -> Result<Vec<Live>, Error> {
        read::live(self, snapshot)
    }

    /// Each object of the snapshots that are [`Snapshot::listed`]; `None` = none is.
    pub fn objects(&self) -> Result<Option<Objects>, Error> {
        read::objects(self)
    }
}
