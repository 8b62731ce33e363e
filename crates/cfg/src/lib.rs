//! The control-flow graph of a method, its loops, its Ball-Larus numbering and where the probes go.
pub mod flow;
