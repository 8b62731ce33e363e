//! Dynamic and static mode: owners have numbers by class, which stand in the identity hash (seed, figures 9B and 9A; docs/sites-numbering.md).
//!
//! What lives here: which class an owner's objects are of, the words that the helper marks with, and reading hashes back in a walk. A site that makes
//! objects of several classes (clone, reflection, lambdas, arrays of arrays) gets an *alias* for each: another owner's number, which leads back
//! to it. Must never happen here: a call of the VM while a lock is held. So the walk may take these locks: who holds one runs in native
//! code, and goes on while the VM stands still.

use super::drawn;
use super::tables::Tables;
use crate::jvmti::sys::JObject;
use crate::jvmti::{Jni, Jvmti};
use crate::memory::{Addr, load64, publish64, zero_pages};
use crate::vm;
use borescope_allocations::{Kind, Site as Made};
use borescope_sites::drawn::Drawn;
use borescope_sites::{
    Action, ClassId, Decoder, Event, MethodId, Mode, Owner, Policy, Registry, Scheme, Sink, Site,
    SiteId, Space, Stamp,
};
use borescope_spool::meta::Record;
use borescope_spool::sites::{Numbered, SCHEME_BYTES};
use borescope_spool::snapshot::Origin;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Identity hashes on all 64-bit HotSpots.
const WIDTH: u8 = 31;
/// Shortest number. Longer than the simulator's (4): a site of the JDK counts once for each line that calls it, so classes such as byte[] have many that are busy.
const SHORTEST: u8 = 8;
/// Bits of the guard in dynamic mode: the one that tells ours from those that the JVM counts. More would only take from identifiers: numbers find their way around the hashes from
/// before as well, since for each bit there are twice as many of these, and twice as many numbers. In static mode, where there are not, it is the simulator's (4).
const GUARD: u8 = 1;
/// Length of a number in static mode: 16,384 sites of a class, with 8,192 hashes each.
const FIXED: u8 = 14;
/// A word of an owner whose objects are of several classes, as in BorescopeSites.other.
const SEVERAL: u64 = 1 << 62;
/// A word of an owner that gets no number.
const NEVER: u64 = 1 << 61;
const ALIAS_BITS: u32 = 25;
/// The lowest hash that we make: all have the highest bit, which those that the JVM counts lack (`drawn.rs`).
pub const LOWEST: u32 = 1 << (WIDTH - 1);
/// Bits of owners in this mode.
pub const OWNER_BITS: u8 = ALIAS_BITS as u8;

static NUMBERS: OnceLock<Numbers> = OnceLock::new();

/// How numbers stand in hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// The shorter the more objects carry them.
    Dynamic,
    /// Of one length.
    Static,
}

/// The numbers of dynamic and static mode; `None` in spare mode.
pub fn shared() -> Option<&'static Numbers> {
    NUMBERS.get()
}

/// Begins one of the modes, before the helper is installed.
pub fn begin(tables: &Tables, numbering: Numbering) -> io::Result<()> {
    let numbers = Numbers::with_log(tables, numbering, vm::random(), super::log)?;
    NUMBERS
        .set(numbers)
        .map_err(|_| io::Error::other("numbers are there already"))
}

/// Who has which number.
pub struct Numbers {
    registry: Registry<Out>,
    sites: Mutex<Sites>,
}

#[derive(Default)]
struct Sites {
    /// By the first owner of a class of the application, and by the first site of one of the JDK: the class of each site's objects; `None` = several.
    application: BTreeMap<u32, Vec<Option<ClassId>>>,
    jdk: BTreeMap<u32, Vec<Option<ClassId>>>,
    aliases: HashMap<(u32, ClassId), u32>,
    class_of: HashMap<u32, ClassId>,
}

/// Where events and words go.
struct Out {
    stamps: Addr,
    /// What [`Tables::root`] needs.
    roots: Addr,
    classes: Mutex<Classes>,
    log: fn(&Record) -> bool,
}

