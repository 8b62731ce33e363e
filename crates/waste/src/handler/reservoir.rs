//! Which watched location gives way when all registers are busy: reservoir sampling (Vitter's algorithm R).
//!
//! An *epoch* begins when the last free register is taken: all n registers are held by samples of which none has been preferred to another. The
//! i-th sample of an epoch (these n count as the first n) is kept with probability n/i and then replaces one of the n at random. So at any point of an
//! epoch each of its samples holds a register with the same probability n/i: the seed's rule, that every sampled location has the same
//! chance. When a register comes free the next sample takes it, and another epoch begins: a location nobody touches again cannot hold its
//! register the better the longer it does. tests/reservoir.rs counts all outcomes instead of trusting chance.

/// Random numbers.
pub trait Draw {
    /// One of 0 to n - 1, each with exactly the same probability. `n` is at least 1.
    fn below(&mut self, n: u64) -> u64;
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), seeded: the same seed draws the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at `seed`.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Draw for Random {
    /// Lemire's multiplication with rejection (Fast random integer generation in an interval, 2019): without bias. It rejects with
    /// probability below n / 2^64.
    fn below(&mut self, n: u64) -> u64 {
        let n = n.max(1);
        let unfair = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }
}

/// What becomes of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It takes a free register.
    Free,
    /// It takes the place of this register's location.
    Replace(usize),
    /// It is passed over.
    PassOver,
}

/// The samples of the current epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservoir {
    seen: u64,
}

impl Reservoir {
    /// Before any sample.
    pub const fn new() -> Reservoir {
        Reservoir { seen: 0 }
    }

    /// A sample arrives while `busy` of `registers` are held.
    pub fn offer(&mut self, busy: usize, registers: usize, draw: &mut impl Draw) -> Choice {
        if registers == 0 {
            return Choice::PassOver;
        }
        if busy < registers {
            self.seen = registers as u64;
            return Choice::Free;
        }
        // Registers may have become fewer: at least those held have been seen.
        self.seen = self.seen.max(registers as u64).saturating_add(1);
        match draw.below(self.seen) {
            slot if slot < registers as u64 => Choice::Replace(slot as usize),
            _ => Choice::PassOver,
        }
    }
}
