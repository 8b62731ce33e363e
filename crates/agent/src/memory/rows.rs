//! Rows, edges and k-SF nodes: what a probe's fast path did not find is made here.

mod ksf;

use super::arena::{Arena, Threads};
use super::burst::Burst;
use super::file::{CounterFile, zero_pages};
use super::raw::{Addr, add64, load32, load64, publish64, store32, store64, zero};
use borescope_spool::layout::{self, Engine, HASH_MUL, Kind, NO_ID, header, row, run, table};
use std::fs::File;
use std::io;
use std::sync::{PoisonError, RwLock};

/// Rows of at most this many paths are dense.
const AUTOMATON_DENSE: u32 = 32;
const BLPP_DENSE: u32 = 4096;
const FIRST_CHUNK: u64 = 16 << 10;
const LAST_CHUNK: u64 = 1 << 20;
const FIRST_SLOTS: u32 = 4;
/// Highest price of a row: so many times at most an edge takes the slow path before it has one, or for good the row of a suffix.
const HIGHEST_PRICE: u64 = 16;
/// Bit beside a method's number of paths (at most 2^30).
const RUNS: u32 = 1 << 31;
/// Where the shared empty table and the hashed sink row lie in the file's header page.
const EMPTY_TABLE: u64 = 1024;
const SINK_ROW: u64 = 2048;

/// Settings of the counters.
pub struct Setup {
    /// Which engine.
    pub engine: Engine,
    /// Longest sequence counted.
    pub k: u32,
    /// Bytes that `counters.bin` may reach.
    pub memory: u64,
    /// Rows that a method may have in an arena (in burst mode each of its groups).
    pub rows: u32,
    /// Burst mode: how activations are chosen.
    pub burst: Option<Burst>,
}

/// All counters of this JVM.
pub struct Counters {
    file: CounterFile,
    /// Threads and their arenas.
    pub threads: Threads,
    engine: Engine,
    k: u32,
    rows: u32,
    /// By method index: its number of paths, and whether it has run loops ([`RUNS`]).
    methods: RwLock<Vec<u32>>,
    dense_sink: Addr,
}

/// How many of a method's paths fit a dense row under an engine; beyond that its rows are hashed.
pub fn dense_limit(engine: Engine) -> u32 {
    match engine {
        Engine::Automaton => AUTOMATON_DENSE,
        Engine::BlppDense => BLPP_DENSE,
        Engine::BlppHash | Engine::Ksf | Engine::KsfMtf => 0,
    }
}

impl Counters {
    /// Sets up counter memory in an empty file.
    pub fn new(file: File, setup: &Setup) -> io::Result<Self> {
        let file = CounterFile::create(file, setup.memory, setup.engine, setup.k)?;
        let empty = file.base() + EMPTY_TABLE;
        store32(empty, Kind::Table as u32);
        store32(
            empty + 4,
            layout::TABLE_BYTES as u32 + 2 * layout::TABLE_EDGE_BYTES as u32,
        );
        store32(empty + table::SLOTS, 2);
        let sink = file.base() + SINK_ROW;
        store32(sink, Kind::HashRow as u32);
        store32(sink + row::ID, NO_ID);
        store64(sink + row::TABLE, empty);
        store32(sink + row::SHIFT, 31);
        store32(sink + row::FLAGS, 1);
        // As every row may have one, the sinks have (empty) run slots before them.
        let sinks = zero_pages(
            layout::RUN_BYTES
                + layout::ROW_BYTES
                + u64::from(BLPP_DENSE) * layout::DENSE_EDGE_BYTES,
        )?;
        Ok(Self {
            threads: Threads::new(&file, setup.burst)?,
            dense_sink: sinks + layout::RUN_BYTES,
            file,
            engine: setup.engine,
            k: setup.k,
            rows: setup.rows,
            methods: RwLock::default(),
        })
    }

    /// Address of the file's first byte.
    pub fn base(&self) -> Addr {
        self.file.base()
    }

    /// Whether the k-SF's child that is found moves to the front of the order of search.
    pub fn moves_to_front(&self) -> bool {
        self.engine == Engine::KsfMtf
    }