#[derive(Default)]
struct Classes {
    ids: HashMap<String, ClassId>,
    /// Signatures by ID.
    names: Vec<String>,
}

impl Out {
    fn classes(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of an event.
    fn record(&self, event: &Event) -> Record {
        let owner = match event.owner {
            Owner::Site(id) => Tables::root(self.roots, id.0),
            Owner::Method(id) if id.0 & 1 == 0 => id.0 >> 1,
            Owner::Method(_) | Owner::Others => 0,
        };
        let names = self.classes();
        let signature = names.names.get(event.class.0 as usize).cloned();
        Record::Numbered(Numbered {
            signature: signature.unwrap_or_default(),
            owner,
            event: event.to_bytes(),
        })
    }
}

impl Sink for Out {
    fn log(&self, event: &Event) -> bool {
        // A number for all the rest would say nothing: their objects stay unmarked.
        event.owner != Owner::Others && (self.log)(&self.record(event))
    }

    fn publish(&self, site: SiteId, _space: Space, stamp: Option<Stamp>) {
        publish64(self.word(site.0), stamp.map_or(0, Stamp::pack));
    }
}

impl Out {
    fn word(&self, owner: u32) -> Addr {
        self.stamps + u64::from(owner) * 8
    }
}

/// What an owner's objects are.
struct Described {
    /// `None` = of several classes.
    class: Option<ClassId>,
    /// With whom it shares a number when they run short: the other calls that reach a site of the JDK; nobody else in the application.
    method: MethodId,
}

impl Numbers {
    fn with_log(
        tables: &Tables,
        numbering: Numbering,
        seed: u64,
        log: fn(&Record) -> bool,
    ) -> io::Result<Self> {
        let none = |_| io::Error::other("no such numbering");
        let mode = match numbering {
            Numbering::Dynamic => Mode::Dynamic,
            Numbering::Static => Mode::Static { number_bits: FIXED },
        };
        let ours = Scheme::ours(mode, WIDTH, seed).map_err(none)?.policy();
        let policy = match numbering {
            Numbering::Dynamic => Policy {
                min_number_bits: SHORTEST,
                guard_bits: GUARD,
                ..ours
            },
            Numbering::Static => ours,
        };
        let scheme = Scheme::new(mode, WIDTH, policy, seed).map_err(none)?;
        let out = Out {
            stamps: zero_pages(Tables::MOST_OWNERS * 8)?,
            roots: tables.roots(),
            classes: Mutex::default(),
            log,
        };
        Ok(Self {
            registry: Registry::new(scheme, out),
            sites: Mutex::default(),
        })
    }

    /// How numbers stand in hashes.
    pub fn numbering(&self) -> Numbering {
        match self.registry.scheme().mode() {
            Mode::Static { .. } => Numbering::Static,
            _ => Numbering::Dynamic,
        }
    }

    /// For the log.
    pub fn scheme(&self) -> [u8; SCHEME_BYTES] {
        self.registry.scheme().to_bytes()
    }

    /// Address of the words by owner.
    pub fn stamps(&self) -> Addr {
        self.registry.sink().stamps
    }

    fn sites(&self) -> MutexGuard<'_, Sites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ID of a class, by its JVM signature.
    fn class(&self, signature: &str) -> ClassId {
        let mut c = self.registry.sink().classes();
        if let Some(&id) = c.ids.get(signature) {
            return id;
        }
        let id = ClassId(c.names.len() as u32);
        c.names.push(signature.to_owned());
        c.ids.insert(signature.to_owned(), id);
        id
    }

    /// The sites of a class that was instrumented: the first is owner `first`, or, in the JDK, site `first`.
    pub fn learn(&self, jdk: bool, first: u32, made: &[Made]) {
        if made.is_empty() {
            return;
        }
        let classes = made.iter().map(|m| Some(self.class(&exactly(m)?)));
        let classes = classes.collect();
        let mut sites = self.sites();
        match jdk {
            true => sites.jdk.insert(first, classes),
            false => sites.application.insert(first, classes),
        };
    }

