//! Records and files of the sites lens: what is written comes back, and no damage makes a reader panic, loop or invent objects.

use borescope_spool::codec::DecodeError;
use borescope_spool::log::LogReader;
use borescope_spool::meta::Record;
use borescope_spool::sites::{
    Call, Cause, MAX_OWNER, MethodName, Mode, Numbered, Owner, Site, SiteClass, SiteKind, Sites,
    SkippedSite, Snapshot as Taken,
};
use borescope_spool::snapshot::objects::{Object, Reader, Writer};
use borescope_spool::snapshot::{self, Error, Origin, Row, Snapshot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn site_class() -> impl Strategy<Value = SiteClass> {
    let methods = vec((".{0,5}", ".{0,5}"), 1..5);
    let sites = vec(
        (
            any::<Index>(),
            any::<[u16; 2]>(),
            select(SiteKind::ALL.to_vec()),
            ".{0,9}",
        ),
        0..5,
    );
    let calls = vec((any::<Index>(), any::<[u16; 2]>()), 0..5);
    let skipped = vec((any::<Index>(), any::<Option<u16>>(), ".{0,9}"), 0..4);
    let numbers = (1..=MAX_OWNER - 5, 1..=u32::MAX - 5);
    let head = (
        ".{0,9}",
        ".{0,9}",
        any::<u64>(),
        any::<Option<String>>(),
        any::<bool>(),
    );
    (head, numbers, methods, sites, calls, skipped).prop_map(
        |(head, (first_site, first_call), methods, sites, calls, skipped)| {
            let (name, loader, hash, source_file, jdk) = head;
            let of = |at: Index| at.index(methods.len()) as u16;
            let sites = sites.into_iter();
            let sites = sites.map(|(method, [bci, line], kind, ty)| Site {
                method: of(method),
                bci,
                line,
                kind,
                ty,
            });
            let calls = calls.into_iter().map(|(method, [bci, line])| Call {
                method: of(method),
                bci,
                line,
            });
            let skipped = skipped.into_iter();
            let skipped = skipped.map(|(method, bci, reason)| SkippedSite {
                method: of(method),
                bci,
                reason,
            });
            SiteClass {
                name,
                loader,
                hash,
                source_file,
                jdk,
                first_site,
                first_call,
                sites: sites.collect(),
                calls: calls.collect(),
                skipped: skipped.collect(),
                methods: methods
                    .into_iter()
                    .map(|(name, descriptor)| MethodName { name, descriptor })
                    .collect(),
            }
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    let modes = vec![Mode::Spare, Mode::Static, Mode::Dynamic, Mode::Hybrid];
    let sites = (
        select(modes),
        any::<([u8; 2], [bool; 3], Option<[u8; 24]>)>(),
    )
        .prop_map(
            |(mode, ([hash_shift, spare_bits], [jdk, attribute, attached], scheme))| {
                Record::Sites(Sites {
                    mode,
                    hash_shift,
                    spare_bits,
                    jdk,
                    attribute,
                    attached,
                    scheme,
                })
            },
        );
    let owner = (1..=MAX_OWNER, 1..=u32::MAX, any::<u32>());
    let owner = owner.prop_map(|(owner, site, call)| Owner { owner, site, call });
    let taken = (
        select(Cause::ALL.to_vec()),
        any::<(u32, [u64; 5], [bool; 2])>(),
    )
        .prop_map(|(cause, (number, numbers, bits))| {
            let [at_ms, took_ms, objects, bytes, epoch] = numbers;
            let [live_only, listed] = bits;
            Record::Snapshot(Taken {
                number,
                cause,
                at_ms,
                took_ms,
                live_only,
                listed,
                objects,
                bytes,
                epoch,
            })
        });
    let numbered = (".{0,9}", any::<(u32, [u8; 24])>());
    let numbered = numbered.prop_map(|(signature, (owner, event))| {
        Record::Numbered(Numbered {
            signature,
            owner,
            event,
        })
    });
    prop_oneof![
        sites,
        numbered,
        site_class().prop_map(Record::SiteClass),
        vec(owner, 0..6).prop_map(Record::Owners),
        taken,
        any::<u64>().prop_map(|at_ms| Record::Ended { at_ms }),
    ]
}

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        (1..=MAX_OWNER).prop_map(Origin::Owner),
        select(Origin::UNKNOWN.to_vec())
    ]
}

fn snapshot_of() -> impl Strategy<Value = Snapshot> {
    let row = (any::<Index>(), origin(), any::<u64>(), any::<u64>());
    (any::<u32>(), vec(".{0,9}", 1..5), vec(row, 0..9)).prop_map(|(number, classes, rows)| {
        let rows = rows.into_iter().map(|(class, origin, objects, bytes)| Row {
            class: class.index(classes.len()) as u32,
            origin,
            objects,
            bytes,
        });
        Snapshot {
            number,
            rows: rows.collect(),
            classes,
        }
    })
}

fn objects() -> impl Strategy<Value = Vec<Object>> {
    let object = (any::<u64>(), any::<u32>(), any::<u32>(), origin());
    vec(
        object.prop_map(|(address, units, class, origin)| Object {
            address,
            bytes: u64::from(units) * 8,
            class,
            origin,
        }),
        0..20,
    )
}

fn file(snapshot: &Snapshot) -> Vec<u8> {
    let mut out = Vec::new();
    let classes = snapshot.classes.iter().map(String::as_str);
    snapshot::write(
        &mut out,
        snapshot.number,
        classes,
        snapshot.rows.iter().copied(),
    )
    .unwrap();
    out
}

fn objects_file(number: u32, objects: &[Object]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), number).unwrap();
    for object in objects {
        writer.push(*object).unwrap();
    }
    let (count, bytes) = writer.finish().unwrap();
    assert_eq!(count, objects.len() as u64);
    bytes
}

