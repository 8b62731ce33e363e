//! A profile: what a JVM counted, in a directory of Parquet files and one JSON manifest.
//!
//! In: a spool directory (`counters.bin`, `meta.log`) that the agent filled. Out: a profile directory, and [`Profile`] to read one.
//! What must never happen here: a half-written profile under its final name, a panic on a damaged file, a count that claims
//! to be exact and is not.
mod burst;
pub mod error;
mod gather;
pub mod model;
mod read;
mod seal;
mod table;
mod tables;

pub use error::Error;
pub use model::{
    Burst, Checksum, EdgeKind, Interval, Manifest, Merged, Method, MethodDetail, MethodEstimate,
    PathRow, Profile, Skipped, StartKind, Target, Totals,
};
pub use seal::{Existing, Progress, seal};
pub use tables::end_name;

/// Version of the profile format: [`Manifest::schema`].
pub const SCHEMA: u32 = 3;