    /// IDs in a full window, k - 1.
    pub fn window_length(&self) -> u32 {
        self.k - 1
    }

    /// Gives out slots to methods: so many for each; the index of each first one, which is the method's index. `None` when there are no
    /// more, or no memory for them.
    pub fn reserve(&self, counts: &[u32]) -> Option<Vec<u32>> {
        self.threads.reserve(&self.file, counts)
    }

    /// Gives a thread the block it counts in: positive = its own, negative = a shared one, negated.
    pub fn lease(&self, tid: u64, shares: bool) -> u64 {
        self.threads.lease(&self.file, tid, shares)
    }

    /// Tells how many paths a method has that counts in rows, and whether it has run loops; before any of its probes can run.
    pub fn set_method(&self, method: u32, paths: u32, runs: bool) {
        let mut methods = self.methods.write().unwrap_or_else(PoisonError::into_inner);
        let method = method as usize;
        if methods.len() <= method {
            methods.resize(method + 1, 0);
        }
        methods[method] = paths | if runs { RUNS } else { 0 };
    }

    /// Marks an orderly end.
    pub fn end(&self, now_ms: u64) {
        store64(self.base() + header::ENDED_AT, now_ms);
        store32(self.base() + header::ENDED, 1);
    }

    /// Number of paths of a method, and whether it has run loops.
    fn method(&self, method: u32) -> (u32, bool) {
        let methods = self.methods.read().unwrap_or_else(PoisonError::into_inner);
        let known = methods.get(method as usize).copied().unwrap_or(0);
        (known & !RUNS, known & RUNS != 0)
    }

    fn hash_sink(&self) -> Addr {
        self.base() + SINK_ROW
    }

    fn sink(&self, dense: bool) -> Addr {
        if dense {
            self.dense_sink
        } else {
            self.hash_sink()
        }
    }

    fn lost(&self) {
        add64(self.base() + header::LOST, 1);
    }

    fn offset(&self, a: Addr) -> u64 {
        (a - self.base()) >> 4
    }

    fn at(&self, offset: u32) -> Addr {
        self.base() + (u64::from(offset) << 4)
    }

    // ---- called by the helper

    /// Burst mode, a chosen activation: how many come before the next one, times [`layout::GROUPS`], and the group this one counts in.
    pub fn draw(&self, block: Addr) -> u64 {
        let id = self.threads.arena_of(block);
        let mut arena = self.threads.arena(id);
        let (gap, group) = (arena.choice.gap(), arena.choice.group());
        gap * u64::from(layout::GROUPS) + group
    }

    /// First activation of a method in an arena: makes its root row, counts the activation.
    pub fn new_root(&self, block: Addr, method: u32) -> Addr {
        let id = self.threads.arena_of(block);
        let shared = Threads::is_shared(id);
        let slot = block + u64::from(method) * 8;
        let mut arena = self.threads.arena(id);
        let present = load64(slot) as i64;
        if present != 0 {
            let root = present.unsigned_abs();
            add64(root + row::ENTERS, 1);
            return root;
        }
        let root = match self.new_row(&mut arena, id, method, NO_ID, 0, 0) {
            Some(r) => r,
            None => self.sink(self.method(method).0 <= dense_limit(self.engine)),
        };
        add64(root + row::ENTERS, 1);
        let sink = root == self.dense_sink || root == self.hash_sink();
        publish64(slot, link(root, shared && !sink));
        root
    }

