//! What `meta.log` says of sites: from a number in a header to the line that allocated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use borescope_spool::log::LogReader;
use borescope_spool::meta::Record;
use borescope_spool::sites::{SiteClass, Sites, Snapshot};

use super::names::type_name;
use super::{LENS, Place, Site, Totals};
use crate::Error;
use crate::gather::{not_a_spool, of_target, source_form, torn};
use crate::model::{Skipped, Target};

/// The log, indexed by numbers.
pub(super) struct Log {
    pub(super) target: Target,
    pub(super) set_up: Sites,
    classes: Vec<SiteClass>,
    /// First owner of each class of the application, first site of each of the JDK, first call site: by number, the class's place.
    owners: BTreeMap<u32, usize>,
    sites: BTreeMap<u32, usize>,
    calls: BTreeMap<u32, usize>,
    /// Site and call site of the owners in the JDK.
    pairs: HashMap<u32, (u32, u32)>,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) notices: Vec<String>,
    pub(super) totals: Totals,
    pub(super) torn: Option<String>,
}

impl Log {
    pub(super) fn read(path: &Path) -> Result<Log, Error> {
        let bytes = fs::read(path).map_err(not_a_spool(path))?;
        let mut log = Log {
            target: Target::default(),
            set_up: Sites {
                mode: borescope_spool::sites::Mode::Spare,
                hash_shift: 0,
                spare_bits: 0,
                jdk: false,
                attribute: false,
                attached: false,
                scheme: None,
            },
            classes: Vec::new(),
            owners: BTreeMap::new(),
            sites: BTreeMap::new(),
            calls: BTreeMap::new(),
            pairs: HashMap::new(),
            snapshots: Vec::new(),
            skipped: Vec::new(),
            notices: Vec::new(),
            totals: Totals::default(),
            torn: None,
        };
        let mut set_up = false;
        let mut skipped = BTreeSet::new();
        let mut reader = LogReader::new(&bytes);
        for record in reader.by_ref() {
            match record {
                Record::Target(target) => log.target = of_target(target),
                Record::Sites(sites) => (log.set_up, set_up) = (sites, true),
                Record::SiteClass(class) => log.class(class, &mut skipped),
                Record::Owners(owners) => {
                    log.totals.owners += owners.len() as u64;
                    let pairs = owners.iter().map(|one| (one.owner, (one.site, one.call)));
                    log.pairs.extend(pairs);
                }
                Record::Snapshot(snapshot) => log.snapshot(snapshot),
                Record::Skipped(one) => {
                    skipped.insert(Skipped {
                        class: source_form(&one.class),
                        method: one.method,
                        descriptor: one.descriptor,
                        lens: LENS.into(),
                        reason: one.reason,
                    });
                }
                Record::Notice(text) => log.notices.push(text),
                Record::Ended { at_ms } => {
                    log.target.ended = Some(at_ms);
                    log.target.sealed_after_crash = false;
                }
                // The agent has read the hashes by these itself; they are the proof.
                Record::Class(_) | Record::Numbered(_) | Record::Waste(_) | Record::Compiled(_) => {
                }
            }
        }
        if !set_up {
            let said = log.notices.first();
            return Err(Error::NotASpool {
                path: path.to_owned(),
                reason: said.cloned().unwrap_or("neither counters nor sites".into()),
            });
        }
        log.skipped = skipped.into_iter().collect();
        log.torn = torn(&reader);
        Ok(log)
    }

    fn class(&mut self, class: SiteClass, skipped: &mut BTreeSet<Skipped>) {
        let at = self.classes.len();
        let totals = &mut self.totals;
        totals.classes += 1;
        totals.sites += class.sites.len() as u64;
        totals.calls += class.calls.len() as u64;
        for site in &class.skipped {
            totals.skipped_sites += u64::from(site.bci.is_some());
            let Some(method) = class.methods.get(usize::from(site.method)) else {
                continue;
            };
            skipped.insert(Skipped {
                class: source_form(&class.name),
                method: method.name.clone(),
                descriptor: method.descriptor.clone(),
                lens: LENS.into(),
                reason: site.reason.clone(),
            });
        }
        if !class.sites.is_empty() {
            match class.jdk {
                true => self.sites.insert(class.first_site, at),
                false => {
                    totals.owners += class.sites.len() as u64;
                    self.owners.insert(class.first_site, at)
                }
            };
        }
        if !class.calls.is_empty() {
            self.calls.insert(class.first_call, at);
        }
        self.classes.push(class);
    }

    fn snapshot(&mut self, snapshot: Snapshot) {
        let last = self.snapshots.last().map_or(0, |last| last.number);
        // Numbers are a column of signed 32-bit integers, by which a reader finds a snapshot.
        match snapshot.number > last && i32::try_from(snapshot.number).is_ok() {
            true => self.snapshots.push(snapshot),
            false => self.notices.push(format!(
                "snapshot {} is not its own: left out",
                snapshot.number
            )),
        }
    }

    /// The class that has the number, and which of its list it is.
    fn find(&self, firsts: &BTreeMap<u32, usize>, number: u32) -> Option<(&SiteClass, usize)> {
        let (&first, &class) = firsts.range(..=number).next_back()?;
        let at = usize::try_from(number - first).ok()?;
        Some((self.classes.get(class)?, at))
    }

    fn place(&self, class: &SiteClass, method: u16, line: u16) -> Option<Place> {
        let method = class.methods.get(usize::from(method))?;
        Some(Place {
            class: source_form(&class.name),
            method: method.name.clone(),
            descriptor: method.descriptor.clone(),
            source_file: class.source_file.clone(),
            line,
        })
    }

    /// The site that an owner stands for, its index left open; `None` = the log does not have it.
    pub(super) fn site(&self, owner: u32) -> Option<Site> {
        let pair = self.pairs.get(&owner);
        let (firsts, number) = match pair {
            Some(&(site, _)) => (&self.sites, site),
            None => (&self.owners, owner),
        };
        let (class, at) = self.find(firsts, number)?;
        let site = class.sites.get(at)?;
        let at = self.place(class, site.method, site.line)?;
        let app = match pair {
            None => Some(at.clone()),
            Some((_, 0)) => None,
            Some(&(_, call)) => self.find(&self.calls, call).and_then(|(class, at)| {
                let call = class.calls.get(at)?;
                self.place(class, call.method, call.line)
            }),
        };
        Some(Site {
            index: 0,
            ty: type_name(&site.ty),
            at,
            bci: site.bci,
            kind: site.kind.name().into(),
            app,
        })
    }
}
