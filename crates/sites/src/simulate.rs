//! The trace-driven simulator: the seed's figures 11 (sites per class) and 12 (collisions per hash value).
//!
//! The hashed objects of a trace are those whose identity hash was referenced at least once. As in the seed, the number of collisions of a hash value is the
//! number of hashed objects of one class that have it, whether they lived at the same time or not; 1 if all differ. Numbers come from the same [`Registry`] that the agent uses.

use crate::registry::{Registry, Sink};
use crate::rng::Rng;
use crate::scheme::{Mode, Policy, Scheme, Space};
use crate::stamp::Stamp;
use crate::trace::{Step, Trace};
use crate::{ClassId, Error, Event, MethodId, Owner, Site, SiteId};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// A class in figure 11.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRow {
    /// Its name.
    pub class: String,
    /// Allocation sites that the trace knows.
    pub sites: u64,
    /// Those that allocated something.
    pub allocating: u64,
    /// Objects allocated.
    pub objects: u64,
    /// Objects whose identity hash was referenced.
    pub hashed: u64,
}

/// Figure 11: the classes by number of sites, most first.
pub fn sites_per_class(trace: &Trace) -> Result<Vec<ClassRow>, Error> {
    trace.check()?;
    let mut rows: Vec<ClassRow> = trace
        .classes
        .iter()
        .map(|name| ClassRow {
            class: name.clone(),
            sites: 0,
            allocating: 0,
            objects: 0,
            hashed: 0,
        })
        .collect();
    let class_of = |site: u32| trace.sites[site as usize].class as usize;
    for site in &trace.sites {
        rows[site.class as usize].sites += 1;
    }
    let (mut allocating, mut hashed) = (HashSet::new(), HashSet::new());
    for &step in &trace.steps {
        match step {
            Step::Allocate { site, count } => {
                rows[class_of(site)].objects += count;
                rows[class_of(site)].allocating += u64::from(allocating.insert(site));
            }
            Step::Hash { site, nth } => {
                rows[class_of(site)].hashed += u64::from(hashed.insert((site, nth)));
            }
        }
    }
    rows.sort_by(|a, b| b.sites.cmp(&a.sites).then_with(|| a.class.cmp(&b.class)));
    Ok(rows)
}

/// Where hashes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashing {
    /// As without us: so many random bits.
    Random(u8),
    /// Our fields. A static number that fills the field is the seed's "static number used as it is".
    Numbers(Scheme),
}

/// Collisions in one class or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collisions {
    /// Hashed objects.
    pub objects: u64,
    /// Distinct hash values, told apart by class.
    pub values: u64,
    /// Most objects with one value.
    pub max: u64,
    /// Sum over the values of the square of their objects.
    pub squares: u64,
}

impl Collisions {
    fn add(&mut self, count: u64) {
        self.objects += count;
        self.values += 1;
        self.max = self.max.max(count);
        self.squares = self.squares.saturating_add(count.saturating_mul(count));
    }

    /// Objects per value (figure 12's average); 0 without objects.
    pub fn average(&self) -> f64 {
        self.objects as f64 / (self.values as f64).max(1.0)
    }

    /// Objects with the same value as an object chosen at random, itself included: what a look-up in a table meets.
    pub fn average_met(&self) -> f64 {
        self.squares as f64 / (self.objects as f64).max(1.0)
    }
}

/// What one way of hashing makes of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// All classes.
    pub total: Collisions,
    /// By class index, those with hashed objects.
    pub classes: Vec<(u32, Collisions)>,
    /// Hashed objects that decode to exactly their site.
    pub exact: u64,
    /// Hashed objects that decode to their method or to "others".
    pub shared: u64,
    /// Hashed objects that got no number: they take random bits, as without us.
    pub unmarked: u64,
    /// Searches for a shorter number that failed (the seed counts 15 for Trade6).
    pub failures: u64,
}

/// Keeps the stamps that the sites mark with.
#[derive(Default)]
struct Stamps(RefCell<HashMap<(SiteId, Space), Stamp>>);

impl Stamps {
    fn get(&self, site: SiteId, space: Space) -> Option<Stamp> {
        self.0.borrow().get(&(site, space)).copied()
    }
}

