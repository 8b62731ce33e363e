//! A profile: what a JVM counted, in a directory of Parquet files and one JSON manifest.
//!
//! In: a spool directory that the agent filled: `counters.bin` and `meta.log` of the lens paths, `meta.log` and snapshots of the lens [`sites`], `meta.log` and
//! `waste.bin` of the lens [`waste`]. Out: a profile directory, and [`Profile`] to read one.
//! What must never happen here: a half-written profile under its final name, a panic on a damaged file, a count that claims
//! to be exact and is not.
mod burst;
pub mod error;
mod gather;
mod loops;
pub mod model;
mod read;
mod seal;
pub mod sites;
mod table;
mod tables;
pub mod trace;
pub mod waste;

pub use error::Error;
pub use model::{
    Burst, Checksum, Code, EdgeKind, Interval, Loop, Manifest, Merged, Method, MethodDetail,
    MethodEstimate, PathRow, Profile, Skipped, StartKind, Target, Totals,
};
pub use seal::{Existing, Progress, seal};
pub use tables::end_name;

use std::path::Path;

/// A profile of any lens.
#[derive(Debug)]
pub enum Opened {
    /// Of paths.
    Paths(Profile),
    /// Of allocation sites.
    Sites(sites::Profile),
    /// Of wasteful memory operations.
    Waste(waste::Profile),
}

impl Opened {
    /// Opens the profile directory `dir`. Every file is checked against the manifest.
    pub fn open(dir: impl AsRef<Path>) -> Result<Opened, Error> {
        let dir = dir.as_ref();
        match read::manifest_text(dir)?.0.as_str() {
            sites::LENS => sites::Profile::open(dir).map(Opened::Sites),
            waste::LENS => waste::Profile::open(dir).map(Opened::Waste),
            _ => Profile::open(dir).map(Opened::Paths),
        }
    }
}

/// As [`seal`], for a spool of any lens.
pub fn seal_any(
    spool: &Path,
    out: &Path,
    existing: Existing,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    if trace::is_recorded(spool) {
        return Err(Error::NotASpool {
            path: spool.to_owned(),
            reason: "it holds a trace (`borescope sites --trace`), not a profile".into(),
        });
    }
    if waste::is_spool(spool) {
        return waste::seal(spool, out, existing).map(drop);
    }
    match sites::is_spool(spool) {
        true => sites::seal(spool, out, existing).map(drop),
        false => seal(spool, out, existing, progress).map(drop),
    }
}

/// Version of the profile format: [`Manifest::schema`].
pub const SCHEMA: u32 = 3;
