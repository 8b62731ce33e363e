//! Layout of `counters.bin`: what the agent writes and the reader walks. All integers little-endian.
//!
//! ```text
//! offset 0      file header, one page (HEADER_BYTES)
//! then          chunks back to back until `allocated`: {CHUNK header, records...} or {SLOTS header, slots...}
//! ```
//!
//! Addresses in records are addresses in the JVM: `offset = address - base` (the header's `base`). A record is published by
//! raising its chunk's `used`, after it is wholly written; a chunk is published by raising the header's `allocated`.

/// First eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BSCOPE\x01\n");
/// Size of the file header.
pub const HEADER_BYTES: u64 = 4096;

/// Offsets in the file header.
pub mod header {
    /// u64 [`super::MAGIC`].
    pub const MAGIC: u64 = 0;
    /// u64 address of offset 0 in the JVM.
    pub const BASE: u64 = 8;
    /// u64 end of the last published chunk (file offset). Starts as HEADER_BYTES.
    pub const ALLOCATED: u64 = 16;
    /// u32 engine ([`super::Engine`]).
    pub const ENGINE: u64 = 24;
    /// u32 k.
    pub const K: u64 = 28;
    /// u32 [`super::Stop`]: why counting stopped early, 0 = it did not.
    pub const STOP: u64 = 32;
    /// u32 1 = the JVM ended in order (VMDeath seen), 0 = still running or killed.
    pub const ENDED: u64 = 36;
    /// u64 items (path IDs) that found no memory for their row and were not counted in a row.
    pub const LOST: u64 = 40;
    /// u64 milliseconds since 1970 at VMDeath, 0 before.
    pub const ENDED_AT: u64 = 48;
}

/// Which engine filled the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Engine {
    /// k-gram automaton (default).
    Automaton = 0,
    /// k-slab forest of the source document.
    Ksf = 1,
    /// Ball-Larus with hash tables (k = 1).
    BlppHash = 2,
    /// Ball-Larus with dense arrays (k = 1).
    BlppDense = 3,
    /// k-slab forest that searches the child found last first.
    KsfMtf = 4,
}

impl Engine {
    /// Whether it counts in a k-SF.
    pub const fn is_ksf(self) -> bool {
        matches!(self, Self::Ksf | Self::KsfMtf)
    }
}

/// Why counting stopped before the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stop {
    /// It did not.
    No = 0,
    /// The memory limit was reached.
    Memory = 1,
    /// The disk that holds the spool is full.
    DiskFull = 2,
}

/// u32 at the start of each chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"CHNK");
/// Size of a chunk header.
pub const CHUNK_HEADER_BYTES: u64 = 32;
/// Offsets in a chunk header.
pub mod chunk {
    /// u32 [`super::CHUNK_MAGIC`].
    pub const MAGIC: u64 = 0;
    /// u32 arena the chunk belongs to.
    pub const ARENA: u64 = 4;
    /// u64 size of the chunk, header included.
    pub const BYTES: u64 = 8;
    /// u64 bytes in use, header included.
    pub const USED: u64 = 16;
}

/// u32 at the start of a chunk of slots: u64 counts (or addresses of root rows), by slot index. An arena has up to [`MAX_PIECES`] such pieces; piece `p` holds
/// the slots `piece_first(p) ..piece_first(p + 1)`, slot `i` at offset `(i - piece_first(p)) * 8` of the chunk. The header lies in the
/// places of the piece's first four slots, which nobody gets. No method's slots lie in two pieces.
pub const SLOTS_MAGIC: u32 = u32::from_le_bytes(*b"SLTS");
/// Slots of the first piece; each next one has twice as many.
pub const FIRST_PIECE_SLOTS: u64 = 2048;
/// Slots at the start of each piece that its header takes.
pub const HEADER_SLOTS: u64 = 4;
/// Offsets in the header of a chunk of slots; the first three as in [`chunk`].
pub mod slots {
    /// u32 [`super::SLOTS_MAGIC`].
    pub const MAGIC: u64 = 0;
    /// u32 arena.
    pub const ARENA: u64 = 4;
    /// u64 size of the chunk, header included.
    pub const BYTES: u64 = 8;
    /// u64 index of the piece.
    pub const PIECE: u64 = 16;
    /// u64 in an arena's first piece, burst mode: activations to leave out before the next one that is chosen.
    pub const COUNTDOWN: u64 = 24;
}
/// Burst mode: groups of a method that counts a random share of its activations. Each chosen activation counts in one of them, at random; a
/// method has a root row and rows of its own in each, under the index `index + group`.
pub const GROUPS: u32 = 16;
/// Most pieces of an arena.
pub const MAX_PIECES: u64 = 10;
/// First slot of a piece.
pub const fn piece_first(piece: u64) -> u64 {
    FIRST_PIECE_SLOTS * ((1 << piece) - 1)
}
/// Size of a piece in bytes.
pub const fn piece_bytes(piece: u64) -> u64 {
    (FIRST_PIECE_SLOTS << piece) * 8
}

/// u32 at the start of each record; the next u32 is the record's size in bytes (a multiple of 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A row with edges indexed by path ID.
    DenseRow = 1,
    /// A row whose edges are in a table record.
    HashRow = 2,
    /// The edge table of a hash row (or an outgrown one: only the table that a row points to counts).
    Table = 3,
    /// A node of a k-SF.
    KsfNode = 4,
    /// A run slot: stands right before the row that it belongs to (each row of a method with run loops, where k > 1).
    Run = 5,
}