    /// An edge that the fast path did not find: counts it, makes it if it is new, returns the next state.
    pub fn miss(&self, s: Addr, r: u32, last: bool) -> Addr {
        if s == self.dense_sink || s == self.hash_sink() {
            self.lost();
            return s;
        }
        let method = load32(s + row::METHOD);
        if r >= self.method(method).0 {
            self.lost(); // cannot happen: IDs are below the number of paths
            return s;
        }
        let id = load32(s + row::FLAGS) >> 8;
        let shared = Threads::is_shared(id);
        let mut arena = self.threads.arena(id);
        if load32(s + row::KIND) == Kind::DenseRow as u32 {
            let edge = dense_edge(s, r);
            let next = load64(edge) as i64;
            add64(edge + 8, 1);
            if next != 0 {
                return next.unsigned_abs();
            }
            let (target, linked) = match last {
                true => (s, true),
                false => self
                    .target(&mut arena, id, s, r, load64(edge + 8))
                    .unwrap_or((self.dense_sink, true)),
            };
            if linked {
                publish64(edge, link(target, shared));
            }
            return target;
        }
        let found = find(load64(s + row::REAL_TABLE), r);
        let count = match found {
            Ok(edge) => {
                add64(edge + 8, 1);
                let w = load64(edge);
                if w as u32 & table::UNLINKED == 0 {
                    return self.at((w >> 32) as u32);
                }
                load64(edge + 8)
            }
            Err(_) => 1,
        };
        let (target, linked) = match last {
            true => (s, true),
            false => self
                .target(&mut arena, id, s, r, count)
                .unwrap_or((self.hash_sink(), true)),
        };
        match found {
            Ok(edge) if linked => publish64(edge, self.offset(target) << 32 | u64::from(r + 1)),
            Ok(_) => {}
            Err(_) => {
                let unlinked = if linked { 0 } else { table::UNLINKED };
                let done = self.insert(&mut arena, id, s, r | unlinked, target, 1);
                if done.is_none() && load32(s + row::ID) != NO_ID {
                    // No room for an edge here: without what came before.
                    if let Some(root) = self.truncated_root(&mut arena, id, s) {
                        drop(arena);
                        return self.miss(root, r, last);
                    }
                }
                if done.is_none() {
                    self.lost();
                    return self.hash_sink();
                }
            }
        }
        target
    }

    /// A run of `n` IDs `r` from row `s`, of which the fast path knows no more: counts them, makes what is absent, returns the next state.
    /// The next run of this length will find the row's run slot, or an edge for the whole run.
    pub fn miss_run(&self, s: Addr, n: u64, r: u32) -> Addr {
        let length = u64::from(self.window_length());
        let slotted = length > 0 && n >= length;
        let mut left = n;
        let mut at = s;
        // The window is r over and over, at the latest, after `length` steps: then a step leads back to the same row.
        for _ in 0..length.min(n) {
            at = self.miss(at, r, false);
            left -= 1;
        }
        let sink = at == self.dense_sink || at == self.hash_sink();
        if sink {
            add64(self.base() + header::LOST, left);
            return at;
        }
        let shared = load32(s + row::FLAGS) & 1 != 0;
        let settled = self.is_settled(at);
        if slotted && settled {
            let slot = s - layout::RUN_BYTES;
            store32(slot + run::ID, r);
            publish64(slot + run::JUMP, link(at, shared));
        }
        // (Which loop it was cannot be told from a row without a last ID.)
        if !slotted
            && settled
            && n <= u64::from(layout::short_runs(self.k))
            && load32(s + row::ID) != NO_ID
        {
            self.link_short(s, n as u32, at, shared);
        }
        if left > 0 {
            let loops = at;
            at = self.miss(loops, r, false);
            self.more(loops, r, left - 1);
        }
        at
    }

    /// Whether a row is as good as any: whole, or its method has no room for more.
    fn is_settled(&self, s: Addr) -> bool {
        let flags = load32(s + row::FLAGS);
        let method = load32(s + row::METHOD);
        let arena = self.threads.arena(flags >> 8);
        flags & row::TRUNCATED == 0
            || arena
                .rows_of
                .get(&method)
                .is_some_and(|made| *made >= self.rows)
    }

    /// Makes the edge that stands for a run of `n` IDs from row `s`.
    fn link_short(&self, s: Addr, n: u32, target: Addr, shared: bool) {
        let (paths, _) = self.method(load32(s + row::METHOD));
        let edge = paths + n - 1;
        let id = load32(s + row::FLAGS) >> 8;
        let mut arena = self.threads.arena(id);
        if load32(s + row::KIND) == Kind::DenseRow as u32 {
            publish64(dense_edge(s, edge), link(target, shared));
        } else if find(load64(s + row::REAL_TABLE), edge).is_err() {
            // Without memory for it the next run goes the long way, too.
            let _ = self.insert(&mut arena, id, s, edge, target, 0);
        }
    }

