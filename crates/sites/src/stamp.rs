//! What marking an object needs at run time: one word a site.

/// A site's word: with random bits it gives the field of an object.
///
/// Invariant: for every `random`, [`Self::field`] decodes to the owner that the stamp was made for, as long as the number is not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    base: u32,
    id_bits: u8,
    may_shorten: bool,
}

impl Stamp {
    pub(crate) fn new(base: u32, id_bits: u8, may_shorten: bool) -> Self {
        Stamp {
            base,
            id_bits,
            may_shorten,
        }
    }

    /// Bits of the identifier.
    pub fn id_bits(self) -> u8 {
        self.id_bits
    }

    /// Whether a shorter number may be had; without it [`Self::triggers`] never says so.
    pub fn may_shorten(self) -> bool {
        self.may_shorten
    }

    /// The identifier that is taken from random bits: the lowest ones.
    #[inline]
    pub fn id(self, random: u32) -> u32 {
        (u64::from(random) & ((1 << self.id_bits) - 1)) as u32
    }

    /// The field of an object, never 0: where it would be, the identifier's last bit is flipped.
    #[inline]
    pub fn field(self, random: u32) -> u32 {
        (self.base ^ self.id(random)).max(1)
    }

    /// Whether this object's identifier asks for a shorter number: its lower half, floor(bits / 2) of them, is zero. The object keeps the field it has;
    /// those after it get the new number.
    #[inline]
    pub fn triggers(self, random: u32) -> bool {
        self.may_shorten && self.id(random) & ((1 << (self.id_bits / 2)) - 1) == 0
    }

    /// For a table of 64-bit words that probes read: bit 63 says that there is a stamp (so 0 means: ask the registry), bit 62 `may_shorten`,
    /// bits 32 to 36 the identifier's length, bits 0 to 30 the field with identifier 0.
    pub fn pack(self) -> u64 {
        1 << 63
            | u64::from(self.may_shorten) << 62
            | u64::from(self.id_bits) << 32
            | u64::from(self.base)
    }

    /// The stamp of a word; `None` if [`Self::pack`] makes no such word.
    pub fn unpack(word: u64) -> Option<Self> {
        let stamp = Stamp {
            base: word as u32,
            id_bits: (word >> 32) as u8 & 31,
            may_shorten: word >> 62 & 1 == 1,
        };
        (stamp.pack() == word && stamp.base >> 31 == 0).then_some(stamp)
    }
}
