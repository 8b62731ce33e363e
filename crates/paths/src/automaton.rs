//! The k-gram automaton: the default engine.
//!
//! A *row* is the window of the last k-1 IDs of an activation (fewer at its start; the root row is the empty window). An *edge* (row, ID)
//! holds one count and the next row. One item costs one edge: count it, go to its target. Only an edge's first use hashes
//! anything (the window of the row it leads to), so an activation of N known items needs no hash operation, where the k-SF needs
//! `1 + N/(k-1)`. Rows of methods with few paths are arrays indexed by ID, others small hash tables. Each k-gram is
//! counted at one edge, which is why edges and k-IPF are in bijection (docs/engines.md).

use crate::hash::mix;
use crate::kipf::Builder;
use crate::{Engine, Error, KIpf, Stats, check_k};

/// Methods with at most this many paths have rows indexed by path ID.
pub const DENSE_PATHS: u32 = 16;

const NONE: u32 = u32::MAX;
/// Multiplier of the windows' polynomial hash (odd, so invertible modulo 2^64).
const BASE: u64 = 0x2545_F491_4F6C_DD1D;
/// Multiplier of the edge tables' hash.
const EDGE_MUL: u32 = 0x9E37_79B1;

#[derive(Clone, Copy, Debug)]
struct Edge {
    /// NONE = a free slot of a table (an ID of this value is never counted).
    id: u32,
    /// NONE = never taken.
    next: u32,
    count: u64,
}

const FREE: Edge = Edge {
    id: NONE,
    next: NONE,
    count: 0,
};

#[derive(Clone, Copy, Debug)]
struct Row {
    /// Polynomial hash of the window.
    hash: u64,
    /// Where the window is in `windows`.
    window: usize,
    /// Where the edges are in `edges`.
    edges: usize,
    /// Edges in use (tables only).
    live: u32,
    window_len: u8,
    /// log2 of the table's slots (tables only).
    bits: u8,
}

/// The automaton of one method.
#[derive(Clone, Debug)]
pub struct Automaton {
    k: u32,
    /// Slots of a dense row; None: rows have tables.
    dense: Option<u32>,
    rows: Vec<Row>,
    edges: Vec<Edge>,
    /// The rows' windows, back to back: one allocation for all.
    windows: Vec<u32>,
    /// Open-addressing table from windows to rows.
    index: Vec<u32>,
    /// BASE^(k-2): weight of the oldest ID of a full window.
    oldest: u64,
    stats: Stats,
}

impl Automaton {
    /// An automaton for the IDs below `num_paths`. Rows are dense up to [`DENSE_PATHS`] paths. IDs that are not below `num_paths` are
    /// counted as lost.
    pub fn new(k: u32, num_paths: u32) -> Result<Automaton, Error> {
        Automaton::with_rows(k, (num_paths <= DENSE_PATHS).then_some(num_paths))
    }

    /// An automaton with dense rows of a given width, or (None) with hashed rows for any IDs but `u32::MAX`.
    pub fn with_rows(k: u32, dense: Option<u32>) -> Result<Automaton, Error> {
        let mut automaton = Automaton {
            k: check_k(k)?,
            dense,
            rows: Vec::new(),
            edges: Vec::new(),
            windows: Vec::new(),
            index: vec![NONE; 16],
            oldest: BASE.wrapping_pow(k.saturating_sub(2)),
            stats: Stats::default(),
        };
        automaton.make_row(0, 0);
        Ok(automaton)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// All edges that were taken: (window, ID, count), in the order of the rows' making.
    pub fn edges(&self) -> impl Iterator<Item = (&[u32], u32, u64)> + '_ {
        self.rows.iter().flat_map(|row| {
            let edges = self.row_edges(row);
            edges.map(|(id, edge)| (self.window(row), id, edge.count))
        })
    }

