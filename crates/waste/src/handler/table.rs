//! Calling contexts and pairs in shared memory of fixed size: what a handler writes, and what is left when the process is killed.
//!
//! Words of 64 bits, all accessed as atomics:
//!
//! ```text
//! header    8 words: magic, contexts' capacity, pairs' capacity, contexts used, pairs used, source, 2 spare
//! counters 64 words (tally.rs)
//! contexts  2 words each: method; parent node << 32 | bytecode index
//! pairs     8 words each: first node << 32 | second node; detail; first instruction (2); second instruction (2); object; count
//! ```
//!
//! A context is a node of a tree: a frame and the node of its caller. Node 0 is the root, node i + 1 is slot i. Both parts are hash tables with
//! open addressing whose slots are never freed. A slot's first word is claimed by compare-and-set (0 to [`BUSY`]), then the others are
//! written, then the first is published. Whoever meets a busy slot goes on to the next one instead of waiting: it may be the interrupted code of
//! this very thread. So one key may have two slots; who reads the table adds them up. What is full stays full: three quarters of the slots can be used, of which the
//! last sixth is kept for contexts of a single frame, so that a pair whose callers found no room still shows its lines ([`Frame::CUT`]).

use super::access::{Element, Kind};
use super::code::Bytes;
use super::tally::{self, Counter, Tally};
use super::watch::Waste;
use super::watches::{Detail, Pair, Shape};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// First word of a table: "waste" and its format's number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"waste\0\0\x01");
/// First word of a slot that is being filled.
pub const BUSY: u64 = u64::MAX;
/// Words of the header.
pub const HEADER: usize = 8;
/// Words of a context's slot.
pub const CONTEXT: usize = 2;
/// Words of a pair's slot.
pub const PAIR: usize = 8;
/// Slots that a search looks at.
const PROBES: usize = 64;

/// A frame of a calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The method: any number of the caller's from [`Frame::FIRST_METHOD`] on (a jmethodID).
    pub method: u64,
    /// Bytecode index, or what else the caller numbers places with.
    pub bci: i32,
}

impl Frame {
    /// Smallest number of a real method.
    pub const FIRST_METHOD: u64 = 16;
    /// Stands for callers that found no room in the table.
    pub const CUT: Frame = Frame { method: 1, bci: 0 };
    /// Stands for callers beyond the depth that was read.
    pub const DEEPER: Frame = Frame { method: 2, bci: 0 };
    /// Stands for a whole context that could not be had, where the answer counts all the same.
    pub const UNKNOWN: Frame = Frame { method: 3, bci: 0 };

    /// A frame of a real method.
    pub fn new(method: u64, bci: i32) -> Option<Frame> {
        (Frame::FIRST_METHOD..BUSY)
            .contains(&method)
            .then_some(Frame { method, bci })
    }

    fn words(self, parent: u32) -> [u64; CONTEXT] {
        [
            self.method,
            u64::from(parent) << 32 | u64::from(self.bci as u32),
        ]
    }
}

/// Capacities of a table: powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Context slots.
    pub contexts: usize,
    /// Pair slots.
    pub pairs: usize,
}

impl Capacity {
    /// `None`: not powers of two, below 8, or more contexts than fit 31 bits.
    pub fn new(contexts: usize, pairs: usize) -> Option<Capacity> {
        let fits = |n: usize| n.is_power_of_two() && (8..=1 << 31).contains(&n);
        (fits(contexts) && fits(pairs)).then_some(Capacity { contexts, pairs })
    }

    /// Words of a table.
    pub fn words(self) -> usize {
        self.pairs_at() + self.pairs * PAIR
    }

    pub(crate) fn contexts_at(self) -> usize {
        HEADER + tally::WORDS
    }

    pub(crate) fn pairs_at(self) -> usize {
        self.contexts_at() + self.contexts * CONTEXT
    }
}

/// A calling context in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its node, never 0.
    pub node: u32,
    /// Whether its callers found no room.
    pub cut: bool,
}

