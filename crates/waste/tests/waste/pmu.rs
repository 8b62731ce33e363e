//! The ring buffer: records made by hand as the kernel's header documents them. No hardware.

use borescope_waste::handler::seek::Reached;
use borescope_waste::pmu::{Damage, Format, MAX_RECORD, Operation, Record, Ring, sample};
use borescope_waste::source::Pmu;
use borescope_waste::*;
use proptest::prelude::*;

const EXACT: u16 = 1 << 14;
const USER: u16 = 2;

fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((8 + 8 * words.len() as u16).to_le_bytes());
    bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    bytes
}

/// What PEBS is asked for.
const ASKED: u64 = sample::IP
    | sample::TID
    | sample::TIME
    | sample::ADDR
    | sample::PERIOD
    | sample::CALLCHAIN
    | sample::WEIGHT
    | sample::DATA_SRC
    | sample::REGS_INTR;

/// All general registers, rip and flags: bits 0 to 9 and 16 to 23.
const REGISTERS: u64 = 0xFF_03FF;

fn format() -> Format {
    Format::new(ASKED, 0, 0, REGISTERS).unwrap()
}

fn sample_words(ip: u64, address: u64, data_source: u64) -> Vec<u64> {
    let mut words = vec![ip, 77 << 32 | 70, 123_456, address, 5000];
    // Kernel part, user part.
    words.extend([
        6,
        -128i64 as u64,
        0xFFFF_8000,
        -512i64 as u64,
        ip,
        0x4444,
        0x5555,
    ]);
    words.extend([9, data_source]);
    // ABI 64, then ax, bx, cx, dx, si, di, bp, sp, ip, flags, r8 to r15.
    words.push(2);
    words.extend((1..=18).map(|n| n * 0x100));
    words
}

fn decode(bytes: &[u8]) -> Record<'_> {
    Record::decode(bytes, &format()).unwrap()
}

fn reads(data: &[u8], head: u64, tail: u64) -> Vec<Result<Vec<u8>, Damage>> {
    let mut ring = Ring::new(data, head, tail).unwrap();
    let mut scratch = vec![0; MAX_RECORD];
    let mut all = Vec::new();
    while let Some(record) = ring.next(&mut scratch) {
        all.push(record.map(<[u8]>::to_vec));
    }
    assert_eq!(ring.tail(), head);
    all
}

#[test]
fn a_sample() {
    let locked = 2 << 24;
    let bytes = record(9, EXACT | USER, &sample_words(0x1234, 0x9008, 4 | locked));
    let Record::Sample(sample) = decode(&bytes) else {
        panic!()
    };
    assert_eq!((sample.ip, sample.exact, sample.user), (0x1234, true, true));
    assert_eq!(
        (sample.address, sample.operation, sample.locked),
        (Some(0x9008), Some(Operation::Store), true)
    );
    assert_eq!(
        (sample.thread, sample.time, sample.period, sample.weight),
        (Some((77, 70)), Some(123_456), Some(5000), Some(9))
    );
    assert_eq!(sample.chain().collect::<Vec<_>>(), [0x1234, 0x4444, 0x5555]);
    let registers = sample.registers.unwrap();
    // In the order of their encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi.
    assert_eq!(
        registers.general[..8],
        [0x100, 0x300, 0x400, 0x200, 0x800, 0x700, 0x500, 0x600]
    );
    assert_eq!((registers.rip, registers.flags), (0x900, 0xA00));
    assert_eq!(
        registers.general[8..],
        std::array::from_fn::<u64, 8, _>(|n| 0xB00 + 0x100 * n as u64)
    );
}

