//! All numbers of a program, for many threads at once: each class has a lock of its own.
//!
//! Reuse of numbers takes three steps, each a type that only the one before it gives: [`Grace`] (the caller sees to it that no thread
//! still holds an older stamp), [`Live`] (a heap walk notes what it meets), and [`Registry::release`].

use crate::class::{Context, Numbers};
use crate::decode::{Builder, Decoded, Decoder};
use crate::scheme::{Mode, Scheme, Space};
use crate::stamp::Stamp;
use crate::{ClassId, Event, MethodId, Owner, Site, SiteId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Where the registry writes to. Both are called with the class's lock held: they must not call the registry.
pub trait Sink {
    /// Stores an event. Only once it is stored can an object carry the number. `false` (a full disk): what the event says does not happen.
    fn log(&self, event: &Event) -> bool;
    /// The word that `site` marks with from now on; `None`: it must ask [`Registry::stamp`] first. A later call for the same site
    /// and kind of number replaces the earlier one, in this order.
    fn publish(&self, site: SiteId, space: Space, stamp: Option<Stamp>);
}

impl<S: Sink + ?Sized> Sink for &S {
    fn log(&self, event: &Event) -> bool {
        (**self).log(event)
    }
    fn publish(&self, site: SiteId, space: Space, stamp: Option<Stamp>) {
        (**self).publish(site, space, stamp);
    }
}

type Class = [Option<Numbers>; 2];

/// Who has which number in every class.
///
/// Invariants, at all times and for all threads: (1) two owners never hold numbers of which one is a prefix of the other; (2) an owner holds every
/// number that one of its stamps was made from, until [`Self::release`] takes it back; (3) it is taken back only if no thread can
/// still mark with it and no live object carries it. So the field of every live object that we marked decodes to the owner it was marked for.
#[derive(Debug)]
pub struct Registry<S> {
    scheme: Scheme,
    sink: S,
    epoch: AtomicU64,
    classes: RwLock<HashMap<ClassId, Arc<Mutex<Class>>>>,
}

/// A point in time, from [`Registry::grace`]. Before it becomes a [`Live`], every thread that marks must have passed a point where it
/// holds no stamp that it loaded before.
#[derive(Debug)]
#[must_use]
pub struct Grace(u64);

/// What a heap walk has met: the numbers that live objects carry.
#[derive(Debug)]
pub struct Live {
    quiescent: u64,
    decoder: Decoder,
    seen: Vec<bool>,
}

impl Live {
    /// Decodes a live object's field and notes its number. Every live object must come by, else a number it carries may be reused.
    #[inline]
    pub fn see(&mut self, class: ClassId, field: u32) -> Option<Decoded> {
        let decoded = self.decoder.decode(class, field)?;
        self.seen[decoded.slot as usize] = true;
        Some(decoded)
    }

    /// For walks that decode by [`Self::decoder`] and count by [`Decoded::slot`]: an object with this slot lives.
    pub fn see_slot(&mut self, slot: u32) {
        if let Some(seen) = self.seen.get_mut(slot as usize) {
            *seen = true;
        }
    }

    /// Decodes what stood when the walk began.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Sink> Registry<S> {
    /// No class has numbers yet.
    pub fn new(scheme: Scheme, sink: S) -> Self {
        Registry {
            scheme,
            sink,
            epoch: AtomicU64::new(0),
            classes: RwLock::default(),
        }
    }

    /// How fields are made.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Where events go.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Now: all events up to here are logged, or being logged by another thread. A snapshot of the heap notes it.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn context(&self) -> Context<'_, S> {
        Context {
            sink: &self.sink,
            epoch: &self.epoch,
        }
    }

    fn class(&self, class: ClassId) -> Arc<Mutex<Class>> {
        let class = self.scheme.numbers_of(class);
        let found = self
            .classes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&class)
            .cloned();
        found.unwrap_or_else(|| {
            let mut classes = self.classes.write().unwrap_or_else(PoisonError::into_inner);
            let new = || {
                let numbers = |space| Numbers::new(self.scheme, class, space);
                Arc::new(Mutex::new([
                    numbers(Space::Static),
                    numbers(Space::Dynamic),
                ]))
            };
            Arc::clone(classes.entry(class).or_insert_with(new))
        })
    }

    /// Objects of `class` that we did not mark have these fields: no number is given any more that one of them would decode to. So what decodes later was
    /// made by us. Gives how many fields decode already, to numbers given before. In [`Mode::Static`] and [`Mode::Dynamic`].
    pub fn avoid(&self, class: ClassId, fields: impl IntoIterator<Item = u32>) -> u64 {
        let constant = self.scheme.class_hash(class);
        let mut leaves = [Vec::new(), Vec::new()];
        for field in fields {
            if let Some((space, leaf)) = self.scheme.leaf(field, constant) {
                leaves[space as usize].push(leaf);
            }
        }
        if leaves.iter().all(Vec::is_empty) {
            return 0; // A class that nobody asks for takes no memory.
        }
        let class = self.class(class);
        let mut class = lock(&class);
        let spaces = class.iter_mut().zip(leaves);
        let held = spaces.map(|(numbers, leaves)| match numbers {
            Some(numbers) => numbers.avoid(leaves),
            None => 0,
        });
        held.sum()
    }

    /// What `site` marks with: [`Scheme::at_allocation`] says with which kind of number at allocation. A site without a number gets its
    /// first. `None`: the mode has no such number, numbers have run out, or the log is full; the object stays unmarked.
    pub fn stamp(&self, site: &Site, space: Space) -> Option<Stamp> {
        let class = self.class(site.class);
        let mut class = lock(&class);
        if self.falls_back()
            && let Some(dynamic) = &mut class[Space::Dynamic as usize]
            && !dynamic.reserve_others(&self.context())
        {
            return None;
        }
        class[space as usize].as_mut()?.stamp(&self.context(), site)
    }

    /// Whether a class of hybrid numbers has a dynamic one for `Others` before its first object is marked, so that [`Self::reference`] always has one.
    fn falls_back(&self) -> bool {
        self.scheme.mode() == Mode::Hybrid && self.scheme.policy().merge_below > 0
    }

    /// [`Mode::Hybrid`]: the first reference of an object's hash (seed, figure 4B, steps 414 to 420). Gives the field to put atomically in place of
    /// `field`, made from `random`; `field` itself if the hash was referenced before. `None`: the object is not marked, or (only with
    /// `merge_below` 0) numbers have run out. `method_of` knows the sites that were given to [`Self::stamp`].
    pub fn reference(
        &self,
        class: ClassId,
        field: u32,
        random: u32,
        method_of: impl Fn(SiteId) -> MethodId,
    ) -> Option<u32> {
        let (space, leaf) = self.scheme.leaf(field, self.scheme.class_hash(class))?;
        if space == Space::Dynamic {
            return Some(field);
        }
        let class = self.class(class);
        let mut class = lock(&class);
        let [Some(fixed), Some(dynamic)] = &mut *class else {
            return None;
        };
        let owner = fixed.find(leaf)?;
        let (owner, stamp) = dynamic.stamp_owner(&self.context(), owner, method_of)?;
        if stamp.triggers(random) {
            dynamic.shorten(&self.context(), owner, stamp);
        }
        Some(stamp.field(random))
    }

    /// After [`Stamp::triggers`]: tries to get a shorter number (seed, figure 5). Gives the stamp that holds from now on: the same one if there is none, or
    /// the one that another thread got since `seen` was loaded. `None` if the site marks no more.
    pub fn shorten(&self, site: &Site, seen: Stamp) -> Option<Stamp> {
        let class = self.class(site.class);
        let mut class = lock(&class);
        let dynamic = class[Space::Dynamic as usize].as_mut()?;
        let owner = dynamic.owner_of(site.id)?;
        dynamic.shorten(&self.context(), owner, seen)
    }

    /// The site marks no more, until it asks for a stamp again: its code is gone, or it should let go of its numbers. In [`Mode::Hybrid`] its living objects
    /// still may be referenced and then bind it again: for a site whose code is gone, call this before each [`Self::grace`].
    pub fn idle(&self, site: &Site) {
        let class = self.class(site.class);
        for numbers in lock(&class).iter_mut().flatten() {
            numbers.idle(&self.context(), site.id);
        }
    }

    /// Begins the reuse of numbers.
    pub fn grace(&self) -> Grace {
        Grace(self.epoch())
    }

    /// Begins the heap walk, after the grace that [`Grace`] asks for. No object may become live during the walk with a stamp from before `grace`.
    pub fn walk(&self, grace: Grace) -> Live {
        let decoder = self.decoder();
        Live {
            quiescent: grace.0,
            seen: vec![false; decoder.slots()],
            decoder,
        }
    }

    /// Ends the walk: numbers that no thread marks with and that no object met carries are free again. Gives how many.
    pub fn release(&self, live: &Live) -> u64 {
        let mut seen = std::collections::HashSet::new();
        for (slot, _) in live.seen.iter().enumerate().filter(|(_, seen)| **seen) {
            if let Some((class, space, number, _)) = live.decoder.slot(slot as u32) {
                seen.insert((class, space, number));
            }
        }
        let mut released = 0;
        for (id, class) in self.all() {
            for (space, numbers) in [Space::Static, Space::Dynamic]
                .into_iter()
                .zip(lock(&class).iter_mut())
            {
                if let Some(numbers) = numbers {
                    released += numbers.release(&self.context(), live.quiescent, |number| {
                        seen.contains(&(id, space, number))
                    });
                }
            }
        }
        released
    }

    /// All classes, in order.
    fn all(&self) -> Vec<(ClassId, Arc<Mutex<Class>>)> {
        let classes = self.classes.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = classes.iter().map(|(&id, c)| (id, Arc::clone(c))).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Who marked an object of `class` with this field, by what stands now. For single objects, and for those that a walk meets with a number
    /// given after its decoder was made; walks have [`Self::decoder`].
    pub fn decode(&self, class: ClassId, field: u32) -> Option<(Owner, Space)> {
        let class = self.scheme.numbers_of(class);
        let (space, leaf) = self.scheme.leaf(field, self.scheme.class_hash(class))?;
        let classes = self.classes.read().unwrap_or_else(PoisonError::into_inner);
        let numbers = Arc::clone(classes.get(&class)?);
        drop(classes);
        let owner = lock(&numbers)[space as usize].as_ref()?.find(leaf)?;
        Some((owner, space))
    }

    /// Decodes all fields made up to now.
    pub fn decoder(&self) -> Decoder {
        let mut builder = Builder::new(self.scheme);
        for (id, class) in self.all() {
            for (space, numbers) in [Space::Static, Space::Dynamic]
                .into_iter()
                .zip(lock(&class).iter())
            {
                for (number, owner) in numbers.iter().flat_map(Numbers::held) {
                    builder.add(id, space, number, owner);
                }
            }
        }
        builder.build()
    }

    /// Searches for a shorter number that failed (the seed counts 15 in Trade6).
    pub fn failures(&self) -> u64 {
        let failures = |class: &Class| class.iter().flatten().map(Numbers::failures).sum::<u64>();
        self.all().iter().map(|(_, c)| failures(&lock(c))).sum()
    }
}
