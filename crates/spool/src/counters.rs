//! Reads `counters.bin`: the rows of the engine, their edges and windows, the slots, and the trees of the k-SF.
//!
//! The file may be read while the JVM writes it, after the JVM was killed, or after bytes of it were lost. So each offset is checked before
//! it is followed, a record belongs to exactly one row (tables and k-SF nodes name theirs), and so the work is linear in
//! the size of the file whatever it holds. What does not add up is left out and named in [`Damage`].

mod slots;
mod walk;

use std::cell::Cell;
use std::collections::HashSet;

use crate::layout::{
    self, DENSE_EDGE_BYTES, Engine, HEADER_BYTES, KSF_BYTES, Kind, NO_ID, ROW_BYTES, RUN_BYTES,
    Stop, TABLE_BYTES, TABLE_EDGE_BYTES,
};
use crate::source::Source;
pub use slots::{Piece, Slots};
pub use walk::Rows;

/// Largest k that a spool may name.
pub const MAX_K: u32 = 64;

/// Why a file is not a `counters.bin`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Shorter than a file header.
    #[error("{0} bytes, the header alone has {HEADER_BYTES}")]
    Short(u64),
    /// The first bytes are others.
    #[error("does not begin with the magic number of this version")]
    Magic,
    /// A field of the header has an impossible value.
    #[error("impossible {field} {value} in the header")]
    Field {
        /// Its name in `layout::header`.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// The file header, as it was when [`Counters::new`] read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of offset 0 in the JVM.
    pub base: u64,
    /// End of the last chunk.
    pub allocated: u64,
    /// Engine.
    pub engine: Engine,
    /// k.
    pub k: u32,
    /// Why counting stopped.
    pub stop: Stop,
    /// The JVM ended in order.
    pub ended: bool,
    /// Items not counted.
    pub lost: u64,
    /// Milliseconds since 1970 at the end, 0 = unknown.
    pub ended_at: u64,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// File offset.
    pub offset: u64,
    /// Index of the method.
    pub method: u32,
    /// Last path ID of the window; `None` = the root.
    pub id: Option<u32>,
    /// File offset of the row whose edge made this one; `None` = the root.
    pub parent: Option<u64>,
    /// Activations (root rows only).
    pub enters: u64,
    /// Entries of exception handlers while in this row.
    pub caught: u64,
    /// In a shared arena.
    pub shared: bool,
    /// Truncated: so many IDs are in its window, and what came before them is not known.
    pub truncated: Option<u32>,
    /// What its run slot counted, if it has one that is in use.
    pub run: Option<Run>,
    edges: EdgesAt,
    has_slot: bool,
}

/// What a run slot counted: `count` runs of the path `id`, `total` times it together (see [`layout::run`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Path ID.
    pub id: u32,
    /// Runs.
    pub count: u64,
    /// Path IDs in them.
    pub total: u64,
}

impl Run {
    /// How often the path came after itself k - 1 times: all but the first k - 1 IDs of each run. `None` = the slot contradicts itself.
    pub fn beyond(&self, k: u32) -> Option<u64> {
        let first = self.count.checked_mul(u64::from(k).saturating_sub(1))?;
        self.total.checked_sub(first)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgesAt {
    Dense(u32),
    /// File offset of the table; 0 = none yet.
    Hash(u64),
}

impl Row {
    /// File offset of the first record that is of this row: its run slot if it has one, else the row itself. [`Counters::row`] takes both.
    pub fn record(&self) -> u64 {
        match self.has_slot {
            true => self.offset - RUN_BYTES,
            false => self.offset,
        }
    }

    /// True if a run slot stands before it: its method has run loops, and its edges beyond the method's paths are short runs
    /// ([`layout::short_runs`]).
    pub fn has_run_slot(&self) -> bool {
        self.has_slot
    }

    /// True if the edges are in a hash table.
    pub fn is_hash(&self) -> bool {
        matches!(self.edges, EdgesAt::Hash(_))
    }
}

/// An edge of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Path ID.
    pub id: u32,
    /// File offset of the next row (of the tree's root for a k-SF), if it was made.
    pub next: Option<u64>,
    /// Count.
    pub count: u64,
}

/// The window of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Last path IDs, oldest first, at most k - 1.
    pub ids: Vec<u32>,
    /// There were more in the activation, but they are not known: memory for longer windows had ended.
    pub truncated: bool,
    /// False: the chain of parents is broken; `ids` are the newest of the window.
    pub whole: bool,
}

