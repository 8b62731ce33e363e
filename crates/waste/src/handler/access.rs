//! One access of the machine code to memory, and the bytes of it that a debug register can watch.

use super::reservoir::Draw;

/// Widest access that is followed, in bytes (a zmm register).
pub const MAX_WIDTH: u8 = 64;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads, then writes the same bytes: `inc [m]`, `xadd`, `xchg`.
    Both,
    /// It reads, and writes if what it read was what it expected: `cmpxchg`. ZF after it says which ([`Kind::settled`]).
    CompareExchange,
}

impl Kind {
    /// Whether it certainly reads.
    pub fn loads(self) -> bool {
        self != Kind::Store
    }

    /// Whether it certainly writes.
    pub fn stores(self) -> bool {
        matches!(self, Kind::Store | Kind::Both)
    }

    /// What it was, from the zero flag after it.
    #[must_use]
    pub fn settled(self, zero_flag: bool) -> Kind {
        match self {
            Kind::CompareExchange if zero_flag => Kind::Both,
            Kind::CompareExchange => Kind::Load,
            other => other,
        }
    }

    pub(crate) fn to_bits(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_bits(bits: u64) -> Kind {
        match bits & 3 {
            0 => Kind::Load,
            1 => Kind::Store,
            2 => Kind::Both,
            _ => Kind::CompareExchange,
        }
    }
}

/// What the bytes mean to the instruction. Vector moves of integers say nothing of their elements, nor do they need to: these compare exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// Integers, references, or unknown: bits.
    Bits,
    /// One or more `float`.
    F32,
    /// One or more `double`.
    F64,
}

impl Element {
    /// Bytes of one element; 1 for bits.
    pub fn size(self) -> u8 {
        match self {
            Element::Bits => 1,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }

    pub(crate) fn to_bits(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_bits(bits: u64) -> Element {
        match bits & 3 {
            1 => Element::F32,
            2 => Element::F64,
            _ => Element::Bits,
        }
    }
}

/// An access: at least one byte, at most [`MAX_WIDTH`], none beyond the end of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    address: u64,
    width: u8,
    kind: Kind,
    element: Element,
}

impl Access {
    /// `None`: no width, wider than [`MAX_WIDTH`], or beyond the end of the address space.
    pub fn new(address: u64, width: u8, kind: Kind, element: Element) -> Option<Access> {
        let fits = (1..=MAX_WIDTH).contains(&width) && address.checked_add(width.into()).is_some();
        fits.then_some(Access {
            address,
            width,
            kind,
            element,
        })
    }

    /// Its first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// Behind its last byte.
    pub fn end(&self) -> u64 {
        self.address + u64::from(self.width)
    }

    /// What it does.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What its bytes mean.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The same, of another kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Access {
        Access { kind, ..self }
    }
}

/// What one debug register watches: 1, 2, 4 or 8 bytes, aligned to as many (Intel SDM volume 3, 17.2.5).
///
/// The *content* of a place is a u64: its byte i stands in bits 8i to 8i+7, as a load would have it. A *mask* has a bit for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    start: u64,
    len: u8,
}

impl Place {
    /// `None`: not 1, 2, 4 or 8 bytes, not aligned.
    pub fn new(start: u64, len: u8) -> Option<Place> {
        (matches!(len, 1 | 2 | 4 | 8) && start.is_multiple_of(u64::from(len)))
            .then_some(Place { start, len })
    }

    /// One of the largest places inside an access, each with the same probability: a wide vector is sampled at one of its parts.
    pub fn within(access: &Access, draw: &mut impl Draw) -> Place {
        let (start, end) = (access.address(), access.end());
        for len in [8u8, 4, 2] {
            let size = u64::from(len);
            let Some(first) = start.checked_next_multiple_of(size) else {
                continue;
            };
            let places = end.saturating_sub(first) / size;
            if places > 0 {
                let start = first + size * draw.below(places);
                return Place { start, len };
            }
        }
        Place { start, len: 1 }
    }

    /// Its first byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty, reason = "a place has at least one byte")]
    pub fn len(&self) -> u8 {
        self.len
    }

    /// All of its bytes.
    pub fn mask(&self) -> u8 {
        (0xFFu16 >> (8 - self.len)) as u8
    }

    /// Those of its bytes that an access touches.
    pub fn overlap(&self, access: &Access) -> u8 {
        let from = access.address().saturating_sub(self.start).min(8);
        let to = access.end().saturating_sub(self.start).min(8);
        let below = |n: u64| (0xFFu16 >> (8 - n)) as u8;
        below(to) & !below(from) & self.mask()
    }
}
