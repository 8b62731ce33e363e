//! How a number, an object identifier and a flag share the hash field (seed, figures 2B, 3, 4A and 8A).
//!
//! From the highest bit: `[flag] [guard] number identifier`. A longer number leaves a shorter identifier. All but the flag is XORed with a constant
//! of the class (seed: CLASS_HASH), so that equal numbers of two classes look different. A field of 0 never is an object's
//! field: to HotSpot it means "no hash yet", to us "no site".

use crate::rng::Rng;
use crate::tree::Number;
use crate::{ClassId, Error};

/// When an object gets its number (seed, figure 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Figure 9A: a number of fixed length and an identifier, at allocation.
    Static {
        /// Length of the number.
        number_bits: u8,
    },
    /// Figure 9B: the site's current dynamic number and an identifier, at allocation.
    Dynamic,
    /// Figure 9C: flag 0 and a static number that fills the field at allocation; flag 1, dynamic number and identifier from the first
    /// reference of the hash on.
    Hybrid,
    /// Not in the seed: the number stands in spare bits of the header, beside a hash of our own ([`crate::spare`]). One set of numbers for the program.
    Spare,
}

/// The two kinds of numbers. Each has a tree of its own; the flag tells the kind where a mode has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Fixed length, no identifier needed.
    Static,
    /// Gets shorter the more objects carry it.
    Dynamic,
}

/// What bounds the numbers of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Policy {
    /// Bits of the shortest identifier, at least 1. The seed: 4.
    pub min_id_bits: u8,
    /// No dynamic number becomes shorter than this. The seed: 0.
    pub min_number_bits: u8,
    /// Taking a shorter number may use up at most 1/2^share of the leaves that are free. The seed: 0.
    pub share: u8,
    /// With this many leaves left, new sites get a number with others of their method, and with one left all the rest share that. 0: they get none.
    pub merge_below: u32,
    /// Highest bits of the field that the class alone decides; the first of them is 1 in all classes. A random hash that the VM drew itself passes for ours with
    /// 1/2^guard_bits of the probability, one that it counted from 1 on does not before it has counted through the half without that bit. The seed: 0.
    pub guard_bits: u8,
    /// Search the whole tree, from its left end after the right one. The seed does not.
    pub wrap: bool,
}

impl Policy {
    /// Exactly the seed's: a lone site takes the whole tree in time, and then no other site of the class ever gets a number.
    pub const SEED: Policy = Policy {
        min_id_bits: 4,
        min_number_bits: 0,
        share: 0,
        merge_below: 0,
        guard_bits: 0,
        wrap: false,
    };
}

/// All that is needed to make and read fields, beside who has which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scheme {
    mode: Mode,
    width: u8,
    policy: Policy,
    seed: u64,
}

impl Scheme {
    /// A field of `width` bits, the flag included. `seed` decides the class constants.
    pub fn new(mode: Mode, width: u8, policy: Policy, seed: u64) -> Result<Self, Error> {
        let refused = |reason| Err(Error::Scheme(reason));
        if !(1..=31).contains(&width) {
            return refused("a field has 1 to 31 bits");
        }
        if policy.guard_bits >= width - u8::from(mode == Mode::Hybrid && width > 1) {
            return refused("the guard leaves no bit beside it");
        }
        if mode == Mode::Spare && policy.guard_bits > 0 {
            return refused("no class decides a global number");
        }
        let scheme = Scheme {
            mode,
            width,
            policy,
            seed,
        };
        match mode {
            Mode::Static { number_bits } if !(1..=scheme.payload()).contains(&number_bits) => {
                return refused("a static number has 1 bit to as many as are free");
            }
            Mode::Hybrid if width < 2 => return refused("a flag needs a bit beside it"),
            _ => {}
        }
        if let Some(max_len) = scheme.max_len(Space::Dynamic)
            && (policy.min_id_bits < 1 || policy.min_number_bits > max_len)
        {
            return refused(
                "the identifier has no bit, or the shortest number is longer than the longest",
            );
        }
        if matches!(mode, Mode::Dynamic | Mode::Hybrid) && policy.min_id_bits > scheme.payload() {
            return refused("the identifier is longer than the field");
        }
        if policy.share > 31 {
            return refused("a share is a number of bits");
        }
        Ok(scheme)
    }