/// The objects before the first error, and whether there was one.
fn read_objects(bytes: &[u8]) -> (Vec<Object>, bool) {
    let Ok(reader) = Reader::new(bytes) else {
        return (Vec::new(), true);
    };
    let mut objects = Vec::new();
    for object in reader {
        match object {
            Ok(object) => objects.push(object),
            Err(_) => return (objects, true),
        }
    }
    (objects, false)
}

proptest! {
    #[test]
    fn any_record_comes_back(record in record()) {
        let bytes = record.encode();
        prop_assert_eq!(Record::decode(&bytes[8..]), Ok(record));
    }

    /// Payloads with a right CRC but changed bytes reach the decoder.
    #[test]
    fn changed_payloads_never_panic(record in record(), changes in vec((any::<Index>(), any::<u8>()), 1..4), cut in any::<Index>()) {
        let mut payload = record.encode().split_off(8);
        for (at, value) in changes {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        payload.truncate(cut.index(payload.len()) + 1);
        if let Ok(record) = Record::decode(&payload) {
            prop_assert_eq!(Record::decode(&record.encode()[8..]), Ok(record));
        }
    }

    #[test]
    fn random_payloads_never_panic(kind in 5..10u8, mut bytes in vec(any::<u8>(), 0..200)) {
        bytes.insert(0, kind);
        let _ = Record::decode(&bytes);
    }

    #[test]
    fn a_snapshot_comes_back(snapshot in snapshot_of()) {
        prop_assert_eq!(Snapshot::read(&file(&snapshot)).unwrap(), snapshot);
    }

    #[test]
    fn a_changed_or_cut_snapshot_is_refused(snapshot in snapshot_of(), at in any::<Index>(), bit in 0..8u8) {
        let bytes = file(&snapshot);
        let at = at.index(bytes.len());
        prop_assert!(Snapshot::read(&bytes[..at]).is_err());
        let mut changed = bytes;
        changed[at] ^= 1 << bit;
        prop_assert!(Snapshot::read(&changed).is_err());
    }

    /// With the CRC made right again, so that the checks behind it are reached.
    #[test]
    fn changed_content_of_a_snapshot_never_panics(snapshot in snapshot_of(), changes in vec((any::<Index>(), any::<u8>()), 1..6)) {
        let mut bytes = file(&snapshot);
        let end = bytes.len() - 4;
        for (at, value) in changes {
            let at = 8 + at.index(end - 8);
            bytes[at] = value;
        }
        let crc = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        if let Ok(read) = Snapshot::read(&bytes) {
            prop_assert!(read.rows.iter().all(|row| (row.class as usize) < read.classes.len()));
            prop_assert_eq!(file(&read), bytes);
        }
    }

    #[test]
    fn listed_objects_come_back(number in any::<u32>(), objects in objects(), copies in 1..400usize) {
        // Enough for several blocks now and then.
        let objects: Vec<Object> = std::iter::repeat_n(&objects[..], copies).flatten().copied().collect();
        let bytes = objects_file(number, &objects);
        prop_assert_eq!(Reader::new(&bytes[..]).unwrap().number(), number);
        prop_assert_eq!(read_objects(&bytes), (objects, false));
    }

    /// Damage may cost what follows it, and is told; it never makes objects up.
    #[test]
    fn damaged_lists_give_a_prefix_and_an_error(objects in objects(), at in any::<Index>(), bit in 0..8u8) {
        let bytes = objects_file(7, &objects);
        let at = at.index(bytes.len());
        let (read, damaged) = read_objects(&bytes[..at]);
        prop_assert!(damaged && objects.starts_with(&read));
        let mut changed = bytes;
        changed[at] ^= 1 << bit;
        let (read, damaged) = read_objects(&changed);
        // The number of the snapshot is checked by whoever knows it.
        prop_assert!(damaged || (8..12).contains(&at));
        prop_assert!(objects.starts_with(&read));
    }

    #[test]
    fn random_files_never_panic(mut bytes in vec(any::<u8>(), 0..300), magic in any::<bool>()) {
        if magic && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&snapshot::objects::MAGIC.to_le_bytes());
        }
        prop_assert!(read_objects(&bytes).0.len() <= bytes.len() / 20);
        prop_assert!(Snapshot::read(&bytes).is_err());
    }

    #[test]
    fn origins_have_words_of_their_own(word in any::<u32>(), origin in origin()) {
        prop_assert_eq!(Origin::of_word(origin.word()), Some(origin));
        if let Some(origin) = Origin::of_word(word) {
            prop_assert_eq!(origin.word(), word);
        }
    }
}

