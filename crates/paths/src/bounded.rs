//! The k-gram automaton with a limit on its rows: the reference for how the agent keeps to its memory.
//!
//! A row is *whole* if its window has k-1 IDs or is the activation so far, else *truncated*: the end of a longer window whose beginning
//! is not known. Two things keep the rows within the limit, and both make truncated rows:
//!
//! - **The cap.** When there is no room for a row, the next row is that of the longest suffix of its window that has a truncated row; the
//!   truncated row of the empty window always exists. This costs nothing on the fast path, but no new window is counted any more.
//!   [`Growth::Earned`] therefore sells the second half of the room at a price, to edges that are taken often.
//! - **The fold** ([`Bounded::sweep`]): lossy counting on rows. The edges of rarely taken rows go to the truncated rows of their windows
//!   without the oldest ID, longest windows first, so that counts too small alone gather where windows end alike. An edge whose
//!   target went away finds it anew when it is taken next.
//!
//! What is lost is only what came *before* some items, never an item: [`KIpf::upper`] bounds it.

use crate::kipf::Builder;
use crate::{Engine, Error, FastState, KIpf, Stats, check_k};
use std::collections::{HashMap, HashSet};

const NONE: u32 = u32::MAX;
/// Row of the empty window at an activation's start.
const ROOT: u32 = 0;
/// Truncated row of the empty window.
const TRUNCATED_ROOT: u32 = 1;
/// Rows that do not count for the limit and are never folded.
const ROOTS: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Edge {
    /// NONE = not known.
    next: u32,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Row {
    window: Vec<u32>,
    truncated: bool,
    edges: HashMap<u32, Edge, FastState>,
}

impl Row {
    /// Items counted at the row.
    fn weight(&self) -> u64 {
        self.edges.values().map(|edge| edge.count).sum()
    }

    /// Window of the row after `id`, and whether that row is truncated.
    fn after(&self, k: u32, id: u32) -> (Vec<u32>, bool) {
        let longest = k as usize - 1;
        let mut window = self.window.clone();
        window.push(id);
        window.drain(..window.len().saturating_sub(longest));
        let truncated = self.truncated && window.len() < longest;
        (window, truncated)
    }
}

/// Which rows are made while there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// All.
    Whole,
    /// All in the first half of the room; in the second half an edge must have been taken `price` times before it gets a row. If the
    /// price is `rising`, it is multiplied by `x^2`, where x is the second half by what is left of it: so there is always room for
    /// what comes often enough.
    Earned {
        /// Least count of an edge.
        price: u64,
        /// Whether it rises.
        rising: bool,
    },
}

/// The automaton of one method, with at most so many rows.
#[derive(Clone, Debug)]
pub struct Bounded {
    k: u32,
    limit: usize,
    growth: Growth,
    rows: Vec<Row>,
    /// Unused places in `rows`.
    free: Vec<u32>,
    /// Rows by window: whole, truncated.
    index: [HashMap<Vec<u32>, u32, FastState>; 2],
    slow: u64,
    sweeps: u64,
}

impl Bounded {
    /// An automaton with at most `limit` rows besides the two of the empty window.
    pub fn new(k: u32, limit: usize, growth: Growth) -> Result<Bounded, Error> {
        let mut bounded = Bounded {
            k: check_k(k)?,
            limit,
            growth,
            rows: Vec::new(),
            free: Vec::new(),
            index: [HashMap::default(), HashMap::default()],
            slow: 0,
            sweeps: 0,
        };
        bounded.make(Vec::new(), false);
        bounded.make(Vec::new(), true);
        Ok(bounded)
    }

