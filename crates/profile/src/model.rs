//! What a reader of a profile sees.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use borescope_cfg::flow::{EdgeKind, StartKind};
use borescope_paths::KIpf;
use serde::{Deserialize, Serialize};

use crate::Error;
pub use crate::table::Checksum;

/// `manifest.json`: what was profiled and how well that went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of borescope that sealed the profile.
    pub borescope: String,
    /// Version of the profile format.
    pub schema: u32,
    /// The JVM.
    pub target: Target,
    /// `automaton`, `ksf`, `ksf-mtf`, `blpp-hash` or `blpp-dense`.
    pub engine: String,
    /// Longest sequence of path IDs that was counted.
    pub k: u32,
    /// `merge`: short branches are not told apart ([`MethodDetail::merged`]); `split`: all are.
    pub branches: String,
    /// Burst mode: only a random share of the activations counts where [`Method::estimate`] is there; `None` = all do everywhere.
    pub burst: Option<Burst>,
    /// Methods with a single path and no loop are counted too; if not, [`Totals::straight_line`] says how many there are.
    pub straight_line: bool,
    /// Why no longer windows were made from some moment on; `None` = they were to the end.
    pub stopped: Option<String>,
    /// Path IDs that found no memory and were not counted.
    pub lost: u64,
    /// One line each: what the user should know (from the agent, and what sealing found).
    pub notices: Vec<String>,
    /// Sums over all methods.
    pub totals: Totals,
    /// What of `meta.log` could not be read; `None` = all of it was.
    pub log_torn: Option<String>,
    /// What of `counters.bin` could not be read; `None` = all of it was.
    pub counters_torn: Option<String>,
    /// Size and checksum of each table.
    pub files: BTreeMap<String, Checksum>,
}

impl Manifest {
    /// Upper bound of a count of `method`, given that of its k-IPF (`KIpf::upper`; for paths the count itself): with what was lost.
    /// `None` = unknown.
    pub fn upper(&self, method: &Method, count: u64) -> Option<u64> {
        match method.exact {
            true => Some(count),
            false if self.counters_torn.is_some() || count == u64::MAX => None,
            false => Some(count.saturating_add(self.missing())),
        }
    }

    /// So many occurrences of a sequence may be missing at most, if nothing is torn: a lost ID ends at most one, and nothing after it in its
    /// activation was counted. In burst mode an activation stands for others.
    pub fn missing(&self) -> u64 {
        let each = self.burst.as_ref().map_or(1, |burst| burst.one_in);
        self.lost.saturating_mul(each.into())
    }
}

/// Burst mode. Totals are sums of exact counts and of estimates; these are their 95 % intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Each activation is chosen with probability 1 to this, independently of the others.
    pub one_in: u32,
    /// Random groups of the chosen ones, from whose differences the intervals come.
    pub groups: u32,
    /// Of [`Totals::activations`].
    pub activations: Interval,
    /// Of [`Totals::ids`].
    pub ids: Interval,
    /// Of [`Totals::unfinished`].
    pub unfinished: Interval,
}

/// A 95 % interval of an estimated count (`borescope_paths::estimate`): of 100 such intervals about 95 hold the true count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lo: u64,
    /// Upper end; `None` = unknown, as a part of the counters could not be read.
    pub hi: Option<u64>,
}

/// Burst mode: what is said of the estimated counts of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodEstimate {
    /// Activations that were chosen.
    pub chosen: u64,
    /// Of [`Method::activations`].
    pub activations: Interval,
    /// Of [`Method::unfinished`].
    pub unfinished: Interval,
    /// Of [`Method::ids`].
    pub ids: Interval,
}

/// The JVM that was profiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Process id.
    pub pid: u32,
    /// `java.version`, such as `17.0.15`.
    pub jdk: String,
    /// Name and version of the VM.
    pub vm: String,
    /// Garbage collector.
    pub collector: String,
    /// Main class or jar with its arguments.
    pub command: String,
    /// Milliseconds since 1970.
    pub started: u64,
    /// Milliseconds since 1970; `None` = did not end in order (killed, or still running when sealed).
    pub ended: Option<u64>,
    /// The JVM had not ended in order: activations in flight are included as far as they were counted.
    pub sealed_after_crash: bool,
    /// Include globs as given.
    pub include: Vec<String>,
    /// Exclude globs as given.
    pub exclude: Vec<String>,
}

