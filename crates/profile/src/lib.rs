//! A profile: what a JVM counted, in a directory of Parquet files and one JSON manifest.
//!
//! In: a spool directory (`counters.bin`, `meta.log`) that the agent filled. Out: a profile directory, and [`Profile`] to read one.
//! What must never happen here: a half-written profile under its final name, a panic on a damaged file, a count that claims
//! to be exact and is not.
pub mod error;
pub mod model;

pub use error::Error;
pub use model::{Manifest, Method, MethodDetail, PathRow, Profile, Skipped, Target, Totals};

/// Version of the profile format: [`Manifest::schema`].
pub const SCHEMA: u32 = 1;