    fn describe(&self, tables: &Tables, owner: u32) -> Option<Described> {
        let sites = self.sites();
        let (of, number, method) = match tables.site_of(owner) {
            0 => (&sites.application, owner, owner << 1),
            site => (&sites.jdk, site, site << 1 | 1),
        };
        let (first, classes) = of.range(..=number).next_back()?;
        Some(Described {
            class: *classes.get((number - first) as usize)?,
            method: MethodId(method),
        })
    }

    /// The word that an owner marks an object with, for the helper; 0 = not at all. `signature` gives the object's class, and whether it will be there as long as
    /// the JVM is; `ty` is that class as it stands in headers, 0 = not known.
    pub fn stamp(
        &self,
        tables: &Tables,
        owner: u32,
        ty: u32,
        signature: impl FnOnce() -> Option<(String, bool)>,
    ) -> u64 {
        let Some(described) = self.describe(tables, owner) else {
            return 0;
        };
        let (id, class) = match described.class {
            Some(class) => (owner, class),
            None => {
                let Some((signature, stays)) = signature() else {
                    return 0;
                };
                let class = self.class(&signature);
                let Some(alias) = self.alias(tables, owner, class) else {
                    return 0;
                };
                // A class that is unloaded may leave its place to another.
                if stays && ty != 0 {
                    let word = SEVERAL | u64::from(ty) << ALIAS_BITS | u64::from(alias);
                    publish64(self.registry.sink().word(owner), word);
                }
                (alias, class)
            }
        };
        let site = Site {
            id: SiteId(id),
            class,
            method: described.method,
        };
        let space = self.registry.scheme().at_allocation();
        match self.registry.stamp(&site, space) {
            Some(stamp) => stamp.pack(),
            None => {
                publish64(self.registry.sink().word(id), NEVER);
                tables.exhaust();
                0
            }
        }
    }

    fn alias(&self, tables: &Tables, owner: u32, class: ClassId) -> Option<u32> {
        let mut sites = self.sites();
        if let Some(&alias) = sites.aliases.get(&(owner, class)) {
            return Some(alias);
        }
        let alias = tables.alias(owner)?;
        sites.aliases.insert((owner, class), alias);
        sites.class_of.insert(alias, class);
        Some(alias)
    }

    /// An owner's object got an identifier that asks for a shorter number.
    pub fn shorten(&self, tables: &Tables, owner: u32, seen: u64) {
        let (Some(described), Some(seen)) = (self.describe(tables, owner), Stamp::unpack(seen))
        else {
            return;
        };
        let (id, class) = match described.class {
            Some(class) => (owner, class),
            None => {
                // Of the class met last: if that is another by now, its stamp is not the one seen, and nothing is done.
                let word = load64(self.registry.sink().word(owner));
                let alias = (word & ((1 << ALIAS_BITS) - 1)) as u32;
                match self.sites().class_of.get(&alias) {
                    Some(&class) if word & SEVERAL != 0 => (alias, class),
                    _ => return,
                }
            }
        };
        let site = Site {
            id: SiteId(id),
            class,
            method: described.method,
        };
        self.registry.shorten(&site, seen);
    }

    /// Takes the hashes of all objects there are, by tag of their class, so that no number given later is one of them; `classes` are signatures by tag, less one.
    pub fn avoiding(&self, classes: &[String]) -> Before<'_> {
        let ids = classes.iter().map(|c| self.class(c));
        let scheme = self.registry.scheme();
        Before {
            numbers: self,
            classes: ids.map(|id| (id, scheme.class_hash(id))).collect(),
            hashes: HashMap::new(),
        }
    }

