//! When two values of a watched place are the same: integers exactly, floating point within a relative tolerance.
//!
//! The seed compares integers exactly and floating point approximately, 1 % if not said otherwise. What it leaves open is defined here:
//! a and b are the same if |a - b| <= tolerance * max(|a|, |b|), computed in f64. So the order does not matter; +0 and -0 are the same; an
//! infinity is the same as itself only; denormals are numbers like others (nothing but zero is the same as zero); NaN is the same as any
//! NaN, since no Java program that is not looking at raw bits can tell them apart. With tolerance 0, numbers must be equal.
//!
//! Both accesses must say that the bytes are of that floating-point type and agree where its elements begin; an element of which only a
//! part is watched or was touched compares by its bits, as integers do.

use super::access::{Access, Element, Place};

/// The relative tolerance of floating-point values: at least 0, below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Tolerance(f64);

impl Default for Tolerance {
    /// The seed's 1 %.
    fn default() -> Self {
        Tolerance(0.01)
    }
}

impl Tolerance {
    /// Equal numbers only.
    pub const EXACT: Tolerance = Tolerance(0.0);

    /// `None` if not in 0 to 1.
    pub fn new(relative: f64) -> Option<Tolerance> {
        (0.0..1.0)
            .contains(&relative)
            .then_some(Tolerance(relative))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Whether two numbers are the same (see the module).
    pub fn same_number(self, a: f64, b: f64) -> bool {
        if a == b || (a.is_nan() && b.is_nan()) {
            return true;
        }
        // An infinity beside a number would pass: infinity <= infinity.
        if a.is_infinite() || b.is_infinite() {
            return false;
        }
        (a - b).abs() <= self.0 * a.abs().max(b.abs())
    }

    /// Whether the bytes in `mask` of a place mean the same in contents `a` and `b`, as the two accesses see them.
    pub fn same(
        self,
        place: &Place,
        mask: u8,
        (a, first): (u64, &Access),
        (b, second): (u64, &Access),
    ) -> bool {
        let mut different = differing(a, b) & mask & place.mask();
        let size = second.element().size();
        let grid = |access: &Access| access.address() % u64::from(size);
        let numbers = second.element() != Element::Bits
            && first.element() == second.element()
            && grid(first) == grid(second);
        if different != 0 && numbers {
            let behind = place.start() % u64::from(size);
            // Where the first element begins that begins inside the place.
            let first_at = (grid(second) + u64::from(size) - behind) % u64::from(size);
            let mut at = first_at as u8;
            while at + size <= place.len() {
                let bytes = ((1u16 << size) - 1) << at;
                let bytes = bytes as u8;
                if bytes & mask == bytes {
                    if !self.same_number(number(a, at, size), number(b, at, size)) {
                        return false;
                    }
                    different &= !bytes;
                }
                at += size;
            }
        }
        different == 0
    }
}

/// The bytes in which two contents differ.
pub(crate) fn differing(a: u64, b: u64) -> u8 {
    let bytes = (a ^ b).to_le_bytes();
    (0..8).fold(0, |mask, n| mask | u8::from(bytes[n] != 0) << n)
}

fn number(content: u64, at: u8, size: u8) -> f64 {
    let bits = content >> (8 * u32::from(at));
    match size {
        4 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}