    /// The edges of a row that were taken, with their IDs.
    fn row_edges(&self, row: &Row) -> impl Iterator<Item = (u32, &Edge)> + '_ {
        let dense = self.dense;
        let slots = dense.map_or(1 << row.bits, |width| width as usize);
        let edges = (0..).zip(&self.edges[row.edges..row.edges + slots]);
        edges
            .filter(|(_, edge)| edge.count != 0)
            .map(move |(slot, edge)| (dense.map_or(edge.id, |_| slot), edge))
    }

    fn window(&self, row: &Row) -> &[u32] {
        &self.windows[row.window..row.window + usize::from(row.window_len)]
    }

    /// Makes a row whose window is the last `window_len` IDs of `windows`.
    fn make_row(&mut self, hash: u64, window_len: u8) -> u32 {
        let row = u32::try_from(self.rows.len()).expect("an automaton has less than 2^32 rows");
        let window = self.windows.len() - usize::from(window_len);
        let bits = 1;
        self.rows.push(Row {
            hash,
            window,
            edges: self.edges.len(),
            live: 0,
            window_len,
            bits,
        });
        let slots = self.dense.map_or(1 << bits, |width| width as usize);
        self.edges.resize(self.edges.len() + slots, FREE);
        if self.rows.len() * 4 > self.index.len() * 3 {
            self.index = vec![NONE; self.index.len() * 2];
            for r in 0..row {
                self.enlist(r);
            }
        }
        self.enlist(row);
        row
    }

    fn enlist(&mut self, row: u32) {
        let mask = self.index.len() - 1;
        let mut slot = mix(self.rows[row as usize].hash) as usize & mask;
        while self.index[slot] != NONE {
            slot = (slot + 1) & mask;
        }
        self.index[slot] = row;
    }

    /// The row after `id` in row `from`: its window without the oldest ID if it is full, and `id`.
    #[cold]
    fn target(&mut self, from: u32, id: u32) -> u32 {
        if self.k == 1 {
            return 0;
        }
        let row = self.rows[from as usize];
        let full = u32::from(row.window_len) == self.k - 1;
        let kept = row.window + usize::from(full)..row.window + usize::from(row.window_len);
        let weight = |id: u32| u64::from(id) + 1;
        let gone = if full {
            weight(self.windows[row.window]).wrapping_mul(self.oldest)
        } else {
            0
        };
        let hash = row
            .hash
            .wrapping_sub(gone)
            .wrapping_mul(BASE)
            .wrapping_add(weight(id));

        self.stats.hash_lookups += 1;
        let mask = self.index.len() - 1;
        let mut slot = mix(hash) as usize & mask;
        while self.index[slot] != NONE {
            let found = &self.rows[self.index[slot] as usize];
            if found.hash == hash
                && let Some((last, rest)) = self.window(found).split_last()
                && (*last, rest) == (id, &self.windows[kept.clone()])
            {
                return self.index[slot];
            }
            slot = (slot + 1) & mask;
        }
        self.stats.hash_inserts += 1;
        let len = kept.len() as u8 + 1;
        self.windows.extend_from_within(kept);
        self.windows.push(id);
        self.make_row(hash, len)
    }

    /// Index of the edge of a hashed row, made if absent.
    #[inline]
    fn table_edge(&mut self, row: u32, id: u32) -> usize {
        let Row {
            edges, bits, live, ..
        } = self.rows[row as usize];
        match self.probe(edges, bits, id) {
            Ok(at) => at,
            Err(free) => {
                let slots = 1u32 << bits;
                self.rows[row as usize].live = live + 1;
                let free = if (live + 1) * 4 > slots * 3 {
                    self.grow(row, id)
                } else {
                    free
                };
                self.edges[free].id = id;
                free
            }
        }
    }

    /// The slot that holds `id`, or the free one where it belongs.
    #[inline]
    fn probe(&self, edges: usize, bits: u8, id: u32) -> Result<usize, usize> {
        let mask = (1usize << bits) - 1;
        let mut slot = (id.wrapping_mul(EDGE_MUL) >> (32 - bits)) as usize;
        loop {
            let at = edges + slot;
            if self.edges[at].id == id {
                return Ok(at);
            }
            if self.edges[at].id == NONE {
                return Err(at);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Moves a row's edges to a table of twice the size (the outgrown one is left behind, as in the agent's arenas) and gives
    /// the free slot for `id`.
    #[cold]
    fn grow(&mut self, row: u32, id: u32) -> usize {
        let Row {
            edges: old, bits, ..
        } = self.rows[row as usize];
        let new = self.edges.len();
        self.edges.resize(new + (2 << bits), FREE);
        for at in old..old + (1 << bits) {
            let edge = std::mem::replace(&mut self.edges[at], FREE);
            if edge.id != NONE
                && let Err(free) = self.probe(new, bits + 1, edge.id)
            {
                self.edges[free] = edge;
            }
        }
        self.rows[row as usize].edges = new;
        self.rows[row as usize].bits = bits + 1;
        let (Ok(at) | Err(at)) = self.probe(new, bits + 1, id);
        at
    }
}

impl Engine for Automaton {
    /// Index of a row.
    type State = u32;

    #[inline]
    fn enter(&mut self) -> u32 {
        0
    }

    #[inline]
    fn hit(&mut self, row: u32, id: u32) -> u32 {
        if id >= self.dense.unwrap_or(NONE) {
            self.stats.lost += 1;
            return row;
        }
        let at = match self.dense {
            Some(width) => row as usize * width as usize + id as usize,
            None => self.table_edge(row, id),
        };
        let edge = &mut self.edges[at];
        edge.count += 1;
        if edge.next != NONE {
            return edge.next;
        }
        self.stats.counters += 1;
        let next = self.target(row, id);
        self.edges[at].next = next;
        next
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    /// Visits the rows from the root and keeps the node of each one's window, so that an edge costs one look-up.
    fn k_ipf(&self) -> KIpf {
        let mut builder = Builder::new(self.k).expect("k was checked");
        let mut nodes = vec![None; self.rows.len()];
        nodes[0] = Some(builder.start());
        let mut todo = vec![0u32];
        while let Some(row) = todo.pop() {
            let Some(window) = nodes[row as usize] else {
                continue;
            };
            for (id, edge) in self.row_edges(&self.rows[row as usize]) {
                let node = builder.step(window, id, edge.count);
                if nodes[edge.next as usize].replace(node).is_none() {
                    todo.push(edge.next);
                }
            }
        }
        builder.finish()
    }
}
