//! Makes spools without a JVM: a [`Builder`] fills an image of `counters.bin` as the agent's engines would, and a few flows to
//! describe methods with. For tests of the crates that read spools.

mod flows;
pub mod sites;
pub mod waste;

use std::collections::{HashMap, HashSet};

pub use flows::{merged_example, switch, switch_loop, worked_example};

use crate::layout::{
    self, CHUNK_HEADER_BYTES, CHUNK_MAGIC, DENSE_EDGE_BYTES, Engine, HASH_MUL, HEADER_BYTES,
    KSF_BYTES, Kind, MAGIC, NO_ID, ROW_BYTES, RUN_BYTES, SLOTS_MAGIC, Stop, TABLE_BYTES,
    TABLE_EDGE_BYTES, piece_bytes, piece_first, short_runs,
};

/// What happens in an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A path ends.
    Id(u32),
    /// An exception handler is entered.
    Caught,
}

/// An activation that is running.
#[derive(Clone, Debug)]
pub struct Activation {
    arena: u32,
    method: u32,
    row: u64,
    /// k-SF: items so far, tau and beta (0 = nil).
    items: u64,
    tau: u64,
    beta: u64,
}

/// An image of `counters.bin` in the making.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    engine: Engine,
    k: u32,
    chunk_bytes: u64,
    dense_paths: u32,
    shared_from: u32,
    row_limit: usize,
    /// Rows of each method in each arena, roots left aside.
    made: HashMap<(u32, u32), usize>,
    /// Offset of the open chunk of each arena.
    chunks: HashMap<u32, u64>,
    /// Number of paths by method: decides what its rows are.
    paths: HashMap<u32, u32>,
    /// Methods that are counted in slots.
    slotted: HashSet<u32>,
    /// Offset of each piece of slots, by arena and number.
    pieces: HashMap<(u32, u64), u64>,
    /// Path IDs of run loops, by method.
    turns: HashMap<u32, Vec<u32>>,
    /// By method, the ID of a run loop whose short runs have edges of their own, and the IDs that lead to that loop.
    short: HashMap<u32, (u32, Vec<u32>)>,
    /// By arena, method, window, and whether what came before the window is unknown.
    rows: HashMap<(u32, u32, Vec<u32>, bool), u64>,
    windows: HashMap<u64, (Vec<u32>, bool)>,
}

impl Builder {
    /// An empty image. Rows of methods with up to 8 paths are dense, chunks have 4096 bytes, arenas from 1000 on are shared.
    pub fn new(engine: Engine, k: u32) -> Builder {
        let mut builder = Builder {
            bytes: vec![0; HEADER_BYTES as usize],
            engine,
            k,
            chunk_bytes: 4096,
            dense_paths: match engine {
                Engine::Automaton => 8,
                Engine::BlppDense => u32::MAX,
                Engine::Ksf | Engine::KsfMtf | Engine::BlppHash => 0,
            },
            shared_from: 1000,
            row_limit: usize::MAX,
            made: HashMap::new(),
            chunks: HashMap::new(),
            paths: HashMap::new(),
            slotted: HashSet::new(),
            pieces: HashMap::new(),
            turns: HashMap::new(),
            short: HashMap::new(),
            rows: HashMap::new(),
            windows: HashMap::new(),
        };
        builder.set_u64(layout::header::MAGIC, MAGIC);
        builder.set_u64(layout::header::BASE, 0x7f12_3456_7000);
        builder.set_u64(layout::header::ALLOCATED, HEADER_BYTES);
        builder.set_u32(layout::header::ENGINE, engine as u32);
        builder.set_u32(layout::header::K, k);
        builder
    }

    /// Names the number of paths of a method; methods not named get hashed rows.
    pub fn method(&mut self, method: u32, paths: u32) -> &mut Self {
        self.paths.insert(method, paths);
        self
    }

    /// A method has at most so many rows in an arena; after that truncated rows stand in for those that are missing.
    pub fn row_limit(&mut self, rows: usize) -> &mut Self {
        self.row_limit = rows;
        self
    }

    /// The method is counted in slots (`meta::Counting::Slots`): its index is that of its first slot.
    pub fn slots(&mut self, method: u32) -> &mut Self {
        self.slotted.insert(method);
        self
    }