#[test]
fn what_a_sample_may_lack() {
    let load = sample_words(0x1234, 0, 2);
    let bytes = record(9, 1, &load);
    let Record::Sample(sample) = decode(&bytes) else {
        panic!()
    };
    assert_eq!(
        (sample.exact, sample.user, sample.address),
        (false, false, None)
    );
    assert_eq!(
        (sample.operation, sample.locked),
        (Some(Operation::Load), false)
    );
    for (bits, operation) in [
        (1, None),
        (8, Some(Operation::Other)),
        (16, Some(Operation::Other)),
        (6, None),
    ] {
        let bytes = record(9, 0, &sample_words(0, 0, bits));
        let Record::Sample(sample) = decode(&bytes) else {
            panic!()
        };
        assert_eq!(sample.operation, operation);
    }
    // No registers (a kernel thread): the block is its ABI alone.
    let mut words = load;
    words.truncate(words.len() - 19);
    words.push(0);
    let bytes = record(9, 0, &words);
    let Record::Sample(sample) = decode(&bytes) else {
        panic!()
    };
    assert_eq!(sample.registers, None);
}

#[test]
fn everything_that_can_be_asked_for() {
    let asked = ASKED
        | sample::IDENTIFIER
        | sample::ID
        | sample::STREAM_ID
        | sample::CPU
        | sample::READ
        | sample::RAW
        | sample::REGS_USER
        | sample::STACK_USER
        | sample::TRANSACTION;
    // Value, time enabled, id.
    let format = Format::new(asked, 1 | 4, 0b1, 0b1_0000_0001).unwrap();
    let mut words = vec![
        1,
        0x1234,
        7,
        8,
        0x9008,
        1,
        2,
        3,
        4000, // identifier to period
        10,
        11,
        12, // read
        1,
        0x1234, // chain
        0xAAAA_AAAA_0000_000C,
        0xBBBB_BBBB_BBBB_BBBB, // raw: 12 bytes behind its size
        2,
        0x111, // user registers
        16,
        0,
        0,
        8, // stack: 16 bytes, 8 of them filled
        5,
        2,
        6, // weight, data source, transaction
    ];
    words.extend([2, 0x222, 0x333]);
    let bytes = record(9, 0, &words);
    let Ok(Record::Sample(sample)) = Record::decode(&bytes, &format) else {
        panic!()
    };
    assert_eq!(
        (sample.ip, sample.address, sample.period),
        (0x1234, Some(0x9008), Some(4000))
    );
    assert_eq!(
        (sample.weight, sample.operation),
        (Some(5), Some(Operation::Load))
    );
    // The registers of the interrupt win.
    let registers = sample.registers.unwrap();
    assert_eq!((registers.general[0], registers.rip), (0x222, 0x333));
    // No stack was copied: nothing follows its size.
    let mut none = words.clone();
    none.splice(18..22, [0]);
    let bytes = record(9, 0, &none);
    assert!(
        matches!(Record::decode(&bytes, &format), Ok(Record::Sample(s)) if s.weight == Some(5))
    );
    for n in 0..words.len() {
        let bytes = record(9, 0, &words[..n]);
        assert_eq!(
            Record::decode(&bytes, &format).err(),
            Some(Damage::Short(9)),
            "{n} words"
        );
    }
}

#[test]
fn other_records() {
    assert!(matches!(decode(&record(2, 0, &[1, 55])), Record::Lost(55)));
    assert!(matches!(decode(&record(13, 0, &[56])), Record::Lost(56)));
    assert!(matches!(
        decode(&record(5, 0, &[1, 2, 3])),
        Record::Throttled
    ));
    assert!(matches!(
        decode(&record(6, 0, &[1, 2, 3])),
        Record::Unthrottled
    ));
    assert!(matches!(decode(&record(10, 0, &[1])), Record::Other(10)));
    assert_eq!(
        Record::decode(&record(2, 0, &[1]), &format()).err(),
        Some(Damage::Short(2))
    );
    assert_eq!(
        Record::decode(&[1, 2], &format()).err(),
        Some(Damage::Short(0))
    );
    // A chain longer than its record.
    let mut words = sample_words(1, 2, 2);
    words[5] = 1 << 61;
    assert_eq!(
        Record::decode(&record(9, 0, &words), &format()).err(),
        Some(Damage::Short(9))
    );
}

#[test]
fn formats_that_cannot_be_read() {
    let new = |asked, read| Format::new(asked, read, 0, 0).err();
    assert_eq!(new(ASKED | sample::BRANCH_STACK, 0), Some(Damage::Format));
    assert_eq!(new(ASKED | sample::READ, 8), Some(Damage::Format));
    assert_eq!(new(sample::IP, 0), Some(Damage::Format));
    assert_eq!(new(sample::IP | sample::ADDR, 8), None);
}

