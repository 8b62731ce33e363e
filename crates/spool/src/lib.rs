//! The wire format between the agent and everything that reads what it counted.
//!
//! In: the agent encodes [`meta::Record`]s and fills `counters.bin` as [`layout`] says, or writes [`snapshot`]s. Out: [`log::LogReader`],
//! [`counters::Counters`], [`snapshot::Snapshot`] and [`waste::read`] read these files, also while the JVM runs or after it was killed. Nothing that is read is trusted: every
//! length and offset is checked, damage is reported beside what could be read, and no input may panic, loop or allocate beyond
//! a small multiple of its own size.
pub mod codec;
pub mod counters;
pub mod layout;
pub mod log;
pub mod meta;
pub mod sites;
pub mod snapshot;
pub mod source;
pub mod testing;
pub mod trace;
pub mod waste;
