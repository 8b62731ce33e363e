//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): class constants, and the simulator's object identifiers.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A deterministic generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The generator that `seed` starts, moved on by `n` values.
    pub fn nth(seed: u64, n: u64) -> Self {
        Rng(seed.wrapping_add(GAMMA.wrapping_mul(n)))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
}
