//! The registry: many threads, numbers that run out, numbers that come back, and the spread of the hashes.

mod common;

use borescope_sites::rng::Rng;
use borescope_sites::*;
use common::Kept;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn site(id: u32, class: u32, method: u32) -> Site {
    Site {
        id: SiteId(id),
        class: ClassId(class),
        method: MethodId(method),
    }
}

/// As in the agent: a table of words, a log.
struct Table {
    words: Vec<AtomicU64>,
    events: Mutex<Vec<Event>>,
}

impl Sink for Table {
    fn log(&self, event: &Event) -> bool {
        self.events.lock().unwrap().push(*event);
        true
    }
    fn publish(&self, site: SiteId, _: Space, stamp: Option<Stamp>) {
        let word = stamp.map_or(0, Stamp::pack);
        self.words[site.0 as usize].store(word, Ordering::Release);
    }
}

/// Threads mark, shorten and unload at once; between rounds a walk meets what survived and releases the rest.
#[test]
fn threads_never_make_an_ambiguous_mark() {
    const SITES: u32 = 60;
    const THREADS: u32 = 4;
    let policy = Policy {
        min_id_bits: 3,
        min_number_bits: 1,
        share: 1,
        merge_below: 4,
        guard_bits: 0,
        wrap: true,
    };
    let scheme = Scheme::new(Mode::Dynamic, 9, policy, 77).unwrap();
    let table = Table {
        words: (0..SITES).map(|_| AtomicU64::new(0)).collect(),
        events: Mutex::default(),
    };
    let registry = Registry::new(scheme, table);
    let all = |id| site(id, id % 2, id % 7);
    let mut objects: Vec<(u32, u32)> = Vec::new();
    let mut released = 0;
    let mut rng = Rng::new(1);
    let run = |seed: u32, round: u32| {
        let mut rng = Rng::new(u64::from(seed));
        let mut marked = Vec::new();
        for _ in 0..500 {
            // Half of the sites run only in some rounds.
            let id = rng.next_u32() % SITES;
            if id.is_multiple_of(2) && !(id + round).is_multiple_of(5) {
                continue;
            }
            let word = registry.sink().words[id as usize].load(Ordering::Acquire);
            let known = Stamp::unpack(word);
            let Some(stamp) = known.or_else(|| registry.stamp(&all(id), Space::Dynamic)) else {
                continue;
            };
            let random = rng.next_u32();
            marked.push((id, stamp.field(random)));
            if stamp.triggers(random) {
                registry.shorten(&all(id), stamp);
            }
            if random.is_multiple_of(97) {
                registry.idle(&all(id));
            }
        }
        marked
    };
    for round in 0..30 {
        std::thread::scope(|scope| {
            let start = |thread| scope.spawn(move || run(round * THREADS + thread, round));
            let threads: Vec<_> = (0..THREADS).map(start).collect();
            for thread in threads {
                objects.extend(thread.join().unwrap());
            }
        });
        // A third of the objects survive; of every fourth site all die, and its code is unloaded.
        objects.retain(|&(id, _)| rng.next_u32().is_multiple_of(3) && (id + round) % 4 != 0);
        let unloaded = (0..SITES).filter(|id| (id + round) % 4 == 0);
        unloaded.for_each(|id| registry.idle(&all(id)));
        // The threads have ended: none holds a stamp.
        let mut live = registry.walk(registry.grace());
        let owner = |id: u32, decoded: Option<Decoded>| match decoded.unwrap().owner {
            Owner::Site(owner) => assert_eq!(owner.0, id),
            Owner::Method(owner) => assert_eq!(owner, all(id).method),
            Owner::Others => {}
        };
        for &(id, field) in &objects {
            owner(id, live.see(all(id).class, field));
        }
        released += registry.release(&live);
        let decoder = registry.decoder();
        for &(id, field) in &objects {
            owner(id, decoder.decode(all(id).class, field));
        }
    }
    assert!(released > 100, "numbers did come back: {released}");
    // The log in the order in which it was written, of all classes, reads back; the registry knows the same.
    let events = registry.sink().events.lock().unwrap().clone();
    let history = History::from_events(scheme, &events).unwrap();
    let now = history.decoder(registry.epoch());
    for field in 0..1 << 9 {
        for class in [ClassId(0), ClassId(1)] {
            let owner = |d: Option<Decoded>| d.map(|d| (d.owner, d.number));
            assert_eq!(
                owner(now.decode(class, field)),
                owner(registry.decoder().decode(class, field))
            );
        }
    }
}

