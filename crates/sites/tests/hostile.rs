//! Input that nobody meant: logs, traces, fields, headers and words of any bytes.

mod common;

use borescope_sites::spare::{Header, SpareLayout};
use borescope_sites::trace::{Reader, Record, Step, Trace, TraceSite, Writer};
use borescope_sites::*;
use common::{policies, schemes};
use proptest::prelude::*;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let number = (any::<u32>(), prop_oneof![0u8..6, 0u8..=31]).prop_map(|(bits, len)| {
        Number::new((u64::from(bits) & ((1u64 << len) - 1)) as u32, len).unwrap()
    });
    let owner = prop_oneof![
        (0u32..3).prop_map(|s| Owner::Site(SiteId(s))),
        Just(Owner::Method(MethodId(1))),
        Just(Owner::Others),
    ];
    let event = (
        prop_oneof![0u64..20, any::<u64>()],
        0u32..2,
        any::<bool>(),
        number,
        owner,
        any::<bool>(),
    )
        .prop_map(|(epoch, class, dynamic, number, owner, given)| Event {
            epoch,
            class: ClassId(class),
            space: if dynamic {
                Space::Dynamic
            } else {
                Space::Static
            },
            number,
            owner,
            action: if given {
                Action::Given
            } else {
                Action::Released
            },
        });
    prop::collection::vec(event, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever a log says, what is taken of it is not ambiguous at any time, and refused events change nothing.
    #[test]
    fn a_history_takes_nothing_ambiguous(scheme in schemes(), mut events in events(), sorted in any::<bool>(), fields in prop::collection::vec(any::<u32>(), 20)) {
        if sorted {
            events.sort_by_key(|e| e.epoch);
        }
        let mut history = History::new(scheme);
        let mut taken = Vec::new();
        for event in &events {
            if history.apply(event).is_ok() {
                taken.push(*event);
            }
        }
        let again = History::from_events(scheme, &taken).unwrap();
        for at in taken.iter().map(|e| e.epoch).chain([0, u64::MAX]) {
            let decoder = history.decoder(at);
            let held: Vec<_> = (0..decoder.slots()).map(|s| decoder.slot(s as u32).unwrap()).collect();
            for (i, a) in held.iter().enumerate() {
                for b in &held[i + 1..] {
                    prop_assert!((a.0, a.1) != (b.0, b.1) || !a.2.is_prefix_of(b.2) && !b.2.is_prefix_of(a.2), "{:?} {:?}", a, b);
                }
            }
            for &field in &fields {
                for (class, field) in [(0, field), (1, field & 0xFF), (0, field & ((1 << scheme.width()) - 1))] {
                    let once = history.decode(ClassId(class), field, at);
                    let table = decoder.decode(ClassId(class), field).map(|d| (d.owner, d.number));
                    prop_assert_eq!(once, table);
                    prop_assert_eq!(once, again.decode(ClassId(class), field, at));
                }
            }
        }
    }

    #[test]
    fn event_and_scheme_bytes(bytes in prop::array::uniform24(prop_oneof![3 => 0u8..4, 1 => any::<u8>()])) {
        if let Ok(event) = Event::from_bytes(&bytes) {
            prop_assert_eq!(event.to_bytes(), bytes);
        }
        if let Ok(scheme) = Scheme::from_bytes(&bytes) {
            prop_assert_eq!(scheme.to_bytes(), bytes);
        }
    }

    /// A scheme that can be made can be used: no shift too far, no field beyond its bits.
    #[test]
    fn any_scheme_is_refused_or_works(mode in common::modes(), width in any::<u8>(), policy in policies(), wild in any::<[u8; 4]>(), seed in any::<u64>(), random in any::<u32>()) {
        for policy in [policy, Policy { min_id_bits: wild[0], min_number_bits: wild[1], share: wild[2], guard_bits: wild[3], ..policy }] {
            let Ok(scheme) = Scheme::new(mode, width, policy, seed) else { continue };
            let registry = Registry::new(scheme, common::Kept::default());
            for id in 0..5 {
                let site = Site { id: SiteId(id), class: ClassId(7), method: MethodId(id / 2) };
                if let Some(stamp) = registry.stamp(&site, scheme.at_allocation()) {
                    let field = stamp.field(random);
                    prop_assert!(field != 0 && u64::from(field) >> width == 0);
                    prop_assert!(registry.decoder().decode(ClassId(7), field).is_some());
                    registry.shorten(&site, stamp);
                    let coverage = registry.decoder().class(ClassId(7)).unwrap().coverage();
                    prop_assert!(coverage > 0.0 && coverage <= 1.0);
                }
            }
        }
    }

    #[test]
    fn stamp_words(word in any::<u64>()) {
        for word in [word, word & 0xC000_001F_7FFF_FFFF | 1 << 63] {
            if let Some(stamp) = Stamp::unpack(word) {
                prop_assert_eq!(stamp.pack(), word);
                prop_assert!(stamp.field(word as u32) != 0);
            }
        }
    }

    /// What we mark reads back, on every layout; what is not ours is never written.
    #[test]
    fn headers(shift in 0u8..=40, generation_bits in 0u8..30, in_place in any::<bool>(), header in any::<u64>(), age in 0u64..16, number in any::<u32>(), generation in any::<u32>(), random in any::<u32>()) {
        let Ok(layout) = SpareLayout::new(shift, generation_bits, in_place) else { return Ok(()) };
        let (number, generation) = (number >> (32 - layout.number_bits().min(31)), if generation_bits == 0 { 0 } else { generation >> (32 - generation_bits) });
        layout.read(header);
        prop_assert_eq!(layout.may_mark(header), header & !0b111_1000 == 1);
        let plain = 1 | age << 3;
        match layout.mark(plain, number, generation, random) {
            None => prop_assert_eq!(number, 0),
            Some(marked) => {
                prop_assert!(!layout.may_mark(marked));
                prop_assert_eq!(layout.mark(marked, number, generation, random), None);
                prop_assert_eq!((marked & 0b111_1111, layout.age(marked)), (plain, age as u8));
                let hash = (marked >> shift & 0x7FFF_FFFF) as u32;
                prop_assert!(hash != 0);
                let expected = Header::Marked { number, generation, hash };
                prop_assert_eq!(layout.read(marked), expected);
                let locked = layout.read(marked & !3);
                prop_assert_eq!(locked, if in_place { expected } else { Header::Displaced });
                prop_assert_eq!(layout.read(marked & !3 | 2), Header::Displaced);
                prop_assert_eq!(layout.read(marked | 3), Header::Forwarded);
                // Hashed by the VM, no number; and a number without hash, which a collection may lose.
                prop_assert_eq!(layout.read(u64::from(hash) << shift | 1), Header::Unmarked { hash });
                prop_assert_eq!(layout.read(marked & !(0x7FFF_FFFF << shift)), Header::Unmarked { hash: 0 });
            }
        }
        prop_assert_eq!(layout.mark(plain | header & !0b111_1111 | 1 << 63, number.max(1), generation, random), None);
        if layout.number_bits() < 32 {
            prop_assert_eq!(layout.mark(1, 1 << layout.number_bits(), 0, random), None);
        }
    }

    #[test]
    fn any_bytes_as_a_trace(bytes in prop::collection::vec(prop_oneof![3 => 0u8..12, 1 => any::<u8>()], 0..200)) {
        let mut file = b"BSTRACE1".to_vec();
        file.extend(&bytes);
        // What is read can be written, and reads the same.
        if let Ok(trace) = Trace::read(&file[..]) {
            prop_assert_eq!(Trace::read(&trace.write(Vec::new()).unwrap()[..]).unwrap(), trace);
        }
        prop_assert!(Trace::read(&bytes[..]).is_err());
    }

    #[test]
    fn traces_read_back_and_cut_off_ones_do_not(trace in traces(), cut in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>(), bit in 0u8..8) {
        let bytes = trace.write(Vec::new()).unwrap();
        prop_assert_eq!(&Trace::read(&bytes[..]).unwrap(), &trace);
        prop_assert!(Trace::read(&bytes[..cut.index(bytes.len())]).is_err());
        let mut damaged = bytes.clone();
        damaged[flip.index(bytes.len())] ^= 1 << bit;
        if let Ok(other) = Trace::read(&damaged[..]) {
            prop_assert!(other != trace && other.check().is_ok());
        }
    }
}

