//! Accounting: whatever happens to a thread's watches, every tick, access, watch and question is accounted for.

use crate::common::{Event, content, history};
use borescope_waste::analysis::accounts::Accounts;
use borescope_waste::handler::tally::WORDS;
use borescope_waste::profile::snapshot;
use borescope_waste::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

/// What else happens before an event.
#[derive(Clone, Copy, Debug)]
enum Other {
    Nothing,
    Tick(u8),
    Missed(Miss),
    Refused(Refusal),
    End(usize, End),
    EndAll(End),
    Limit(usize),
}

fn others() -> impl Strategy<Value = Vec<Other>> {
    let other = prop_oneof![
        4 => Just(Other::Nothing),
        6 => (0u8..4).prop_map(Other::Tick),
        1 => (0usize..6).prop_map(|n| Other::Missed(Miss::ALL[n])),
        1 => (0usize..10).prop_map(|n| Other::Refused(Refusal::ALL[n])),
        1 => (0usize..4, 2usize..8).prop_map(|(slot, n)| Other::End(slot, End::ALL[n])),
        1 => (2usize..8).prop_map(|n| Other::EndAll(End::ALL[n])),
        1 => (0usize..5).prop_map(Other::Limit),
    ];
    prop::collection::vec(other, 60)
}

/// Runs a thread as the agent would.
fn run(
    events: &[Event],
    others: &[Other],
    seed: u64,
    table: &Table<'_>,
    mut check: impl FnMut(&Watches<4>),
) -> Watches<4> {
    let tally = table.tally();
    let mut watches: Watches<4> = Watches::new(seed, Tolerance::default());
    let frame = |n: usize| Frame::new(Frame::FIRST_METHOD + n as u64 % 5, 0).unwrap();
    let origin = |n: usize| Origin {
        context: table.context([frame(n / 5), frame(n)]).unwrap().node,
        line: table.line(frame(n)).unwrap(),
        instruction: Bytes::new(&[0x90]).unwrap(),
        initialising: n.is_multiple_of(11),
    };
    for (n, event) in events.iter().enumerate() {
        for slot in 0..4 {
            let Some(armed) = watches.get(slot) else {
                continue;
            };
            let place = armed.watch.place();
            let quiet =
                armed.watch.mode() == Some(Mode::Write) && event.access.kind() == Kind::Load;
            if place.overlap(&event.access) == 0 || quiet {
                continue;
            }
            let trap = watches
                .trapped(
                    slot,
                    &event.access,
                    Some(content(&event.before, &place)),
                    content(&event.after, &place),
                    &tally,
                )
                .unwrap();
            for answer in trap.seen.answers() {
                table.record(&Pair::new(&trap.armed, &answer, &origin(n), &event.access));
            }
            assert_eq!(watches.get(slot).is_none(), trap.seen.next.is_none());
        }
        match others[n % others.len()] {
            Other::Nothing => {}
            Other::Tick(pick) => {
                watches.tick(&tally);
                watches.reached(&tally);
                if let Some(slot) = watches.choose(&tally) {
                    let place =
                        Place::within(&event.access, &mut crate::common::Fixed(pick.into()));
                    let (before, after) = (
                        content(&event.before, &place),
                        content(&event.after, &place),
                    );
                    match Watch::new(place, event.access, Some(before), after, Asked::ALL) {
                        Some(watch) => {
                            let armed = Armed {
                                watch,
                                origin: origin(n),
                                object: u64::from(pick),
                            };
                            assert_eq!(watches.arm(slot, armed, &tally), watch.mode());
                        }
                        None => watches.refuse(Refusal::NotAsked, &tally),
                    }
                }
            }
            Other::Missed(miss) => {
                watches.tick(&tally);
                watches.missed(miss, &tally);
            }
            Other::Refused(refusal) => {
                watches.tick(&tally);
                watches.reached(&tally);
                watches.refuse(refusal, &tally);
            }
            Other::End(slot, end) => watches.end(slot, end, &tally),
            Other::EndAll(end) => watches.end_all(end, &tally),
            Other::Limit(limit) => watches.set_limit(limit),
        }
        check(&watches);
    }
    watches
}