    /// A scheme with our policy: as the seed's, but a class never runs out of numbers because of a few hot sites, and sites share when it does.
    /// Wide fields begin with identifiers of 8 bits, so that also the first objects of a site seldom collide.
    pub fn ours(mode: Mode, width: u8, seed: u64) -> Result<Self, Error> {
        // Only allocation-time numbers share the field with hashes of the VM: in hybrid mode every reference of a hash is ours. With more than the one bit, fewer of
        // the hashes from before the first mark lie among the numbers, which have to go around them.
        let guard_bits = match mode {
            Mode::Static { .. } | Mode::Dynamic if width >= 24 => 4,
            _ => 0,
        };
        let payload = width.saturating_sub(guard_bits + u8::from(mode == Mode::Hybrid));
        let min_id_bits = if payload >= 24 {
            8
        } else {
            (payload / 2).clamp(1, 4)
        };
        let longest = match mode {
            Mode::Static { number_bits } => number_bits,
            Mode::Dynamic | Mode::Hybrid => payload.saturating_sub(min_id_bits),
            Mode::Spare => width,
        };
        let policy = Policy {
            min_id_bits,
            min_number_bits: longest / 4,
            share: 3,
            merge_below: (1u32 << longest.min(31) >> 4).min(1024),
            guard_bits,
            wrap: true,
        };
        Scheme::new(mode, width, policy, seed)
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Bits of the field, the flag included.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What the class constants are made of.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bits of number and identifier together: the field without flag and guard.
    pub fn payload(&self) -> u8 {
        self.width - u8::from(self.mode == Mode::Hybrid) - self.policy.guard_bits
    }

    /// Length of the longest numbers of a kind; `None` if the mode has none of this kind.
    pub fn max_len(&self, space: Space) -> Option<u8> {
        match (self.mode, space) {
            (Mode::Static { number_bits }, Space::Static) => Some(number_bits),
            (Mode::Hybrid | Mode::Spare, Space::Static) => Some(self.payload()),
            (Mode::Dynamic | Mode::Hybrid, Space::Dynamic) => {
                Some(self.payload().saturating_sub(self.policy.min_id_bits))
            }
            _ => None,
        }
    }

    /// The kind of number that an object gets when it is allocated.
    pub fn at_allocation(&self) -> Space {
        match self.mode {
            Mode::Dynamic => Space::Dynamic,
            _ => Space::Static,
        }
    }

    /// The class whose numbers the objects of `class` carry: it, or with global numbers [`ClassId::ALL`].
    pub fn numbers_of(&self, class: ClassId) -> ClassId {
        match self.mode {
            Mode::Spare => ClassId::ALL,
            _ => class,
        }
    }

    /// The class's random constant (seed: CLASS_HASH), for all bits but the flag; those above number and identifier are the guard, of which the highest is
    /// always 1. 0 with global numbers.
    pub fn class_hash(&self, class: ClassId) -> u32 {
        if self.mode == Mode::Spare {
            return 0;
        }
        let mut rng = Rng::new(self.seed ^ (u64::from(class.0) << 32));
        rng.next_u32() & self.hash_mask() | self.guard_top()
    }

    /// The guard's highest bit, which is 1 in each field that we make; 0 without a guard. Where no other hash has it, every field that decodes was made by us.
    pub fn guard_top(&self) -> u32 {
        match self.policy.guard_bits {
            0 => 0,
            bits => 1 << (self.payload() + bits - 1),
        }
    }

    fn hash_mask(&self) -> u32 {
        ((1u64 << (self.payload() + self.policy.guard_bits)) - 1) as u32
    }

    fn flag(&self, space: Space) -> u32 {
        u32::from(self.mode == Mode::Hybrid && space == Space::Dynamic) << (self.width - 1)
    }

    /// The field of a number and an identifier of 0, and the identifier's length. `class_hash` is [`Self::class_hash`].
    pub(crate) fn base(&self, space: Space, number: Number, class_hash: u32) -> (u32, u8) {
        let id_bits = self.payload() - number.len();
        let raw = ((u64::from(number.bits()) << id_bits) as u32) ^ class_hash;
        (self.flag(space) | raw, id_bits)
    }

    /// The kind of a field's number, and the leaf of that tree that it is below. `None`: 0, bits beyond the field, or
    /// another class's guard.
    #[inline]
    pub(crate) fn leaf(&self, field: u32, class_hash: u32) -> Option<(Space, u32)> {
        if field == 0 || u64::from(field) >> self.width != 0 {
            return None;
        }
        let space = match self.mode {
            Mode::Dynamic => Space::Dynamic,
            Mode::Hybrid if field >> (self.width - 1) == 1 => Space::Dynamic,
            _ => Space::Static,
        };
        let raw = u64::from((field & self.hash_mask()) ^ class_hash);
        let payload = self.payload();
        let max_len = self.max_len(space)?;
        (raw >> payload == 0).then(|| (space, (raw >> (payload - max_len)) as u32))
    }

    /// The leaf that nobody may get, since its only field is 0.
    pub(crate) fn zero_leaf(&self, space: Space, class_hash: u32) -> Option<Number> {
        let max_len = self.max_len(space)?;
        // With a guard that is not 0 no field is.
        (max_len == self.payload() && self.flag(space) == 0)
            .then(|| Number::new(class_hash, max_len))
            .flatten()
    }
}
