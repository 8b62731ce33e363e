//! The tests of the crate as one program: they share the machine and the access sequences in `common`. `no_alloc` is one of its own.

mod analysis;
mod common;
mod decode;
mod pipeline;
mod pmu;
mod reservoir;
mod seek;
mod table;
mod value;
mod watch;
mod watches;
