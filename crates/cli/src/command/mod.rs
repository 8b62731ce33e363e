//! One file a command; each `run` returns the exit code.

pub mod demo;
pub mod doctor;
pub mod paths;
pub mod report;
pub mod seal;
pub mod simulate;