    /// A new log begins: it gets the numbers that are held.
    pub fn log_again(&self) -> bool {
        let (decoder, out) = (self.registry.decoder(), self.registry.sink());
        let held = (0..decoder.slots() as u32).filter_map(|slot| decoder.slot(slot));
        // Each number was given by an event of its own, so none of these is later than now.
        (1..)
            .zip(held)
            .all(|(epoch, (class, space, number, owner))| {
                (out.log)(&out.record(&Event {
                    epoch,
                    class,
                    space,
                    number,
                    owner,
                    action: Action::Given,
                }))
            })
    }

    /// Begins to read hashes; `classes` are signatures of classes by tag, less one.
    pub fn reading(&'static self, classes: &[String]) -> Reading {
        let known = self.registry.sink().classes();
        let classes = classes.iter().map(|c| known.ids.get(c).copied());
        Reading {
            numbers: self,
            classes: classes.collect(),
            decoder: None,
            drawn: drawn::now(),
            doubtful: 0,
            epoch: 0,
        }
    }
}

/// The signature of the objects that a site makes, if all are of one class.
fn exactly(made: &Made) -> Option<String> {
    let ty = made.ty.as_str();
    let primitive = ty.len() == 2 && ty.starts_with('[');
    let last = |ty| {
        matches!(
            ty,
            "java/lang/String"
                | "java/lang/Integer"
                | "java/lang/Long"
                | "java/lang/Double"
                | "java/lang/Float"
                | "java/lang/Short"
                | "java/lang/Character"
        )
    };
    let exact = match made.kind {
        Kind::New | Kind::NewArray | Kind::ANewArray => true,
        Kind::MultiANewArray => false,
        Kind::Clone => primitive,
        Kind::Indy | Kind::Intrinsic => primitive || last(ty),
        Kind::Reflect => false,
    };
    exact.then(|| match ty.starts_with('[') {
        true => ty.to_owned(),
        false => format!("L{ty};"),
    })
}

/// The signature of an object's class, and whether that will be there as long as the JVM is.
pub fn class_of(jvmti: Jvmti, jni: Jni, object: JObject) -> Option<(String, bool)> {
    let class = jni.class_of(object);
    if class.is_null() {
        return None;
    }
    let signature = jvmti.signature(class);
    let loader = jvmti.loader(class);
    jni.forget(class);
    let mut stays = false;
    if let Some(loader) = loader {
        stays = loader.is_null();
        if !stays {
            // The JDK's own loaders, of which there is one each.
            let of_loader = jni.class_of(loader);
            let name = jvmti.signature(of_loader).unwrap_or_default();
            stays = name.starts_with("Ljdk/internal/loader/ClassLoaders$");
            jni.forget(of_loader);
            jni.forget(loader);
        }
    }
    let signature = signature?;
    // With a dot: a hidden class, which may go before its loader; those of lambdas stay (InnerClassLambdaMetafactory defines them as STRONG).
    let stays = stays && (!signature.contains('.') || signature.contains("$$Lambda"));
    Some((signature, stays))
}

/// Takes the hashes that are there before an object is marked (CDS archives are full of them).
pub struct Before<'a> {
    numbers: &'a Numbers,
    /// By tag, less one, with their constants.
    classes: Vec<(ClassId, u32)>,
    /// Those that could be numbers.
    hashes: HashMap<ClassId, Vec<u32>>,
}

impl Before<'_> {
    /// An object of a class has a hash.
    pub fn add(&mut self, tag: i64, hash: u32) {
        let place = usize::try_from(tag).ok().and_then(|tag| tag.checked_sub(1));
        let Some(&(id, class_hash)) = place.and_then(|place| self.classes.get(place)) else {
            return;
        };
        // Else the guard tells.
        if (hash ^ class_hash) >> self.numbers.registry.scheme().payload() == 0 {
            self.hashes.entry(id).or_default().push(hash);
        }
    }

    /// No more.
    pub fn end(self) {
        for (class, hashes) in self.hashes {
            // Those that are held already are of owners from before the agent came again, of which the log knows nothing.
            self.numbers.registry.avoid(class, hashes);
        }
    }
}

