//! Memory that the helper reads and writes by address, and the numbers of sites, calls and owners.
//!
//! Tables of zero pages that appear as they are touched, never given back. `threads`: by thread id, `{u32 call, u32 thread id, u64 random state}`; who
//! finds another thread's id there knows no call. `cache`: by site of the JDK, `{u32 owner, u32 call + 1}` found last. `owners`: open
//! addressing, `{u32 call, u32 site, u32 owner, u32 0}`, written under the lock, the key last; never moved or removed, so that readers need no lock. `plain`: a byte by owner, and one by site of the JDK.
//! `roots`: u32 by owner: the JDK's site that it is an owner of, or, with the highest bit, the owner that it is an alias of; 0 = a site of the application.

use crate::memory::{Addr, load32, load64, publish64, store8, store32, store64, zero_pages};
use borescope_spool::sites::Owner;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

const THREADS: u64 = 1 << 20;
const SITES: u32 = 1 << 20;
const OWNER_SLOTS: u64 = 1 << 22;
/// In `roots`.
const ALIAS: u32 = 1 << 31;
/// Owners of JDK sites: the table is at most three quarters full.
const MOST_RESOLVED: u64 = OWNER_SLOTS / 4 * 3;
/// As in BorescopeSites.find.
const HASH_MUL: u64 = 0x9E37_79B9_7F4A_7C15;

/// Place of a byte that says whether a site may use a plain store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plain {
    /// By the owner that the site is.
    Owner(u32),
    /// By site of the JDK.
    Site(u32),
}

impl Plain {
    /// The place so many sites further.
    pub fn plus(self, n: u32) -> Self {
        match self {
            Plain::Owner(i) => Plain::Owner(i + n),
            Plain::Site(i) => Plain::Site(i + n),
        }
    }
}

/// The tables, and what was given out.
pub struct Tables {
    threads: Addr,
    cache: Addr,
    owners: Addr,
    plain_owners: Addr,
    plain_sites: Addr,
    roots: Addr,
    most_owners: u32,
    /// The largest owner given out; as in `numbers`, to be read without the lock.
    given: AtomicU32,
    /// The first owner in the log of the agent at work: those below were given before it was attached again.
    first: AtomicU32,
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    owners: u32,
    sites: u32,
    calls: u32,
    resolved: u64,
    /// Sites of the JDK up to this one are not in the log of the agent at work.
    old_sites: u32,
    /// Owners that are not in the log yet.
    pending: Vec<Owner>,
    exhausted: bool,
}

impl Tables {
    /// Owners are below this.
    pub const MOST_OWNERS: u64 = 1 << 25;