    /// These path IDs are whole turns of run loops: the automaton's rows of the method have run slots, and [`Builder::run`] counts such an
    /// ID and its repeats as [`Builder::turns`] does.
    pub fn run_loops(&mut self, method: u32, ids: &[u32]) -> &mut Self {
        if self.engine == Engine::Automaton && self.k > 1 {
            self.turns.insert(method, ids.to_vec());
        }
        self
    }

    /// Short runs of the run loop `id` have edges of their own in rows whose last ID is one of `leads`.
    pub fn short_runs(&mut self, method: u32, id: u32, leads: &[u32]) -> &mut Self {
        self.short.insert(method, (id, leads.to_vec()));
        self
    }

    /// Counts whole activations of a method on the thread that has this arena.
    pub fn run(&mut self, arena: u32, method: u32, activations: &[Vec<u32>]) -> &mut Self {
        for ids in activations {
            let mut activation = self.enter(arena, method);
            for run in ids.chunk_by(|a, b| a == b) {
                self.turns(&mut activation, run[0], run.len() as u64);
            }
        }
        self
    }

    /// Counts `total` times the path `id`. A run of k - 1 and more goes into the run slot, if the row has one and it is free or has this ID.
    pub fn turns(&mut self, activation: &mut Activation, id: u32, total: u64) {
        use layout::run::{COUNT, ID, JUMP, TOTAL};
        let slot = activation.row.saturating_sub(RUN_BYTES);
        let turns = self.turns.get(&activation.method);
        let used = turns.is_some_and(|ids| ids.contains(&id))
            && total >= u64::from(self.k - 1)
            && (self.u64(slot + JUMP) == 0 || self.u32(slot + ID) == id);
        let began = activation.row;
        if self.short_run(activation, id, total) {
            return;
        }
        if used {
            // The row of k - 1 times this ID: made by the slow path, which counts nothing.
            for _ in 1..self.k {
                self.step(activation, id, 0);
            }
        }
        let (window, unknown) = self
            .windows
            .get(&activation.row)
            .cloned()
            .unwrap_or_default();
        if !used || unknown || window != vec![id; self.k as usize - 1] {
            activation.row = began;
            return (0..total).for_each(|_| self.item(activation, Item::Id(id)));
        }
        let jump = self.base() + activation.row;
        let shared = activation.arena >= self.shared_from;
        self.set_u32(slot + ID, id);
        self.set_u64(slot + JUMP, if shared { jump.wrapping_neg() } else { jump });
        self.add(slot + TOTAL, total);
        self.add(slot + COUNT, 1);
    }

    /// Counts a run in the edge for runs of its length, if there is one.
    fn short_run(&mut self, activation: &mut Activation, id: u32, total: u64) -> bool {
        let (began, method) = (activation.row, activation.method);
        let short = (1..=u64::from(short_runs(self.k))).contains(&total);
        let Some((turn, leads)) = self.short.get(&method).filter(|_| short && began != 0) else {
            return false;
        };
        let last = self.u32(began + layout::row::ID);
        let Some(paths) = self.paths.get(&method).copied() else {
            return false;
        };
        if *turn != id || !leads.contains(&last) || !self.turns.contains_key(&method) {
            return false;
        }
        (0..total).for_each(|_| self.step(activation, id, 0));
        let edge = self.edge(began, paths + total as u32 - 1);
        self.add(edge + 8, 1);
        self.set_next(edge, began, activation.row);
        true
    }

    /// Begins an activation.
    pub fn enter(&mut self, arena: u32, method: u32) -> Activation {
        let slotted = self.slotted.contains(&method);
        let row = match slotted {
            true => 0,
            false => self.row(arena, method, &[], false, 0),
        };
        if !slotted {
            self.add(row + layout::row::ENTERS, 1);
        }
        Activation {
            arena,
            method,
            row,
            items: 0,
            tau: 0,
            beta: 0,
        }
    }

    /// Goes on in an activation.
    pub fn item(&mut self, activation: &mut Activation, item: Item) {
        match (item, self.engine) {
            _ if activation.row == 0 => {
                if let Item::Id(id) = item {
                    let slot = self.slot_of(activation.arena, activation.method + id);
                    self.add(slot, 1);
                }
            }
            (Item::Caught, _) => self.add(activation.row + layout::row::CAUGHT, 1),
            (Item::Id(id), Engine::Ksf | Engine::KsfMtf) => self.ksf(activation, id),
            (Item::Id(id), _) => self.step(activation, id, 1),
        }
    }