/// What could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of places.
    pub places: u64,
    /// File offset and reason of the first.
    pub first: Option<(u64, &'static str)>,
}

impl Damage {
    /// Notes one place.
    pub fn add(&mut self, offset: u64, reason: &'static str) {
        self.places += 1;
        self.first.get_or_insert((offset, reason));
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first {
            None => f.write_str("nothing"),
            Some((offset, reason)) => write!(
                f,
                "{} place(s), the first at offset {offset}: {reason}",
                self.places
            ),
        }
    }
}

/// The counters of a JVM.
#[derive(Debug)]
pub struct Counters<S> {
    source: S,
    header: Header,
    /// Nothing is read from here on. Moves if the JVM is still running.
    end: Cell<u64>,
}

impl<S: Source> Counters<S> {
    /// Reads the header.
    pub fn new(source: S) -> Result<Self, HeaderError> {
        use layout::header::*;
        let mut bytes = [0; HEADER_BYTES as usize];
        if !source.read(0, &mut bytes) {
            return Err(HeaderError::Short(source.len()));
        }
        if u64_at(&bytes, MAGIC) != layout::MAGIC {
            return Err(HeaderError::Magic);
        }
        let impossible = |field, value| Err(HeaderError::Field { field, value });
        let engine = match u32_at(&bytes, ENGINE) {
            0 => Engine::Automaton,
            1 => Engine::Ksf,
            2 => Engine::BlppHash,
            3 => Engine::BlppDense,
            4 => Engine::KsfMtf,
            other => return impossible("ENGINE", other.into()),
        };
        let k = u32_at(&bytes, K);
        if !(1..=MAX_K).contains(&k) {
            return impossible("K", k.into());
        }
        let stop = match u32_at(&bytes, STOP) {
            0 => Stop::No,
            1 => Stop::Memory,
            2 => Stop::DiskFull,
            other => return impossible("STOP", other.into()),
        };
        let allocated = u64_at(&bytes, ALLOCATED);
        if allocated < HEADER_BYTES {
            return impossible("ALLOCATED", allocated);
        }
        let header = Header {
            base: u64_at(&bytes, BASE),
            allocated,
            engine,
            k,
            stop,
            ended: u32_at(&bytes, ENDED) != 0,
            lost: u64_at(&bytes, LOST),
            ended_at: u64_at(&bytes, ENDED_AT),
        };
        let end = Cell::new(allocated.min(source.len()));
        Ok(Counters {
            source,
            header,
            end,
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// All rows, in file order.
    pub fn rows(&self) -> Rows<'_, S> {
        let mut damage = Damage::default();
        if self.end.get() < self.header.allocated {
            damage.add(self.end.get(), "the file ends before its last chunk does");
        }
        Rows::new(self, damage)
    }

    /// All slots, summed over the arenas.
    pub fn slots(&self) -> Slots {
        Slots::read(self)
    }

    /// The row at a file offset, or the row whose run slot is there (then with what that counted); `None` = there is none.
    pub fn row(&self, offset: u64) -> Option<Row> {
        let cached = |at, buf: &mut [u8]| self.source.read(at, buf);
        self.row_by(offset, &cached).or_else(|| {
            let run = self.run(offset)?;
            let row = self.row_by(offset.checked_add(RUN_BYTES)?, &cached)?;
            Some(Row {
                run: (run.1 || run.0.count > 0 || run.0.total > 0).then_some(run.0),
                has_slot: true,
                ..row
            })
        })
    }

    /// The run slot at `offset`, and whether it knows where its runs lead.
    fn run(&self, offset: u64) -> Option<(Run, bool)> {
        use layout::run::*;
        let read = |read: &dyn Fn(u64, &mut [u8]) -> bool| {
            let bytes: [u8; RUN_BYTES as usize] = self.record(offset, read)?;
            let is_run = u32_at(&bytes, layout::row::KIND) == Kind::Run as u32
                && u64::from(u32_at(&bytes, layout::row::BYTES)) == RUN_BYTES;
            let run = Run {
                id: u32_at(&bytes, ID),
                count: u64_at(&bytes, COUNT),
                total: u64_at(&bytes, TOTAL),
            };
            is_run.then_some((run, u64_at(&bytes, JUMP) != 0))
        };
        let mut run = read(&|at, buf| self.source.read(at, buf))?;
        // A running JVM raises the total, then the count: a copy of the bytes taken between the two may hold one without the other.
        for _ in 0..4 {
            if self.header.ended || run.0.beyond(self.header.k).is_some() {
                break;
            }
            run = read(&|at, buf| self.source.read_fresh(at, buf))?;
        }
        Some(run)
    }

    fn row_by(&self, offset: u64, read: &dyn Fn(u64, &mut [u8]) -> bool) -> Option<Row> {
        use layout::row::*;
        let bytes: [u8; ROW_BYTES as usize] = self.record(offset, read)?;
        let size = u32_at(&bytes, BYTES);
        let kind = u32_at(&bytes, KIND);
        let edges = if kind == Kind::DenseRow as u32 {
            let edges = u64::from(size).checked_sub(ROW_BYTES)? / DENSE_EDGE_BYTES;
            EdgesAt::Dense(u32::try_from(edges).ok()?)
        } else if kind == Kind::HashRow as u32 && u64::from(size) >= ROW_BYTES {
            let table = u64_at(&bytes, REAL_TABLE);
            // An address below the base is no table: offset 1 is never one either.
            EdgesAt::Hash(if table == 0 {
                0
            } else {
                table.checked_sub(self.header.base).unwrap_or(1)
            })
        } else {
            return None;
        };
        let id = u32_at(&bytes, ID);
        let parent = u64_at(&bytes, PARENT);
        let flags = u32_at(&bytes, FLAGS);
        Some(Row {
            offset,
            method: u32_at(&bytes, METHOD),
            id: (id != NO_ID).then_some(id),
            parent: (parent != 0).then(|| parent.checked_sub(self.header.base).unwrap_or(1)),
            enters: u64_at(&bytes, ENTERS),
            caught: u64_at(&bytes, CAUGHT),
            shared: flags & SHARED != 0,
            truncated: (flags & TRUNCATED != 0).then_some(flags >> LENGTH_SHIFT & LENGTH_MASK),
            run: None,
            edges,
            has_slot: false,
        })
    }

    /// The edges of a row that were ever taken. `Err` = its edge table is damaged: the reason.
    pub fn edges(&self, row: &Row) -> Result<Edges, &'static str> {
        const NOT_ONE: &str = "the edge table of a row is not one";
        if self.header.ended {
            return self
                .edges_once(row, &|at, buf| self.source.read(at, buf))
                .ok_or(NOT_ONE);
        }
        // The JVM may be growing the row's table right now, and use the outgrown one for another row: what was read counts only if
        // the row still had that table afterwards.
        let fresh = |at, buf: &mut [u8]| self.source.read_fresh(at, buf);
        for _ in 0..16 {
            let now = self.row_by(row.offset, &fresh).ok_or(NOT_ONE)?;
            let edges = self.edges_once(&now, &fresh);
            let same = self
                .row_by(row.offset, &fresh)
                .is_some_and(|after| after.edges == now.edges);
            if let Some(edges) = edges.filter(|_| same) {
                return Ok(edges);
            }
        }
        Err(NOT_ONE)
    }

    fn edges_once(&self, row: &Row, read: &dyn Fn(u64, &mut [u8]) -> bool) -> Option<Edges> {
        let (at, len) = match row.edges {
            EdgesAt::Dense(edges) => (row.offset + ROW_BYTES, u64::from(edges) * DENSE_EDGE_BYTES),
            EdgesAt::Hash(0) => (0, 0),
            EdgesAt::Hash(table) => (
                table.checked_add(TABLE_BYTES)?,
                self.table_slots(table, row.offset, read)? * TABLE_EDGE_BYTES,
            ),
        };
        // Never more memory than the file has bytes.
        if len > 0 && at.checked_add(len)? > self.source.fresh_len() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        let dense = !row.is_hash();
        (len == 0 || read(at, &mut bytes)).then_some(Edges {
            bytes,
            at: 0,
            dense,
            base: self.header.base,
        })
    }

    /// Number of slots of the table at `offset`, if it is one and `row` owns it.
    fn table_slots(
        &self,
        offset: u64,
        row: u64,
        read: &dyn Fn(u64, &mut [u8]) -> bool,
    ) -> Option<u64> {
        use layout::table::*;
        let mut bytes = [0; TABLE_BYTES as usize];
        if offset < HEADER_BYTES || !offset.is_multiple_of(16) || !read(offset, &mut bytes) {
            return None;
        }
        let slots = u64::from(u32_at(&bytes, SLOTS));
        let right = u32_at(&bytes, layout::row::KIND) == Kind::Table as u32
            && u64::from(u32_at(&bytes, layout::row::BYTES))
                == TABLE_BYTES + slots * TABLE_EDGE_BYTES
            && u64_at(&bytes, ROW).checked_sub(self.header.base) == Some(row);
        right.then_some(slots)
    }

    /// The window of a row, read along its parents.
    pub fn window(&self, row: &Row) -> Window {
        let full = self.header.k as usize - 1;
        // The parents of a truncated row may know more than holds for all that came to it.
        let limit = row.truncated.map_or(full, |known| full.min(known as usize));
        let mut ids = Vec::new();
        let mut whole = true;
        let mut at = *row;
        while ids.len() < limit {
            let Some(id) = at.id else { break };
            ids.push(id);
            let parent = at.parent.and_then(|parent| {
                self.retry(parent, || {
                    self.row(parent)
                        .filter(|parent| parent.method == row.method)
                })
            });
            let Some(parent) = parent else {
                whole = ids.len() == limit;
                break;
            };
            at = parent;
        }
        ids.reverse();
        whole &= row.truncated.is_none() || ids.len() == limit;
        Window {
            truncated: row.truncated.is_some() && limit < full,
            ids,
            whole,
        }
    }

    /// Visits each node of the k-SF below the method's root row `row`: the path IDs from its tree's root down to it, and its count.
    /// Parents come before children. `damage` gets what is left out.
    pub fn ksf(&self, row: &Row, damage: &mut Damage, mut visit: impl FnMut(&[u32], u64)) {
        let edges = match self.edges(row) {
            Ok(edges) => edges,
            Err(reason) => return damage.add(row.offset, reason),
        };
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        let mut stack = Vec::new();
        for edge in edges {
            match edge.next {
                // The root is linked after its edge is made.
                None => continue,
                Some(next) => stack.push((next, 0)),
            }
            while let Some((offset, depth)) = stack.pop() {
                let fits = |node: &Node| node.root == row.offset && node.depth == depth;
                let node = self.retry(offset, || self.node(offset).filter(fits));
                let Some(node) = node.filter(|_| seen.insert(offset)) else {
                    damage.add(offset, "a k-SF node is not one of its tree");
                    continue;
                };
                // Only this tree's siblings of this depth are on the stack above its ancestors: the path is theirs.
                path.truncate(depth as usize);
                path.push(node.id);
                visit(&path, node.count);
                if depth > 0 {
                    stack.extend(node.sibling.map(|sibling| (sibling, depth)));
                }
                stack.extend(node.first.map(|child| (child, depth + 1)));
            }
        }
    }

    fn node(&self, offset: u64) -> Option<Node> {
        use layout::ksf::*;
        let bytes: [u8; KSF_BYTES as usize] =
            self.record(offset, &|at, buf| self.source.read(at, buf))?;
        let link = |at| match u64::from(u32_at(&bytes, at)) {
            0 => None,
            units => Some(units * 16),
        };
        let is_node = u32_at(&bytes, layout::row::KIND) == Kind::KsfNode as u32
            && u64::from(u32_at(&bytes, layout::row::BYTES)) == KSF_BYTES;
        is_node.then(|| Node {
            id: u32_at(&bytes, ID),
            depth: u32_at(&bytes, DEPTH),
            count: u64_at(&bytes, COUNT),
            first: link(FIRST),
            sibling: link(SIBLING),
            root: link(ROOT).unwrap_or(0),
        })
    }

    /// What a link leads to may be younger than the cached copy of its bytes, and than the end that the file had.
    fn retry<T>(&self, offset: u64, read: impl Fn() -> Option<T>) -> Option<T> {
        read().or_else(|| {
            self.source.refresh(offset);
            let mut allocated = [0; 8];
            if !self.header.ended
                && self
                    .source
                    .read_fresh(layout::header::ALLOCATED, &mut allocated)
            {
                let end = u64::from_le_bytes(allocated).min(self.source.fresh_len());
                self.end.set(self.end.get().max(end));
            }
            read()
        })
    }

    /// The first `N` bytes of a record at `offset`, if all of it lies where records are.
    fn record<const N: usize>(
        &self,
        offset: u64,
        read: &dyn Fn(u64, &mut [u8]) -> bool,
    ) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let fits = |size: u64| {
            offset
                .checked_add(size)
                .is_some_and(|end| end <= self.end.get())
        };
        if offset < HEADER_BYTES
            || !offset.is_multiple_of(16)
            || !fits(N as u64)
            || !read(offset, &mut bytes)
        {
            return None;
        }
        fits(u64::from(u32_at(&bytes, layout::row::BYTES))).then_some(bytes)
    }

