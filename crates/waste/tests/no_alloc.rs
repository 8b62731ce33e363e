//! The handler side never allocates: an allocator that notes who does, and everything a handler may call, on random code.

use assert_no_alloc::{AllocDisabler, assert_no_alloc, violation_count};
use borescope_waste::handler::barrier::is_store_check;
use borescope_waste::handler::reservoir::{Draw, Random};
use borescope_waste::pmu::{Format, MAX_RECORD, Record, Ring, sample};
use borescope_waste::source::Pmu;
use borescope_waste::*;
use std::sync::atomic::AtomicU64;

#[global_allocator]
static ALLOCATOR: AllocDisabler = AllocDisabler;

const START: u64 = 0x7F00_0000_0000;

/// What a thread brings along, made before any handler runs.
struct Thread {
    reader: Reader,
    watches: Watches<4>,
    random: Random,
    scratch: Vec<u8>,
}

/// A tick, a seek, an arming, traps, the table: all that a handler does.
fn handle(thread: &mut Thread, code: &Code<'_>, table: &Table<'_>, reached: &mut u64) {
    let tally = table.tally();
    let Thread {
        reader,
        watches,
        random,
        ..
    } = thread;
    let mut registers = Registers {
        rip: START + random.below(400),
        flags: random.bits(),
        ..Registers::default()
    };
    registers
        .general
        .fill_with(|| 0x1000 + random.below(0x4000));
    watches.tick(&tally);
    let scope = Scope {
        heap: (0, u64::MAX),
        stack: (0, 16),
        layout: Layout::COMPRESSED,
    };
    let object = Some(Object {
        start: 0x2000,
        array: random.below(2) == 0,
    });
    let mut seek = Seek::new(registers.rip, random.below(2) as u32, 4);
    let step = loop {
        let mut accept = |operand: &handler::code::Operand| scope.judge(operand, object).ok();
        match seek.event(reader, code, &registers, &mut accept) {
            Step::BreakAt(pc) => {
                seek.stopped(pc);
                registers.rip = pc;
            }
            Step::Return => seek.returns_to(START + 3),
            step => break step,
        }
    };
    let Step::Reached(found) = step else {
        return watches.missed(Miss::LeftCode, &tally);
    };
    *reached += 1;
    watches.reached(&tally);
    is_store_check(reader, code, &found.instruction);
    let place = Place::within(&found.access, random);
    registers.rip = found.instruction.next();
    if let Ok(trapped) = trap::trapped(reader, code, START, &registers, &place) {
        let depth = random.below(20);
        let method = Frame::FIRST_METHOD + random.below(9);
        let frames = (0..depth).map(|n| Frame {
            method,
            bci: n as i32,
        });
        let context = table.context(frames).map_or(0, |c| c.node);
        let origin = Origin {
            context,
            line: table.line(Frame { method, bci: 0 }).unwrap_or(0),
            instruction: trapped.instruction.bytes,
            initialising: false,
        };
        for slot in 0..4 {
            let (before, after) = (random.below(2), random.below(2));
            // Now and then the thread comes by the watched place again.
            let again = watches.get(slot).filter(|_| before == after);
            let access = again.map_or(trapped.access, |armed| armed.watch.first());
            let trap = watches.trapped(slot, &access, Some(before), after, &tally);
            if let Some(trap) = trap {
                for answer in trap.seen.answers() {
                    table.record(&Pair::new(&trap.armed, &answer, &origin, &access));
                }
            }
        }
        let watch = Watch::new(place, found.access, Some(1), 1, Asked::ALL);
        match (watch, watches.choose(&tally)) {
            (Some(watch), Some(slot)) => {
                watches.arm(
                    slot,
                    Armed {
                        watch,
                        origin,
                        object: 0,
                    },
                    &tally,
                );
            }
            (None, Some(_)) => watches.refuse(Refusal::NotAsked, &tally),
            _ => {}
        }
    }
    if random.below(50) == 0 {
        watches.end_all(End::Collection, &tally);
    }
}