fn traces() -> impl Strategy<Value = Trace> {
    let sites = prop::collection::vec((0u32..3, any::<u32>(), "[a-zäö:0-9]{0,8}"), 1..6);
    let steps = prop::collection::vec(
        (
            0usize..6,
            prop_oneof![1u64..4, 1u64..1 << 40],
            any::<Option<u64>>(),
        ),
        0..40,
    );
    (sites, steps).prop_map(|(sites, steps)| {
        let mut trace = Trace {
            classes: vec!["A".into(), "byte[]".into(), "Ünï".into()],
            ..Trace::default()
        };
        for (class, method, label) in sites {
            trace.sites.push(TraceSite {
                class,
                method,
                label,
            });
        }
        let mut allocated = vec![0; trace.sites.len()];
        for (site, count, nth) in steps {
            let site = site % trace.sites.len();
            let index = site as u32;
            match nth {
                Some(nth) if allocated[site] > 0 => {
                    let nth = nth % allocated[site];
                    trace.steps.push(Step::Hash { site: index, nth });
                }
                _ => {
                    allocated[site] += count;
                    trace.steps.push(Step::Allocate { site: index, count });
                }
            }
        }
        trace
    })
}

#[test]
fn the_bytes_of_a_trace() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let site = TraceSite {
        class: 0,
        method: 300,
        label: "a:1".into(),
    };
    let records = [
        Record::Class("A".into()),
        Record::Site(site),
        Record::Step(Step::Allocate {
            site: 0,
            count: 200,
        }),
        Record::Step(Step::Hash { site: 0, nth: 5 }),
        Record::Step(Step::Hash { site: 0, nth: 6 }),
        Record::Step(Step::Hash { site: 0, nth: 4 }),
    ];
    for record in &records {
        writer.write(record).unwrap();
    }
    // What a reader would refuse is not written.
    for refused in [
        Record::Class(String::new()),
        Record::Site(TraceSite {
            class: 1,
            method: 0,
            label: String::new(),
        }),
        Record::Step(Step::Allocate { site: 1, count: 1 }),
        Record::Step(Step::Allocate { site: 0, count: 0 }),
        Record::Step(Step::Allocate {
            site: 0,
            count: 1 << 63,
        }),
        Record::Step(Step::Hash { site: 0, nth: 200 }),
        Record::Step(Step::Hash { site: 1, nth: 0 }),
    ] {
        assert!(writer.write(&refused).is_err(), "{refused:?}");
    }
    let bytes = writer.finish().unwrap();
    let expected = [
        b"BSTRACE1".as_slice(),
        &[4, b'A'],
        &[13, 0, 0xAC, 2, b'a', b':', b'1'],
        &[2, 0xC8, 1],
        &[3, 10], // +5
        &[3, 0],  // the next
        &[3, 5],  // -3
        &[0, 6],
    ];
    assert_eq!(bytes, expected.concat());
    let read: Vec<Record> = Reader::new(&bytes[..])
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(read, records);
}