/// A table over shared words.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    header: &'a [AtomicU64],
    contexts: &'a [AtomicU64],
    pairs: &'a [AtomicU64],
    tally: Tally<'a>,
}

impl<'a> Table<'a> {
    /// Makes a table of words that are all 0. `source`: [`crate::source::Source::code`]. `None`: too few words.
    pub fn make(words: &'a [AtomicU64], capacity: Capacity, source: u64) -> Option<Table<'a>> {
        let table = Table::over(words, capacity)?;
        for (word, value) in [
            (1, capacity.contexts as u64),
            (2, capacity.pairs as u64),
            (5, source),
        ] {
            table.header.get(word)?.store(value, Relaxed);
        }
        table.intern(0, Frame::CUT, capacity.contexts)?;
        table.header.first()?.store(MAGIC, Release);
        Some(table)
    }

    fn over(words: &'a [AtomicU64], capacity: Capacity) -> Option<Table<'a>> {
        let header = words.get(..HEADER)?;
        let tally = Tally::new(words.get(HEADER..capacity.contexts_at())?)?;
        Some(Table {
            header,
            tally,
            contexts: words.get(capacity.contexts_at()..capacity.pairs_at())?,
            pairs: words.get(capacity.pairs_at()..capacity.words())?,
        })
    }

    /// The table's counters.
    pub fn tally(&self) -> Tally<'a> {
        self.tally
    }

    /// The context of frames from the outermost to the innermost. If there is no room for all of them, that of the innermost alone; if not
    /// even for that, or without frames, `None`.
    pub fn context(&self, frames: impl IntoIterator<Item = Frame>) -> Option<Context> {
        let capacity = self.contexts.len() / CONTEXT;
        let mut node = Some(0);
        let mut last = None;
        for frame in frames {
            node = node.and_then(|parent| self.intern(parent, frame, capacity / 8 * 5));
            last = Some(frame);
        }
        let leaf = last?;
        if let Some(node) = node {
            return Some(Context { node, cut: false });
        }
        self.tally.add(Counter::ContextCut);
        let cut = self.intern(0, Frame::CUT, capacity)?;
        let node = self.intern(cut, leaf, capacity / 4 * 3)?;
        Some(Context { node, cut: true })
    }

    /// The context of a single frame whose callers are left out on purpose.
    pub fn line(&self, frame: Frame) -> Option<u32> {
        let capacity = self.contexts.len() / CONTEXT;
        self.intern(0, frame, capacity / 4 * 3)
    }

    /// Methods of the frames that are in it, in no order and as often as they are.
    pub fn methods(&self) -> impl Iterator<Item = u64> + 'a {
        let first = self.contexts.iter().step_by(CONTEXT);
        first
            .map(|word| word.load(Acquire))
            .filter(|method| (Frame::FIRST_METHOD..BUSY).contains(method))
    }

    /// The node of a frame below another, made if at most `limit` slots are in use.
    fn intern(&self, parent: u32, frame: Frame, limit: usize) -> Option<u32> {
        let slot = find(self.contexts, &self.header[3], limit, &frame.words(parent))?;
        u32::try_from(slot + 1).ok()
    }

    /// Counts a pair. Whether it found room; both are counted.
    pub fn record(&self, pair: &Pair) -> bool {
        let words = pair.words();
        let limit = self.pairs.len() / PAIR / 4 * 3;
        let whole = pair.first != 0 && (pair.second != 0) == pair.wasteful;
        let slot = whole
            .then(|| find(self.pairs, &self.header[4], limit, &words))
            .flatten();
        let count = slot.and_then(|slot| self.pairs.get(slot * PAIR + PAIR - 1));
        match count {
            Some(count) => {
                count.fetch_add(1, Relaxed);
                self.tally.add(Counter::Recorded);
            }
            None => self.tally.add(Counter::NoRoom),
        }
        count.is_some()
    }
}

