//! Unsigned integers of any size that can only be added and printed: what counting acyclic paths needs.

use std::fmt;

/// Base of a digit: the largest power of ten whose double fits in a u64, so printing needs no division.
const BASE: u64 = 1_000_000_000_000_000_000;
const BASE_DIGITS: usize = 18;

/// A non-negative integer in base 10^18, least significant digit first, without leading zeros; zero has no digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decimal(Vec<u64>);

impl Decimal {
    pub(crate) fn one() -> Self {
        Self(vec![1])
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut carry = 0;
        for (i, digit) in self.0.iter_mut().enumerate() {
            let addend = other.0.get(i).copied().unwrap_or(0);
            if addend == 0 && carry == 0 && i >= other.0.len() {
                break;
            }
            let sum = *digit + addend + carry;
            carry = u64::from(sum >= BASE);
            *digit = if carry == 1 { sum - BASE } else { sum };
        }
        if carry == 1 {
            self.0.push(1);
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = self.0.iter().rev();
        write!(f, "{}", digits.next().unwrap_or(&0))?;
        digits.try_for_each(|digit| write!(f, "{digit:0BASE_DIGITS$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_match_u128_and_go_beyond() {
        let mut n = Decimal::one();
        assert_eq!(Decimal::default().to_string(), "0");
        for bit in 0..127 {
            assert_eq!(n.to_string(), (1u128 << bit).to_string());
            n.add(&n.clone());
        }
        for _ in 127..200 {
            n.add(&n.clone());
        }
        // 2^200, from any table of powers of two.
        assert_eq!(
            n.to_string(),
            "1606938044258990275541962092341162602522202993782792835301376"
        );
    }

    #[test]
    fn carries_run_through_nines() {
        let mut n = Decimal(vec![BASE - 1, BASE - 1, 7]);
        n.add(&Decimal::one());
        assert_eq!(n, Decimal(vec![0, 0, 8]));
        let mut small = Decimal::one();
        small.add(&Decimal(vec![BASE - 1, BASE - 1]));
        assert_eq!(small, Decimal(vec![0, 0, 1]));
    }
}