#[test]
fn damage_ends_the_reading() {
    let good = record(13, 0, &[1]);
    for (size, tail) in [(0u16, 16), (4, 16), (12, 16), (32, 16)] {
        let mut data = vec![0; 64];
        data[..16].copy_from_slice(&good);
        data[16..32].copy_from_slice(&good);
        data[22..24].copy_from_slice(&size.to_le_bytes());
        let all = reads(&data, 32, 0);
        assert_eq!(all.len(), 2, "nothing behind the damage");
        assert_eq!(
            (all[0].as_ref().ok(), all[1].clone()),
            (Some(&good), Err(Damage::Size(size))),
            "{tail}"
        );
    }
    assert_eq!(Ring::new(&[0; 48], 0, 0).err(), Some(Damage::Ring));
    assert_eq!(Ring::new(&[0; 64], 65, 0).err(), Some(Damage::Ring));
    assert_eq!(Ring::new(&[0; 64], 0, 8).err(), Some(Damage::Ring));
    assert_eq!(Ring::new(&[], 0, 0).err(), Some(Damage::Ring));
    // Scratch too small for a record that wraps; not needed by one that does not.
    let mut data = vec![0; 64];
    data[56..].copy_from_slice(&good[..8]);
    let mut ring = Ring::new(&data, 72, 56).unwrap();
    assert_eq!(ring.next(&mut []).unwrap().err(), Some(Damage::Scratch));
    data[..16].copy_from_slice(&good);
    let mut ring = Ring::new(&data, 16, 0).unwrap();
    assert_eq!(ring.next(&mut []), Some(Ok(&good[..])));
}

proptest! {
    /// Records of any sizes through a small buffer that wraps again and again, also around the end of the counters.
    #[test]
    fn records_come_out_as_they_went_in(sizes in prop::collection::vec(0usize..12, 1..80), start in prop_oneof![0u64..200, (u64::MAX - 400)..=u64::MAX], batch in 1usize..5) {
        let mut data = vec![0u8; 512];
        let mut head = start & !7;
        let mut number = 0u64;
        for batch in sizes.chunks(batch) {
            let tail = head;
            let mut written = Vec::new();
            for size in batch {
                let words: Vec<u64> = (0..*size as u64).map(|n| number << 8 | n).collect();
                number += 1;
                let bytes = record(100, 0, &words);
                for byte in &bytes {
                    let at = head as usize % data.len();
                    data[at] = *byte;
                    head = head.wrapping_add(1);
                }
                written.push(Ok(bytes));
            }
            prop_assert_eq!(reads(&data, head, tail), written);
        }
    }

    #[test]
    fn any_bytes(data in prop::collection::vec(any::<u8>(), 256), head in any::<u64>(), waiting in 0u64..=256, asked in any::<u64>(), read in 0u64..32, masks in any::<(u64, u64)>(), small in any::<bool>()) {
        let mut ring = Ring::new(&data, head, head.wrapping_sub(waiting)).unwrap();
        let mut scratch = vec![0; 300];
        let mut records = 0;
        while let Some(bytes) = ring.next(&mut scratch) {
            records += 1;
            prop_assert!(records <= 33);
            let asked = if small { ASKED } else { asked | sample::IP | sample::ADDR };
            if let (Ok(bytes), Ok(format)) = (bytes, Format::new(asked, read, masks.0, masks.1))
                && let Ok(Record::Sample(sample)) = Record::decode(bytes, &format)
            {
                prop_assert!(sample.chain().count() <= 32);
            }
        }
        prop_assert_eq!(ring.tail(), head);
    }

    /// A sample with anything in it.
    #[test]
    fn any_sample(mut words in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..8], 0..60), asked in any::<u64>(), masks in any::<(u64, u64)>()) {
        words.truncate(60);
        if let Ok(format) = Format::new(asked | sample::IP | sample::ADDR, 0, masks.0, masks.1) {
            let _ = Record::decode(&record(9, 0, &words), &format).map(|r| match r {
                Record::Sample(s) => s.chain().count(),
                _ => 0,
            });
        }
    }
}