/// Sums over all methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Instrumented classes.
    pub classes: u64,
    /// Instrumented methods.
    pub methods: u64,
    /// Methods left without probes because they have a single path and no loop.
    pub straight_line: u64,
    /// Instrumented methods that ran at least once.
    pub methods_executed: u64,
    /// Classes and methods that stayed plain.
    pub skipped: u64,
    /// Activations.
    pub activations: u64,
    /// Path IDs counted (the sum of all path counts).
    pub ids: u64,
    /// Path ends by an exception (see [`Method::unfinished`]), in methods where they are known.
    pub unfinished: u64,
    /// Distinct paths that ran.
    pub paths: u64,
    /// Nodes of all k-IPFs: distinct sequences of 1 to k path IDs.
    pub kipf_nodes: u64,
}

/// An instrumented method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Index that the other tables use. Ascending in [`Profile::methods`], not necessarily without gaps.
    pub index: u32,
    /// Class as in Java source: `java.util.HashMap$Node`.
    pub class: String,
    /// Name, `<init>` and `<clinit>` included.
    pub method: String,
    /// Descriptor, `(ILjava/lang/String;)V`.
    pub descriptor: String,
    /// SourceFile attribute of the class.
    pub source_file: Option<String>,
    /// Class of the defining loader, `boot` for the boot loader.
    pub loader: String,
    /// xxh3-64 of the class bytes: tells classes of one name apart.
    pub class_hash: u64,
    /// Class records that this one stands for (same name and bytes).
    pub instances: u32,
    /// Number of acyclic paths had no edge been cut, in decimal: may exceed 2^127.
    pub num_paths: String,
    /// Number of path IDs: all IDs are below it.
    pub numbered_paths: u32,
    /// Times the method was entered; where [`Method::unfinished`] is unknown, times it was left by a return or an athrow.
    pub activations: u64,
    /// Paths that an exception (not an athrow of the method itself) interrupted, so that no ID was counted for them; if the JVM did not
    /// end in order also those that were in flight. `None` = not counted: the method is counted at fixed places, without its entries.
    pub unfinished: Option<u64>,
    /// Path IDs counted.
    pub ids: u64,
    /// Distinct paths that ran.
    pub paths: u64,
    /// Nodes of the k-IPF: distinct sequences of 1 to k path IDs.
    pub kipf_nodes: u64,
    /// Short branches whose ways are not told apart.
    pub merged: u64,
    /// Burst mode: the counts here, of the paths and of the sequences are estimates from activations chosen at random; `None` = they are not.
    pub estimate: Option<MethodEstimate>,
    /// False: counts of sequences are estimates, or lower bounds (counting stopped early, a part of the spool is missing, or there were more
    /// sequences than a method may have rows: then the k-IPF has upper bounds too).
    pub exact: bool,
    /// False: counts of paths are estimates or lower bounds as well.
    pub paths_exact: bool,
    /// Lowest and highest source line, if known.
    pub lines: Option<(u16, u16)>,
}

/// A class or method that stayed plain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Class as in Java source.
    pub class: String,
    /// Method name; empty = the whole class.
    pub method: String,
    /// Method descriptor; empty = the whole class.
    pub descriptor: String,
    /// `paths` or `sites`.
    pub lens: String,
    /// Why.
    pub reason: String,
}

/// A path that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRow {
    /// Path ID.
    pub id: u32,
    /// Times it ran to its end.
    pub count: u64,
    /// Of an estimated count.
    pub interval: Option<Interval>,
    /// Source lines it runs through, in execution order, without repeats in a row; empty = the class has no line numbers.
    pub lines: Vec<u16>,
    /// Bytecode it runs: half-open ranges `[start, end)` in execution order, adjacent ones joined.
    pub bcis: Vec<(u32, u32)>,
    /// Why a path starts at its first block.
    pub starts: StartKind,
    /// How it ends: never `Forward`.
    pub ends: EdgeKind,
}

