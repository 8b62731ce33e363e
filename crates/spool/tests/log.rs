//! `meta.log`: what is encoded decodes to the same, and no damage makes the reader panic, loop or invent records.

use borescope_cfg::flow::{Block, Edge, EdgeKind, Flow, Merged, Start, StartKind};
use borescope_spool::codec::DecodeError;
use borescope_spool::log::{LogReader, Torn};
use borescope_spool::meta::{Class, Counting, Method, Record, Skipped, Target};
use borescope_spool::testing::{switch_loop, worked_example};
use proptest::collection::vec;
use proptest::prelude::*;

fn flow() -> impl Strategy<Value = Flow> {
    let kind = any::<[bool; 4]>().prop_map(|[entry, loop_head, handler, cut]| StartKind {
        entry,
        loop_head,
        handler,
        cut,
    });
    let edge_kind = prop::sample::select(vec![
        EdgeKind::Forward,
        EdgeKind::Back,
        EdgeKind::Cut,
        EdgeKind::Return,
        EdgeKind::Throw,
    ]);
    let block = any::<(u16, u16)>().prop_map(|(start, end)| Block { start, end });
    let start =
        (any::<u32>(), any::<u32>(), any::<u32>(), kind).prop_map(|(block, value, paths, kind)| {
            Start {
                block,
                value,
                paths,
                kind,
            }
        });
    let edge = (
        any::<u32>(),
        prop_oneof![any::<u32>(), Just(u32::MAX)],
        edge_kind,
        any::<u32>(),
    )
        .prop_map(|(from, to, kind, value)| Edge {
            from,
            to,
            kind,
            value,
        });
    let merged = (any::<u32>(), vec(any::<u32>(), 0..3), any::<u32>())
        .prop_map(|(head, arms, join)| Merged { head, arms, join });
    (
        vec(block, 0..6),
        vec(start, 0..4),
        vec(edge, 0..6),
        vec(merged, 0..3),
        any::<u32>(),
        "[0-9]{1,50}",
    )
        .prop_map(
            |(blocks, starts, edges, merged, num_paths, uncut_paths)| Flow {
                blocks,
                starts,
                edges,
                merged,
                num_paths,
                uncut_paths,
            },
        )
}

/// Flows that the log's reader accepts.
fn valid_flow() -> impl Strategy<Value = Flow> {
    prop_oneof![Just(worked_example()), (1..40u16).prop_map(switch_loop)]
}

fn method(flow: impl Strategy<Value = Flow>) -> impl Strategy<Value = Method> {
    (
        any::<u32>(),
        prop::sample::select(vec![Counting::Rows, Counting::Slots, Counting::Groups]),
        ".{0,8}",
        ".{0,8}",
        vec(any::<(u16, u16)>(), 0..5),
        flow,
    )
        .prop_map(|(index, counting, name, descriptor, lines, flow)| Method {
            index,
            counting,
            name,
            descriptor,
            lines,
            flow,
        })
}

fn record_with(flow: impl Strategy<Value = Flow>) -> impl Strategy<Value = Record> {
    let globs = || vec(".{0,6}", 0..3);
    let target = (
        any::<u32>(),
        any::<[u8; 4]>(),
        ".{0,200}",
        any::<u64>(),
        globs(),
        globs(),
        any::<([bool; 2], u32)>(),
    )
        .prop_map(
            |(pid, words, command, started, include, exclude, (bits, one_in))| {
                let [jdk, vm, collector, _] = words.map(|word| word.to_string());
                Record::Target(Target {
                    pid,
                    jdk,
                    vm,
                    collector,
                    command,
                    started,
                    include,
                    exclude,
                    merge: bits[0],
                    straight_line: bits[1],
                    one_in,
                })
            },
        );
    let class = (
        ".{0,9}",
        ".{0,9}",
        any::<u64>(),
        prop::option::of(".{0,9}"),
        vec(method(flow), 0..4),
        any::<u32>(),
    )
        .prop_map(
            |(name, loader, hash, source_file, methods, straight_line)| {
                Record::Class(Class {
                    name,
                    loader,
                    hash,
                    source_file,
                    methods,
                    straight_line,
                })
            },
        );
    let skipped =
        (".{0,9}", ".{0,9}", ".{0,9}", ".{0,9}").prop_map(|(class, method, descriptor, reason)| {
            Record::Skipped(Skipped {
                class,
                method,
                descriptor,
                reason,
            })
        });
    prop_oneof![target, class, skipped, ".{0,40}".prop_map(Record::Notice)]
}

fn record() -> impl Strategy<Value = Record> {
    record_with(valid_flow())
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    vec(record(), 0..6)
}

