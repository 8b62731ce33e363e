//! Arenas and who uses them: a platform thread leases a private arena for its life, virtual threads use shared ones.
//!
//! Each arena has a block of slots (u64 by slot index): counts, or addresses of root rows. Blocks are address ranges into which pieces
//! of `counters.bin` are mapped as slots are given out, so that a probe finds its slot at a fixed offset. When a thread ends, its arena
//! goes back with all its counts and serves the next new thread, so nothing is ever folded or freed.

use super::burst::{Burst, Choice};
use super::file::{CounterFile, zero_pages};
use super::raw::{Addr, load64, store64};
use borescope_spool::layout::{HEADER_SLOTS, MAX_PIECES, piece_first, slots};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Thread ids from here on use shared arenas.
const TABLE_IDS: u64 = 1 << 20;
/// Shared arenas (a power of two).
const SHARED: u32 = 16;
/// Most platform threads with a private arena at one time.
const MAX_ARENAS: u32 = 8192;

/// All arenas and the lease table.
pub struct Threads {
    blocks: Addr,
    table: Addr,
    shared: Addr,
    arenas: Box<[Mutex<Arena>]>,
    leases: Mutex<Leases>,
}

/// Size of a block: all pieces.
const BLOCK_BYTES: u64 = piece_first(MAX_PIECES) * 8;

struct Leases {
    /// Arenas of dead threads.
    free: Vec<u32>,
    /// Private arenas from here on were never used.
    fresh: u32,
    /// Pieces mapped, by arena.
    pieces: Vec<u8>,
    /// The next slot to give out.
    next: u64,
}

/// Bump allocation and the index of an arena's rows. Whoever makes rows holds the arena's lock.
#[derive(Default)]
pub struct Arena {
    /// Current chunk, 0 = none yet.
    pub chunk: Addr,
    /// Next free byte in it.
    pub at: Addr,
    /// Its end.
    pub end: Addr,
    /// Usable bytes asked for with the next chunk.
    pub step: u64,
    /// Rows by hash of (method, window).
    pub rows: HashMap<u64, Addr, BuildHasherDefault<Hashed>>,
    /// How many rows each method has, roots left aside.
    pub rows_of: HashMap<u32, u32>,
    /// Outgrown edge tables by log2 of their slots.
    pub free_tables: Vec<Vec<Addr>>,
    /// Burst mode: which activations are chosen. Goes on when the arena is leased anew, as its countdown does: what is left of a geometric gap
    /// is as long as a new one.
    pub choice: Choice,
}

impl Threads {
    /// Reserves the blocks of as many arenas as there are addresses for; the first shared one is there from the start.
    pub fn new(file: &CounterFile, burst: Option<Burst>) -> io::Result<Self> {
        let mut max = MAX_ARENAS;
        let blocks = loop {
            match zero_pages(BLOCK_BYTES * u64::from(max)) {
                Ok(a) => break a,
                Err(e) if max <= 2 * SHARED => return Err(e),
                Err(_) => max /= 2,
            }
        };
        let this = Self {
            blocks,
            table: zero_pages(TABLE_IDS * 8)?,
            shared: zero_pages(u64::from(SHARED) * 8)?,
            arenas: (0..max)
                .map(|id| {
                    Mutex::new(Arena {
                        choice: Choice::new(burst, id),
                        ..Arena::default()
                    })
                })
                .collect(),
            leases: Mutex::new(Leases {
                free: Vec::new(),
                fresh: SHARED,
                pieces: vec![0; max as usize],
                next: HEADER_SLOTS,
            }),
        };
        let mut leases = lock(&this.leases);
        if !this.map_pieces(&mut leases, file, 0) {
            return Err(io::Error::other("no room for the first slots"));
        }
        store64(this.shared, this.block(0).wrapping_neg());
        drop(leases);
        Ok(this)
    }

    /// What the helper needs to find a thread's block: (table, ids in it, shared blocks, their number - 1).
    pub fn addresses(&self) -> (Addr, u64, Addr, u64) {
        (self.table, TABLE_IDS, self.shared, u64::from(SHARED) - 1)
    }

