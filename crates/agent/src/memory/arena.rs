//! Arenas and who uses them: a platform thread leases a private arena for its life, virtual threads use shared ones.
//!
//! Each arena has a block of root slots (u64 by method index). When a thread ends, its arena goes back with all its counts
//! and serves the next new thread, so nothing is ever folded or freed.

use super::file::zero_pages;
use super::raw::{Addr, load64, store64};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Thread ids from here on use shared arenas.
const TABLE_IDS: u64 = 1 << 20;
/// Shared arenas (a power of two).
const SHARED: u32 = 16;

/// All arenas and the lease table.
pub struct Threads {
    blocks: Addr,
    block_bytes: u64,
    table: Addr,
    shared: Addr,
    arenas: Box<[Mutex<Arena>]>,
    leases: Mutex<Leases>,
}

struct Leases {
    free: Vec<u32>,
    fresh: u32,
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
    /// Outgrown edge tables by log2 of their slots.
    pub free_tables: Vec<Vec<Addr>>,
}

impl Threads {
    /// Reserves root slots for `methods` methods and up to `max` arenas, less where addresses are scarce.
    pub fn new(mut methods: u64, mut max: u32) -> io::Result<Self> {
        let blocks = loop {
            match zero_pages(methods * 8 * u64::from(max)) {
                Ok(a) => break a,
                Err(e) if max <= 64 => return Err(e),
                Err(_) => {
                    max /= 2;
                    methods = (methods / 2).max(1 << 16);
                }
            }
        };
        let block_bytes = methods * 8;
        let shared = zero_pages(u64::from(SHARED) * 8)?;
        for i in 0..SHARED {
            store64(
                shared + u64::from(i) * 8,
                blocks + u64::from(i) * block_bytes,
            );
        }
        Ok(Self {
            blocks,
            block_bytes,
            table: zero_pages(TABLE_IDS * 8)?,
            shared,
            arenas: (0..max).map(|_| Mutex::default()).collect(),
            leases: Mutex::new(Leases {
                free: Vec::new(),
                fresh: SHARED,
            }),
        })
    }

    /// How many methods have a root slot.
    pub fn max_methods(&self) -> u32 {
        (self.block_bytes / 8) as u32
    }

    /// What the helper needs to find a thread's block: (table, ids in it, shared blocks, their number - 1).
    pub fn addresses(&self) -> (Addr, u64, Addr, u64) {
        (self.table, TABLE_IDS, self.shared, u64::from(SHARED) - 1)
    }

    /// The block of the shared arena that a virtual thread of this id counts in.
    pub fn shared_block(&self, tid: u64) -> Addr {
        load64(self.shared + (tid % u64::from(SHARED)) * 8)
    }

    /// Gives a platform thread a private arena: the address of its block. Falls back to a shared one when there are no more.
    pub fn lease(&self, tid: u64) -> Addr {
        let mut leases = lock(&self.leases);
        let arena = match leases.free.pop() {
            Some(a) => a,
            None if (leases.fresh as usize) < self.arenas.len() && tid < TABLE_IDS => {
                leases.fresh += 1;
                leases.fresh - 1
            }
            None => return self.shared_block(tid),
        };
        let block = self.blocks + u64::from(arena) * self.block_bytes;
        store64(self.table + tid * 8, block);
        block
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
            lock(&self.leases)
                .free
                .push(((block - self.blocks) / self.block_bytes) as u32);
        }
    }

    /// The arena that owns a block.
    pub fn arena_of(&self, block: Addr) -> u32 {
        ((block - self.blocks) / self.block_bytes) as u32
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
