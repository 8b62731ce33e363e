//! A fast hash for 32-bit keys: one folded multiplication. Path IDs come from the profiled program itself, so resistance against
//! chosen keys is not worth its price here; [`crate::blpp`] can be had with SipHash for comparison.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds the fast hasher.
pub type FastState = BuildHasherDefault<FastHasher>;

/// Mixes 64 bits: the product's two halves folded together.
#[inline]
pub(crate) fn mix(key: u64) -> u64 {
    let product = u128::from(key ^ 0x243F_6A88_85A3_08D3) * 0x9E37_79B9_7F4A_7C15;
    (product as u64) ^ (product >> 64) as u64
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }

    #[inline]
    fn write_u32(&mut self, key: u32) {
        self.write_u64(u64::from(key));
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = mix(self.0.rotate_left(23) ^ key);
    }
}
