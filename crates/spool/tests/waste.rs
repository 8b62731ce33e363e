//! Files and records of the waste lens: what is written comes back, and a table cut off at any byte still reads, with what stood before the cut.

use borescope_spool::log::LogReader;
use borescope_spool::meta::Record;
use borescope_spool::testing::waste::{Ended, Sample, Samples, bytes};
use borescope_spool::waste::{Access, Compiled, Method, Waste, read};
use borescope_waste::handler::table::Capacity;
use borescope_waste::{Frame, Source, Waste as Kind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn method() -> impl Strategy<Value = Method> {
    let access = any::<(u16, u8, Option<u8>)>();
    let access = access.prop_map(|(bci, opcode, descriptor)| Access {
        bci,
        opcode,
        descriptor,
    });
    (
        Frame::FIRST_METHOD..,
        ".{0,9}",
        ".{0,9}",
        vec(any::<(u16, u16)>(), 0..6),
        proptest::option::of(vec(access, 0..6)),
    )
        .prop_map(|(number, name, descriptor, lines, accesses)| Method {
            number,
            name,
            descriptor,
            lines,
            accesses,
        })
}

fn record() -> impl Strategy<Value = Record> {
    let waste = (select(Source::ALL.to_vec()), any::<(u32, u32, u8, bool)>()).prop_map(
        |(source, (rate, tolerance_ppm, watches, attached))| {
            Record::Waste(Waste {
                source,
                rate,
                tolerance_ppm,
                watches,
                attached,
            })
        },
    );
    let compiled = (".{0,9}", any::<Option<String>>(), vec(method(), 0..5)).prop_map(
        |(class, source_file, methods)| {
            Record::Compiled(Compiled {
                class,
                source_file,
                methods,
            })
        },
    );
    prop_oneof![waste, compiled]
}

fn frames(from: std::ops::Range<u64>) -> Vec<Frame> {
    from.filter_map(|n| Frame::new(Frame::FIRST_METHOD + n, n as i32))
        .collect()
}

fn sample() -> impl Strategy<Value = Sample> {
    let context = (0..6u64, 1..6u64).prop_map(|(from, len)| frames(from..from + len));
    let ended = select(vec![Ended::Wasteful, Ended::Useful, Ended::Lost]);
    (select(Kind::ALL.to_vec()), context.clone(), context, ended).prop_map(
        |(kind, first, second, ended)| Sample {
            ended,
            ..Sample::new(kind, first, second)
        },
    )
}

proptest! {
    #[test]
    fn a_log_of_records_comes_back_and_torn_it_ends_at_the_last_whole_one(
        records in vec(record(), 1..6), cut in any::<proptest::sample::Index>(),
    ) {
        let whole: Vec<u8> = records.iter().flat_map(Record::encode).collect();
        prop_assert_eq!(LogReader::new(&whole).collect::<Vec<_>>(), records.clone());
        let torn = &whole[..cut.index(whole.len())];
        let read: Vec<Record> = LogReader::new(torn).collect();
        prop_assert!(read.len() < records.len());
        prop_assert_eq!(&read[..], &records[..read.len()]);
    }

    #[test]
    fn no_payload_makes_the_decoder_panic(payload in vec(any::<u8>(), 0..64), kind in 11..=12u8) {
        let payload: Vec<u8> = std::iter::once(kind).chain(payload).collect();
        let _ = Record::decode(&payload);
    }

    #[test]
    fn a_table_cut_off_anywhere_reads_with_what_stood_before(
        samples in vec(sample(), 1..20), cuts in vec(any::<proptest::sample::Index>(), 40),
    ) {
        let capacity = Capacity::new(64, 16).unwrap();
        let mut all = Samples::new(capacity, Source::Software);
        samples.iter().for_each(|sample| all.add(sample));
        let whole = bytes(all.words());
        let full = read(&whole).unwrap();
        prop_assert_eq!(full.missing, 0);
        prop_assert!(full.profile.accounts.check(true).is_ok());
        let mut pairs = 0;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.push(whole.len());
        cuts.sort_unstable();
        for len in cuts {
            match read(&whole[..len]) {
                Ok(cut) => {
                    prop_assert_eq!(cut.missing as usize, whole.len() - len);
                    prop_assert!(cut.profile.pairs.len() >= pairs, "a longer part has fewer pairs");
                    prop_assert!(cut.profile.pairs.values().sum::<u64>() <= full.profile.pairs.values().sum());
                    pairs = cut.profile.pairs.len();
                }
                Err(_) => prop_assert!(len < 64, "{} bytes of {} do not read", len, whole.len()),
            }
        }
        prop_assert_eq!(pairs, full.profile.pairs.len());
    }

    #[test]
    fn no_file_makes_the_reader_panic_or_take_much_memory(
        samples in vec(sample(), 0..4),
        damage in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..20),
        capacities in any::<Option<(u32, u32)>>(),
    ) {
        let mut all = Samples::new(Capacity::new(16, 8).unwrap(), Source::Pebs);
        samples.iter().for_each(|sample| all.add(sample));
        let mut file = bytes(all.words());
        for (at, value) in damage {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Some((contexts, pairs)) = capacities {
            file[8..16].copy_from_slice(&(1u64 << (contexts % 32)).to_le_bytes());
            file[16..24].copy_from_slice(&(1u64 << (pairs % 32)).to_le_bytes());
        }
        let _ = read(&file);
    }
}
