//! Path profiling engines and what is computed from them: the mission's algorithms, free of any JVM.
//!
//! What lives here: the three engines that turn a stream of Ball-Larus path IDs into counts ([`ksf`], [`automaton`], [`blpp`]), the
//! automaton with a limit on its memory ([`bounded`]), the k-IPF that all of them give ([`kipf`]), the hot chains that a person reads
//! first ([`chains`]), and what counts of a random share of activations say of all ([`estimate`]). What comes in: path IDs, cut into activations. What goes out: exact counts, or bounds of them. What must never happen here: I/O, `unsafe`, knowledge of the JVM.
//!
//! Source: "Ball-Larus Path Profiling Across Multiple Loop Iterations" (the *seed*), figures 3, 4, 6 and 7.

pub mod automaton;
pub mod blpp;
pub mod bounded;
pub mod chains;
pub mod estimate;
mod hash;
pub mod kipf;
pub mod ksf;
pub mod stream;

pub use hash::FastState;
pub use kipf::KIpf;

/// Largest k that the engines and the k-IPF take.
pub const MAX_K: u32 = 64;

/// What can be wrong with the input of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// k is not in 1..=[`MAX_K`].
    #[error("k = {0} is not between 1 and {MAX_K}")]
    K(u32),
    /// An n-gram is empty or longer than k.
    #[error("an n-gram of length {0} does not fit k = {1}")]
    Length(usize, u32),
    /// Two profiles of different k cannot be added.
    #[error("profiles of k = {0} and k = {1} cannot be added")]
    Merge(u32, u32),
    /// A node names a parent that does not come before it.
    #[error("node {0} names parent {1}, which does not come before it")]
    Parent(usize, u32),
    /// A node of a listing, or an n-gram that it ends with, has neither a count nor children.
    #[error("node {0}, or what it ends with, never occurred, nor did anything below it")]
    Never(usize),
    /// The children of a node, or its extensions to the left, occur more often than the node itself.
    #[error("n-gram {gram:?} has count {count}, less than the {sum} of its {side}")]
    Invariant {
        /// The n-gram that occurs too rarely.
        gram: Vec<u32>,
        /// Its count.
        count: u64,
        /// What it must at least be.
        sum: u64,
        /// `children` (x added at the end) or `left extensions` (x added in front).
        side: &'static str,
    },
    /// A stream's text has a word that is neither `*` nor a number.
    #[error("`{0}` is neither * nor a path ID")]
    Item(String),
}

pub(crate) fn check_k(k: u32) -> Result<u32, Error> {
    if (1..=MAX_K).contains(&k) {
        Ok(k)
    } else {
        Err(Error::K(k))
    }
}

/// What an engine has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Look-ups in a hash table (the paper's figure 9 counts these).
    pub hash_lookups: u64,
    /// Elements made in a hash table.
    pub hash_inserts: u64,
    /// Counters in use: hash table items (BLPP), k-SF nodes, automaton edges (the paper's figure 11).
    pub counters: u64,
    /// IDs not counted since they are not below the number of paths given to a dense engine.
    pub lost: u64,
}

/// A path profiling engine for one method. The state of an activation is a value the caller keeps, as the probes keep it in a local
/// variable; so activations may nest (recursion) and interleave (threads).
pub trait Engine {
    /// State of an activation.
    type State: Copy;
    /// `*`: an activation begins.
    fn enter(&mut self) -> Self::State;
    /// The activation emits a path ID.
    fn hit(&mut self, state: Self::State, id: u32) -> Self::State;
    /// Costs so far.
    fn stats(&self) -> Stats;
    /// All n-grams of up to k IDs with their counts.
    fn k_ipf(&self) -> KIpf;

    /// Feeds whole activations, one after another.
    fn feed<A: AsRef<[u32]>>(&mut self, activations: &[A])
    where
        Self: Sized,
    {
        for activation in activations {
            let mut state = self.enter();
            for &id in activation.as_ref() {
                state = self.hit(state, id);
            }
        }
    }
}