    /// Takes an edge.
    fn step(&mut self, activation: &mut Activation, id: u32, count: u64) {
        let edge = self.edge(activation.row, id);
        self.add(edge + 8, count);
        activation.row = match self.next(edge, activation.row) {
            0 => self.link(activation, edge, id),
            next => next,
        }
    }

    /// Offset of an arena's slot.
    fn slot_of(&mut self, arena: u32, slot: u32) -> u64 {
        use layout::slots::{ARENA, BYTES, MAGIC, PIECE};
        let slot = u64::from(slot);
        let piece = (0..)
            .find(|&piece| slot < piece_first(piece + 1))
            .unwrap_or(0);
        let chunk = self.pieces.get(&(arena, piece)).copied();
        let chunk = chunk.unwrap_or_else(|| {
            let chunk = self.chunk(piece_bytes(piece));
            self.set_u32(chunk + MAGIC, SLOTS_MAGIC);
            self.set_u32(chunk + ARENA, arena);
            self.set_u64(chunk + BYTES, piece_bytes(piece));
            self.set_u64(chunk + PIECE, piece);
            self.pieces.insert((arena, piece), chunk);
            chunk
        });
        chunk + (slot - piece_first(piece)) * 8
    }

    /// The image. `ended` = milliseconds since 1970 if the JVM ended in order.
    pub fn finish(&self, ended: Option<u64>) -> Vec<u8> {
        let mut done = self.clone();
        if let Some(at) = ended {
            done.set_u32(layout::header::ENDED, 1);
            done.set_u64(layout::header::ENDED_AT, at);
        }
        done.bytes
    }

    /// Says that counting stopped, and how many items were lost.
    pub fn stop(&mut self, stop: Stop, lost: u64) -> &mut Self {
        self.set_u32(layout::header::STOP, stop as u32);
        self.set_u64(layout::header::LOST, lost);
        self
    }

    /// k-SF, seed 000 section on the data structure; see also shared definitions in `borescope_paths::ksf`.
    fn ksf(&mut self, activation: &mut Activation, id: u32) {
        let depth = self.k.saturating_sub(1);
        if depth == 0 || activation.items.is_multiple_of(u64::from(depth)) {
            activation.beta = if depth == 0 { 0 } else { activation.tau };
            activation.tau = self.tree(activation, id);
        } else {
            activation.tau = self.child(activation, activation.tau, id);
        }
        if activation.beta != 0 {
            activation.beta = self.child(activation, activation.beta, id);
        }
        let counted = if activation.beta != 0 {
            activation.beta
        } else {
            activation.tau
        };
        self.add(counted + layout::ksf::COUNT, 1);
        activation.items += 1;
    }

    fn tree(&mut self, activation: &Activation, id: u32) -> u64 {
        let edge = self.edge(activation.row, id);
        match self.next(edge, activation.row) {
            0 => {
                let node = self.node(activation, id, 0);
                // The table cannot have moved: a node is no edge.
                self.set_next(edge, activation.row, node);
                node
            }
            node => node,
        }
    }

    fn child(&mut self, activation: &Activation, parent: u64, id: u32) -> u64 {
        let mut last = 0;
        let mut child = u64::from(self.u32(parent + layout::ksf::FIRST)) * 16;
        while child != 0 {
            if self.u32(child + layout::ksf::ID) == id {
                return child;
            }
            last = child;
            child = u64::from(self.u32(child + layout::ksf::SIBLING)) * 16;
        }
        let depth = self.u32(parent + layout::ksf::DEPTH) + 1;
        let node = self.node(activation, id, depth);
        let link = if last == 0 {
            parent + layout::ksf::FIRST
        } else {
            last + layout::ksf::SIBLING
        };
        self.set_u32(link, (node / 16) as u32);
        node
    }

    fn node(&mut self, activation: &Activation, id: u32, depth: u32) -> u64 {
        let node = self.record(activation.arena, Kind::KsfNode, KSF_BYTES);
        self.set_u32(node + layout::ksf::ID, id);
        self.set_u32(node + layout::ksf::DEPTH, depth);
        self.set_u32(node + layout::ksf::ROOT, (activation.row / 16) as u32);
        self.set_u32(node + layout::ksf::FLAGS, self.flags(activation.arena));
        node
    }