#[test]
fn traces_refused_by_name() {
    let cases: [(&[u8], &str); 9] = [
        (&[4], "trace: failed to fill whole buffer"),
        (&[4, 0xFF, 0, 1], "trace, record 0: a name is not UTF-8"),
        (
            &[0xFC, 0xFF, 0xFF, 0x7F],
            "trace, record 0: a name is too long",
        ),
        (&[1, 0, 0], "trace, record 0: a site of an unknown class"),
        (
            &[4, b'A', 2, 1],
            "trace, record 1: an unknown site allocates",
        ),
        (
            &[4, b'A', 1, 0, 0, 3, 0],
            "trace, record 2: an object that was not allocated",
        ),
        (
            &[0, 1],
            "trace, record 0: it ends with another number of records than it has",
        ),
        (
            &[0xFF; 12],
            "trace, record 0: a number has more than 64 bits",
        ),
        // 2^64 + 4: without its highest bit a class with a name of one byte.
        (
            &[0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
            "trace, record 0: a number has more than 64 bits",
        ),
    ];
    for (bytes, message) in cases {
        let file = [b"BSTRACE1", bytes].concat();
        assert_eq!(Trace::read(&file[..]).unwrap_err().to_string(), message);
    }
}

#[test]
fn contradictions_are_refused_by_name() {
    let scheme = Scheme::new(Mode::Dynamic, 8, Policy::SEED, 0).unwrap();
    let event = |epoch, number: &str, site, action| Event {
        epoch,
        class: ClassId(1),
        space: Space::Dynamic,
        number: Number::new(u32::from_str_radix(number, 2).unwrap(), number.len() as u8).unwrap(),
        owner: Owner::Site(SiteId(site)),
        action,
    };
    let (given, released) = (Action::Given, Action::Released);
    let mut history = History::new(scheme);
    history.apply(&event(1, "0000", 1, given)).unwrap();
    history.apply(&event(20, "0001", 2, given)).unwrap();
    let fixed = Event {
        space: Space::Static,
        ..event(30, "0010", 3, given)
    };
    let cases = [
        (event(30, "000", 1, given), "the number is not free"),
        (event(30, "0000", 1, given), "the number is not free"),
        (
            event(30, "0001", 1, released),
            "the owner does not hold the number",
        ),
        (
            event(30, "001", 1, released),
            "the owner does not hold the number",
        ),
        (
            event(30, "00100", 1, given),
            "a number of this length cannot be",
        ),
        (fixed, "the mode has no numbers of this kind"),
        // Were it taken, 00 would be both sites' from 5 to 20.
        (event(5, "0001", 2, released), "it is not later"),
        (event(20, "0010", 3, given), "it is not later"),
    ];
    for (event, reason) in cases {
        let message = history.apply(&event).unwrap_err().to_string();
        let expected = format!(
            "number assignment {} contradicts the ones before it: {reason}",
            event.epoch
        );
        assert_eq!(message, expected);
    }
    let global = Scheme::new(Mode::Spare, 22, Policy::SEED, 0).unwrap();
    let one = Event {
        space: Space::Static,
        number: Number::new(1, 22).unwrap(),
        ..event(1, "0", 1, given)
    };
    let refused = History::new(global).apply(&one).unwrap_err().to_string();
    assert!(
        refused.ends_with("the mode's numbers are global"),
        "{refused}"
    );
    // Another class has a time of its own.
    history
        .apply(&Event {
            class: ClassId(2),
            ..event(3, "0000", 1, given)
        })
        .unwrap();
    history.apply(&event(30, "0001", 2, released)).unwrap();
    history.apply(&event(31, "000", 1, given)).unwrap();
}