impl Sink for Stamps {
    fn log(&self, _: &Event) -> bool {
        true
    }
    fn publish(&self, site: SiteId, space: Space, stamp: Option<Stamp>) {
        let mut stamps = self.0.borrow_mut();
        match stamp {
            Some(stamp) => stamps.insert((site, space), stamp),
            None => stamps.remove(&(site, space)),
        };
    }
}

/// A site during the simulation.
struct Running {
    site: Site,
    allocated: u64,
    /// Its nth object has the nth random bits of this, so that skipping what cannot matter changes nothing.
    seed: u64,
    /// Objects that are hashed at some time, in order, those already allocated left out.
    wanted: std::iter::Peekable<std::vec::IntoIter<u64>>,
}

struct Simulation {
    registry: Registry<Stamps>,
    sites: Vec<Running>,
    /// The field of each hashed object, `None` for one that got no number.
    fields: HashMap<(u32, u64), Option<u32>>,
}

impl Simulation {
    /// One object is marked: its field, and a shorter number for those after it.
    fn mark(&self, running: &Running, nth: u64, stamp: Stamp) -> u32 {
        let random = Rng::nth(running.seed, nth).next_u32();
        if stamp.triggers(random) {
            self.registry.shorten(&running.site, stamp);
        }
        stamp.field(random)
    }

    fn allocate(&mut self, site: u32, count: u64) {
        let space = self.registry.scheme().at_allocation();
        let hybrid = self.registry.scheme().mode() == Mode::Hybrid;
        let end = self.sites[site as usize].allocated + count;
        loop {
            let running = &mut self.sites[site as usize];
            let at = running.allocated;
            if at == end {
                return;
            }
            let next = running.wanted.peek().copied().filter(|&n| n < end);
            let known = self.registry.sink().get(running.site.id, space);
            let stamp = known.or_else(|| self.registry.stamp(&running.site, space));
            if !stamp.is_some_and(Stamp::may_shorten) && next.is_none_or(|n| n > at) {
                // Nothing that these objects draw can be seen.
                running.allocated = next.unwrap_or(end);
                continue;
            }
            running.allocated += 1;
            if next == Some(at) {
                running.wanted.next();
            }
            // In hybrid mode an object's hash is not its static number: it comes with the first reference.
            if !hybrid {
                let field = stamp.map(|stamp| self.mark(&self.sites[site as usize], at, stamp));
                if next == Some(at) {
                    self.fields.insert((site, at), field);
                }
            }
        }
    }

    fn hash(&mut self, site: u32, nth: u64) {
        if self.registry.scheme().mode() != Mode::Hybrid || self.fields.contains_key(&(site, nth)) {
            return;
        }
        let running = &self.sites[site as usize];
        let Site { class, method, .. } = running.site;
        // All objects of a site carry the same static number.
        let stamp = self.registry.stamp(&running.site, Space::Static);
        let field = stamp.and_then(|stamp| {
            let random = Rng::nth(running.seed, nth).next_u32();
            self.registry
                .reference(class, stamp.field(0), random, |_| method)
        });
        self.fields.insert((site, nth), field);
    }
}

/// Hashed objects by site, in order.
fn hashed(trace: &Trace) -> Vec<Vec<u64>> {
    let mut wanted = vec![Vec::new(); trace.sites.len()];
    for &step in &trace.steps {
        if let Step::Hash { site, nth } = step {
            wanted[site as usize].push(nth);
        }
    }
    for objects in &mut wanted {
        objects.sort_unstable();
        objects.dedup();
    }
    wanted
}