    /// The automaton's slow path: the row after `id`.
    fn link(&mut self, activation: &Activation, edge: u64, id: u32) -> u64 {
        let (mut window, mut unknown) = self.windows[&activation.row].clone();
        window.push(id);
        let full = self.k as usize - 1;
        unknown &= window.len() < full;
        window.drain(..window.len().saturating_sub(full));
        let Activation { arena, method, .. } = *activation;
        let there = |rows: &HashMap<_, _>, window: &[u32], unknown| {
            rows.contains_key(&(arena, method, window.to_vec(), unknown))
        };
        let made = self.made.entry((arena, method)).or_default();
        if !there(&self.rows, &window, unknown) {
            if *made >= self.row_limit || unknown {
                // The longest suffix that has a row, or the next longer one if there is still room.
                let suffix =
                    (1..=window.len()).find(|&from| there(&self.rows, &window[from..], true));
                let mut from = suffix.unwrap_or(window.len());
                if *made < self.row_limit && (from > 1 || unknown) {
                    from -= 1;
                }
                unknown = from > 0 || unknown;
                window.drain(..from);
            }
            *made += usize::from(!window.is_empty() && !there(&self.rows, &window, unknown));
        }
        let next = self.row(arena, method, &window, unknown, activation.row);
        self.set_next(edge, activation.row, next);
        next
    }

    fn row(
        &mut self,
        arena: u32,
        method: u32,
        window: &[u32],
        truncated: bool,
        parent: u64,
    ) -> u64 {
        let key = (arena, method, window.to_vec(), truncated);
        if let Some(&row) = self.rows.get(&key) {
            return row;
        }
        let paths = self.paths.get(&method).copied().unwrap_or(u32::MAX);
        let dense = paths != u32::MAX && paths <= self.dense_paths;
        let runs = match self.turns.contains_key(&method) {
            true => short_runs(self.k),
            false => 0,
        };
        let (kind, size) = match dense {
            true => (
                Kind::DenseRow,
                ROW_BYTES + u64::from(paths + runs) * DENSE_EDGE_BYTES,
            ),
            false => (Kind::HashRow, ROW_BYTES),
        };
        let slot = match self.turns.contains_key(&method) {
            true => RUN_BYTES,
            false => 0,
        };
        // Both at once: no chunk ends between a run slot and its row.
        let row = self.record(arena, kind, slot + size) + slot;
        if slot > 0 {
            self.head(row - slot, Kind::Run, slot);
            self.head(row, kind, size);
        }
        self.set_u32(row + layout::row::METHOD, method);
        self.set_u32(
            row + layout::row::ID,
            window.last().copied().unwrap_or(NO_ID),
        );
        if !window.is_empty() || truncated {
            self.set_u64(row + layout::row::PARENT, self.base() + parent);
        }
        let known = match truncated {
            true => layout::row::TRUNCATED | (window.len() as u32) << layout::row::LENGTH_SHIFT,
            false => 0,
        };
        self.set_u32(row + layout::row::FLAGS, self.flags(arena) | known);
        self.rows.insert(key, row);
        self.windows.insert(row, (window.to_vec(), truncated));
        row
    }

    fn flags(&self, arena: u32) -> u32 {
        arena << 8 | u32::from(arena >= self.shared_from)
    }

    fn shared(&self, row: u64) -> bool {
        self.u32(row + layout::row::FLAGS) & 1 != 0
    }

    /// Offset of the edge of a row, made if need be.
    fn edge(&mut self, row: u64, id: u32) -> u64 {
        if self.u32(row) == Kind::DenseRow as u32 {
            return row + ROW_BYTES + u64::from(id) * DENSE_EDGE_BYTES;
        }
        let mut table = self.table(row);
        if table != 0 {
            let edge = self.slot(table, id);
            if self.u32(edge) != 0 {
                return edge;
            }
        }
        let (slots, live) = match table {
            0 => (0, 0),
            table => (
                self.u32(table + layout::table::SLOTS),
                self.u32(table + layout::table::LIVE),
            ),
        };
        if (live + 1) * 4 > slots * 3 {
            table = self.grow(row, table, slots);
        }
        self.set_u32(table + layout::table::LIVE, live + 1);
        let edge = self.slot(table, id);
        self.set_u32(edge, id + 1);
        edge
    }

    fn table(&self, row: u64) -> u64 {
        self.u64(row + layout::row::REAL_TABLE)
            .saturating_sub(self.base())
    }