    /// Owners have at most `owner_bits` bits.
    pub fn new(owner_bits: u8) -> io::Result<Self> {
        Ok(Self {
            threads: zero_pages(THREADS * 16)?,
            cache: zero_pages(u64::from(SITES) * 8)?,
            owners: zero_pages(OWNER_SLOTS * 16)?,
            plain_owners: zero_pages(Self::MOST_OWNERS)?,
            plain_sites: zero_pages(SITES.into())?,
            roots: zero_pages(Self::MOST_OWNERS * 4)?,
            most_owners: ((1u64 << owner_bits) - 1).min(Self::MOST_OWNERS - 1) as u32,
            given: AtomicU32::new(0),
            first: AtomicU32::new(1),
            numbers: Mutex::default(),
        })
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the helper's `config` gives for 0 to 6.
    pub fn addresses(&self) -> [u64; 7] {
        [
            self.threads,
            THREADS - 1,
            self.cache,
            self.owners,
            OWNER_SLOTS - 1,
            self.plain_owners,
            self.plain_sites,
        ]
    }

    /// Says whether a site may use a plain store.
    pub fn set_plain(&self, site: Plain, plain: bool) {
        let (table, index) = match site {
            Plain::Owner(i) if u64::from(i) < Self::MOST_OWNERS => (self.plain_owners, i),
            Plain::Site(i) if i < SITES => (self.plain_sites, i),
            _ => return,
        };
        store8(table + u64::from(index), plain.into());
    }

    /// Numbers for a class of the application: the first owner and the first call. `None` = there are not enough left.
    pub fn application(&self, sites: usize, calls: usize) -> Option<(u32, u32)> {
        let mut n = self.numbers();
        let first = (n.owners + 1, n.calls + 1);
        let owners = more(n.owners, sites, self.most_owners);
        // A call's number plus one is an int in the helper.
        let calls = more(n.calls, calls, i32::MAX as u32 - 1);
        let (Some(owners), Some(calls)) = (owners, calls) else {
            n.exhausted = true;
            return None;
        };
        (n.owners, n.calls) = (owners, calls);
        self.given.store(owners, Relaxed);
        Some(first)
    }

    /// Numbers for a class of the JDK: the first site and the first call.
    pub fn jdk(&self, sites: usize, calls: usize) -> Option<(u32, u32)> {
        let mut n = self.numbers();
        let first = (n.sites + 1, n.calls + 1);
        let sites = more(n.sites, sites, SITES - 1);
        let calls = more(n.calls, calls, i32::MAX as u32 - 1);
        let (Some(sites), Some(calls)) = (sites, calls) else {
            n.exhausted = true;
            return None;
        };
        (n.sites, n.calls) = (sites, calls);
        Some(first)
    }

    /// The owner of a site of the JDK that was reached from a call; 0 = there are no more.
    pub fn resolve(&self, site: u32, call: u32) -> u32 {
        let mut n = self.numbers();
        if site <= n.old_sites {
            return 0; // Code that runs on since before.
        }
        let key = u64::from(site) << 32 | u64::from(call);
        let mut i = key.wrapping_mul(HASH_MUL) >> 20;
        let slot = loop {
            let slot = self.owners + (i & (OWNER_SLOTS - 1)) * 16;
            match load64(slot) {
                0 => break slot,
                k if k == key => return load64(slot + 8) as u32,
                _ => i += 1,
            }
        };
        if n.owners >= self.most_owners || n.resolved >= MOST_RESOLVED {
            n.exhausted = true;
            return 0;
        }
        n.owners += 1;
        n.resolved += 1;
        let owner = n.owners;
        self.given.store(owner, Relaxed);
        n.pending.push(Owner { owner, site, call });
        store32(self.roots + u64::from(owner) * 4, site);
        store64(slot + 8, owner.into());
        publish64(slot, key);
        owner
    }

    /// Another number for an owner, which leads back to it; `None` = there are no more.
    pub fn alias(&self, of: u32) -> Option<u32> {
        let (alias, _) = self.application(1, 0)?;
        store32(self.roots + u64::from(alias) * 4, ALIAS | of);
        Some(alias)
    }

    /// Address of what [`Self::root`] reads.
    pub fn roots(&self) -> Addr {
        self.roots
    }

    /// The owner that an alias leads to; others lead to themselves. Takes no lock.
    pub fn root(roots: Addr, owner: u32) -> u32 {
        match load32(roots + u64::from(owner) * 4) {
            alias if alias & ALIAS != 0 => alias & !ALIAS,
            _ => owner,
        }
    }

    /// The site of the JDK that an owner is one of; 0 = it is a site of the application. Takes no lock.
    pub fn site_of(&self, owner: u32) -> u32 {
        load32(self.roots + u64::from(owner) * 4)
    }

    /// Notes that something could not get a number.
    pub fn exhaust(&self) {
        self.numbers().exhausted = true;
    }

    /// The largest owner given out. Takes no lock.
    pub fn owners(&self) -> u32 {
        self.given.load(Relaxed)
    }

    /// Whether the log of the agent at work knows an owner. Takes no lock.
    pub fn is_logged(&self, owner: u32) -> bool {
        owner >= self.first.load(Relaxed)
    }

    /// A new log begins, which knows of nothing that was given up to now.
    pub fn begin_again(&self) {
        let mut n = self.numbers();
        self.first.store(n.owners + 1, Relaxed);
        n.old_sites = n.sites;
        n.pending.clear();
    }

    /// Owners of JDK sites that were made since the last call.
    pub fn take_pending(&self) -> Vec<Owner> {
        std::mem::take(&mut self.numbers().pending)
    }

    /// Whether something could not get a number.
    pub fn exhausted(&self) -> bool {
        self.numbers().exhausted
    }
}

/// `used` and so many more, if that is within the limit.
fn more(used: u32, count: usize, limit: u32) -> Option<u32> {
    let new = used.checked_add(u32::try_from(count).ok()?)?;
    (new <= limit).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn each_pair_has_one_owner() {
        let t = Tables::new(25).unwrap();
        assert_eq!(t.application(10, 3), Some((1, 1)));
        assert_eq!(t.jdk(4, 0), Some((1, 4)));
        assert_eq!(t.application(2, 2), Some((11, 4)));
        let mut seen = HashMap::new();
        for round in 0..2 {
            for site in 1..200 {
                for call in 0..50 {
                    let owner = t.resolve(site, call);
                    let before = *seen.entry((site, call)).or_insert(owner);
                    assert_eq!(before, owner, "round {round}");
                }
            }
        }
        let mut owners: Vec<u32> = seen.values().copied().collect();
        owners.sort_unstable();
        let expected: Vec<u32> = (13..13 + owners.len() as u32).collect();
        assert_eq!(owners, expected);
        let pending = t.take_pending();
        assert!(pending.iter().all(|p| seen[&(p.site, p.call)] == p.owner));
        assert_eq!(pending.len(), seen.len());
        assert!(t.take_pending().is_empty() && !t.exhausted());
    }

    #[test]
    fn a_new_log_knows_nothing_of_before() {
        let t = Tables::new(25).unwrap();
        assert_eq!(t.application(3, 0), Some((1, 1)));
        assert_eq!(t.jdk(2, 0), Some((1, 1)));
        assert_eq!(t.resolve(1, 7), 4);
        assert!(t.is_logged(1) && t.is_logged(4));
        t.begin_again();
        assert!(t.take_pending().is_empty());
        assert_eq!((t.resolve(2, 7), t.resolve(1, 7)), (0, 0));
        assert_eq!(t.jdk(2, 0), Some((3, 1)));
        assert_eq!(t.resolve(3, 7), 5);
        assert!(!t.is_logged(4) && t.is_logged(5));
        assert_eq!(t.take_pending().len(), 1);
    }

    #[test]
    fn numbers_end() {
        let t = Tables::new(5).unwrap();
        assert_eq!(t.application(30, 0), Some((1, 1)));
        assert_eq!(t.application(2, 0), None);
        assert_eq!(t.resolve(1, 1), 31);
        assert_eq!(t.resolve(1, 2), 0);
        assert_eq!(t.resolve(1, 1), 31);
        assert!(t.exhausted());
        assert_eq!(t.owners(), 31);
    }
}