#[test]
fn the_seeds_example_through_the_registry() {
    let scheme = Scheme::new(Mode::Dynamic, 9, Policy::SEED, 0).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let (x, y) = (site(0, 1, 1), site(1, 1, 1));
    for step in [x, y, x, x, y, y, x] {
        match registry.sink().stamp(step.id, Space::Dynamic) {
            None => registry.stamp(&step, Space::Dynamic),
            Some(stamp) => registry.shorten(&step, stamp),
        };
    }
    let log: Vec<String> = registry
        .sink()
        .log_so_far()
        .iter()
        .map(|e| format!("{} {} {:?} {:?}", e.epoch, e.number, e.owner, e.action))
        .collect();
    let given: Vec<(String, u32)> = registry
        .sink()
        .log_so_far()
        .iter()
        .map(|e| match e.owner {
            Owner::Site(s) => (e.number.to_string(), s.0),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("00000", 0),
        ("00001", 1),
        ("0001", 0),
        ("001", 0),
        ("0100", 1),
        ("010", 1),
        ("10", 0),
    ];
    assert_eq!(given, expected.map(|(n, s)| (n.to_owned(), s)), "{log:?}");
    // Lengths of the identifier: 9 bits less the number.
    let stamp = |s: Site| registry.sink().stamp(s.id, Space::Dynamic).unwrap();
    assert_eq!((stamp(x).id_bits(), stamp(y).id_bits()), (7, 6));
    // A stamp seen before another thread's success gives that thread's stamp, and no shorter number.
    let old = Stamp::unpack(stamp(x).pack() ^ 1).unwrap();
    assert_eq!(registry.shorten(&x, old), Some(stamp(x)));
    assert_eq!(registry.sink().log_so_far().len(), 7);
}

#[test]
fn sites_share_when_numbers_run_out() {
    // 16 leaves; 4 are kept for sharing.
    let policy = Policy {
        min_id_bits: 2,
        merge_below: 4,
        ..Policy::SEED
    };
    let scheme = Scheme::new(Mode::Dynamic, 6, policy, 5).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let owners: Vec<Owner> = (0..30)
        .map(|id| {
            let site = site(id, 3, id % 5);
            let stamp = registry.stamp(&site, Space::Dynamic).unwrap();
            registry
                .decoder()
                .decode(ClassId(3), stamp.field(id))
                .unwrap()
                .owner
        })
        .collect();
    for (id, owner) in owners.iter().enumerate() {
        let id = id as u32;
        let expected = match id {
            0..=11 => Owner::Site(SiteId(id)),
            // Three numbers for methods: those of sites 12, 13 and 14; later sites of these share them.
            _ if [2, 3, 4].contains(&(id % 5)) => Owner::Method(MethodId(id % 5)),
            _ => Owner::Others,
        };
        assert_eq!(*owner, expected, "site {id}");
    }
    // With the seed's policy those after the last leaf get nothing.
    let scheme = Scheme::new(
        Mode::Dynamic,
        6,
        Policy {
            min_id_bits: 2,
            ..Policy::SEED
        },
        5,
    )
    .unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let got = (0..30).filter(|&id| registry.stamp(&site(id, 3, id), Space::Dynamic).is_some());
    assert_eq!(got.count(), 16);
}

#[test]
fn a_number_takes_all_of_its_owners_below_it_in() {
    let scheme = Scheme::new(Mode::Dynamic, 8, Policy::SEED, 5).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let (a, b) = (site(0, 1, 1), site(1, 1, 1));
    let shorten =
        |s: &Site| registry.shorten(s, registry.sink().stamp(s.id, Space::Dynamic).unwrap());
    let collect = || registry.release(&registry.walk(registry.grace()));
    registry.stamp(&a, Space::Dynamic).unwrap(); // 0000
    registry.stamp(&b, Space::Dynamic).unwrap(); // 0001
    shorten(&a).unwrap(); // 001
    registry.idle(&b);
    // 0001 comes back; 0000 has an object.
    let mut live = registry.walk(registry.grace());
    let slots = 0..live.decoder().slots() as u32;
    let numbers: Vec<String> = slots
        .map(|s| live.decoder().slot(s).unwrap().2.to_string())
        .collect();
    assert_eq!(numbers, ["0000", "0001", "001"]);
    live.see_slot(0);
    assert_eq!(registry.release(&live), 1);
    shorten(&a).unwrap(); // 00, and 0000 and 001 are one with it
    let last = *registry.sink().log_so_far().last().unwrap();
    assert_eq!(
        (last.number.to_string(), last.action),
        ("00".to_owned(), Action::Given)
    );
    assert_eq!(registry.decoder().slots(), 1);
    registry.idle(&a);
    assert_eq!((collect(), collect()), (1, 0));
    // Every event is true: 0000 is nobody's, and the next site's.
    History::from_events(scheme, &registry.sink().log_so_far()).unwrap();
    registry.stamp(&site(2, 1, 1), Space::Dynamic).unwrap();
    assert_eq!(
        registry
            .sink()
            .log_so_far()
            .last()
            .unwrap()
            .number
            .to_string(),
        "0000"
    );
}

#[test]
fn a_failed_search_is_tried_again_when_numbers_come_back() {
    for wrap in [false, true] {
        let policy = Policy {
            min_id_bits: 4,
            wrap,
            ..Policy::SEED
        };
        let scheme = Scheme::new(Mode::Dynamic, 6, policy, 5).unwrap();
        let registry = Registry::new(scheme, Kept::default());
        // 00, 01, 10, 11
        let sites: Vec<Site> = (0..4).map(|id| site(id, 1, 1)).collect();
        sites
            .iter()
            .for_each(|s| assert!(registry.stamp(s, Space::Dynamic).is_some()));
        let third = || registry.sink().stamp(SiteId(2), Space::Dynamic).unwrap();
        let first = third();
        assert!(first.may_shorten());
        registry.shorten(&sites[2], first);
        assert!(!third().may_shorten() && third().id_bits() == 4);
        assert_eq!((registry.failures(), third().field(9)), (1, first.field(9)));
        registry.idle(&sites[0]);
        registry.idle(&sites[1]);
        assert_eq!(registry.release(&registry.walk(registry.grace())), 2);
        assert_eq!(third(), first);
        // What is free lies left of 10: the seed's search does not go there.
        registry.shorten(&sites[2], third());
        assert_eq!(third().id_bits(), if wrap { 5 } else { 4 });
        assert_eq!(registry.failures(), if wrap { 1 } else { 2 });
    }
}

#[test]
fn a_shorter_number_takes_its_share_of_what_is_free() {
    for (share, id_bits) in [(0, 14), (3, 11), (5, 9)] {
        let policy = Policy {
            share,
            ..Policy::SEED
        };
        let scheme = Scheme::new(Mode::Dynamic, 14, policy, 5).unwrap();
        let registry = Registry::new(scheme, Kept::default());
        mark(&registry, &site(0, 1, 1), &mut Rng::new(3), 20_000);
        // A lone site's number doubles each time: to hold 1/8 it takes another 1/16, to hold 1/4 another 1/8, which is more than 1/8 of what is free.
        let stamp = registry.sink().stamp(SiteId(0), Space::Dynamic).unwrap();
        assert_eq!(stamp.id_bits(), id_bits);
    }
}

#[test]
fn a_hash_can_be_referenced_also_when_the_log_is_full() {
    let policy = Policy {
        min_id_bits: 1,
        merge_below: 4,
        ..Policy::SEED
    };
    // 7 or 8 static numbers, 4 dynamic leaves: others, two methods, and one kept free.
    let scheme = Scheme::new(Mode::Hybrid, 4, policy, 5).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let sites: Vec<Site> = (0..5).map(|id| site(id, 1, id)).collect();
    let plain: Vec<u32> = sites
        .iter()
        .map(|s| registry.stamp(s, Space::Static).unwrap().field(0))
        .collect();
    let reference = |field| registry.reference(ClassId(1), field, 1, |s| MethodId(s.0));
    let owner = |field| registry.decode(ClassId(1), field);
    let hashed: Vec<u32> = (0..3).map(|i| reference(plain[i]).unwrap()).collect();
    let owners = hashed.iter().map(|&f| owner(f).unwrap().0);
    assert_eq!(
        owners.collect::<Vec<_>>(),
        [
            Owner::Method(MethodId(0)),
            Owner::Method(MethodId(1)),
            Owner::Others
        ]
    );
    // The only site that marks for others goes, with its objects.
    registry.idle(&sites[2]);
    let mut live = registry.walk(registry.grace());
    for field in [plain[3], plain[4], hashed[0], hashed[1]] {
        live.see(ClassId(1), field).unwrap();
    }
    registry.release(&live);
    registry.sink().room.store(0, Ordering::Relaxed);
    for field in [plain[3], plain[4]] {
        assert_eq!(
            owner(reference(field).unwrap()),
            Some((Owner::Others, Space::Dynamic))
        );
    }
}

/// Marks `count` objects at a site as a probe does.
fn mark(registry: &Registry<Kept>, site: &Site, rng: &mut Rng, count: u32) -> Vec<u32> {
    let space = registry.scheme().at_allocation();
    let mut fields = Vec::new();
    for _ in 0..count {
        let known = registry.sink().stamp(site.id, space);
        let Some(stamp) = known.or_else(|| registry.stamp(site, space)) else {
            break;
        };
        let random = rng.next_u32();
        fields.push(stamp.field(random));
        if stamp.triggers(random) {
            registry.shorten(site, stamp);
        }
    }
    fields
}

#[test]
fn a_lone_hot_site_leaves_room_for_others() {
    let seeds = Scheme::new(Mode::Dynamic, 14, Policy::SEED, 5).unwrap();
    let ours = Scheme::ours(Mode::Dynamic, 14, 5).unwrap();
    for (scheme, later) in [(seeds, 0), (ours, 1)] {
        let registry = Registry::new(scheme, Kept::default());
        let mut rng = Rng::new(3);
        mark(&registry, &site(0, 1, 1), &mut rng, 100_000);
        assert_eq!(mark(&registry, &site(1, 1, 1), &mut rng, 1).len(), later);
    }
}

#[test]
fn numbers_come_back_only_when_nothing_carries_them() {
    let scheme = Scheme::new(Mode::Static { number_bits: 4 }, 8, Policy::SEED, 9).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    for id in 0..16 {
        assert!(registry.stamp(&site(id, 1, 1), Space::Static).is_some());
    }
    let newcomer = site(99, 1, 1);
    assert!(registry.stamp(&newcomer, Space::Static).is_none());
    let field = registry
        .stamp(&site(5, 1, 1), Space::Static)
        .unwrap()
        .field(3);
    // A grace from before the site went idle proves nothing.
    let early = registry.grace();
    registry.idle(&site(5, 1, 1));
    registry.idle(&site(7, 1, 1));
    let live = registry.walk(early);
    assert_eq!(registry.release(&live), 0);
    // Site 5 has an object, site 7 none.
    let mut live = registry.walk(registry.grace());
    assert_eq!(
        live.see(ClassId(1), field).unwrap().owner,
        Owner::Site(SiteId(5))
    );
    assert_eq!(registry.release(&live), 1);
    let before = registry.epoch();
    let seventh = registry.sink().log_so_far()[7].number;
    let stamp = registry.stamp(&newcomer, Space::Static).unwrap();
    assert_eq!(registry.sink().log_so_far().last().unwrap().number, seventh);
    // The same field: site 7 before, the newcomer now.
    let history = History::from_events(scheme, &registry.sink().log_so_far()).unwrap();
    let at = |epoch| {
        history
            .decode(ClassId(1), stamp.field(0), epoch)
            .map(|(o, _)| o)
    };
    assert_eq!(at(before), None);
    assert_eq!(at(before - 2), Some(Owner::Site(SiteId(7))));
    assert_eq!(at(registry.epoch()), Some(Owner::Site(SiteId(99))));
    // Site 5 comes back: it still holds its number.
    let again = registry.stamp(&site(5, 1, 1), Space::Static).unwrap();
    assert_eq!(again.field(3), field);
}

#[test]
fn same_site_hashes_are_spread() {
    for mode in [Mode::Dynamic, Mode::Hybrid] {
        let scheme = Scheme::ours(mode, 31, 42).unwrap();
        let registry = Registry::new(scheme, Kept::default());
        let mut rng = Rng::new(8);
        let hot = site(0, 1, 1);
        let fields: Vec<u32> = match mode {
            Mode::Dynamic => mark(&registry, &hot, &mut rng, 200_000),
            _ => {
                let plain = registry.stamp(&hot, Space::Static).unwrap().field(0);
                (0..200_000)
                    .map(|_| {
                        registry
                            .reference(ClassId(1), plain, rng.next_u32(), |_| MethodId(1))
                            .unwrap()
                    })
                    .collect()
            }
        };
        let distinct: HashSet<_> = fields.iter().collect();
        // 200,000 in 2^22 or more identifiers: 2.4 % meet another one; 1 % more for those while identifiers were short.
        assert!(distinct.len() > 193_000, "{mode:?}: {}", distinct.len());
        // The bits that hash tables take: 1,024 buckets of 195 on average, standard deviation 14.
        for shift in [0, 8] {
            let mut buckets = vec![0u32; 1024];
            fields
                .iter()
                .for_each(|f| buckets[(f >> shift & 1023) as usize] += 1);
            let (low, high) = (buckets.iter().min().unwrap(), buckets.iter().max().unwrap());
            assert!(
                *low > 195 - 85 && *high < 195 + 85,
                "{mode:?} {shift}: {low} {high}"
            );
        }
    }
}

#[test]
fn many_sites_of_many_classes_look_different() {
    let scheme = Scheme::ours(Mode::Dynamic, 31, 42).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let mut rng = Rng::new(8);
    let mut values: HashMap<u32, u32> = HashMap::new();
    for id in 0..2_000 {
        for field in mark(&registry, &site(id, id % 200, id % 31), &mut rng, 20) {
            *values.entry(field).or_default() += 1;
        }
    }
    // The first numbers of all classes are the same; the class constants tell them apart.
    let distinct = values.len();
    let max = *values.values().max().unwrap();
    assert!(distinct > 30_000 && max <= 8, "{distinct} {max}");
}

#[test]
fn the_guard_keeps_hashes_of_the_vm_out() {
    for (guard_bits, most) in [(0, 0.3), (4, 0.3 / 16.0)] {
        let ours = Scheme::ours(Mode::Dynamic, 31, 42).unwrap();
        let policy = Policy {
            guard_bits,
            ..ours.policy()
        };
        let scheme = Scheme::new(Mode::Dynamic, 31, policy, 42).unwrap();
        let registry = Registry::new(scheme, Kept::default());
        let mut rng = Rng::new(8);
        for id in 0..3 {
            mark(&registry, &site(id, 1, 1), &mut rng, 200_000);
        }
        let decoder = registry.decoder();
        let class = decoder.class(ClassId(1)).unwrap();
        let tried = 400_000;
        let passed = (0..tried)
            .filter(|_| class.decode(rng.next_u32() >> 1).is_some())
            .count();
        let (share, coverage) = (passed as f64 / f64::from(tried), class.coverage());
        assert!(
            coverage > 0.0 && coverage < most,
            "{guard_bits}: {coverage}"
        );
        // Within six standard deviations of what the decoder says.
        let deviation = (coverage * (1.0 - coverage) / f64::from(tried)).sqrt();
        assert!(
            (share - coverage).abs() < 6.0 * deviation,
            "{guard_bits}: {share} {coverage}"
        );
    }
}

/// The VM has drawn hashes before the first mark, at random, and counts those that it draws later.
#[test]
fn no_hash_of_the_vm_decodes() {
    let scheme = Scheme::ours(Mode::Dynamic, 31, 42).unwrap();
    let registry = Registry::new(scheme, Kept::default());
    let mut rng = Rng::new(8);
    let classes = 1..4;
    let before: Vec<u32> = (0..20_000).map(|_| rng.next_u32() >> 1).collect();
    for class in classes.clone() {
        let held = registry.avoid(ClassId(class), before.iter().copied());
        assert_eq!(held, 0);
    }
    let mut covered = 0.0;
    for class in classes.clone() {
        for id in 0..20 {
            let site = site(100 * class + id, class, 1);
            let fields = mark(&registry, &site, &mut rng, 10_000);
            assert_eq!(fields.len(), 10_000);
            let (least, ours) = (fields.iter().min().unwrap(), scheme.guard_top());
            assert!(*least >= ours && ours == 1 << 30);
        }
        let decoder = registry.decoder();
        let class = decoder.class(ClassId(class)).unwrap();
        covered += class.coverage();
        assert!(before.iter().all(|&hash| class.decode(hash).is_none()));
        // All that it may count, in steps.
        assert!(
            (0..scheme.guard_top())
                .step_by(997)
                .all(|hash| class.decode(hash).is_none())
        );
    }
    // Of so many random hashes some hundred would have decoded.
    assert!(covered * before.len() as f64 > 100.0, "{covered}");
}
