//! Streams for the property tests: loop nests with choices, and noise, over small and large alphabets.
#![allow(dead_code, reason = "each test file uses a part")]

use proptest::prelude::*;

/// What a method may do: a tiny structured program that emits path IDs.
#[derive(Clone, Debug)]
pub enum Program {
    Id(u32),
    Seq(Vec<Program>),
    Loop(u32, Box<Program>),
    /// Takes its arms in turn, by a counter that runs through the whole execution.
    Turn(Vec<Program>),
}

impl Program {
    pub fn run(&self, turn: &mut usize, out: &mut Vec<u32>) {
        if out.len() > 300 {
            return;
        }
        match self {
            Program::Id(id) => out.push(*id),
            Program::Seq(parts) => parts.iter().for_each(|p| p.run(turn, out)),
            Program::Loop(n, body) => (0..*n).for_each(|_| body.run(turn, out)),
            Program::Turn(arms) => {
                *turn = turn.wrapping_mul(25).wrapping_add(7);
                arms[(*turn >> 3) % arms.len()].run(turn, out);
            }
        }
    }
}

fn program(alphabet: u32) -> impl Strategy<Value = Program> {
    (0..alphabet)
        .prop_map(Program::Id)
        .prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(Program::Seq),
                (0u32..9, inner.clone()).prop_map(|(n, body)| Program::Loop(n, Box::new(body))),
                prop::collection::vec(inner, 1..4).prop_map(Program::Turn),
            ]
        })
}

/// Activations of a program, or of noise. IDs are below `alphabet`, spread over the 30 bits that IDs have if `wide`.
pub fn activations() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let looped =
        prop_oneof![Just(1u32), Just(2), Just(3), Just(7), Just(60)].prop_flat_map(|alphabet| {
            (program(alphabet), 1usize..6, any::<usize>()).prop_map(|(program, times, mut turn)| {
                let mut all = Vec::new();
                for _ in 0..times {
                    let mut out = Vec::new();
                    program.run(&mut turn, &mut out);
                    all.push(out);
                }
                all
            })
        });
    let noise = prop_oneof![Just(1u32), Just(2), Just(3), Just(20), Just(1 << 30)].prop_flat_map(
        |alphabet| prop::collection::vec(prop::collection::vec(0..alphabet, 0..50), 0..6),
    );
    prop_oneof![3 => looped, 2 => noise]
}

/// k: mostly the supported range of the seed, at times up to 64.
pub fn ks() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1u32..=16, 1 => 17u32..=64]
}