    /// Adds to an edge that has just been taken.
    fn more(&self, s: Addr, r: u32, n: u64) {
        if s == self.dense_sink || s == self.hash_sink() {
            add64(self.base() + header::LOST, n);
        } else if load32(s + row::KIND) == Kind::DenseRow as u32 {
            add64(dense_edge(s, r) + 8, n);
        } else {
            // Under the lock, as the table may be growing.
            let _arena = self.threads.arena(load32(s + row::FLAGS) >> 8);
            match find(load64(s + row::REAL_TABLE), r) {
                Ok(edge) => add64(edge + 8, n),
                // The edge had no room, and the one ID was counted elsewhere.
                Err(_) => add64(self.base() + header::LOST, n),
            }
        }
    }

    /// An exception handler was entered.
    pub fn caught(&self, s: u64) {
        let root = if self.engine.is_ksf() {
            self.ksf_root(self.at(s as u32)).0
        } else {
            s
        };
        add64(root + row::CAUGHT, 1);
    }

    // ---- the automaton

    /// The row for the last k - 1 IDs after `r` was appended to the window of `s`, and whether the edge is to lead there from now on. The second
    /// half of a method's rows has to be earned: an edge gets its row when it was taken often enough (`count`), the more often the fewer
    /// are left. Until then, and where there is no room, comes the row of the longest suffix that has one.
    fn target(
        &self,
        arena: &mut Arena,
        id: u32,
        s: Addr,
        r: u32,
        count: u64,
    ) -> Option<(Addr, bool)> {
        if self.k == 1 {
            return Some((s, true));
        }
        let method = load32(s + row::METHOD);
        let full = self.k as usize - 1;
        let mut window = [0; layout_window()];
        let n = 1 + self.window(s, &mut window[1..]);
        window[0] = r;
        let window = &window[..n.min(full)];
        let known = load32(s + row::FLAGS) & row::TRUNCATED == 0 || window.len() == full;
        let key = match self.look_up(arena, method, window, !known) {
            Ok(found) => return Some((found, true)),
            Err(key) => key,
        };
        let made = *arena.rows_of.entry(method).or_default();
        let mut room = made < self.rows;
        if room && count >= self.price(made) {
            let flags = match known {
                true => 0,
                false => row::TRUNCATED | (window.len() as u32) << row::LENGTH_SHIFT,
            };
            if let Some(new) = self.new_row(arena, id, method, r, s, flags) {
                arena.rows.insert(key, new);
                *arena.rows_of.entry(method).or_default() += 1;
                return Some((new, true));
            }
            room = false;
        }
        let longest = window.len().min(full - 1);
        let suffix = (1..=longest)
            .rev()
            .find_map(|length| self.look_up(arena, method, &window[..length], true).ok());
        let found = match suffix {
            Some(found) => found,
            None => self.truncated_root(arena, id, s)?,
        };
        Some((found, !room))
    }

    /// The row of the method of row `s` that knows nothing of what came before. There is always one, as long as there is memory at all.
    fn truncated_root(&self, arena: &mut Arena, id: u32, s: Addr) -> Option<Addr> {
        let method = load32(s + row::METHOD);
        match self.look_up(arena, method, &[], true) {
            Ok(root) => Some(root),
            Err(key) => {
                let root = self.new_row(arena, id, method, NO_ID, s, row::TRUNCATED)?;
                arena.rows.insert(key, root);
                Some(root)
            }
        }
    }

    /// How often an edge must have been taken before it gets a row of its own, when a method has so many.
    fn price(&self, made: u32) -> u64 {
        let half = self.rows / 2;
        if made < half {
            return 0;
        }
        let scarce = u64::from((half / (self.rows - made).max(1)).max(1));
        (2 * scarce * scarce).min(HIGHEST_PRICE)
    }