#[test]
fn a_site_of_no_method_is_left_out_and_named() {
    let class = SiteClass {
        name: "C".into(),
        loader: "boot".into(),
        hash: 0,
        source_file: None,
        jdk: false,
        first_site: 1,
        first_call: 0,
        methods: vec![],
        sites: vec![Site {
            method: 0,
            bci: 0,
            line: 0,
            kind: SiteKind::New,
            ty: "D".into(),
        }],
        calls: vec![],
        skipped: vec![],
    };
    let bytes = Record::SiteClass(class.clone()).encode();
    let mut reader = LogReader::new(&bytes);
    assert_eq!(reader.next(), None);
    assert!(matches!(reader.damaged(), [one] if one.reason == DecodeError::Range));
    // Neither is a number that no owner can have.
    let named = SiteClass {
        methods: vec![MethodName {
            name: "m".into(),
            descriptor: "()V".into(),
        }],
        ..class
    };
    for (first_site, good) in [
        (0, false),
        (1, true),
        (MAX_OWNER, true),
        (MAX_OWNER + 1, false),
    ] {
        let record = Record::SiteClass(SiteClass {
            first_site,
            ..named.clone()
        });
        assert_eq!(Record::decode(&record.encode()[8..]).is_ok(), good);
    }
}

#[test]
fn huge_counts_allocate_nothing() {
    let mut bytes = snapshot::MAGIC.to_le_bytes().to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(u32::MAX.to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    assert!(matches!(Snapshot::read(&bytes), Err(Error::Short)));
}

#[test]
fn a_disk_that_fills_is_an_error() {
    let object = Object {
        address: 8,
        bytes: 16,
        class: 0,
        origin: Origin::NoMark,
    };
    let mut space = [0; 100_000];
    let mut writer = Writer::new(&mut space[..], 1).unwrap();
    let failed = (0..10_000).find_map(|_| writer.push(object).err());
    assert_eq!(failed.unwrap().kind(), std::io::ErrorKind::WriteZero);
}
