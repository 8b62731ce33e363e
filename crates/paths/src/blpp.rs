//! Plain Ball-Larus path profiling (k = 1): one counter a path ID, in a hash table (the baseline of the seed's evaluation) or in an
//! array.

use crate::{Engine, FastState, KIpf, Stats};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Counters in a hash table. The fast hash is the fair baseline; `BlppHash<std::hash::RandomState>` is SipHash.
#[derive(Clone, Debug, Default)]
pub struct BlppHash<S = FastState> {
    counts: HashMap<u32, u64, S>,
    items: u64,
}

impl<S: BuildHasher + Default> BlppHash<S> {
    /// No counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<S: BuildHasher> Engine for BlppHash<S> {
    type State = ();

    #[inline]
    fn enter(&mut self) {}

    #[inline]
    fn hit(&mut self, (): (), id: u32) {
        self.items += 1;
        *self.counts.entry(id).or_insert(0) += 1;
    }

    fn stats(&self) -> Stats {
        let counters = self.counts.len() as u64;
        Stats {
            hash_lookups: self.items,
            hash_inserts: counters,
            counters,
            lost: 0,
        }
    }

    fn k_ipf(&self) -> KIpf {
        plain(self.counts.iter().map(|(&id, &count)| (id, count)))
    }
}

/// Counters in an array of the method's number of paths.
#[derive(Clone, Debug)]
pub struct BlppDense {
    counts: Vec<u64>,
    lost: u64,
}

impl BlppDense {
    /// Counters for the IDs below `num_paths`; others are counted as lost.
    #[must_use]
    pub fn new(num_paths: u32) -> BlppDense {
        BlppDense {
            counts: vec![0; num_paths as usize],
            lost: 0,
        }
    }
}

impl Engine for BlppDense {
    type State = ();

    #[inline]
    fn enter(&mut self) {}

    #[inline]
    fn hit(&mut self, (): (), id: u32) {
        match self.counts.get_mut(id as usize) {
            Some(count) => *count += 1,
            None => self.lost += 1,
        }
    }

    fn stats(&self) -> Stats {
        Stats {
            counters: self.counts.len() as u64,
            lost: self.lost,
            ..Stats::default()
        }
    }

    fn k_ipf(&self) -> KIpf {
        plain((0..).zip(self.counts.iter().copied()))
    }
}

fn plain(counts: impl Iterator<Item = (u32, u64)>) -> KIpf {
    KIpf::from_edges(1, counts.map(|(id, count)| ([], id, count))).expect("1 is a valid k")
}