/// The slot of a key in a table whose slots have `K` words and, if it is a pair's, a count behind.
fn find<const K: usize>(
    table: &[AtomicU64],
    used: &AtomicU64,
    limit: usize,
    key: &[u64; K],
) -> Option<usize> {
    let stride = if K == CONTEXT { CONTEXT } else { PAIR };
    let mask = (table.len() / stride).checked_sub(1)?;
    let mut slot = hash(key) as usize & mask;
    for _ in 0..PROBES.min(mask + 1) {
        let words = table.get(slot * stride..slot * stride + K)?;
        let (first, rest) = words.split_first()?;
        let mut seen = first.load(Acquire);
        if seen == 0 {
            if used.load(Relaxed) >= limit as u64 {
                return None;
            }
            match first.compare_exchange(0, BUSY, Acquire, Acquire) {
                Ok(_) => {
                    used.fetch_add(1, Relaxed);
                    for (word, value) in rest.iter().zip(&key[1..]) {
                        word.store(*value, Relaxed);
                    }
                    first.store(key[0], Release);
                    return Some(slot);
                }
                Err(now) => seen = now,
            }
        }
        let same = || {
            rest.iter()
                .zip(&key[1..])
                .all(|(w, k)| w.load(Relaxed) == *k)
        };
        if seen == key[0] && same() {
            return Some(slot);
        }
        slot = (slot + 1) & mask;
    }
    None
}

fn hash(key: &[u64]) -> u64 {
    key.iter().fold(0x243F_6A88_85A3_08D3, |hash: u64, word| {
        let product = u128::from(hash ^ word) * 0x9E37_79B9_7F4A_7C15;
        ((product as u64) ^ (product >> 64) as u64).rotate_left(23)
    })
}

const WHOLE: u64 = 1 << 3;
const LOADS: u64 = 1 << 4;
const STORES: u64 = 1 << 5;
const OTHERS: u64 = 1 << 6;
const INITIALISING: u64 = 1 << 7;
const FIRST: u32 = 8;
const SECOND: u32 = 24;

impl Shape {
    fn to_bits(self) -> u64 {
        u64::from(self.width) | self.kind.to_bits() << 8 | self.element.to_bits() << 10
    }

    fn from_bits(bits: u64) -> Shape {
        Shape {
            kind: Kind::from_bits(bits >> 8),
            width: bits as u8,
            element: Element::from_bits(bits >> 10),
        }
    }
}

impl Pair {
    /// Its key in the table.
    pub(crate) fn words(&self) -> [u64; PAIR - 1] {
        let detail = &self.detail;
        let flag = |yes: bool, bit: u64| if yes { bit } else { 0 };
        let bits = self.waste as u64
            | flag(self.wasteful, 1 << 2)
            | flag(detail.whole, WHOLE)
            | flag(detail.loads_between, LOADS)
            | flag(detail.stores_between, STORES)
            | flag(detail.others_between, OTHERS)
            | flag(detail.initialising, INITIALISING)
            | detail.first.to_bits() << FIRST
            | detail.second.to_bits() << SECOND;
        let [a, b] = self.first_instruction.to_words();
        let [c, d] = self.second_instruction.to_words();
        let contexts = u64::from(self.first) << 32 | u64::from(self.second);
        [contexts, bits, a, b, c, d, self.object]
    }

    /// A pair from its key. `None`: no pair has it.
    pub(crate) fn from_words(words: &[u64; PAIR - 1]) -> Option<Pair> {
        let [contexts, bits, a, b, c, d, object] = *words;
        let pair = Pair {
            waste: *Waste::ALL.get((bits & 3) as usize)?,
            wasteful: bits & 1 << 2 != 0,
            first: (contexts >> 32) as u32,
            second: contexts as u32,
            detail: Detail {
                whole: bits & WHOLE != 0,
                loads_between: bits & LOADS != 0,
                stores_between: bits & STORES != 0,
                others_between: bits & OTHERS != 0,
                initialising: bits & INITIALISING != 0,
                first: Shape::from_bits(bits >> FIRST),
                second: Shape::from_bits(bits >> SECOND),
            },
            first_instruction: Bytes::from_words([a, b]),
            second_instruction: Bytes::from_words([c, d]),
            object,
        };
        (pair.first != 0 && (pair.second != 0) == pair.wasteful).then_some(pair)
    }
}