fn records(thread: &mut Thread, code: &Code<'_>, data: &[u8], format: &Format) -> u64 {
    let mut samples = 0;
    let Ok(mut ring) = Ring::new(data, 3 * 4096 + 1024, 3 * 4096 + 1024 - 4096) else {
        return 0;
    };
    while let Some(bytes) = ring.next(&mut thread.scratch) {
        let Ok(Ok(Record::Sample(sample))) = bytes.map(|bytes| Record::decode(bytes, format))
        else {
            continue;
        };
        samples += sample.chain().count().min(1) as u64;
        let mut accept = |operand: &handler::code::Operand| operand.access.ok();
        Pmu::pebs().event(&mut thread.reader, code, &sample, &mut accept);
    }
    samples
}

#[test]
fn handlers_do_not_allocate() {
    // The guard works.
    assert_no_alloc(|| drop(std::hint::black_box(Box::new(1))));
    let seen = violation_count();
    assert!(seen > 0);

    let capacity = Capacity::new(256, 64).unwrap();
    let words: Vec<AtomicU64> = (0..capacity.words()).map(|_| AtomicU64::new(0)).collect();
    let table = Table::make(&words, capacity, Source::Software.code()).unwrap();
    let mut thread = Thread {
        reader: Reader::new(),
        watches: Watches::new(7, Tolerance::default()),
        random: Random::new(1),
        scratch: vec![0; MAX_RECORD],
    };
    // A ring of samples of 64 bytes: header, ip, address, a chain of five.
    let format = Format::new(sample::IP | sample::ADDR | sample::CALLCHAIN, 0, 0, 0).unwrap();
    let mut data = vec![0u8; 4096];
    for (n, record) in data.chunks_exact_mut(72).enumerate() {
        let header = 9 | 2 << 32 | 1 << 46 | 72 << 48;
        let fields = [header, START + n as u64, 0x3000, 5, 1, 2, 3, 4, 5];
        for (to, word) in record.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&u64::to_le_bytes(word));
        }
    }
    data.rotate_right(1024);
    let (mut reached, mut samples) = (0, 0);
    let mut bytes = vec![0u8; 400];
    for round in 0..300 {
        // Mostly loads and stores, or anything at all.
        for byte in bytes.chunks_exact_mut(4) {
            let any = (thread.random.bits() as u32).to_le_bytes();
            let moves = [
                0x48,
                [0x8B, 0x89][usize::from(any[0] & 1)],
                0x40 | any[1] & 0x3B,
                8,
            ];
            byte.copy_from_slice(if round % 3 == 0 { &any } else { &moves });
        }
        let code = Code::new(START, &bytes);
        assert_no_alloc(|| {
            for _ in 0..20 {
                handle(&mut thread, &code, &table, &mut reached);
            }
            samples += records(&mut thread, &code, &data, &format);
        });
    }
    assert_eq!(violation_count(), seen, "something allocated");
    assert!(reached > 1000 && samples > 1000, "{reached} {samples}");
    let tally = table.tally();
    assert!(tally.get(Counter::Recorded) + tally.get(Counter::NoRoom) > 100);

    // The instruction that uses the most registers, and gathers.
    let wide: [&[u8]; 4] = [
        &[0x64, 0xF3, 0x0F, 0x38, 0xD8, 0x14, 0x08],
        &[0x62, 0xF2, 0x7D, 0x49, 0xA0, 0x04, 0x90],
        &[0xC4, 0xE2, 0x75, 0x92, 0x04, 0x90],
        &[0xF3, 0x48, 0xA5],
    ];
    for bytes in wide {
        let code = Code::new(START, bytes);
        assert_no_alloc(|| {
            let reader = &mut thread.reader;
            if let Some(instruction) = reader.at(&code, START) {
                reader.operands(&instruction, Some(&Registers::default()));
                reader.overwrites_address(&instruction);
            }
        });
    }
    assert_eq!(violation_count(), seen, "something allocated");
}