    /// Gives out slots: for each of `counts` so many in a row, in every arena; the index of each first one. `None` when there are no
    /// more, or no memory for them.
    pub fn reserve(&self, file: &CounterFile, counts: &[u32]) -> Option<Vec<u32>> {
        let mut leases = lock(&self.leases);
        let mut next = leases.next;
        // (Slots before HEADER_SLOTS are never given out, so that `next - 1` is one.)
        let mut firsts = Vec::with_capacity(counts.len());
        for &count in counts {
            // (That of the slot before: where a piece is full, `next` is the header of the piece after it.)
            let end = piece_first(piece_of(next - 1) + 1);
            if next + u64::from(count) > end {
                next = end + HEADER_SLOTS;
            }
            firsts.push(next as u32);
            next += u64::from(count);
        }
        if piece_of(next - 1) >= MAX_PIECES {
            return None;
        }
        let before = std::mem::replace(&mut leases.next, next);
        if piece_of(next - 1) > piece_of(before - 1) {
            for arena in 0..leases.fresh {
                if leases.pieces[arena as usize] > 0 && !self.map_pieces(&mut leases, file, arena) {
                    leases.next = before;
                    return None;
                }
            }
        }
        Some(firsts)
    }

    /// Gives a thread the block it counts in: a private one (its address), or a shared one (its address negated) if `shares`, or if there
    /// is no room for one more.
    pub fn lease(&self, file: &CounterFile, tid: u64, shares: bool) -> u64 {
        let mut leases = lock(&self.leases);
        if !shares && tid < TABLE_IDS {
            let fresh = leases.fresh;
            let arena = leases.free.pop().unwrap_or(fresh);
            if (arena as usize) < self.arenas.len() && self.map_pieces(&mut leases, file, arena) {
                leases.fresh = fresh.max(arena + 1);
                let block = self.block(arena);
                store64(self.table + tid * 8, block);
                return block;
            }
            if arena < fresh {
                leases.free.push(arena);
            }
        }
        let arena = (tid % u64::from(SHARED)) as u32;
        let place = self.shared + u64::from(arena) * 8;
        if load64(place) == 0 {
            let mapped = self.map_pieces(&mut leases, file, arena);
            // All share the first one where there is no room for this one.
            let block = self.block(if mapped { arena } else { 0 });
            store64(place, block.wrapping_neg());
        }
        load64(place)
    }

    /// Maps the pieces that an arena lacks; false = no room.
    fn map_pieces(&self, leases: &mut Leases, file: &CounterFile, arena: u32) -> bool {
        let wanted = piece_of(leases.next - 1);
        let mapped = &mut leases.pieces[arena as usize];
        while u64::from(*mapped) <= wanted {
            let piece = u64::from(*mapped);
            if !file.slots(arena, piece, self.block(arena) + piece_first(piece) * 8) {
                return false;
            }
            if piece == 0 {
                let gap = self.arena(arena).choice.gap();
                store64(self.block(arena) + slots::COUNTDOWN, gap);
            }
            *mapped += 1;
        }
        true
    }

    /// A platform thread ended (called on that thread): its arena is free for the next.
    pub fn release(&self, tid: u64) {
        if tid == 0 || tid >= TABLE_IDS {
            return;
        }
        let slot = self.table + tid * 8;
        let block = load64(slot);
        if block != 0 {
            store64(slot, 0);
            lock(&self.leases).free.push(self.arena_of(block));
        }
    }

    fn block(&self, arena: u32) -> Addr {
        self.blocks + u64::from(arena) * BLOCK_BYTES
    }

    /// The arena that owns a block.
    pub fn arena_of(&self, block: Addr) -> u32 {
        ((block - self.blocks) / BLOCK_BYTES) as u32
    }

    /// Whether an arena is used by several threads at once.
    pub fn is_shared(arena: u32) -> bool {
        arena < SHARED
    }

    /// Locks an arena to make rows in it.
    pub fn arena(&self, arena: u32) -> MutexGuard<'_, Arena> {
        lock(&self.arenas[arena as usize])
    }
}

/// The piece that a slot lies in.
fn piece_of(slot: u64) -> u64 {
    let mut piece = 0;
    while piece_first(piece + 1) <= slot {
        piece += 1;
    }
    piece
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keys are hashes already.
#[derive(Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(b);
        }
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = v;
    }
}