/// Reads hashes in a walk.
pub struct Reading {
    numbers: &'static Numbers,
    /// By tag, less one; `None` = no site makes such objects.
    classes: Vec<Option<ClassId>>,
    decoder: Option<Decoder>,
    drawn: Drawn,
    /// Objects met with a number that the JVM may have drawn as a hash.
    doubtful: u64,
    epoch: u64,
}

impl Reading {
    /// Takes what the numbers stand for, once. All Java threads stand still from here on: no object can get a number that is given later.
    pub fn begin(&mut self) {
        if self.decoder.is_none() {
            self.epoch = self.numbers.registry.epoch();
            self.decoder = Some(self.numbers.registry.decoder());
        }
    }

    /// The time of the events up to which numbers were read.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Objects met whose owner is not known for this reason alone.
    pub fn doubtful(&self) -> u64 {
        self.doubtful
    }

    /// Whose an object of a class with this hash is.
    pub fn origin(&mut self, tables: &Tables, tag: i64, hash: u32) -> Origin {
        if hash == 0 {
            return Origin::NoMark;
        }
        match self.owner(tables, tag, hash) {
            None | Some(0) => Origin::Hashed,
            Some(owner) => Origin::Owner(owner),
        }
    }

    fn owner(&mut self, tables: &Tables, tag: i64, hash: u32) -> Option<u32> {
        let place = usize::try_from(tag).ok()?.checked_sub(1)?;
        let class = (*self.classes.get(place)?)?;
        let decoded = self.decoder.as_ref()?.decode(class, hash)?;
        if !self.drawn.is_ours(hash) {
            self.doubtful += 1;
            return None;
        }
        match decoded.owner {
            Owner::Site(id) => Some(Tables::root(self.numbers.registry.sink().roots, id.0)),
            Owner::Method(id) if id.0 & 1 == 0 => Some(id.0 >> 1),
            Owner::Method(id) => Some(tables.resolve(id.0 >> 1, 0)),
            Owner::Others => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use borescope_sites::History;
    use proptest::prelude::*;

    static LOG: Mutex<Vec<Record>> = Mutex::new(Vec::new());

    fn keep(record: &Record) -> bool {
        LOG.lock().unwrap().push(record.clone());
        true
    }

    fn made(kind: Kind, ty: &str) -> Made {
        Made {
            method: 0,
            bci: 0,
            line: 0,
            kind,
            ty: ty.to_owned(),
            constructor: String::new(),
            plain: false,
        }
    }

    #[test]
    fn types_that_are_certain() {
        for (kind, ty, expected) in [
            (Kind::New, "a/B", Some("La/B;")),
            (Kind::ANewArray, "[[La/B;", Some("[[La/B;")),
            (Kind::MultiANewArray, "[[I", None),
            (Kind::Clone, "[I", Some("[I")),
            (Kind::Clone, "[La/B;", None),
            (Kind::Clone, "[[I", None),
            (Kind::Indy, "java/lang/String", Some("Ljava/lang/String;")),
            (Kind::Indy, "java/lang/Runnable", None),
            (Kind::Reflect, "[I", None),
            (Kind::Intrinsic, "[Ljava/lang/Object;", None),
            (Kind::Intrinsic, "java/lang/Long", Some("Ljava/lang/Long;")),
        ] {
            assert_eq!(exactly(&made(kind, ty)).as_deref(), expected, "{ty}");
        }
    }

    /// Marks as BorescopeSites.number does.
    fn mark(n: &Numbers, t: &Tables, owner: u32, signature: &str, random: u32) -> u32 {
        let word = load64(n.registry.sink().word(owner));
        let word = match word >> 63 {
            1 => word,
            _ => n.stamp(t, owner, 7, || Some((signature.to_owned(), true))),
        };
        let stamp = Stamp::unpack(word).unwrap();
        if stamp.triggers(random) {
            n.shorten(t, owner, word);
        }
        stamp.field(random)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Whatever is marked in whatever order reads back as its owner, now and from the log.
        #[test]
        fn hashes_read_back(is_static in any::<bool>(), objects in prop::collection::vec((0u32..6, 0usize..3, any::<u32>()), 1..3000)) {
            let numbering = if is_static { Numbering::Static } else { Numbering::Dynamic };
            let tables = Tables::new(25).unwrap();
            let numbers: &'static Numbers =
                Box::leak(Box::new(Numbers::with_log(&tables, numbering, 5, keep).unwrap()));
            let mut records = LOG.lock().unwrap();
            records.clear();
            drop(records);
            let (first, _) = tables.application(4, 0).unwrap();
            numbers.learn(false, first, &[
                made(Kind::New, "a/A"), made(Kind::New, "a/B"), made(Kind::New, "a/A"), made(Kind::Reflect, "java/lang/Object"),
            ]);
            let (site, _) = tables.jdk(1, 0).unwrap();
            numbers.learn(true, site, &[made(Kind::New, "a/A")]);
            let names = ["La/A;", "La/B;", "La/C;"].map(str::to_owned);
            let owners = [first, first + 1, first + 2, first + 3, tables.resolve(site, 1), tables.resolve(site, 2)];
            // From before, as far as the guard lets them pass for numbers.
            let payload = (1 << numbers.registry.scheme().payload()) - 1;
            let mut before = numbers.avoiding(&names);
            for (&(_, class, random), mask) in objects.iter().zip([payload, u32::MAX >> 1].into_iter().cycle()) {
                let id = numbers.class(&names[class]);
                before.add(class as i64 + 1, numbers.registry.scheme().class_hash(id) ^ random & mask);
            }
            before.end();
            let mut heap = Vec::new();
            for &(nth, class, random) in &objects {
                let owner = owners[nth as usize];
                let class = match nth { 1 => 1, 3 => class, _ => 0 };
                heap.push((class, owner, mark(numbers, &tables, owner, &names[class], random)));
            }
            let mut reading = numbers.reading(&names);
            reading.drawn = Drawn::new(1, LOWEST);
            reading.begin();
            let scheme = Scheme::from_bytes(&numbers.scheme()).unwrap();
            let mut history = History::new(scheme);
            let mut logged = HashMap::new();
            for record in LOG.lock().unwrap().iter() {
                let Record::Numbered(n) = record else { panic!("{record:?}") };
                let event = Event::from_bytes(&n.event).unwrap();
                history.apply(&event).unwrap();
                logged.insert((n.signature.clone(), event.owner), (event.class, n.owner));
            }
            for &(_, class, random) in objects.iter().step_by(2) {
                let id = numbers.class(&names[class]);
                let hash = scheme.class_hash(id) ^ random & payload;
                let expected = match hash { 0 => Origin::NoMark, _ => Origin::Hashed };
                let tag = class as i64 + 1;
                prop_assert_eq!(reading.origin(&tables, tag, hash), expected);
            }
            prop_assert_eq!(reading.doubtful(), 0);
            for &(class, owner, hash) in &heap {
                let id = numbers.class(&names[class]);
                prop_assert_eq!(reading.origin(&tables, class as i64 + 1, hash), Origin::Owner(owner));
                let (of_log, _) = history.decode(id, hash, reading.epoch()).unwrap();
                prop_assert_eq!(logged[&(names[class].clone(), of_log)], (id, owner));
                prop_assert!(hash >= LOWEST && scheme.guard_top() == LOWEST);
            }
            // The JVM has counted so far that each could be its own.
            let mut late = numbers.reading(&names);
            late.drawn = Drawn::new(u32::MAX >> 1, LOWEST);
            late.begin();
            for &(class, _, hash) in &heap {
                prop_assert_eq!(late.origin(&tables, class as i64 + 1, hash), Origin::Hashed);
            }
            prop_assert_eq!(late.doubtful(), heap.len() as u64);
        }
    }
}