/// From a sample to an access: where by the record, what and how wide by the instruction.
#[test]
fn accesses_of_samples() {
    // mov rax, [rax]; movsd [rcx], xmm1; prefetchnta [rax]; add [rdx], rax; vgatherdps
    let code: &[u8] = &[
        0x48, 0x8B, 0x00, 0xF2, 0x0F, 0x11, 0x09, 0x0F, 0x18, 0x00, 0x48, 0x01, 0x02, 0xC4, 0xE2,
        0x75, 0x92, 0x04, 0x90,
    ];
    let start = 0x7000;
    let mut reader = Reader::new();
    let mut go = |ip: u64, address: u64, source: u64, exact: bool, take: bool| {
        let bytes = record(
            9,
            if exact { EXACT } else { 0 },
            &sample_words(ip, address, source),
        );
        let Record::Sample(sample) = decode(&bytes) else {
            panic!()
        };
        let mut pmu = Pmu::pebs();
        pmu.anchor = start;
        let code = Code::new(start, code);
        pmu.event(&mut reader, &code, &sample, &mut |operand| {
            operand.access.ok().filter(|_| take)
        })
    };
    let access =
        |address, width, kind, element| Access::new(address, width, kind, element).unwrap();
    let reached = |step: Step| match step {
        Step::Reached(Reached {
            instruction,
            access,
        }) => (instruction.pc() - start, access),
        step => panic!("{step:?}"),
    };
    assert_eq!(
        reached(go(start, 0x9000, 2, true, true)),
        (0, access(0x9000, 8, Kind::Load, Element::Bits))
    );
    assert_eq!(
        reached(go(start + 3, 0x9000, 4, true, true)),
        (3, access(0x9000, 8, Kind::Store, Element::F64))
    );
    // One instruction late: the one before is it.
    assert_eq!(reached(go(start + 7, 0x9000, 4, false, true)).0, 3);
    // A read-modify-write is a load and a store to the hardware.
    assert_eq!(
        reached(go(start + 10, 0x9000, 2, true, true)).1.kind(),
        Kind::Both
    );
    assert_eq!(
        reached(go(start + 10, 0x9000, 4, true, true)).1.kind(),
        Kind::Both
    );
    let missed = |step: Step| match step {
        Step::Miss(miss) => miss,
        step => panic!("{step:?}"),
    };
    assert_eq!(
        missed(go(start, 0x9000, 4, true, true)),
        Miss::Mismatch,
        "a load is no store"
    );
    assert_eq!(
        missed(go(start + 7, 0x9000, 2, true, true)),
        Miss::Mismatch,
        "a prefetch is no load"
    );
    assert_eq!(
        missed(go(start, 0, 2, true, true)),
        Miss::Mismatch,
        "no address"
    );
    assert_eq!(missed(go(start, 0x9000, 8, true, true)), Miss::Mismatch);
    assert_eq!(
        missed(go(start - 1, 0x9000, 2, true, true)),
        Miss::NotCompiled
    );
    assert_eq!(
        missed(go(start + 1, 0x9000, 2, false, true)),
        Miss::Undecodable
    );
    assert!(matches!(
        go(start, 0x9000, 2, true, false),
        Step::Refused(_)
    ));
    assert!(
        matches!(go(start + 13, 0x9000, 2, true, true), Step::Refused(o) if o.access.is_err()),
        "a gather"
    );
}

#[test]
fn sources_say_what_they_are() {
    for source in Source::ALL {
        assert_eq!(Source::from_code(source.code()), Some(source));
        let hardware = source != Source::Software;
        assert_eq!(source.warning().is_some(), hardware);
        assert_eq!(
            source.weight().name(),
            if hardware { "accesses" } else { "cpu-time" }
        );
    }
    assert_eq!(Source::from_code(3), None);
    assert_eq!(Pmu::ibs().source().name(), "ibs");
    assert_eq!(
        Seek::new(0, 0, 0).source().weight().words(),
        "of sampled CPU time"
    );
}