fn encode(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::encode).collect()
}

proptest! {
    /// The codec itself carries any flow, sound or not.
    #[test]
    fn any_record_comes_back(record in record_with(flow())) {
        let bytes = record.encode();
        prop_assert_eq!(&bytes[..4], &(bytes.len() as u32 - 8).to_le_bytes());
        prop_assert_eq!(Record::decode(&bytes[8..]), Ok(record));
    }

    #[test]
    fn whole_logs_come_back(records in records()) {
        let bytes = encode(&records);
        let mut reader = LogReader::new(&bytes);
        prop_assert_eq!(reader.by_ref().collect::<Vec<_>>(), records);
        prop_assert_eq!(reader.torn(), None);
        prop_assert_eq!(reader.damaged(), &[]);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_whole_records(records in vec(record(), 1..4), at in any::<prop::sample::Index>()) {
        let bytes = encode(&records);
        let cut = at.index(bytes.len() + 1);
        let mut end = 0;
        let whole = records
            .iter()
            .take_while(|record| {
                let next = end + record.encode().len();
                let fits = next <= cut;
                end = if fits { next } else { end };
                fits
            })
            .count();
        let mut reader = LogReader::new(&bytes[..cut]);
        prop_assert_eq!(reader.by_ref().collect::<Vec<_>>(), &records[..whole]);
        let torn = (end < cut).then_some(Torn { offset: end, bytes: cut - end });
        prop_assert_eq!(reader.torn(), torn);
    }

    /// Payloads with a right CRC but changed bytes reach the decoder, as the CRC would otherwise hide it from the test.
    #[test]
    fn changed_payloads_never_panic(record in record_with(flow()), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()) {
        let mut payload = record.encode().split_off(8);
        for (at, value) in changes {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        payload.truncate(cut.index(payload.len()) + 1);
        if let Ok(record) = Record::decode(&payload) {
            // What decodes is a record: it encodes to something that decodes to itself.
            prop_assert_eq!(Record::decode(&record.encode()[8..]), Ok(record));
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..400)) {
        let mut reader = LogReader::new(&bytes);
        let records = reader.by_ref().count();
        prop_assert!(records <= bytes.len() / 9);
        let _ = Record::decode(&bytes);
    }
}

#[test]
fn a_record_of_the_future_is_left_out_and_named() {
    let notice = Record::Notice("hello".into());
    let mut bytes = notice.encode();
    let payload = [99, 1, 2];
    let offset = bytes.len();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend(crc32fast::hash(&payload).to_le_bytes());
    bytes.extend(payload);
    bytes.extend(notice.encode());
    let mut reader = LogReader::new(&bytes);
    assert_eq!(
        reader.by_ref().collect::<Vec<_>>(),
        [notice.clone(), notice]
    );
    assert_eq!(reader.torn(), None);
    let [damaged] = reader.damaged() else {
        panic!("{:?}", reader.damaged())
    };
    assert_eq!(damaged.offset, offset);
    assert_eq!(damaged.reason.to_string(), "unknown record kind 99");
}

/// A flow that contradicts itself would decode path IDs to nonsense.
#[test]
fn a_class_with_an_unsound_flow_is_left_out_and_named() {
    let mut flow = worked_example();
    flow.edges[2].value = 3;
    let method = Method {
        index: 5,
        counting: Counting::Rows,
        name: "m".into(),
        descriptor: "()V".into(),
        lines: vec![],
        flow,
    };
    let class = Class {
        name: "C".into(),
        loader: "boot".into(),
        hash: 0,
        source_file: None,
        methods: vec![method],
        straight_line: 0,
    };
    let bytes = Record::Class(class).encode();
    let mut reader = LogReader::new(&bytes);
    assert_eq!(reader.next(), None);
    assert_eq!(reader.torn(), None);
    assert!(
        matches!(reader.damaged(), [one] if matches!(one.reason, DecodeError::Flow { index: 5, .. }))
    );
}

#[test]
fn a_huge_count_allocates_nothing() {
    // Class with names "", hash, no source file, 2^60 methods.
    let mut payload = vec![2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    payload.extend([0x80; 8]);
    payload.push(0x10);
    assert_eq!(
        Record::decode(&payload).unwrap_err().to_string(),
        "ends inside a field"
    );
}

#[test]
fn a_hole_of_zeroes_is_a_torn_end() {
    let mut bytes = Record::Notice("n".into()).encode();
    let offset = bytes.len();
    bytes.extend([0; 64]);
    let mut reader = LogReader::new(&bytes);
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!(reader.torn(), Some(Torn { offset, bytes: 64 }));
}
