//! Hashes that the VM draws itself, where it counts them: which fields can be such.
//!
//! HotSpot's identity hashes are random, but it can count them from 1 on (synchronizer.cpp, `get_next_hash`, mode 3). Our fields have the highest bit
//! ([`Scheme::guard_top`](crate::Scheme::guard_top)), so none of the first 2^30 hashes that it counts is one of ours. Here is kept how far it has
//! counted, from samples; what it may have reached since the half with that bit begins is ours no longer for sure.

/// How far the VM may be beyond a sample: what it draws until a walk is over, and what it has drawn while a thread stood still between reading and
/// writing the counter, which is not atomic, and then put it back.
pub const MARGIN: u32 = 1 << 26;
/// Hashes have 31 bits.
const END: u32 = 1 << 31;

/// How far the VM has counted.
///
/// Invariant, if it draws less than 2^31 - 3 * [`MARGIN`] hashes from one sample to the next: no hash that it has drawn from the first sample on, or draws before
/// [`MARGIN`] more, [`Self::is_ours`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    last: u32,
    /// No field from here on was drawn.
    limit: u32,
}

impl Drawn {
    /// `first` is a hash that the VM has just drawn, `ours` the lowest field that we make.
    pub fn new(first: u32, ours: u32) -> Self {
        let mut drawn = Drawn {
            last: 0,
            limit: ours,
        };
        drawn.see(first);
        drawn
    }

    /// The VM has just drawn this hash.
    pub fn see(&mut self, hash: u32) {
        let wrapped = hash >= END || hash.saturating_add(MARGIN) < self.last;
        self.last = self.last.max(hash);
        self.limit = match wrapped {
            true => END,
            false => self.limit.max(self.last.saturating_add(MARGIN)).min(END),
        };
    }

    /// Whether the VM cannot have drawn this field.
    #[inline]
    pub fn is_ours(&self, field: u32) -> bool {
        field >= self.limit
    }
}
