//! The tree of a class's numbers (seed, figures 6 and 7).
//!
//! A number is a string of bits, a node of a binary tree; *leaves* are the nodes of `max_len` bits. The tree is kept as the set of its
//! nodes that have an owner, ordered by their first leaf: each is a range of leaves, and ranges never overlap (prefix-free). Figure 7's
//! walk (climb while a 1-child, to the parent, down its 1-child, along 0-children) visits the nodes of one length from left to right and steps
//! over everything below a node that is set; so here it is a scan over ranges. `tests/tree.rs` holds it against the figure, step by step.

use std::collections::BTreeMap;
use std::fmt;

/// Longest number in bits.
pub const MAX_LEN: u8 = 31;

/// A static or dynamic number: its `len` bits, the first of them highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    bits: u32,
    len: u8,
}

impl Number {
    /// The number of `len` bits whose value is `bits`; `None` if these are more than `len` bits or `len` is beyond [`MAX_LEN`].
    pub fn new(bits: u32, len: u8) -> Option<Self> {
        (len <= MAX_LEN && u64::from(bits) < 1 << len).then_some(Number { bits, len })
    }

    /// Its value.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Its length in bits.
    #[allow(
        clippy::len_without_is_empty,
        reason = "the number of no bits is the root, not emptiness"
    )]
    pub fn len(self) -> u8 {
        self.len
    }

    /// Its first `len` bits.
    pub fn cut(self, len: u8) -> Number {
        let len = len.min(self.len);
        Number {
            bits: self.bits >> (self.len - len),
            len,
        }
    }

    /// Whether `other` begins with this number.
    pub fn is_prefix_of(self, other: Number) -> bool {
        self.len <= other.len && other.cut(self.len) == self
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len {
            0 => f.write_str("-"),
            len => write!(f, "{:0width$b}", self.bits, width = usize::from(len)),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Who holds which numbers of one class.
///
/// Invariant: no held number is a prefix of another, whoever holds them; so each leaf is below at most one held number.
#[derive(Clone, Debug)]
pub struct Tree<O> {
    max_len: u8,
    /// By first leaf.
    held: BTreeMap<u32, (Number, O)>,
    /// Leaves below held numbers.
    covered: u64,
    /// Leaves below which nobody may hold a number, in order; none of them is below one that is held.
    blocked: Vec<u32>,
    /// By length: no node of this length that is wholly free begins at a leaf below this one.
    free_from: Vec<u64>,
}

impl<O: Copy + Eq> Tree<O> {
    /// An empty tree whose longest numbers have `max_len` bits, at most [`MAX_LEN`].
    pub fn new(max_len: u8) -> Self {
        let max_len = max_len.min(MAX_LEN);
        Tree {
            max_len,
            held: BTreeMap::new(),
            covered: 0,
            blocked: Vec::new(),
            free_from: vec![0; usize::from(max_len) + 1],
        }
    }

    /// Length of the longest numbers.
    pub fn max_len(&self) -> u8 {
        self.max_len
    }

    /// Leaves below a node of `len` bits.
    fn size(&self, len: u8) -> u64 {
        1 << (self.max_len - len)
    }

    /// First leaf below a number.
    pub(crate) fn start(&self, number: Number) -> u32 {
        number.bits << (self.max_len - number.len)
    }

    fn node(&self, start: u64, len: u8) -> Number {
        Number {
            bits: (start >> (self.max_len - len)) as u32,
            len,
        }
    }

    /// Leaves below no held number, and not blocked.
    pub fn free_leaves(&self) -> u64 {
        self.size(0) - self.covered - self.blocked.len() as u64
    }

    /// No number that one of these leaves is below is ever given. Gives how many are below a held one already.
    pub fn block(&mut self, leaves: impl IntoIterator<Item = u32>) -> u64 {
        let mut held = 0;
        let mut more = std::mem::take(&mut self.blocked);
        more.extend(leaves.into_iter().filter(|&leaf| {
            let is_held = self.find(leaf).is_some();
            held += u64::from(is_held);
            !is_held && u64::from(leaf) < self.size(0)
        }));
        more.sort_unstable();
        more.dedup();
        more.shrink_to_fit();
        self.blocked = more;
        held
    }

    /// The first blocked leaf from this one on.
    fn first_blocked(&self, leaf: u64) -> Option<u64> {
        let at = self.blocked.partition_point(|&b| u64::from(b) < leaf);
        self.blocked.get(at).map(|&b| b.into())
    }

    /// The held numbers from left to right.
    pub fn iter(&self) -> impl Iterator<Item = (Number, O)> + '_ {
        self.held.values().copied()
    }

    /// The held number that a leaf is below, and its owner: the first set node on the way down from the root along the leaf's bits.
    pub fn find(&self, leaf: u32) -> Option<(Number, O)> {
        let (&start, &(number, owner)) = self.held.range(..=leaf).next_back()?;
        (u64::from(leaf) < u64::from(start) + self.size(number.len)).then_some((number, owner))
    }

    /// Leaves that `owner` would newly cover with the node of `len` bits at leaf `start`; or, if that node is not free for it, the end of what is in the way.
    ///
    /// Free (figure 7, steps 703 to 706): neither the node nor one above it is set, and below it is nobody else, nor a blocked leaf.
    fn cost(&self, owner: O, start: u64, len: u8) -> Result<u64, u64> {
        let end = start + self.size(len);
        let mut cost = self.size(len);
        // What begins left of the node and reaches it lies above it, or is the node.
        if let Some((number, _)) = self.find(start as u32)
            && number.len <= len
        {
            return Err(u64::from(self.start(number)) + self.size(number.len));
        }
        for (&at, &(number, other)) in self.held.range(start as u32..) {
            if u64::from(at) >= end {
                break;
            }
            if other != owner {
                return Err(u64::from(at) + self.size(number.len));
            }
            cost -= self.size(number.len);
        }
        match self.first_blocked(start) {
            Some(leaf) if leaf < end => Err(leaf + 1),
            _ => Ok(cost),
        }
    }

    /// Search_for_next_dynamic_ID (figure 7) without its last step: the number of `len` bits that `owner` may take, searched from `current`
    /// cut to `len` bits on to the right, and the leaves it would newly cover. `None`: no parent is left, the owner keeps what it has.
    ///
    /// `own`: all numbers that the owner holds. Where no node is wholly free, only those above them can be free for it; so what earlier searches
    /// went through is not gone through again (the seed remembers the node given last of each length, which may pass over free ones).
    pub fn search(
        &mut self,
        owner: O,
        current: Number,
        len: u8,
        own: &[Number],
    ) -> Option<(Number, u64)> {
        let len = len.min(self.max_len);
        let size = self.size(len);
        let node_of = |number| u64::from(self.start(number)) & !(size - 1);
        let start = node_of(current);
        let known = self.free_from[usize::from(len)];
        let above_own = own.iter().map(|&number| node_of(number));
        let left = above_own
            .filter(|at| (start..known).contains(at))
            .filter_map(|at| Some((at, self.cost(owner, at, len).ok()?)))
            .min();
        if let Some((at, cost)) = left {
            return Some((self.node(at, len), cost));
        }
        let mut at = start.max(known);
        let found = loop {
            if at >= self.size(0) {
                break None;
            }
            match self.cost(owner, at, len) {
                Ok(cost) => break Some((self.node(at, len), cost)),
                // Everything below what is in the way is set or blocked: on to the first node behind it.
                Err(end) => at = end.next_multiple_of(size),
            }
        };
        if start <= known {
            self.free_from[usize::from(len)] = at;
        }
        found
    }

    /// The leftmost free leaf, for a site's first number.
    pub fn first_free(&mut self) -> Option<Number> {
        let mut at = self.free_from[usize::from(self.max_len)];
        while at < self.size(0) {
            if let Some((number, _)) = self.find(at as u32) {
                at = u64::from(self.start(number)) + self.size(number.len);
            } else if self.first_blocked(at) == Some(at) {
                at += 1;
            } else {
                break;
            }
        }
        self.free_from[usize::from(self.max_len)] = at;
        (at < self.size(0)).then(|| self.node(at, self.max_len))
    }

    /// Gives a free number to `owner`. Numbers of the owner below it are one with it from now on; they come back. `None`: not free.
    pub fn give(&mut self, owner: O, number: Number) -> Option<Vec<Number>> {
        if number.len > self.max_len {
            return None;
        }
        let start = self.start(number);
        let cost = self.cost(owner, u64::from(start), number.len).ok()?;
        let last = start + (self.size(number.len) - 1) as u32;
        let below: Vec<Number> = self.held.range(start..=last).map(|(_, h)| h.0).collect();
        for &old in &below {
            self.held.remove(&self.start(old));
        }
        self.held.insert(start, (number, owner));
        self.covered += cost;
        Some(below)
    }

    /// Who holds exactly this number.
    pub fn holder(&self, number: Number) -> Option<O> {
        if number.len > self.max_len {
            return None;
        }
        let &(held, owner) = self.held.get(&self.start(number))?;
        (held == number).then_some(owner)
    }

    /// Takes a held number back; `None` if nobody holds exactly this one.
    pub fn release(&mut self, number: Number) -> Option<O> {
        let owner = self.holder(number)?;
        let start = self.start(number);
        self.held.remove(&start);
        self.covered -= self.size(number.len);
        for len in 0..=self.max_len {
            let node = u64::from(start) & !(self.size(len) - 1);
            let from = &mut self.free_from[usize::from(len)];
            *from = node.min(*from);
        }
        Some(owner)
    }
}
