//! Counter memory: what the probes' fast paths read and write by address, and the slow paths that make rows.
//!
//! In: calls from the probe helper (natives) and thread ends. Out: `counters.bin`, mapped `MAP_SHARED`, laid out as
//! `borescope_spool::layout` says. Nothing here calls into the JVM, blocks at a safepoint, or frees memory that a
//! compiled probe may still use.

mod arena;
mod burst;
mod file;
mod raw;
mod rows;

pub use arena::Threads;
pub use burst::Burst;
pub use file::CounterFile;
pub(crate) use file::{allocate, map_file, reserve_addresses, zero_pages};
pub use raw::{Addr, add64};
pub(crate) use raw::{load32, load64, publish64, store8, store32, store64};
pub use rows::{Counters, Setup, dense_limit};