proptest! {
    #[test]
    fn the_sums_come_out(events in history(120), others in others(), seed in any::<u64>()) {
        let capacity = Capacity::new(64, 32).unwrap();
        let words: Vec<AtomicU64> = (0..capacity.words()).map(|_| AtomicU64::new(0)).collect();
        let table = Table::make(&words, capacity, 0).unwrap();
        let tally = table.tally();
        let mut watches = run(&events, &others, seed, &table, |watches| {
            let accounts = Accounts::of(&tally);
            accounts.check(false).unwrap();
            let mut under_way = accounts.sums().map(|(_, whole, parts)| whole - parts);
            // Ticks and answers are never under way here; what is armed and asked is what the registers hold.
            assert_eq!((under_way[0], under_way[1], under_way[6]), (0, 0, 0));
            assert_eq!(under_way[2], watches.armed() as u64);
            for waste in Waste::ALL {
                let open = (0..4).filter_map(|s| watches.get(s)).filter(|a| a.watch.asked().has(waste));
                under_way[3 + waste as usize] -= open.count() as u64;
            }
            assert_eq!(under_way[3..6], [0, 0, 0]);
        });
        watches.end_all(End::Stopped, &tally);
        let accounts = Accounts::of(&tally);
        prop_assert_eq!(accounts.check(true), Ok(()));
        // The table's pairs are the answers.
        let profile = Profile::read(&snapshot(&words)).unwrap();
        prop_assert_eq!(profile.accounts, accounts);
        for waste in Waste::ALL {
            let of = |wasteful: bool| -> u64 {
                let mine = profile.pairs.iter().filter(|(p, _)| p.waste == waste && p.wasteful == wasteful);
                mine.map(|(_, n)| n).sum()
            };
            let lost = accounts.get(Counter::NoRoom);
            for (wasteful, counter) in [(true, Counter::Wasteful(waste)), (false, Counter::Useful(waste))] {
                let counted = accounts.get(counter);
                prop_assert!(of(wasteful) <= counted && counted <= of(wasteful) + lost);
            }
        }
    }

    /// The same seed and the same events: the same result.
    #[test]
    fn the_seed_decides(events in history(80), others in others(), seed in any::<u64>()) {
        let capacity = Capacity::new(256, 128).unwrap();
        let once = || {
            let words: Vec<AtomicU64> = (0..capacity.words()).map(|_| AtomicU64::new(0)).collect();
            let table = Table::make(&words, capacity, 0).unwrap();
            run(&events, &others, seed, &table, |_| {});
            Profile::read(&snapshot(&words)).unwrap()
        };
        prop_assert_eq!(once(), once());
    }
}

#[test]
fn each_counter_has_a_word_of_its_own() {
    let counters: Vec<Counter> = Accounts::counters().collect();
    let indexes: HashSet<usize> = counters.iter().map(|c| c.index()).collect();
    assert_eq!(indexes.len(), counters.len());
    assert!(indexes.iter().all(|&i| i < WORDS));
}

#[test]
fn the_report_names_each_counter_once() {
    let accounts = Accounts::default();
    let names: Vec<&str> = accounts.samples().map(|(name, _)| name).collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    let contract = [
        "ticks",
        "armed",
        "completed",
        "lost_to_gc",
        "replaced",
        "step_limit",
        "no_stack",
    ];
    assert!(contract.iter().all(|name| names.contains(name)));
}

#[test]
fn an_imbalance_is_named() {
    let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let tally = Tally::new(&words).unwrap();
    tally.add_many(Counter::Armed, 3);
    tally.add_many(Counter::Reached, 3);
    tally.add_many(Counter::Tick, 3);
    tally.add(Counter::Ended(End::Collection));
    let accounts = Accounts::of(&tally);
    assert_eq!(accounts.check(false), Ok(()), "two are armed");
    assert_eq!(
        accounts.check(true).unwrap_err().to_string(),
        "watches armed: 3 are not the 1 that they came to"
    );
    tally.add_many(Counter::Ended(End::Replaced), 3);
    assert!(Accounts::of(&tally).check(false).is_err());
    assert!(Tally::new(&words[1..]).is_none());
}

#[test]
fn registers_that_a_debugger_holds() {
    let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let tally = Tally::new(&words).unwrap();
    let mut watches: Watches<4> = Watches::new(1, Tolerance::default());
    let access = Access::new(64, 8, Kind::Store, Element::Bits).unwrap();
    let watch = Watch::new(Place::new(64, 8).unwrap(), access, None, 0, Asked::ALL).unwrap();
    let armed = Armed {
        watch,
        origin: Origin::default(),
        object: 0,
    };
    watches.set_limit(2);
    for _ in 0..50 {
        if let Some(slot) = watches.choose(&tally) {
            assert!(slot < 2);
            watches.arm(slot, armed, &tally);
        }
    }
    assert_eq!(
        (watches.armed(), watches.at(71), watches.at(72)),
        (2, Some(0), None)
    );
    watches.set_limit(0);
    assert_eq!(watches.choose(&tally), None);
    assert_eq!(watches.armed(), 2, "those that are armed stay");
    // No such register: counted, not lost.
    let refused = tally.get(Counter::Refused(Refusal::NotAsked));
    assert_eq!(watches.arm(4, armed, &tally), None);
    assert_eq!(tally.get(Counter::Refused(Refusal::NotAsked)), refused + 1);
    assert!(watches.trapped(3, &access, None, 0, &tally).is_none());
}
