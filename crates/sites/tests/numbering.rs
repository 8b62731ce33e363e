//! The registry against a brute-force model that knows of every object who allocated it: no ambiguity, at any time, in any mode.

mod common;

use borescope_sites::*;
use common::{Kept, schemes};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Debug)]
enum Op {
    /// Allocates an object at a site, with these random bits.
    Allocate(u32, u32),
    /// Asks for an object's hash, as the n-th of all.
    Hash(usize, u32),
    /// An object dies.
    Die(usize),
    /// All objects of a site die and its code is unloaded.
    Unload(u32),
    /// Its code is unloaded, its objects live on.
    Idle(u32),
    /// A thread that still holds the stamp it loaded earlier marks with it.
    Late(u32, u32),
    /// Grace, walk, release.
    Collect,
    /// An object is found that nobody marked, with this hash.
    Strange(u32, u32),
}

const SITES: u32 = 24;

fn site(id: u32) -> Site {
    // 3 classes, 2 methods that allocate each.
    Site {
        id: SiteId(id),
        class: ClassId(1 + id % 3),
        method: MethodId(id % 6),
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let random = || prop_oneof![any::<u32>(), Just(0u32)];
    let one = prop_oneof![
        8 => (0..SITES, random()).prop_map(|(s, r)| Op::Allocate(s, r)),
        6 => (any::<usize>(), random()).prop_map(|(n, r)| Op::Hash(n, r)),
        3 => any::<usize>().prop_map(Op::Die),
        1 => (0..SITES).prop_map(Op::Unload),
        1 => (0..SITES).prop_map(Op::Idle),
        2 => (0..SITES, random()).prop_map(|(s, r)| Op::Late(s, r)),
        1 => Just(Op::Collect),
        2 => (1u32..4, any::<u32>()).prop_map(|(c, h)| Op::Strange(c, h)),
    ];
    prop::collection::vec(one, 1..200)
}

/// An object: who allocated it, what the model expects to decode, and from when on it carries its field.
#[derive(Clone, Debug)]
struct Object {
    site: Site,
    owner: Owner,
    field: u32,
    since: u64,
    hashed: bool,
    until: u64,
}

struct World {
    registry: Registry<Kept>,
    objects: Vec<Object>,
    live: Vec<usize>,
    /// Stamps that threads may still hold: of allocations since the last grace.
    late: HashMap<u32, (Stamp, Owner)>,
    /// Hashes that decoded to nobody when they were found.
    strange: Vec<(ClassId, u32)>,
}

impl World {
    fn mark(&self, site: &Site, space: Space, random: u32) -> Option<(Stamp, u32, Owner)> {
        let stamp = match self.registry.sink().stamp(site.id, space) {
            Some(stamp) => stamp,
            None => self.registry.stamp(site, space)?,
        };
        assert_eq!(self.registry.sink().stamp(site.id, space), Some(stamp));
        let field = stamp.field(random);
        assert_eq!(Stamp::unpack(stamp.pack()), Some(stamp));
        let decoded = self
            .registry
            .decoder()
            .decode(site.class, field)
            .expect("a fresh mark decodes");
        assert_eq!(decoded.space, space);
        if stamp.triggers(random) {
            let after = self.registry.shorten(site, stamp).unwrap();
            assert!(after.id_bits() >= stamp.id_bits());
            // Failure keeps the number.
            if after.id_bits() == stamp.id_bits() {
                assert_eq!(after.field(random), field);
                assert!(!after.may_shorten());
            }
            assert_eq!(self.registry.sink().stamp(site.id, space), Some(after));
        }
        Some((stamp, field, decoded.owner))
    }

    fn check_owner(&self, site: &Site, owner: Owner) {
        match owner {
            Owner::Site(id) => assert_eq!(id, site.id),
            Owner::Method(method) => assert_eq!(method, site.method),
            Owner::Others => {}
        }
    }

    fn allocate(&mut self, site: Site, field: u32, owner: Owner) {
        self.check_owner(&site, owner);
        self.live.push(self.objects.len());
        self.objects.push(Object {
            site,
            owner,
            field,
            since: self.registry.epoch(),
            hashed: false,
            until: u64::MAX,
        });
    }

    fn step(&mut self, op: &Op) {
        let space = self.registry.scheme().at_allocation();
        match *op {
            Op::Allocate(id, random) => {
                let site = site(id);
                if let Some((stamp, field, owner)) = self.mark(&site, space, random) {
                    self.late.entry(id).or_insert((stamp, owner));
                    self.allocate(site, field, owner);
                }
            }
            Op::Late(id, random) => {
                if let Some(&(stamp, owner)) = self.late.get(&id) {
                    self.allocate(site(id), stamp.field(random), owner);
                }
            }
            Op::Hash(n, random) => {
                let Some(&index) = self.live.get(n % self.live.len().max(1)) else {
                    return;
                };
                let object = self.objects[index].clone();
                if self.registry.scheme().mode() != Mode::Hybrid || object.hashed {
                    return;
                }
                // The agent knows only the class and the field.
                let reference = |field| {
                    self.registry
                        .reference(object.site.class, field, random, |s| site(s.0).method)
                };
                let Some(field) = reference(object.field) else {
                    assert_eq!(
                        self.registry.scheme().policy().merge_below,
                        0,
                        "there always is Others"
                    );
                    return;
                };
                // The hash never changes again.
                assert_eq!(reference(field), Some(field));
                let decoded = self
                    .registry
                    .decoder()
                    .decode(object.site.class, field)
                    .unwrap();
                self.check_owner(&object.site, decoded.owner);
                // Nothing is decoded more exactly than was known.
                let exactness = |o| match o {
                    Owner::Site(_) => 2,
                    Owner::Method(_) => 1,
                    Owner::Others => 0,
                };
                assert!(exactness(decoded.owner) <= exactness(object.owner));
                let now = self.registry.epoch();
                self.objects[index].until = now;
                self.objects.push(Object {
                    field,
                    owner: decoded.owner,
                    since: now,
                    hashed: true,
                    ..object
                });
                let at = self.live.iter().position(|&i| i == index).unwrap();
                self.live[at] = self.objects.len() - 1;
            }
            Op::Die(n) => {
                if !self.live.is_empty() {
                    let index = self.live.swap_remove(n % self.live.len());
                    self.objects[index].until = self.registry.epoch();
                }
            }
            Op::Unload(id) => {
                let now = self.registry.epoch();
                for &index in &self.live {
                    if self.objects[index].site.id.0 == id {
                        self.objects[index].until = now;
                    }
                }
                self.live.retain(|&i| self.objects[i].site.id.0 != id);
                self.registry.idle(&site(id));
            }
            Op::Idle(id) => self.registry.idle(&site(id)),
            Op::Collect => {
                let grace = self.registry.grace();
                self.late.clear(); // every thread has passed a point without stamps
                let mut live = self.registry.walk(grace);
                for &index in &self.live {
                    let object = &self.objects[index];
                    let decoded = live.see(object.site.class, object.field).unwrap();
                    assert_eq!(decoded.owner, object.owner);
                }
                self.registry.release(&live);
            }
            Op::Strange(class, hash) => {
                let scheme = self.registry.scheme();
                if scheme.mode() == Mode::Hybrid {
                    return;
                }
                let class = ClassId(class);
                let hash = (u64::from(hash) & ((1 << scheme.width()) - 1)) as u32;
                let held = self.registry.decode(class, hash).is_some();
                assert_eq!(self.registry.avoid(class, [hash]), u64::from(held));
                if !held {
                    self.strange.push((class, hash));
                }
            }
        }
    }

    /// Every live object decodes to who marked it; held numbers are prefix-free.
    fn check(&self) {
        let decoder = self.registry.decoder();
        for &index in &self.live {
            let object = &self.objects[index];
            let decoded = decoder.decode(object.site.class, object.field);
            assert_eq!(decoded.map(|d| d.owner), Some(object.owner), "{object:?}");
            let expected = if object.hashed {
                Space::Dynamic
            } else {
                self.registry.scheme().at_allocation()
            };
            assert_eq!(decoded.map(|d| d.space), Some(expected));
            assert_eq!(
                self.registry.decode(object.site.class, object.field),
                Some((object.owner, expected))
            );
        }
        for &(class, hash) in &self.strange {
            assert_eq!(decoder.decode(class, hash), None, "{hash:x}");
            assert_eq!(self.registry.decode(class, hash), None, "{hash:x}");
        }
        let held: Vec<_> = (0..decoder.slots())
            .map(|s| decoder.slot(s as u32).unwrap())
            .collect();
        for (i, a) in held.iter().enumerate() {
            for b in &held[i + 1..] {
                assert!(
                    (a.0, a.1) != (b.0, b.1) || !a.2.is_prefix_of(b.2) && !b.2.is_prefix_of(a.2),
                    "{a:?} {b:?}"
                );
            }
        }
    }
}

fn world(scheme: Scheme) -> World {
    World {
        registry: Registry::new(scheme, Kept::default()),
        objects: Vec::new(),
        live: Vec::new(),
        late: HashMap::new(),
        strange: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_object_decodes_at_all_times(scheme in schemes(), ops in ops()) {
        let mut world = world(scheme);
        for op in &ops {
            world.step(op);
            world.check();
        }
        // And from the log alone, also the dead, at any time at which they carried their field.
        let events = world.registry.sink().log_so_far();
        let history = History::from_events(scheme, &events).unwrap();
        for object in &world.objects {
            let end = object.until.min(world.registry.epoch());
            for at in [object.since, object.since + (end - object.since) / 2, end] {
                let owner = history.decode(object.site.class, object.field, at).map(|(o, _)| o);
                prop_assert_eq!(owner, Some(object.owner), "at {} {:?}", at, object);
            }
            prop_assert_eq!(history.decoder(end).decode(object.site.class, object.field).map(|d| d.owner), Some(object.owner));
        }
    }

    /// The log says what the registry knows; the same calls give the same log.
    #[test]
    fn the_log_is_whole_and_determined(scheme in schemes(), ops in ops()) {
        let logs: Vec<Vec<Event>> = (0..2).map(|_| {
            let mut world = world(scheme);
            ops.iter().for_each(|op| world.step(op));
            let events = world.registry.sink().log_so_far();
            let now = History::from_events(scheme, &events).unwrap().decoder(world.registry.epoch());
            let held = |d: &Decoder| (0..d.slots()).filter_map(|s| d.slot(s as u32)).collect::<HashSet<_>>();
            assert_eq!(held(&now), held(&world.registry.decoder()));
            events
        }).collect();
        prop_assert_eq!(&logs[0], &logs[1]);
        prop_assert!(logs[0].windows(2).all(|w| w[0].epoch < w[1].epoch));
        for event in &logs[0] {
            prop_assert_eq!(Event::from_bytes(&event.to_bytes()).unwrap(), *event);
        }
        prop_assert_eq!(Scheme::from_bytes(&scheme.to_bytes()).unwrap(), scheme);
    }

    /// A log that takes no more events: no object carries a number that is not in it.
    #[test]
    fn a_full_log_ends_the_marking_not_the_decoding(scheme in schemes(), ops in ops(), room in 0usize..12) {
        let mut world = world(scheme);
        world.registry = Registry::new(scheme, Kept::with_room(room));
        for op in &ops {
            world.step(op);
            world.check();
        }
        let events = world.registry.sink().log_so_far();
        prop_assert!(events.len() <= room);
        let history = History::from_events(scheme, &events).unwrap();
        for &index in &world.live {
            let object = &world.objects[index];
            let owner = history.decode(object.site.class, object.field, u64::MAX - 1).map(|(o, _)| o);
            prop_assert_eq!(owner, Some(object.owner));
        }
    }
}
