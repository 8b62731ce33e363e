//! Which sites may use a plain store: those whose constructors are known not to let go of the new object.
//!
//! Where that is known when a class is instrumented, its code says so. Mostly it is not: the allocated class loads later. Such a site looks
//! at a byte of its own at run time ([`Tables::plain`]), which is set once the class is there: classes whose constructors
//! keep `this` to themselves are nearly all that programs make.
//!
//! Classes are known by the loader that defines them. A class that a loader has defined itself is what its other classes mean by that name (JVMS
//! 5.3: the VM asks each loader for a name once), and names below `java/` always mean the boot loader's. Other names that lead to another loader stay unknown.

use super::tables::{Plain, Tables};
use borescope_allocations::{ClassSummary, Constructors, Resolver, Summaries};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The boot loader's number.
pub const BOOT: u64 = 0;
/// Classes remembered; beyond it nothing new becomes known.
const MOST_CLASSES: usize = 200_000;
/// Sites that wait for a class.
const MOST_WAITING: usize = 2_000_000;

/// What is known of constructors, and who waits to know more.
#[derive(Default)]
pub struct Known {
    /// None: there were several.
    classes: HashMap<(u64, Box<str>), Option<Arc<ClassSummary>>>,
    waiting: HashMap<(u64, Box<str>), Vec<Waiting>>,
    waiting_count: usize,
    /// First numbers of classes whose sites stand for several classes of one name: their bytes stay 0.
    shared: HashSet<Plain>,
}

struct Waiting {
    first: Plain,
    site: Plain,
    constructor: Box<str>,
}

/// What a loader's classes see.
struct View<'a>(&'a Known, u64);

impl Summaries for View<'_> {
    fn summary(&self, class: &str) -> Option<Arc<ClassSummary>> {
        let key = (home(self.1, class), class.into());
        self.0.classes.get(&key).cloned().flatten()
    }
}

/// The loader that a class's name leads to, if it does not lead elsewhere.
fn home(loader: u64, class: &str) -> u64 {
    match class.starts_with("java/") {
        true => BOOT,
        false => loader,
    }
}

impl Known {
    /// A class's bytes were seen.
    pub fn learn(&mut self, loader: u64, summary: ClassSummary) {
        let key = (loader, Box::from(summary.name()));
        let room = self.classes.len() < MOST_CLASSES;
        match self.classes.get_mut(&key) {
            Some(known) if known.as_deref() == Some(&summary) => {}
            Some(known) => *known = None,
            None if room => {
                self.classes.insert(key, Some(Arc::new(summary)));
            }
            None => {}
        }
    }

    /// Whether a class's bytes were seen, as far as that is remembered.
    pub fn has_seen(&self, loader: u64, class: &str) -> bool {
        self.classes.len() >= MOST_CLASSES || self.classes.contains_key(&(loader, class.into()))
    }

    /// Calls `f` with what a loader's classes may know.
    pub fn ask<R>(&self, loader: u64, f: impl FnOnce(&dyn Constructors) -> R) -> R {
        f(&Resolver(&View(self, loader)))
    }

    /// A site in a class of `loader` whose first site is `first` allocates `class`, and nothing is known of that yet.
    pub fn wait(&mut self, loader: u64, first: Plain, site: Plain, class: &str, constructor: &str) {
        if self.waiting_count < MOST_WAITING && !self.shared.contains(&first) {
            self.waiting_count += 1;
            let key = (home(loader, class), class.into());
            self.waiting.entry(key).or_default().push(Waiting {
                first,
                site,
                constructor: constructor.into(),
            });
        }
    }

    /// The sites from `first` on stand for a class of another loader, too: what a name means there is not known.
    pub fn share(&mut self, tables: &Tables, first: Plain, sites: usize) {
        self.shared.insert(first);
        for i in 0..sites as u32 {
            tables.set_plain(first.plus(i), false);
        }
    }

    /// A class is ready to be instantiated.
    pub fn prepared(&mut self, tables: &Tables, loader: u64, class: &str) {
        let Some(waiting) = self.waiting.remove(&(loader, class.into())) else {
            return;
        };
        self.waiting_count -= waiting.len();
        let mut answers: HashMap<&str, bool> = HashMap::new();
        for w in &waiting {
            let leaks = *answers
                .entry(&w.constructor)
                .or_insert_with(|| self.ask(loader, |known| known.leaks(class, &w.constructor)));
            if !leaks && !self.shared.contains(&w.first) {
                tables.set_plain(w.site, true);
            }
        }
    }

    /// As [`Self::prepared`], for all classes that are known.
    pub fn prepared_all(&mut self, tables: &Tables) {
        let known = self.waiting.keys().filter(|k| self.classes.contains_key(k));
        let known: Vec<_> = known.cloned().collect();
        for (loader, class) in known {
            self.prepared(tables, loader, &class);
        }
    }
}