    fn bytes<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let fits = offset.checked_add(N as u64)? <= self.end.get();
        (fits && self.source.read(offset, &mut bytes)).then_some(bytes)
    }
}

struct Node {
    id: u32,
    depth: u32,
    count: u64,
    first: Option<u64>,
    sibling: Option<u64>,
    root: u64,
}

/// Iterator over edges: see [`Counters::edges`].
#[derive(Debug)]
pub struct Edges {
    bytes: Vec<u8>,
    at: u32,
    dense: bool,
    base: u64,
}

impl Edges {
    /// `{u64 next, u64 count}`; `next` is negated in shared arenas. User addresses are below 2^63, so the sign tells.
    fn dense(&self, id: u32, bytes: &[u8]) -> Option<Edge> {
        let (next, count) = (u64_at(bytes, 0), u64_at(bytes, 8));
        let address = if next >> 63 == 0 {
            next
        } else {
            next.wrapping_neg()
        };
        let next = address.checked_sub(self.base).filter(|_| address != 0);
        (address != 0 || count != 0).then_some(Edge { id, next, count })
    }

    /// `{u32 id + 1, u32 next / 16 with the top bit for shared, u64 count}`.
    fn hash(bytes: &[u8]) -> Option<Edge> {
        let id = (u32_at(bytes, 0) & !layout::table::UNLINKED).checked_sub(1)?;
        let next = u64::from(u32_at(bytes, 4) & 0x7fff_ffff) * 16;
        Some(Edge {
            id,
            next: (next != 0).then_some(next),
            count: u64_at(bytes, 8),
        })
    }
}

impl Iterator for Edges {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        loop {
            let from = self.at as usize * 16;
            let bytes = self.bytes.get(from..from + 16)?;
            let edge = if self.dense {
                self.dense(self.at, bytes)
            } else {
                Self::hash(bytes)
            };
            self.at += 1;
            if edge.is_some() {
                return edge;
            }
        }
    }
}

// The offsets are constants of `layout` within the fixed-size arrays read above.
fn u32_at(bytes: &[u8], at: u64) -> u32 {
    let at = at as usize;
    bytes
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: u64) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
