//! Walks the chunks of `counters.bin`, and the records in them.

use super::{Counters, Damage, Row, u32_at, u64_at};
use crate::layout::{
    self, CHUNK_HEADER_BYTES, CHUNK_MAGIC, HEADER_BYTES, Kind, RUN_BYTES, SLOTS_MAGIC,
};
use crate::source::Source;

/// A chunk, clipped to the bytes that there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// File offset of its header.
    pub(super) start: u64,
    /// End.
    pub(super) end: u64,
    pub(super) holds: Holds,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Holds {
    /// Records up to here.
    Records(u64),
    /// Slots; the header says that the chunk has so many `bytes`.
    Slots { arena: u32, piece: u64, bytes: u64 },
}

/// The chunks, in file order.
#[derive(Debug)]
pub(super) struct Chunks<'a, S> {
    counters: &'a Counters<S>,
    next: u64,
}

impl<'a, S: Source> Chunks<'a, S> {
    pub(super) fn new(counters: &'a Counters<S>) -> Self {
        Chunks {
            counters,
            next: HEADER_BYTES,
        }
    }

    /// The next chunk; `None` = there is none.
    pub(super) fn next(&mut self, damage: &mut Damage) -> Option<Chunk> {
        use layout::chunk::*;
        let start = self.next;
        let end = self.counters.end.get();
        if start >= end {
            return None;
        }
        // Whatever is wrong with a chunk header, the chunks after it cannot be found: this is the last step.
        self.next = end;
        let Some(bytes) = self
            .counters
            .bytes::<{ CHUNK_HEADER_BYTES as usize }>(start)
        else {
            damage.add(start, "a chunk header is cut off");
            return None;
        };
        let (magic, size) = (u32_at(&bytes, MAGIC), u64_at(&bytes, BYTES));
        if ![CHUNK_MAGIC, SLOTS_MAGIC].contains(&magic)
            || size < CHUNK_HEADER_BYTES
            || size % 16 != 0
        {
            damage.add(start, "not a chunk header");
            return None;
        }
        let chunk_end = start.saturating_add(size);
        self.next = chunk_end.min(end);
        let holds = if magic == SLOTS_MAGIC {
            Holds::Slots {
                arena: u32_at(&bytes, ARENA),
                piece: u64_at(&bytes, layout::slots::PIECE),
                bytes: size,
            }
        } else {
            let used = u64_at(&bytes, USED);
            let used_end = start.saturating_add(used);
            if used < CHUNK_HEADER_BYTES || used_end > chunk_end {
                damage.add(start, "a chunk has an impossible number of used bytes");
            }
            // Beyond `used`, and in a hole left by lost pages, are zeroes or whatever was there: clip to the chunk.
            Holds::Records(used_end.min(self.next))
        };
        Some(Chunk {
            start,
            end: self.next,
            holds,
        })
    }
}

/// Iterator over rows: see [`Counters::rows`].
#[derive(Debug)]
pub struct Rows<'a, S> {
    counters: &'a Counters<S>,
    chunks: Chunks<'a, S>,
    record: u64,
    used_end: u64,
    /// The run slot whose row comes next.
    run: Option<u64>,
    damage: Damage,
}

impl<'a, S: Source> Rows<'a, S> {
    pub(super) fn new(counters: &'a Counters<S>, damage: Damage) -> Self {
        Rows {
            counters,
            chunks: Chunks::new(counters),
            record: HEADER_BYTES,
            used_end: HEADER_BYTES,
            run: None,
            damage,
        }
    }

    /// What was left out so far.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Goes to the next chunk of records; false = there is none.
    fn next_chunk(&mut self) -> bool {
        while let Some(chunk) = self.chunks.next(&mut self.damage) {
            if let Holds::Records(used_end) = chunk.holds {
                self.record = chunk.start + CHUNK_HEADER_BYTES;
                self.used_end = used_end;
                return true;
            }
        }
        false
    }

    /// What comes now is no row.
    fn no_row(&mut self) {
        if let Some(run) = self.run.take() {
            self.damage.add(run, "no row comes after a run slot");
        }
    }
}

impl<S: Source> Iterator for Rows<'_, S> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            while self.record >= self.used_end {
                self.no_row();
                if !self.next_chunk() {
                    return None;
                }
            }
            let offset = self.record;
            let head = self.counters.bytes::<16>(offset);
            let size = head.map_or(0, |head| u64::from(u32_at(&head, layout::row::BYTES)));
            if size < 16 || !size.is_multiple_of(16) || size > self.used_end - offset {
                let reason = if self.used_end == self.counters.end.get()
                    && self.counters.end.get() < self.counters.header.allocated
                {
                    "a record is cut off"
                } else {
                    "a record has an impossible size"
                };
                self.damage.add(offset, reason);
                self.record = self.used_end;
                continue;
            }
            self.record = offset + size;
            let kind = head.map_or(0, |head| u32_at(&head, layout::row::KIND));
            if kind == Kind::Table as u32 || kind == Kind::KsfNode as u32 {
                self.no_row();
            } else if kind == Kind::Run as u32 {
                self.no_row();
                match size {
                    RUN_BYTES => self.run = Some(offset),
                    _ => self.damage.add(offset, "a run slot has an impossible size"),
                }
            } else {
                match self.counters.row(self.run.take().unwrap_or(offset)) {
                    Some(row) => return Some(row),
                    None => self.damage.add(offset, "a record is of no known kind"),
                }
            }
        }
    }
}
