//! What the parts of a handler cost: `cargo run --release -p borescope-waste --example cost`. The system calls and the traps around them come on top.

use borescope_waste::handler::reservoir::{Draw, Random};
use borescope_waste::*;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// Nanoseconds of one call, the best of several rounds.
fn cost(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..2000).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / 2000.0
    };
    (0..15).map(|_| round(&mut call)).fold(f64::MAX, f64::min)
}

fn main() {
    let mut reader = Reader::new();
    // Moves, additions and jumps as in compiled code, 3.7 bytes an instruction.
    let mut bytes = Vec::new();
    while bytes.len() < 16 * 1024 {
        bytes.extend([
            0x48, 0x8B, 0x43, 0x08, 0x48, 0x83, 0xC0, 0x10, 0x89, 0x43, 0x10,
        ]);
        bytes.extend([
            0x75, 0x00, 0x44, 0x8B, 0x56, 0x08, 0x0F, 0x1F, 0x44, 0x00, 0x00,
        ]);
    }
    let start = 0x7F00_0000_0000;
    let code = Code::new(start, &bytes);
    let registers = Registers::default();
    println!("code blob up to the trap, bytes -> fix-up, ns");
    for length in [22 * 4, 22 * 46, 22 * 372] {
        let pc = start + length + 4;
        let ns = cost(|| {
            black_box(code.before(start, black_box(pc)));
        });
        println!("{:7} {ns:10.0}", length + 4);
    }
    let instruction = reader.at(&code, start).expect("an instruction");
    let ns = cost(|| {
        black_box(reader.at(&code, black_box(start)));
    });
    println!("one instruction decoded     {ns:7.0} ns");
    let ns = cost(|| {
        black_box(reader.operands(&instruction, Some(&registers)));
    });
    println!("its operands                {ns:7.0} ns");

    let capacity = Capacity::new(1 << 15, 1 << 13).expect("powers of two");
    let words: Vec<AtomicU64> = (0..capacity.words()).map(|_| AtomicU64::new(0)).collect();
    let table = Table::make(&words, capacity, Source::Software.code()).expect("enough words");
    let mut random = Random::new(1);
    let ns = cost(|| {
        let leaf = random.below(200) as i32;
        let frame = |n: u64| Frame {
            method: 64 + n,
            bci: if n == 29 { leaf } else { 0 },
        };
        black_box(table.context((0..30).map(frame)));
    });
    println!("a context of 30 frames      {ns:7.0} ns");

    let tally = table.tally();
    let mut watches: Watches = Watches::new(1, Tolerance::default());
    let access = Access::new(64, 8, Kind::Store, Element::Bits).expect("8 bytes");
    let place = Place::within(&access, &mut random);
    let origin = Origin {
        context: 5,
        line: 6,
        instruction: instruction.bytes,
        initialising: false,
    };
    let ns = cost(|| {
        let Some(slot) = watches.choose(&tally) else {
            return;
        };
        let Some(watch) = Watch::new(place, access, None, 1, Asked::ALL) else {
            return;
        };
        watches.arm(
            slot,
            Armed {
                watch,
                origin,
                object: 0,
            },
            &tally,
        );
        if let Some(trap) = watches.trapped(slot, &access, None, 1, &tally) {
            for answer in trap.seen.answers() {
                table.record(&Pair::new(&trap.armed, &answer, &origin, &access));
            }
        }
    });
    println!("armed, trapped, two answers {ns:7.0} ns");
    let bytes = capacity.words() * 8;
    println!(
        "table of {} contexts and {} pairs: {} KiB",
        capacity.contexts,
        capacity.pairs,
        bytes / 1024
    );
}
