//! The state machine of a watch against the seed's definitions, taken over whole access sequences byte by byte.

use crate::common::{Event, content, history};
use borescope_waste::handler::value::Tolerance;
use borescope_waste::handler::watch::{Answer, Asked, Mode, Waste, Watch};
use borescope_waste::{Access, Element, Kind, Place};
use proptest::prelude::*;

/// What the definitions say of the access `events[0]`, watched at `place`: for each question the event that answers it and whether it was waste.
fn oracle(events: &[Event], place: &Place) -> [Option<(usize, bool)>; 3] {
    let bytes: Vec<u64> = (place.start()..place.start() + u64::from(place.len())).collect();
    let touches = |e: &Event, byte: u64| (e.access.address()..e.access.end()).contains(&byte);
    let later = || events.iter().enumerate().skip(1);
    let first = &events[0].access;
    let mut answers = [None; 3];
    if first.kind() != Kind::Load {
        // Of each byte: the next event that touches it.
        let next: Vec<Option<usize>> = bytes
            .iter()
            .map(|&b| later().find(|(_, e)| touches(e, b)).map(|(n, _)| n))
            .collect();
        let loaded = |n: &usize| events[*n].access.kind() != Kind::Store;
        let by_load = next.iter().flatten().copied().filter(loaded).min();
        answers[Waste::DeadStore as usize] = match by_load {
            Some(n) => Some((n, false)),
            None if next.iter().all(Option::is_some) => {
                next.iter().flatten().max().map(|&n| (n, true))
            }
            None => None,
        };
    }
    // The next event that stores (or loads) to any byte; the bytes that both touched, as the two events stored (or loaded) them.
    let mut silent = |waste: Waste, does: fn(Kind) -> bool, at: fn(&Event) -> &[u8]| {
        if !does(first.kind()) {
            return;
        }
        let second =
            later().find(|(_, e)| does(e.access.kind()) && bytes.iter().any(|&b| touches(e, b)));
        answers[waste as usize] = second.map(|(n, e)| {
            let both = bytes.iter().filter(|&&b| touches(e, b));
            let same = both
                .clone()
                .all(|&b| at(&events[0])[b as usize] == at(e)[b as usize]);
            (n, same)
        });
    };
    silent(Waste::SilentStore, Kind::stores, |e| &e.after);
    silent(Waste::SilentLoad, Kind::loads, |e| &e.before);
    answers
}

/// Runs the machine over the same events.
fn machine(events: &[Event], place: Place, know_before: bool) -> Vec<(usize, Answer)> {
    let first = &events[0];
    let before = |e: &Event| content(&e.before, &place);
    let watch = Watch::new(
        place,
        first.access,
        Some(before(first)),
        content(&first.after, &place),
        Asked::ALL,
    );
    let mut watch = watch.expect("every access asks something");
    let mut answers = Vec::new();
    let mut mode = watch.mode();
    for (n, event) in events.iter().enumerate().skip(1) {
        let Some(now) = mode else { break };
        // The hardware: it does not trap for what it is not set to.
        if place.overlap(&event.access) == 0
            || (now == Mode::Write && event.access.kind() == Kind::Load)
        {
            continue;
        }
        let known = know_before.then(|| before(event));
        let after = content(&event.after, &place);
        let seen = watch.see(&event.access, known, after, Tolerance::EXACT);
        answers.extend(seen.answers().map(|answer| (n, answer)));
        mode = seen.next;
    }
    answers
}

proptest! {
    #[test]
    fn answers_are_those_of_the_definitions(
        events in history(30),
        pick in any::<u64>(),
        know_before in any::<bool>(),
    ) {
        let place = Place::within(&events[0].access, &mut crate::common::Fixed(pick));
        let expected = oracle(&events, &place);
        let answers = machine(&events, place, know_before);
        for waste in Waste::ALL {
            let found: Vec<(usize, bool)> = answers
                .iter()
                .filter(|(_, a)| a.waste == waste)
                .map(|(n, a)| (*n, a.wasteful))
                .collect();
            prop_assert_eq!(
                found.first().copied(),
                expected[waste as usize],
                "{:?} of {:?}",
                waste,
                events.iter().map(|e| e.access).collect::<Vec<_>>()
            );
            prop_assert!(found.len() <= 1, "one answer a question");
        }
        for (n, answer) in answers {
            // What came between, said without the machine.
            let touched = |e: &&Event| place.overlap(&e.access) != 0;
            let between = || events[1..n].iter().filter(touched);
            let same = |e: &Event| {
                (e.access.address(), e.access.width())
                    == (events[0].access.address(), events[0].access.width())
            };
            prop_assert!(!answer.between.others, "one thread only");
            if answer.waste == Waste::SilentLoad {
                prop_assert_eq!(answer.between.stores, between().any(|e| e.access.kind().stores()));
                prop_assert!(!answer.between.loads);
            }
            if answer.waste == Waste::DeadStore && answer.wasteful {
                let stores = between().filter(|e| e.access.kind().stores());
                prop_assert_eq!(answer.whole, stores.chain([&events[n]]).all(same));
            } else {
                prop_assert_eq!(answer.whole, same(&events[n]));
            }
        }
    }

    #[test]
    fn a_place_is_a_largest_aligned_part(address in 0u64..10_000, width in 1u8..=64, pick in any::<u64>()) {
        let access = Access::new(address, width, Kind::Load, Element::Bits).unwrap();
        let place = Place::within(&access, &mut crate::common::Fixed(pick));
        prop_assert_eq!(Place::new(place.start(), place.len()), Some(place));
        prop_assert_eq!(place.overlap(&access), place.mask());
        let inside = |len: u8| (address..access.end())
            .any(|start| Place::new(start, len).is_some_and(|p| p.overlap(&access) == p.mask()));
        prop_assert!(!inside((place.len() * 2).min(8)) || place.len() == 8);
    }

    #[test]
    fn overlaps_are_counted_byte_by_byte(start in 0u64..40, len in 0u32..4, address in 0u64..60, width in 1u8..=64) {
        let len = 1 << len;
        let place = Place::new(start * u64::from(len), len).unwrap();
        let access = Access::new(address, width, Kind::Load, Element::Bits).unwrap();
        let expected = (0..len).filter(|&n| {
            (address..access.end()).contains(&(place.start() + u64::from(n)))
        });
        prop_assert_eq!(place.overlap(&access), expected.fold(0, |mask, n| mask | 1 << n));
    }
}

