//! The numbers of one class and one kind: who has which, which is in use, which may be reused. The registry locks it.

use crate::registry::Sink;
use crate::scheme::{Scheme, Space};
use crate::stamp::Stamp;
use crate::tree::{Number, Tree};
use crate::{Action, ClassId, Event, MethodId, Owner, Site, SiteId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the numbers of a class need from outside.
pub(crate) struct Context<'a, S> {
    pub sink: &'a S,
    pub epoch: &'a AtomicU64,
}

impl<S> Context<'_, S> {
    fn next_epoch(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// The number that an owner's sites mark with.
#[derive(Debug)]
struct Current {
    number: Number,
    members: Vec<SiteId>,
    /// A search failed. It would fail again as long as no number of the class is released: the others only take more.
    stuck: bool,
}

/// A number that an owner holds for the objects that carry it.
#[derive(Debug)]
struct Past {
    number: Number,
    /// Taken after the stamp that replaces it was published.
    superseded: u64,
}

/// Invariants: the tree's are prefix-free; each held number is its owner's current one or a past one; a site is a member of at
/// most one owner; [`Owner::Site`] has no other member than that site, ever.
#[derive(Debug)]
pub(crate) struct Numbers {
    class: ClassId,
    space: Space,
    scheme: Scheme,
    class_hash: u32,
    /// `None` holds the leaf that nobody may get.
    tree: Tree<Option<Owner>>,
    current: HashMap<Owner, Current>,
    past: HashMap<Owner, Vec<Past>>,
    bound: HashMap<SiteId, Owner>,
    /// Searches that failed.
    failures: u64,
}

/// A tree with the leaf blocked whose only field would be 0.
pub(crate) fn empty_tree(
    scheme: &Scheme,
    space: Space,
    class_hash: u32,
) -> Option<Tree<Option<Owner>>> {
    let mut tree = Tree::new(scheme.max_len(space)?);
    if let Some(zero) = scheme.zero_leaf(space, class_hash) {
        tree.give(None, zero);
    }
    Some(tree)
}

impl Numbers {
    /// `None` if the scheme has no numbers of this kind.
    pub fn new(scheme: Scheme, class: ClassId, space: Space) -> Option<Self> {
        let class_hash = scheme.class_hash(class);
        Some(Numbers {
            class,
            space,
            scheme,
            class_hash,
            tree: empty_tree(&scheme, space, class_hash)?,
            current: HashMap::new(),
            past: HashMap::new(),
            bound: HashMap::new(),
            failures: 0,
        })
    }

    /// Nobody may get a number that one of these leaves is below. Gives of how many somebody has one already.
    pub fn avoid(&mut self, leaves: impl IntoIterator<Item = u32>) -> u64 {
        self.tree.block(leaves)
    }

    /// The held numbers and their owners.
    pub fn held(&self) -> impl Iterator<Item = (Number, Owner)> + '_ {
        self.tree
            .iter()
            .filter_map(|(number, owner)| Some((number, owner?)))
    }

    pub fn failures(&self) -> u64 {
        self.failures
    }

    fn log<S: Sink>(
        &self,
        context: &Context<'_, S>,
        action: Action,
        number: Number,
        owner: Owner,
    ) -> bool {
        context.sink.log(&Event {
            epoch: context.next_epoch(),
            class: self.class,
            space: self.space,
            number,
            owner,
            action,
        })
    }

    fn stamp_of(&self, current: &Current) -> Stamp {
        let (base, id_bits) = self
            .scheme
            .base(self.space, current.number, self.class_hash);
        let shorten = self.space == Space::Dynamic
            && !current.stuck
            && current.number.len() > self.scheme.policy().min_number_bits;
        Stamp::new(base, id_bits, shorten)
    }

    fn publish<S: Sink>(&self, context: &Context<'_, S>, current: &Current) -> Stamp {
        let stamp = self.stamp_of(current);
        for &site in &current.members {
            context.sink.publish(site, self.space, Some(stamp));
        }
        stamp
    }

    /// Whom a new site marks for: itself; those of its method when numbers run out; the rest; nobody.
    fn owner_for(&self, site: &Site) -> Option<Owner> {
        let free = self.tree.free_leaves();
        let has = |owner| self.current.contains_key(&owner) || self.past.contains_key(&owner);
        let (own, method) = (Owner::Site(site.id), Owner::Method(site.method));
        if has(own) || free > u64::from(self.scheme.policy().merge_below) {
            Some(own)
        } else if has(method) || free > 1 {
            Some(method)
        } else {
            (has(Owner::Others) || free == 1).then_some(Owner::Others)
        }
    }

    /// The number that `owner` begins with: the shortest it still holds, else the first free leaf.
    fn first_number<S: Sink>(&mut self, context: &Context<'_, S>, owner: Owner) -> Option<Number> {
        if let Some(past) = self.past.get_mut(&owner)
            && let Some((shortest, _)) = past.iter().enumerate().min_by_key(|(_, p)| p.number.len())
        {
            let number = past.swap_remove(shortest).number;
            if past.is_empty() {
                self.past.remove(&owner);
            }
            return Some(number);
        }
        let number = self.tree.first_free()?;
        if !self.log(context, Action::Given, number, owner) {
            return None;
        }
        self.tree.give(Some(owner), number)?;
        Some(number)
    }

    /// Makes sure that `owner` has a number to mark with. It may have no members yet.
    fn begin<S: Sink>(&mut self, context: &Context<'_, S>, owner: Owner) -> Option<()> {
        if !self.current.contains_key(&owner) {
            let current = Current {
                number: self.first_number(context, owner)?,
                members: Vec::new(),
                stuck: false,
            };
            self.current.insert(owner, current);
        }
        Some(())
    }

    /// The stamp of a site, with a first number if it has none.
    pub fn stamp<S: Sink>(&mut self, context: &Context<'_, S>, site: &Site) -> Option<Stamp> {
        if let Some(owner) = self.bound.get(&site.id) {
            return Some(self.stamp_of(self.current.get(owner)?));
        }
        let owner = self.owner_for(site)?;
        self.begin(context, owner)?;
        self.current.get_mut(&owner)?.members.push(site.id);
        self.bound.insert(site.id, owner);
        let stamp = self.stamp_of(self.current.get(&owner)?);
        context.sink.publish(site.id, self.space, Some(stamp));
        Some(stamp)
    }

    /// A number for `Others`, from which on there always is one to fall back to.
    pub fn reserve_others<S: Sink>(&mut self, context: &Context<'_, S>) -> bool {
        self.begin(context, Owner::Others).is_some()
    }

    /// Who is to mark for an object that `owner` marked with the other kind of number, and its stamp: nobody more exact.
    pub fn stamp_owner<S: Sink>(
        &mut self,
        context: &Context<'_, S>,
        owner: Owner,
        method_of: impl Fn(SiteId) -> MethodId,
    ) -> Option<(Owner, Stamp)> {
        let owner = match owner {
            Owner::Site(id) => {
                let (class, method) = (self.class, method_of(id));
                let stamp = self.stamp(context, &Site { id, class, method });
                match (self.bound.get(&id), stamp) {
                    (Some(&owner), Some(stamp)) => return Some((owner, stamp)),
                    _ => Owner::Method(method),
                }
            }
            owner => owner,
        };
        let free = self.tree.free_leaves() > 1;
        let usable = |owner| free || self.current.contains_key(&owner);
        let owner = if usable(owner) && self.begin(context, owner).is_some() {
            owner
        } else {
            self.begin(context, Owner::Others)?;
            Owner::Others
        };
        Some((owner, self.stamp_of(self.current.get(&owner)?)))
    }

    /// The owner of a leaf.
    pub fn find(&self, leaf: u32) -> Option<Owner> {
        self.tree.find(leaf)?.1
    }

    /// The owner that a site marks for.
    pub fn owner_of(&self, site: SiteId) -> Option<Owner> {
        self.bound.get(&site).copied()
    }

    /// The number of the next length down that `owner` may take, within the policy.
    fn shorter(&mut self, owner: Owner, current: Number) -> Option<Number> {
        let policy = self.scheme.policy();
        let len = current
            .len()
            .checked_sub(1)
            .filter(|&len| len >= policy.min_number_bits)?;
        let past = self.past.get(&owner).into_iter().flatten();
        let own: Vec<Number> = past.map(|p| p.number).chain([current]).collect();
        let mut search = |from| self.tree.search(Some(owner), from, len, &own);
        let (number, cost) = search(current).or_else(|| {
            let left = policy.wrap.then(|| Number::new(0, len)).flatten()?;
            search(left)
        })?;
        let free = self.tree.free_leaves();
        let spendable = free.saturating_sub(u64::from(policy.merge_below)) >> policy.share;
        (cost <= spendable).then_some(number)
    }

    /// A shorter number for `owner`, if `seen` is still its stamp. Gives the stamp that holds from now on.
    pub fn shorten<S: Sink>(
        &mut self,
        context: &Context<'_, S>,
        owner: Owner,
        seen: Stamp,
    ) -> Option<Stamp> {
        let current = self.current.get(&owner)?;
        let stamp = self.stamp_of(current);
        if stamp != seen || !stamp.may_shorten() {
            return Some(stamp);
        }
        let old = current.number;
        let new = self
            .shorter(owner, old)
            .filter(|&new| self.log(context, Action::Given, new, owner))
            .and_then(|new| Some((new, self.tree.give(Some(owner), new)?)));
        let Some((new, absorbed)) = new else {
            // The old number stays: never ambiguous (seed, step 712).
            self.failures += 1;
            self.current.get_mut(&owner)?.stuck = true;
            return Some(self.publish(context, self.current.get(&owner)?));
        };
        self.current.get_mut(&owner)?.number = new;
        let stamp = self.publish(context, self.current.get(&owner)?);
        let past = self.past.entry(owner).or_default();
        past.retain(|p| !absorbed.contains(&p.number));
        if !absorbed.contains(&old) {
            past.push(Past {
                number: old,
                superseded: context.next_epoch(),
            });
        }
        if past.is_empty() {
            self.past.remove(&owner);
        }
        Some(stamp)
    }

    /// The site marks no more until it asks for a stamp again.
    pub fn idle<S: Sink>(&mut self, context: &Context<'_, S>, site: SiteId) {
        let Some(owner) = self.bound.remove(&site) else {
            return;
        };
        context.sink.publish(site, self.space, None);
        let Some(current) = self.current.get_mut(&owner) else {
            return;
        };
        current.members.retain(|&member| member != site);
        // `Others` keeps its number: it is what is fallen back to.
        if current.members.is_empty()
            && owner != Owner::Others
            && let Some(current) = self.current.remove(&owner)
        {
            self.past.entry(owner).or_default().push(Past {
                number: current.number,
                superseded: context.next_epoch(),
            });
        }
    }

    /// Takes back the past numbers superseded up to epoch `quiescent` that no object carries. Gives how many.
    pub fn release<S: Sink>(
        &mut self,
        context: &Context<'_, S>,
        quiescent: u64,
        live: impl Fn(Number) -> bool,
    ) -> u64 {
        let mut dead = Vec::new();
        for (&owner, past) in &self.past {
            let gone = past
                .iter()
                .filter(|p| p.superseded <= quiescent && !live(p.number));
            dead.extend(gone.map(|p| (p.number, owner)));
        }
        // The map's order is not the program's: the log should not depend on it.
        dead.sort_unstable();
        dead.retain(|&(number, owner)| {
            self.log(context, Action::Released, number, owner)
                && self.tree.release(number).is_some()
        });
        for &(number, owner) in &dead {
            if let Some(past) = self.past.get_mut(&owner) {
                past.retain(|p| p.number != number);
                if past.is_empty() {
                    self.past.remove(&owner);
                }
            }
        }
        if !dead.is_empty() {
            let mut stuck: Vec<Owner> = Vec::new();
            for (&owner, current) in &mut self.current {
                if std::mem::take(&mut current.stuck) {
                    stuck.push(owner);
                }
            }
            stuck.sort_unstable();
            for owner in stuck {
                if let Some(current) = self.current.get(&owner) {
                    self.publish(context, current);
                }
            }
        }
        dead.len() as u64
    }
}
