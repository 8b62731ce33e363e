//! The slots of `counters.bin`: counts at fixed places, the same in each arena.

use std::collections::HashSet;

use super::walk::{Chunk, Chunks, Holds};
use super::{Counters, Damage};
use crate::layout::{CHUNK_HEADER_BYTES, HEADER_SLOTS, MAX_PIECES, piece_bytes, piece_first};
use crate::source::Source;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// A chunk of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Arena.
    pub arena: u32,
    /// Which of the arena's pieces: slots from [`piece_first`] on.
    pub piece: u64,
    /// File offset.
    pub offset: u64,
    /// Slots that could be read, those that the header takes included.
    pub slots: u64,
}

/// The slots, each summed over all arenas. As large as the largest piece of each number in the file, so at most 16 MiB.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    pieces: Vec<Piece>,
    /// By number of piece, then by slot.
    sums: Vec<Vec<u64>>,
    damage: Damage,
}

impl Slots {
    pub(super) fn read<S: Source>(counters: &Counters<S>) -> Slots {
        let mut slots = Slots::default();
        let mut seen = HashSet::new();
        let mut chunks = Chunks::new(counters);
        // Damage of chunk headers is told by the walk over the rows.
        while let Some(chunk) = chunks.next(&mut Damage::default()) {
            if let Holds::Slots {
                arena,
                piece,
                bytes,
            } = chunk.holds
            {
                if piece >= MAX_PIECES {
                    slots
                        .damage
                        .add(chunk.start, "a chunk of slots has an impossible number");
                } else if bytes != piece_bytes(piece) {
                    slots
                        .damage
                        .add(chunk.start, "a chunk of slots has an impossible size");
                } else if !seen.insert((arena, piece)) {
                    slots
                        .damage
                        .add(chunk.start, "a chunk of slots is there twice");
                } else {
                    slots.add(counters, &chunk, arena, piece);
                }
            }
        }
        slots
    }

    fn add<S: Source>(&mut self, counters: &Counters<S>, chunk: &Chunk, arena: u32, piece: u64) {
        let at = piece as usize;
        if self.sums.len() <= at {
            self.sums.resize_with(at + 1, Vec::new);
        }
        let Some(sums) = self.sums.get_mut(at) else {
            return;
        };
        let wanted = ((chunk.end - chunk.start) / 8) as usize;
        // Never more memory than the file has bytes; a cut end was told by the walk over the rows.
        if sums.len() < wanted {
            sums.resize(wanted, 0);
        }
        let mut buffer = vec![0; READ_BYTES];
        let mut slots = HEADER_SLOTS as usize;
        for part in sums
            .get_mut(slots..wanted)
            .unwrap_or_default()
            .chunks_mut(READ_BYTES / 8)
        {
            let bytes = buffer.get_mut(..part.len() * 8).unwrap_or_default();
            // Past the cache: each byte is read once.
            let from = chunk.start + slots as u64 * 8;
            if !counters.source.read_fresh(from, bytes) {
                self.damage.add(from, "slots cannot be read");
                break;
            }
            for (sum, count) in part.iter_mut().zip(bytes.chunks_exact(8)) {
                let count = count.try_into().map_or(0, u64::from_le_bytes);
                *sum = sum.saturating_add(count);
            }
            slots += part.len();
        }
        self.pieces.push(Piece {
            arena,
            piece,
            offset: chunk.start,
            slots: slots as u64,
        });
    }

    /// The chunks, in file order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// What was left out.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// The sums of the slots from `first` on, at most `slots` of them: those after the last that any arena has are 0. `Err` = no method can
    /// have these slots: the reason.
    pub fn counts(&self, first: u32, slots: u32) -> Result<&[u64], &'static str> {
        let first = u64::from(first);
        let end = first + u64::from(slots);
        let piece = (0..MAX_PIECES)
            .find(|&piece| first < piece_first(piece + 1))
            .ok_or("a slot beyond the last piece")?;
        if end > piece_first(piece + 1) {
            return Err("slots of one method in two pieces");
        }
        let from = first - piece_first(piece);
        if from < HEADER_SLOTS {
            return Err("a slot in the place of a header");
        }
        let sums = self.sums.get(piece as usize).map_or(&[][..], Vec::as_slice);
        let to = (end - piece_first(piece)).min(sums.len() as u64);
        Ok(sums.get(from as usize..to as usize).unwrap_or_default())
    }
}

// The header of a chunk of slots has the size of that of a chunk of records: one walk reads both.
const _: () = assert!(CHUNK_HEADER_BYTES == HEADER_SLOTS * 8);
