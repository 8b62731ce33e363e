//! What the tests share: access sequences with the memory they leave, and choices that are no chance.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod machine;

use borescope_waste::handler::reservoir::Draw;
use borescope_waste::{Access, Element, Kind, Place};
use proptest::prelude::*;

/// Draws one number again and again.
pub struct Fixed(pub u64);

impl Draw for Fixed {
    fn below(&mut self, n: u64) -> u64 {
        self.0 % n
    }
}

/// Bytes of the memory in which the sequences play.
pub const MEMORY: usize = 32;

/// An access and the whole memory around it.
#[derive(Clone, Debug)]
pub struct Event {
    pub access: Access,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// The content of a place.
pub fn content(memory: &[u8], place: &Place) -> u64 {
    let at = |n: u8| u64::from(memory[place.start() as usize + usize::from(n)]) << (8 * n);
    (0..place.len()).map(at).sum()
}

/// Accesses of one thread: any width and offset, few values, so that all that can happen does.
pub fn history(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let kind = prop_oneof![Just(Kind::Load), Just(Kind::Store), Just(Kind::Both)];
    let width = prop_oneof![Just(1u8), Just(2), Just(4), Just(8), Just(16), Just(3)];
    let access = (0usize..MEMORY, width, kind, any::<bool>(), 0u8..3);
    prop::collection::vec(access, 1..most).prop_map(|accesses| {
        let mut memory = vec![0u8; MEMORY];
        let mut event = |(at, width, kind, aligned, value): (usize, u8, Kind, bool, u8)| {
            let wide = usize::from(width);
            // Half of them near each other and aligned, as a program's are.
            let at = if aligned {
                at % 8 / wide * wide
            } else {
                at.min(MEMORY - wide)
            };
            let before = memory.clone();
            if kind != Kind::Load {
                memory[at..at + wide].fill(value);
            }
            Event {
                access: Access::new(at as u64, width, kind, Element::Bits).unwrap(),
                before,
                after: memory.clone(),
            }
        };
        accesses.into_iter().map(&mut event).collect()
    })
}