    /// A table of twice the slots; the outgrown one stays with stale counts, as in the agent.
    fn grow(&mut self, row: u64, old: u64, old_slots: u32) -> u64 {
        let slots = (old_slots * 2).max(4);
        let arena = self.u32(row + layout::row::FLAGS) >> 8;
        let table = self.record(
            arena,
            Kind::Table,
            TABLE_BYTES + u64::from(slots) * TABLE_EDGE_BYTES,
        );
        self.set_u64(table + layout::table::ROW, self.base() + row);
        self.set_u32(table + layout::table::SLOTS, slots);
        for slot in 0..old_slots {
            let from = old + TABLE_BYTES + u64::from(slot) * TABLE_EDGE_BYTES;
            let id = self.u32(from);
            if id != 0 {
                let to = self.slot(table, id - 1) as usize;
                self.bytes
                    .copy_within(from as usize..from as usize + 16, to);
            }
        }
        self.set_u64(row + layout::row::TABLE, self.base() + table);
        self.set_u64(row + layout::row::REAL_TABLE, self.base() + table);
        self.set_u32(row + layout::row::SHIFT, 32 - slots.trailing_zeros());
        table
    }

    /// The slot that holds `id`, or the free one where it belongs.
    fn slot(&self, table: u64, id: u32) -> u64 {
        let slots = self.u32(table + layout::table::SLOTS);
        let mut slot = id.wrapping_mul(HASH_MUL) >> (32 - slots.trailing_zeros());
        loop {
            let edge = table + TABLE_BYTES + u64::from(slot) * TABLE_EDGE_BYTES;
            if [0, id + 1].contains(&self.u32(edge)) {
                return edge;
            }
            slot = (slot + 1) & (slots - 1);
        }
    }

    /// Offset of what an edge leads to, 0 = nothing yet.
    fn next(&self, edge: u64, row: u64) -> u64 {
        if self.u32(row) != Kind::DenseRow as u32 {
            return u64::from(self.u32(edge + 4) & 0x7fff_ffff) * 16;
        }
        let next = self.u64(edge);
        let address = if self.shared(row) {
            next.wrapping_neg()
        } else {
            next
        };
        address.saturating_sub(self.base())
    }

    fn set_next(&mut self, edge: u64, row: u64, next: u64) {
        let shared = self.shared(row);
        if self.u32(row) == Kind::DenseRow as u32 {
            let address = self.base() + next;
            self.set_u64(
                edge,
                if shared {
                    address.wrapping_neg()
                } else {
                    address
                },
            );
        } else {
            self.set_u32(edge + 4, (next / 16) as u32 | u32::from(shared) << 31);
        }
    }

    /// A new record in the arena's open chunk, or in a new chunk.
    fn record(&mut self, arena: u32, kind: Kind, size: u64) -> u64 {
        use layout::chunk::{ARENA, BYTES, MAGIC, USED};
        let open = self
            .chunks
            .get(&arena)
            .copied()
            .filter(|&chunk| self.u64(chunk + USED) + size <= self.u64(chunk + BYTES));
        let chunk = open.unwrap_or_else(|| {
            let bytes = self.chunk_bytes.max(CHUNK_HEADER_BYTES + size);
            let chunk = self.chunk(bytes);
            self.set_u32(chunk + MAGIC, CHUNK_MAGIC);
            self.set_u32(chunk + ARENA, arena);
            self.set_u64(chunk + BYTES, bytes);
            self.set_u64(chunk + USED, CHUNK_HEADER_BYTES);
            self.chunks.insert(arena, chunk);
            chunk
        });
        let used = self.u64(chunk + USED);
        self.head(chunk + used, kind, size);
        self.set_u64(chunk + USED, used + size);
        chunk + used
    }

    fn head(&mut self, record: u64, kind: Kind, size: u64) {
        self.set_u32(record + layout::row::KIND, kind as u32);
        self.set_u32(record + layout::row::BYTES, size as u32);
    }

    /// Room for a chunk at the end.
    fn chunk(&mut self, bytes: u64) -> u64 {
        let chunk = self.bytes.len() as u64;
        self.bytes.resize((chunk + bytes) as usize, 0);
        self.set_u64(layout::header::ALLOCATED, chunk + bytes);
        chunk
    }

    fn base(&self) -> u64 {
        self.u64(layout::header::BASE)
    }

    fn u32(&self, at: u64) -> u32 {
        let at = at as usize;
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: u64) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    fn set_u32(&mut self, at: u64, value: u32) {
        self.bytes[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn set_u64(&mut self, at: u64, value: u64) {
        self.bytes[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn add(&mut self, at: u64, value: u64) {
        self.set_u64(at, self.u64(at) + value);
    }
}
