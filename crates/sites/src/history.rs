//! The log of number assignments, read back: every field decodes at every time it stood in an object.

use crate::class::empty_tree;
use crate::decode::{Builder, Decoder};
use crate::scheme::{Scheme, Space};
use crate::tree::{Number, Tree};
use crate::{Action, ClassId, Error, Event, Owner};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// A number in one owner's hands: from epoch `from` up to but without `to`.
#[derive(Clone, Copy, Debug)]
struct Tenure {
    owner: Owner,
    from: u64,
    to: u64,
}

#[derive(Clone, Debug)]
struct Class {
    tree: Tree<Option<Owner>>,
    tenures: BTreeMap<Number, Vec<Tenure>>,
    last: u64,
}

/// All numbers that were ever held, by whom and when.
///
/// Invariant: at no time do two tenures overlap of which one number is a prefix of the other, unless the owner is the same; [`Self::apply`] refuses events
/// that would break this, and stays as it was. So a log is safe to read whoever wrote it.
#[derive(Clone, Debug)]
pub struct History {
    scheme: Scheme,
    classes: HashMap<(ClassId, Space), Class>,
}

impl History {
    /// Before the first event.
    pub fn new(scheme: Scheme) -> Self {
        History {
            scheme,
            classes: HashMap::new(),
        }
    }

    /// A whole log.
    pub fn from_events<'a>(
        scheme: Scheme,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, Error> {
        let mut history = History::new(scheme);
        for event in events {
            history.apply(event)?;
        }
        Ok(history)
    }

    /// The next event. Those of one class must come in the order of their epochs.
    pub fn apply(&mut self, event: &Event) -> Result<(), Error> {
        let refused = |reason| {
            Err(Error::Contradiction {
                epoch: event.epoch,
                reason,
            })
        };
        let Event { space, number, .. } = *event;
        let Some(max_len) = self.scheme.max_len(space) else {
            return refused("the mode has no numbers of this kind");
        };
        if number.len() > max_len || space == Space::Static && number.len() != max_len {
            return refused("a number of this length cannot be");
        }
        if self.scheme.numbers_of(event.class) != event.class {
            return refused("the mode's numbers are global");
        }
        let class = match self.classes.entry((event.class, space)) {
            Entry::Occupied(class) => class.into_mut(),
            Entry::Vacant(class) => {
                let class_hash = self.scheme.class_hash(event.class);
                let Some(tree) = empty_tree(&self.scheme, space, class_hash) else {
                    return refused("the mode has no numbers of this kind");
                };
                class.insert(Class {
                    tree,
                    tenures: BTreeMap::new(),
                    last: 0,
                })
            }
        };
        if event.epoch <= class.last {
            return refused("it is not later");
        }
        match event.action {
            Action::Given => {
                let Some(absorbed) = class.tree.give(Some(event.owner), number) else {
                    return refused("the number is not free");
                };
                for old in absorbed {
                    class.end(old, event.epoch);
                }
                class.tenures.entry(number).or_default().push(Tenure {
                    owner: event.owner,
                    from: event.epoch,
                    to: u64::MAX,
                });
            }
            Action::Released => {
                if class.tree.holder(number) != Some(Some(event.owner)) {
                    return refused("the owner does not hold the number");
                }
                class.tree.release(number);
                class.end(number, event.epoch);
            }
        }
        class.last = event.epoch;
        Ok(())
    }

    /// Who marked the object of `class` that had this field at epoch `at`. `None`: not marked.
    pub fn decode(&self, class: ClassId, field: u32, at: u64) -> Option<(Owner, Number)> {
        let class = self.scheme.numbers_of(class);
        let (space, leaf) = self.scheme.leaf(field, self.scheme.class_hash(class))?;
        let numbers = self.classes.get(&(class, space))?;
        let leaf = Number::new(leaf, numbers.tree.max_len())?;
        (0..=leaf.len()).find_map(|len| {
            let number = leaf.cut(len);
            let tenure = numbers.at(number, at)?;
            Some((tenure.owner, number))
        })
    }

    /// Tables for all fields that stood in objects at epoch `at`.
    pub fn decoder(&self, at: u64) -> Decoder {
        let mut builder = Builder::new(self.scheme);
        let mut keys: Vec<_> = self.classes.iter().collect();
        keys.sort_unstable_by_key(|(key, _)| **key);
        for (&(id, space), class) in keys {
            for &number in class.tenures.keys() {
                if let Some(tenure) = class.at(number, at) {
                    builder.add(id, space, number, tenure.owner);
                }
            }
        }
        builder.build()
    }
}

impl Class {
    fn end(&mut self, number: Number, at: u64) {
        if let Some(tenure) = self.tenures.get_mut(&number).and_then(|t| t.last_mut()) {
            tenure.to = at;
        }
    }

    fn at(&self, number: Number, at: u64) -> Option<Tenure> {
        let tenures = self.tenures.get(&number)?;
        let tenure = tenures[..tenures.partition_point(|t| t.from <= at)].last()?;
        (at < tenure.to).then_some(*tenure)
    }
}
