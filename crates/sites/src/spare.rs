//! Header words whose spare bits hold the site's number ([`Mode::Spare`](crate::Mode::Spare)).
//!
//! HotSpot's markWord.hpp, 64 bits, from above: `spare | hash:31 | … | age:4 | 1 bit | lock:2`. The hash begins at bit 8 on JDK 17 and 21 (25 spare bits), at bit 11 on 25
//! (22; with compact headers these hold the class: no spare mode). The agent probes where it begins. What we put there, from above: `generation | number`.
//!
//! A mark is the number together with a hash of our own: spare bits beside a hash of 0 do not survive full collections, since
//! HotSpot preserves headers only if they are locked or hashed.

use crate::Error;

/// Bits of the identity hash on all 64-bit HotSpots.
pub const HASH_BITS: u8 = 31;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;
const LOCK_MASK: u64 = 0b11;
const UNLOCKED: u64 = 0b01;
const AGE_SHIFT: u8 = 3;
const AGE_MASK: u64 = 0b1111 << AGE_SHIFT;

/// How a header word is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpareLayout {
    hash_shift: u8,
    generation_bits: u8,
    locks_in_place: bool,
}

/// What a header word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// Marked by us.
    Marked {
        /// The site's number, never 0: the field of [`crate::Decoder::decode`].
        number: u32,
        /// The generation it was marked in.
        generation: u32,
        /// The identity hash.
        hash: u32,
    },
    /// In place and not marked.
    Unmarked {
        /// The identity hash, 0 for none yet.
        hash: u32,
    },
    /// The lock holds the real header (a stack lock or a monitor): it must be read there.
    Displaced,
    /// Only during a collection.
    Forwarded,
}

impl SpareLayout {
    /// The hash begins at bit `hash_shift`. `generation_bits` are taken from the spare ones. `locks_in_place`: lightweight
    /// locking, where lock bits 00 leave the rest of the header as it is.
    pub fn new(hash_shift: u8, generation_bits: u8, locks_in_place: bool) -> Result<Self, Error> {
        // Below the hash stand age, one bit and lock; a number of more than 31 bits fits no field.
        if !(7..64 - HASH_BITS).contains(&hash_shift) {
            return Err(Error::Scheme("no header has its hash there"));
        }
        if generation_bits >= 64 - HASH_BITS - hash_shift {
            return Err(Error::Scheme("the generation leaves no bit for a number"));
        }
        Ok(SpareLayout {
            hash_shift,
            generation_bits,
            locks_in_place,
        })
    }

    fn spare_shift(&self) -> u8 {
        self.hash_shift + HASH_BITS
    }

    /// Bits of a number: the width of the [`Scheme`](crate::Scheme).
    pub fn number_bits(&self) -> u8 {
        64 - self.spare_shift() - self.generation_bits
    }

    /// Bits of a generation.
    pub fn generation_bits(&self) -> u8 {
        self.generation_bits
    }

    /// Whether an object with this header may be marked: not locked, not hashed, not marked. Anything else is never overwritten.
    pub fn may_mark(&self, header: u64) -> bool {
        header & !AGE_MASK == UNLOCKED
    }

    /// The header to put in place of `old`, with a hash that is made from `random` and never 0. `None` if `old` may not be marked, or `number` or `generation`
    /// does not fit. For a new object, whose header is [`Self::may_mark`]'s plainest, the result is one constant OR the hash shifted.
    pub fn mark(&self, old: u64, number: u32, generation: u32, random: u32) -> Option<u64> {
        let fits = number != 0
            && u64::from(number) >> self.number_bits() == 0
            && u64::from(generation) >> self.generation_bits == 0;
        let hash = (u64::from(random) & HASH_MASK).max(1);
        let spare = u64::from(generation) << self.number_bits() | u64::from(number);
        (fits && self.may_mark(old))
            .then_some(old | hash << self.hash_shift | spare << self.spare_shift())
    }

    /// Reads a header.
    pub fn read(&self, header: u64) -> Header {
        match header & LOCK_MASK {
            0b11 => return Header::Forwarded,
            0b10 => return Header::Displaced,
            0b00 if !self.locks_in_place => return Header::Displaced,
            _ => {}
        }
        let hash = (header >> self.hash_shift & HASH_MASK) as u32;
        let spare = header >> self.spare_shift();
        let number = (spare & ((1 << self.number_bits()) - 1)) as u32;
        if number == 0 || hash == 0 {
            return Header::Unmarked { hash };
        }
        Header::Marked {
            number,
            generation: (spare >> self.number_bits()) as u32,
            hash,
        }
    }

    /// Collections that the object has survived, up to 15, of a header in place.
    pub fn age(&self, header: u64) -> u8 {
        ((header & AGE_MASK) >> AGE_SHIFT) as u8
    }
}