/// A short branch whose ways are not told apart. Ranges are half-open, of bytecode indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The block that ends in the branch.
    pub head: (u32, u32),
    /// The blocks between, one or two: no path names them.
    pub arms: Vec<(u32, u32)>,
    /// The block where the ways meet.
    pub join: (u32, u32),
    /// Source lines of the branch itself and of the arms, ascending; empty = the class has no line numbers.
    pub lines: Vec<u16>,
}

/// What there is in a method's code, whether it ran or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Source lines that some path can run through, ascending; empty = the class has no line numbers.
    pub lines: Vec<u16>,
    /// Loops, by their heads.
    pub loops: Vec<Loop>,
}

/// A loop, and how often it was entered, by the number of times its back edge was taken until it was left. Of a method whose counts are no
/// exact ones these are lower bounds or estimates, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// Its first block: half-open range of bytecode indices.
    pub head: (u32, u32),
    /// Source line of that; 0 = not known.
    pub line: u16,
    /// Entered and left without another turn.
    pub zero: u64,
    /// Back once.
    pub one: u64,
    /// Back more often.
    pub many: u64,
    /// Entered, but longer sequences of paths than were counted would tell how many turns it took.
    pub unsure: u64,
}

/// What a method did.
#[derive(Clone, Debug)]
pub struct MethodDetail {
    /// Paths that ran, the most frequent first, then by ID.
    pub paths: Vec<PathRow>,
    /// Sequences of 1 to k path IDs that followed one another in an activation; level 1 = the paths. Of estimated counts, `lower` and `upper`
    /// are the ends of the 95 % interval.
    pub kipf: KIpf,
    /// Short branches whose ways are not told apart, by bytecode index.
    pub merged: Vec<Merged>,
}

/// A profile to read. The small tables are in memory; the rest is read a method at a time.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) manifest: Manifest,
    pub(crate) methods: Vec<Method>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) details: Details,
}

/// Where the details of methods come from.
#[derive(Clone, Debug)]
pub(crate) enum Details {
    Files(Arc<Mutex<crate::read::Files>>),
    Memory(BTreeMap<u32, MethodDetail>),
}

impl Profile {
    /// Opens the profile directory `dir`. Every file is checked against the manifest.
    pub fn open(dir: impl AsRef<Path>) -> Result<Profile, Error> {
        crate::read::open(dir.as_ref())
    }

    /// A profile made of its parts, in memory only. `methods` must be ascending by index.
    pub fn from_parts(
        manifest: Manifest,
        methods: Vec<Method>,
        skipped: Vec<Skipped>,
        details: BTreeMap<u32, MethodDetail>,
    ) -> Profile {
        Profile {
            manifest,
            methods,
            skipped,
            details: Details::Memory(details),
        }
    }

    /// What was profiled.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All instrumented methods by index, those that never ran included.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// What stayed plain.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Lines and loops of the method with this [`Method::index`]. `None` = the profile was sealed by a version that did not keep them.
    pub fn code(&self, index: u32) -> Result<Option<Code>, Error> {
        match &self.details {
            Details::Files(files) => {
                let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                files.code(index)
            }
            Details::Memory(_) => Ok(None),
        }
    }

    /// Paths and k-IPF of the method with this [`Method::index`]. Read from the files at each call: keep it if needed twice.
    pub fn detail(&self, index: u32) -> Result<MethodDetail, Error> {
        let at = self
            .methods
            .binary_search_by_key(&index, |method| method.index);
        let method = at
            .ok()
            .and_then(|at| self.methods.get(at))
            .ok_or(Error::NoMethod(index))?;
        match &self.details {
            Details::Files(files) => {
                let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                files.detail(&self.manifest, method)
            }
            Details::Memory(details) => details.get(&index).cloned().ok_or(Error::NoMethod(index)),
        }
    }
}