    /// The row of a window, newest ID first; `Err` = the key under which to enter it.
    fn look_up(
        &self,
        arena: &Arena,
        method: u32,
        window: &[u32],
        truncated: bool,
    ) -> Result<Addr, u64> {
        let mut key = window_hash(method, window) ^ u64::from(truncated);
        let mut other = [0; layout_window()];
        while let Some(&found) = arena.rows.get(&key) {
            let n = self.window(found, &mut other);
            let flags = load32(found + row::FLAGS);
            if load32(found + row::METHOD) == method
                && other[..n] == *window
                && (flags & row::TRUNCATED != 0) == truncated
            {
                return Ok(found);
            }
            key = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
        Err(key)
    }

    /// Writes the window of a row, newest ID first; returns its length.
    fn window(&self, mut s: Addr, out: &mut [u32]) -> usize {
        let flags = load32(s + row::FLAGS);
        let mut most = out.len().min(self.k as usize - 1);
        if flags & row::TRUNCATED != 0 {
            most = most.min((flags >> row::LENGTH_SHIFT & row::LENGTH_MASK) as usize);
        }
        for (n, slot) in out[..most].iter_mut().enumerate() {
            let id = load32(s + row::ID);
            if id == NO_ID {
                return n;
            }
            *slot = id;
            s = load64(s + row::PARENT);
        }
        most
    }

    fn new_row(
        &self,
        arena: &mut Arena,
        id: u32,
        method: u32,
        last: u32,
        parent: Addr,
        more_flags: u32,
    ) -> Option<Addr> {
        let (paths, runs) = self.method(method);
        let vital = last == NO_ID;
        let dense = paths <= dense_limit(self.engine);
        let table = if dense {
            0
        } else {
            self.new_table(arena, id, FIRST_SLOTS, vital)?
        };
        let bytes = layout::ROW_BYTES
            + if dense {
                let runs = if runs { layout::short_runs(self.k) } else { 0 };
                u64::from(paths + runs) * layout::DENSE_EDGE_BYTES
            } else {
                0
            };
        // At k = 1 a run's edge is the row's own.
        let slot = if runs && self.k > 1 {
            layout::RUN_BYTES
        } else {
            0
        };
        let new = self.allocate(arena, id, slot + bytes, vital)? + slot;
        if slot > 0 {
            store32(new - slot, Kind::Run as u32);
            store32(new - slot + 4, slot as u32);
        }
        store32(
            new,
            if dense { Kind::DenseRow } else { Kind::HashRow } as u32,
        );
        store32(new + 4, bytes as u32);
        store32(new + row::METHOD, method);
        store32(new + row::ID, last);
        store64(new + row::PARENT, parent);
        store32(new + row::FLAGS, flags(id) | more_flags);
        if !dense {
            self.set_table(new, table);
        }
        publish(arena);
        Some(new)
    }

    // ---- hashed edges

    /// Makes `table` the row's edges; the probes of shared arenas keep seeing an empty table.
    fn set_table(&self, r: Addr, t: Addr) {
        store64(t + table::ROW, r);
        publish64(r + row::REAL_TABLE, t);
        let shared = load32(r + row::FLAGS) & 1 != 0;
        let seen = if shared { self.base() + EMPTY_TABLE } else { t };
        store64(r + row::TABLE, seen);
        store32(r + row::SHIFT, shift(load32(seen + table::SLOTS)));
    }

    fn new_table(&self, arena: &mut Arena, id: u32, slots: u32, vital: bool) -> Option<Addr> {
        let class = slots.trailing_zeros() as usize;
        let bytes = layout::TABLE_BYTES + u64::from(slots) * layout::TABLE_EDGE_BYTES;
        let t = match arena.free_tables.get_mut(class).and_then(Vec::pop) {
            Some(t) => {
                zero(t + 8, bytes - 8);
                t
            }
            None => self.allocate(arena, id, bytes, vital)?,
        };
        store32(t, Kind::Table as u32);
        store32(t + 4, bytes as u32);
        store32(t + table::SLOTS, slots);
        publish(arena);
        Some(t)
    }

    fn insert(
        &self,
        arena: &mut Arena,
        id: u32,
        s: Addr,
        r: u32,
        target: Addr,
        count: u64,
    ) -> Option<()> {
        let mut t = load64(s + row::REAL_TABLE);
        let slots = load32(t + table::SLOTS);
        if (load32(t + table::LIVE) + 1) * 2 > slots {
            let old = t;
            let vital = load32(s + row::ID) == NO_ID;
            t = self.new_table(arena, id, slots.checked_mul(2)?, vital)?;
            for i in 0..slots {
                let edge = old + layout::TABLE_BYTES + u64::from(i) * layout::TABLE_EDGE_BYTES;
                let w = load64(edge);
                if w as u32 != 0 {
                    put(t, w, load64(edge + 8));
                }
            }
            self.set_table(s, t);
            let class = slots.trailing_zeros() as usize;
            if arena.free_tables.len() <= class {
                arena.free_tables.resize(class + 1, Vec::new());
            }
            arena.free_tables[class].push(old);
        }
        put(t, self.offset(target) << 32 | u64::from(r + 1), count);
        Some(())
    }

    /// Room in an arena. `vital`: without it an ID could not be counted at all.
    fn allocate(&self, arena: &mut Arena, id: u32, bytes: u64, vital: bool) -> Option<Addr> {
        if arena.at + bytes > arena.end {
            let step = arena.step.clamp(FIRST_CHUNK, LAST_CHUNK);
            let chunk = match self.file.chunk(id, step.max(bytes), false) {
                None if vital => self.file.chunk(id, bytes, true)?,
                chunk => chunk?,
            };
            arena.chunk = chunk;
            arena.at = chunk + layout::CHUNK_HEADER_BYTES;
            arena.end = chunk + load64(chunk + layout::chunk::BYTES);
            arena.step = step * 2;
        }
        let a = arena.at;
        arena.at += bytes;
        Some(a)
    }
}

/// Room for the longest window.
const fn layout_window() -> usize {
    crate::options::MAX_K as usize
}

fn flags(arena: u32) -> u32 {
    arena << 8 | u32::from(Threads::is_shared(arena))
}

/// What leads to a row: its address, negated in shared arenas.
fn link(target: Addr, shared: bool) -> u64 {
    if shared {
        target.wrapping_neg()
    } else {
        target
    }
}

/// An edge of a dense row.
fn dense_edge(s: Addr, id: u32) -> Addr {
    s + layout::ROW_BYTES + u64::from(id) * layout::DENSE_EDGE_BYTES
}

/// Makes all records written so far in the arena's chunk visible to a reader of the file.
fn publish(arena: &Arena) {
    publish64(arena.chunk + layout::chunk::USED, arena.at - arena.chunk);
}

fn shift(slots: u32) -> u32 {
    32 - slots.trailing_zeros()
}

/// The edge of `r`, or the free slot where it belongs.
fn find(t: Addr, r: u32) -> Result<Addr, Addr> {
    let slots = load32(t + table::SLOTS);
    let mut i = r.wrapping_mul(HASH_MUL) >> shift(slots);
    loop {
        let edge = t + layout::TABLE_BYTES + u64::from(i) * layout::TABLE_EDGE_BYTES;
        match load64(edge) as u32 {
            0 => return Err(edge),
            key if key & !table::UNLINKED == r + 1 => return Ok(edge),
            _ => i = (i + 1) & (slots - 1),
        }
    }
}

fn put(t: Addr, w: u64, count: u64) {
    let (Ok(edge) | Err(edge)) = find(t, (w as u32 & !table::UNLINKED) - 1);
    store64(edge + 8, count);
    publish64(edge, w);
    store32(t + table::LIVE, load32(t + table::LIVE) + 1);
}

fn window_hash(method: u32, window: &[u32]) -> u64 {
    let mut h = u64::from(method) ^ 0x51_7C_C1_B7_27_22_0A_95;
    for &id in window {
        h = (h.rotate_left(5) ^ u64::from(id)).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
    h ^ h >> 32
}