/// Most path IDs of a run that has an edge of its own: the edge `num_paths + m - 1` of a row of a method with run loops stands for `m` times the ID
/// of a whole turn of the loop that the row's last ID leads to (as [`run`] does for k - 1 times and more), for m up to [`short_runs`].
pub const MOST_SHORT_RUNS: u32 = 16;
/// Lengths of runs that have an edge of their own.
pub const fn short_runs(k: u32) -> u32 {
    let shorter = k.saturating_sub(2);
    if shorter < MOST_SHORT_RUNS {
        shorter
    } else {
        MOST_SHORT_RUNS
    }
}

/// Size of a run slot.
pub const RUN_BYTES: u64 = 48;
/// Offsets in a run slot. It stands for `count` runs that began in its row (window w), each at least k - 1 times the path ID c, `total` times together:
/// the edges (last k-1 of w c^i, c) for i = 0..k-2 have `count` more, and the edge (c^(k-1), c) has `total - (k-1) * count` more.
pub mod run {
    /// u32 path ID c.
    pub const ID: u64 = 8;
    /// u64 runs.
    pub const COUNT: u64 = 16;
    /// u64 IDs in them.
    pub const TOTAL: u64 = 24;
    /// u64 address of the row c^(k-1), 0 = not known yet (then nothing was counted here); negated in shared arenas.
    pub const JUMP: u64 = 32;
}

/// Size of a row header; a dense row's edges follow it.
pub const ROW_BYTES: u64 = 64;
/// ID of a row that has none (root).
pub const NO_ID: u32 = u32::MAX;
/// Offsets in a row (dense and hash).
///
/// The window of a row (its last k-1 path IDs, oldest first) is read backwards along `parent`: `id`, then the parent's `id`,
/// and so on, until k-1 IDs are collected or the root (NO_ID, parent 0) is reached.
pub mod row {
    /// u32 [`super::Kind`].
    pub const KIND: u64 = 0;
    /// u32 size of the record in bytes.
    pub const BYTES: u64 = 4;
    /// u32 method index.
    pub const METHOD: u64 = 8;
    /// u32 last path ID of the window; NO_ID for the root.
    pub const ID: u64 = 12;
    /// u64 address of the row whose edge made this one; 0 for the root.
    pub const PARENT: u64 = 16;
    /// u64 activations (root rows only).
    pub const ENTERS: u64 = 24;
    /// u64 entries of exception handlers while in this row.
    pub const CAUGHT: u64 = 32;
    /// u64 address of the edge table the probes read (hash rows; the shared empty table in shared arenas).
    pub const TABLE: u64 = 40;
    /// u32 shift of the hash: slot = (id * HASH_MUL as u32) >> shift.
    pub const SHIFT: u64 = 48;
    /// u32 flags: bit 0 = in a shared arena (atomic counts); bit 1 = *truncated*: the window is shorter than k-1 IDs though
    /// the activation has more, because there was no room for a longer one; bits 2..7 = the IDs in the window of a truncated row (its parents
    /// may know more); bits 8.. = arena.
    pub const FLAGS: u64 = 52;
    /// Bit of FLAGS.
    pub const SHARED: u32 = 1;
    /// Bit of FLAGS.
    pub const TRUNCATED: u32 = 2;
    /// Where the window's length is in FLAGS.
    pub const LENGTH_SHIFT: u32 = 2;
    /// Mask of the length, shifted.
    pub const LENGTH_MASK: u32 = 63;
    /// u64 address of the real edge table (hash rows): the one the reader reads.
    pub const REAL_TABLE: u64 = 56;
}
/// Multiplier of the edge-table hash.
pub const HASH_MUL: u32 = 0x9E37_79B1;

/// Size of a dense row's edge: {u64 next, u64 count}. `next` is 0 (never taken) or an address, negated in shared arenas.
pub const DENSE_EDGE_BYTES: u64 = 16;

/// Size of a table header; edges follow: {u32 id + 1 (0 = free; top bit: not linked), u32 next (address - base) / 16 (top bit: shared), u64 count}.
pub const TABLE_BYTES: u64 = 32;
/// Size of a table's edge.
pub const TABLE_EDGE_BYTES: u64 = 16;
/// Offsets in a table header.
pub mod table {
    /// Bit beside an edge's `id + 1`: its `next` is no link that the probes may follow; the next ID of this edge makes one, or not yet.
    pub const UNLINKED: u32 = 1 << 31;
    /// u64 address of the row.
    pub const ROW: u64 = 8;
    /// u32 number of slots, a power of two.
    pub const SLOTS: u64 = 16;
    /// u32 slots in use.
    pub const LIVE: u64 = 20;
}

/// Size of a k-SF node. Roots are found through the method's root row, which is a hash row whose edges' `next` is the tree's root.
pub const KSF_BYTES: u64 = 48;
/// Offsets in a k-SF node.
pub mod ksf {
    /// u32 path ID.
    pub const ID: u64 = 8;
    /// u32 depth: 0 = root.
    pub const DEPTH: u64 = 12;
    /// u64 count.
    pub const COUNT: u64 = 16;
    /// u32 first child, (address - base) / 16; 0 = none.
    pub const FIRST: u64 = 24;
    /// u32 next sibling, (address - base) / 16; 0 = none.
    pub const SIBLING: u64 = 28;
    /// u32 the method's root row, (address - base) / 16.
    pub const ROOT: u64 = 32;
    /// u32 flags, as in a row.
    pub const FLAGS: u64 = 36;
    /// u32 first child in the order of search ([`super::Engine::KsfMtf`]): a second list of the children, the one found last in front. Only
    /// the running JVM reads it; FIRST and SIBLING never change once set, so a reader's list is whole at any time.
    pub const FRONT: u64 = 40;
    /// u32 next sibling in the order of search.
    pub const NEXT: u64 = 44;
}
