//! One file a command; each `run` returns the exit code.

pub mod attach;
pub mod demo;
pub mod detach;
pub mod diff;
pub mod doctor;
pub mod manual;
pub mod paths;
pub mod report;
pub mod seal;
pub mod simulate;
pub mod sites;
pub mod snapshot;
pub mod top;
pub mod trace;
pub mod waste;