fn at(address: u64, width: u8, kind: Kind) -> Access {
    Access::new(address, width, kind, Element::Bits).unwrap()
}

fn watch(access: Access) -> Watch {
    let place = Place::new(access.address(), access.width()).unwrap();
    Watch::new(place, access, Some(1), 1, Asked::ALL).unwrap()
}

#[test]
fn a_store_asks_two_questions_and_watches_writes_alone_after_the_first() {
    let mut watch = watch(at(64, 8, Kind::Store));
    assert_eq!(watch.mode(), Some(Mode::ReadWrite));
    let load = watch.see(&at(64, 8, Kind::Load), None, 1, Tolerance::default());
    assert_eq!(load.next, Some(Mode::Write));
    let store = watch.see(&at(64, 8, Kind::Store), None, 1, Tolerance::default());
    assert_eq!(store.next, None);
    let answers: Vec<(Waste, bool)> = load
        .answers()
        .chain(store.answers())
        .map(|a| (a.waste, a.wasteful))
        .collect();
    assert_eq!(
        answers,
        [(Waste::DeadStore, false), (Waste::SilentStore, true)]
    );
}

#[test]
fn a_load_waits_for_a_load() {
    let mut watch = watch(at(64, 8, Kind::Load));
    let store = watch.see(&at(64, 8, Kind::Store), None, 5, Tolerance::default());
    assert_eq!(
        (store.answers().count(), store.next),
        (0, Some(Mode::ReadWrite))
    );
    let load = watch.see(&at(64, 8, Kind::Load), None, 1, Tolerance::default());
    let answer = load.answers().next().unwrap();
    // Another thread has put the old value back: said so.
    assert!(answer.wasteful && answer.between.stores && answer.between.others);
}

#[test]
fn compare_and_exchange() {
    let cas = at(64, 8, Kind::CompareExchange);
    // Not settled: it loads, and it stores if the content changed.
    let mut failed = watch(at(64, 8, Kind::Store));
    let seen = failed.see(&cas, None, 1, Tolerance::default());
    assert_eq!(seen.next, Some(Mode::Write), "only the load is certain");
    let mut done = watch(at(64, 8, Kind::Store));
    let seen = done.see(&cas, None, 2, Tolerance::default());
    assert_eq!((seen.answers().count(), seen.next), (2, None));
    assert_eq!(Kind::CompareExchange.settled(true), Kind::Both);
    assert_eq!(Kind::CompareExchange.settled(false), Kind::Load);
    // As a sample it asks what a load asks, if what it loaded is known.
    let place = Place::new(64, 8).unwrap();
    assert!(Watch::new(place, cas, None, 1, Asked::ALL).is_none());
    let asked = Watch::new(place, cas, Some(1), 2, Asked::ALL)
        .unwrap()
        .asked();
    assert_eq!(asked, Asked::NONE.with(Waste::SilentLoad));
}

#[test]
fn what_cannot_be_watched() {
    let place = Place::new(64, 8).unwrap();
    let store = at(64, 8, Kind::Store);
    let loads = Asked::NONE.with(Waste::SilentLoad);
    assert!(
        Watch::new(place, store, None, 0, loads).is_none(),
        "nothing to ask"
    );
    assert!(Watch::new(place, at(60, 8, Kind::Store), None, 0, Asked::ALL).is_none());
    assert!(Place::new(65, 2).is_none() && Place::new(66, 3).is_none());
    assert!(Access::new(u64::MAX, 2, Kind::Load, Element::Bits).is_none());
    assert!(Access::new(0, 65, Kind::Load, Element::Bits).is_none());
    assert!(Access::new(0, 0, Kind::Load, Element::Bits).is_none());
    // A trap that does not touch the place is none.
    let mut watch = watch(store);
    let seen = watch.see(&at(72, 8, Kind::Load), None, 1, Tolerance::default());
    assert_eq!(
        (seen.answers().count(), seen.next),
        (0, Some(Mode::ReadWrite))
    );
}