    /// Rows in use, besides the two of the empty window.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len() - self.free.len() - ROOTS
    }

    /// Whether there is no room for another row.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows() >= self.limit
    }

    /// Items whose next row had to be looked up.
    #[must_use]
    pub fn slow(&self) -> u64 {
        self.slow
    }

    /// Sweeps so far.
    #[must_use]
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Folds rows until at most `keep` are left, the least taken ones and of these the longest windows first. The rows of `running`
    /// (states of activations that go on) stay.
    pub fn sweep(&mut self, keep: usize, running: &[u32]) {
        let running: HashSet<u32> = running.iter().copied().collect();
        self.sweeps += 1;
        let mut gone = HashSet::new();
        let in_use = |bounded: &Bounded, gone: &HashSet<u32>| bounded.rows() - gone.len();
        let mut light = 1u64;
        while in_use(self, &gone) > keep {
            let mut by_length: Vec<Vec<u32>> = vec![Vec::new(); self.k as usize];
            for map in &self.index {
                for (window, &row) in map {
                    if !running.contains(&row) && row >= ROOTS as u32 {
                        by_length[window.len()].push(row);
                    }
                }
            }
            let mut any = false;
            for length in (1..self.k as usize).rev() {
                let mut rows = std::mem::take(&mut by_length[length]);
                // The order of a hash table would make results differ.
                rows.sort_unstable();
                any |= !rows.is_empty();
                for row in rows {
                    if in_use(self, &gone) <= keep {
                        break;
                    }
                    if self.rows[row as usize].weight() <= light {
                        let made = self.fold(row);
                        gone.insert(row);
                        by_length[length - 1].extend(made);
                    }
                }
            }
            if !any {
                break;
            }
            light = light.saturating_mul(2);
        }
        self.forget();
        self.free.extend(gone);
        self.free.sort_unstable();
    }

    /// Moves a row's edges to the truncated row of its window without the oldest ID: that row if it had to be made.
    fn fold(&mut self, row: u32) -> Option<u32> {
        let Row {
            window,
            truncated,
            edges,
        } = std::mem::take(&mut self.rows[row as usize]);
        self.index[usize::from(truncated)].remove(&window);
        let (into, made) = match self.index[1].get(&window[1..]) {
            Some(&into) => (into, None),
            None => {
                let into = self.make(window[1..].to_vec(), true);
                (into, Some(into))
            }
        };
        let there = &mut self.rows[into as usize].edges;
        for (id, edge) in edges {
            let unknown = Edge {
                next: NONE,
                count: 0,
            };
            there.entry(id).or_insert(unknown).count += edge.count;
        }
        made
    }

    /// Edges to rows that are gone (which have no window any more), or to shorter windows than there could be a row of, look their next
    /// row up again.
    fn forget(&mut self) {
        let labels: Vec<(usize, bool)> = self
            .rows
            .iter()
            .map(|row| (row.window.len(), row.truncated))
            .collect();
        let longest = self.k as usize - 1;
        for (row, label) in self.rows.iter_mut().zip(&labels) {
            let length = (label.0 + 1).min(longest);
            let best = (length, label.1 && length < longest);
            for edge in row.edges.values_mut().filter(|edge| edge.next != NONE) {
                if labels[edge.next as usize] != best {
                    edge.next = NONE;
                }
            }
        }
    }

    fn make(&mut self, window: Vec<u32>, truncated: bool) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Row::default());
            u32::try_from(self.rows.len() - 1).expect("an automaton has less than 2^32 rows")
        });
        self.index[usize::from(truncated)].insert(window.clone(), row);
        self.rows[row as usize] = Row {
            window,
            truncated,
            ..Row::default()
        };
        row
    }

    /// How often an edge must have been taken to get a row, with room for so many.
    fn price(&self, room: usize) -> u64 {
        let half = self.limit / 2;
        match self.growth {
            Growth::Earned { price, rising } if room <= half => {
                let part = if rising { (half / room) as u64 } else { 1 };
                part.saturating_mul(part).saturating_mul(price)
            }
            _ => 0,
        }
    }

    /// The row after `id`, and whether it is the one to go to from now on.
    #[cold]
    fn target(&mut self, from: u32, id: u32, taken: u64) -> (u32, bool) {
        self.slow += 1;
        let (window, truncated) = self.rows[from as usize].after(self.k, id);
        if let Some(&row) = self.index[usize::from(truncated)].get(&window) {
            return (row, true);
        }
        let room = self.limit - self.rows().min(self.limit);
        if room > 0 && taken >= self.price(room) {
            return (self.make(window, truncated), true);
        }
        let row = (0..window.len())
            .find_map(|from| self.index[1].get(&window[from..]).copied())
            .unwrap_or(TRUNCATED_ROOT);
        (row, room == 0)
    }
}

impl Engine for Bounded {
    /// A row.
    type State = u32;

    fn enter(&mut self) -> u32 {
        ROOT
    }

    fn hit(&mut self, row: u32, id: u32) -> u32 {
        let unknown = Edge {
            next: NONE,
            count: 0,
        };
        let edge = self.rows[row as usize].edges.entry(id).or_insert(unknown);
        edge.count += 1;
        if edge.next != NONE {
            return edge.next;
        }
        let taken = edge.count;
        let (next, stays) = self.target(row, id, taken);
        if stays && let Some(edge) = self.rows[row as usize].edges.get_mut(&id) {
            edge.next = next;
        }
        next
    }

    fn stats(&self) -> Stats {
        Stats {
            hash_lookups: self.slow,
            counters: self.rows.iter().map(|row| row.edges.len() as u64).sum(),
            ..Stats::default()
        }
    }

    fn k_ipf(&self) -> KIpf {
        let mut builder = Builder::new(self.k).expect("k was checked");
        for row in &self.rows {
            for (&id, edge) in &row.edges {
                if row.truncated {
                    builder.truncated_edge(&row.window, id, edge.count);
                } else {
                    builder.edge(&row.window, id, edge.count);
                }
            }
        }
        builder.finish()
    }
}