/// Figure 12 for one way of hashing. The same trace and seed give the same outcome.
pub fn collisions(trace: &Trace, hashing: Hashing, seed: u64) -> Result<Outcome, Error> {
    trace.check()?;
    let wanted = hashed(trace);
    let mut rng = Rng::new(seed);
    let mut outcome = Outcome {
        total: Collisions::default(),
        classes: Vec::new(),
        exact: 0,
        shared: 0,
        unmarked: 0,
        failures: 0,
    };
    let mut counts: HashMap<(u32, u32), u64> = HashMap::new();
    let mut count = |class: u32, value: u32| *counts.entry((class, value)).or_default() += 1;
    match hashing {
        Hashing::Random(bits) => {
            for (site, objects) in trace.sites.iter().zip(&wanted) {
                for _ in objects {
                    count(site.class, random_hash(&mut rng, bits));
                    outcome.unmarked += 1;
                }
            }
        }
        Hashing::Numbers(scheme) => {
            let mut simulation = Simulation {
                registry: Registry::new(scheme, Stamps::default()),
                sites: running(trace, &wanted, &mut rng),
                fields: HashMap::new(),
            };
            for &step in &trace.steps {
                match step {
                    Step::Allocate { site, count } => simulation.allocate(site, count),
                    Step::Hash { site, nth } => simulation.hash(site, nth),
                }
            }
            let decoder = simulation.registry.decoder();
            for (index, objects) in wanted.iter().enumerate() {
                let class = trace.sites[index].class;
                for &nth in objects {
                    let field = simulation
                        .fields
                        .get(&(index as u32, nth))
                        .copied()
                        .flatten();
                    let Some(field) = field else {
                        count(class, random_hash(&mut rng, scheme.width()));
                        outcome.unmarked += 1;
                        continue;
                    };
                    count(class, field);
                    match decoder.decode(ClassId(class), field).map(|d| d.owner) {
                        Some(Owner::Site(_)) => outcome.exact += 1,
                        _ => outcome.shared += 1,
                    }
                }
            }
            outcome.failures = simulation.registry.failures();
        }
    }
    let mut classes: HashMap<u32, Collisions> = HashMap::new();
    for ((class, _), count) in counts {
        outcome.total.add(count);
        classes.entry(class).or_default().add(count);
    }
    outcome.classes = classes.into_iter().collect();
    outcome.classes.sort_unstable_by_key(|(class, _)| *class);
    Ok(outcome)
}

fn running(trace: &Trace, wanted: &[Vec<u64>], rng: &mut Rng) -> Vec<Running> {
    let sites = trace.sites.iter().zip(wanted).enumerate();
    sites
        .map(|(index, (site, objects))| Running {
            site: Site {
                id: SiteId(index as u32),
                class: ClassId(site.class),
                method: MethodId(site.method),
            },
            allocated: 0,
            seed: rng.next_u64(),
            wanted: objects.clone().into_iter().peekable(),
        })
        .collect()
}

/// Of `bits` bits and, like the VM's, never 0.
fn random_hash(rng: &mut Rng, bits: u8) -> u32 {
    ((rng.next_u64() & ((1 << bits.min(31)) - 1)) as u32).max(1)
}

/// A row of figure 12.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `random`, `static`, `dynamic (seed)`, `dynamic`, `hybrid (seed)` or `hybrid`: with the seed's policy or ours.
    pub hashing: &'static str,
    /// Bits of the field, in hybrid mode with the flag: the seed's 14 bits beside a flag are a hybrid of 15.
    pub width: u8,
    /// What came out.
    pub outcome: Outcome,
}

/// Figure 12: for each width a random hash, the static number alone, dynamic and hybrid numbers; a random hash of 15 bits is always among them.
pub fn figure_12(trace: &Trace, widths: &[u8], seed: u64) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let mut row = |hashing, width, how| {
        let outcome = collisions(trace, how, seed)?;
        rows.push(Row {
            hashing,
            width,
            outcome,
        });
        Ok::<_, Error>(())
    };
    if !widths.contains(&15) {
        row("random", 15, Hashing::Random(15))?;
    }
    for &width in widths {
        let seeds = |mode| Scheme::new(mode, width, Policy::SEED, seed).map(Hashing::Numbers);
        let ours = |mode| Scheme::ours(mode, width, seed).map(Hashing::Numbers);
        row("random", width, Hashing::Random(width))?;
        row("static", width, seeds(Mode::Static { number_bits: width })?)?;
        row("dynamic (seed)", width, seeds(Mode::Dynamic)?)?;
        row("dynamic", width, ours(Mode::Dynamic)?)?;
        row("hybrid (seed)", width, seeds(Mode::Hybrid)?)?;
        row("hybrid", width, ours(Mode::Hybrid)?)?;
    }
    Ok(rows)
}
