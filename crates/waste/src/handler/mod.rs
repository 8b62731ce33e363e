//! What may run in a signal handler of the application's threads.
//!
//! Nothing here allocates, locks, waits, or makes a system call (tests/no_alloc.rs proves the first); everything is of fixed size. Memory is
//! shared through atomics only, and who is interrupted between two of their stores leaves at worst a slot that is never used again. The one
//! thing to make before a handler runs is a [`code::Reader`] for each thread.

pub mod access;
pub mod barrier;
pub mod code;
pub mod filter;
pub mod registers;
pub mod reservoir;
pub mod seek;
pub mod table;
pub mod tally;
pub mod trap;
pub mod value;
pub mod watch;
pub mod watches;
