//! From fields back to sites, at one point in time: flat tables for heap walks.

use crate::scheme::{Scheme, Space};
use crate::tree::Number;
use crate::{ClassId, Owner};
use std::collections::HashMap;

/// What a field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decoded {
    /// Who marked the object.
    pub owner: Owner,
    /// With which kind of number; in hybrid mode `Dynamic` says that the hash was referenced.
    pub space: Space,
    /// With which number.
    pub number: Number,
    /// The number's place in the decoder, below [`Decoder::slots`]: walks count objects in an array by it.
    pub slot: u32,
}

/// The leaves below one held number.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    last: u32,
    slot: u32,
}

#[derive(Clone, Debug)]
struct Table {
    class_hash: u32,
    /// By kind; each ordered and without overlap.
    spaces: [Vec<Range>; 2],
}

/// Decodes fields by who held which number at one point in time.
///
/// Invariant: a field that a registry's stamp made, of a number that was held at that time, decodes to the number's owner. What
/// it cannot know: whether a field was made by a stamp at all. A random hash that the VM drew for an object that we did not mark decodes by chance with the
/// probability [`ClassDecoder::coverage`]; [`Registry::avoid`](crate::Registry::avoid) and [`drawn`](crate::drawn) are against that.
#[derive(Clone, Debug)]
pub struct Decoder {
    scheme: Scheme,
    classes: HashMap<ClassId, Table>,
    slots: Vec<(ClassId, Space, Number, Owner)>,
}

impl Decoder {
    /// How fields are made.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Held numbers in all classes.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// What a slot stands for.
    pub fn slot(&self, slot: u32) -> Option<(ClassId, Space, Number, Owner)> {
        self.slots.get(slot as usize).copied()
    }

    /// The tables of one class, for walks that look classes up once. `None`: no site of this class was ever given a number. In
    /// [`Mode::Spare`](crate::Mode::Spare) any class gives those of [`ClassId::ALL`].
    pub fn class(&self, class: ClassId) -> Option<ClassDecoder<'_>> {
        let class = self.scheme.numbers_of(class);
        Some(ClassDecoder {
            decoder: self,
            table: self.classes.get(&class)?,
        })
    }

    /// The owner of an object of `class` with this field. `None`: not marked.
    #[inline]
    pub fn decode(&self, class: ClassId, field: u32) -> Option<Decoded> {
        self.class(class)?.decode(field)
    }
}

/// A [`Decoder`] for one class.
#[derive(Clone, Copy, Debug)]
pub struct ClassDecoder<'a> {
    decoder: &'a Decoder,
    table: &'a Table,
}

impl ClassDecoder<'_> {
    /// The owner of an object with this field. `None`: not marked.
    #[inline]
    pub fn decode(&self, field: u32) -> Option<Decoded> {
        let (space, leaf) = self.decoder.scheme.leaf(field, self.table.class_hash)?;
        let ranges = &self.table.spaces[space as usize];
        let range = ranges[..ranges.partition_point(|r| r.first <= leaf)].last()?;
        if leaf > range.last {
            return None;
        }
        let (_, _, number, owner) = self.decoder.slots[range.slot as usize];
        Some(Decoded {
            owner,
            space,
            number,
            slot: range.slot,
        })
    }

    /// The share of all possible fields that decode to an owner: so likely is it that a random field of the VM's own is taken for a mark.
    pub fn coverage(&self) -> f64 {
        let scheme = &self.decoder.scheme;
        let mut fields = 0u64;
        for (space, ranges) in [Space::Static, Space::Dynamic]
            .into_iter()
            .zip(&self.table.spaces)
        {
            let below = scheme.payload() - scheme.max_len(space).unwrap_or(0);
            let leaves: u64 = ranges.iter().map(|r| u64::from(r.last - r.first) + 1).sum();
            fields += leaves << below;
        }
        fields as f64 / (1u64 << scheme.width()) as f64
    }
}

/// Collects held numbers.
pub(crate) struct Builder {
    scheme: Scheme,
    held: Vec<(ClassId, Space, Number, Owner)>,
}

impl Builder {
    pub fn new(scheme: Scheme) -> Self {
        let held = Vec::new();
        Builder { scheme, held }
    }

    /// Held numbers of a class and kind must not overlap.
    pub fn add(&mut self, class: ClassId, space: Space, number: Number, owner: Owner) {
        self.held.push((class, space, number, owner));
    }

    pub fn build(self) -> Decoder {
        let scheme = self.scheme;
        let mut classes: HashMap<ClassId, Table> = HashMap::new();
        for (slot, &(class, space, number, _)) in self.held.iter().enumerate() {
            let shift = scheme
                .max_len(space)
                .unwrap_or(0)
                .saturating_sub(number.len());
            let first = number.bits() << shift;
            let table = classes.entry(class).or_insert_with(|| Table {
                class_hash: scheme.class_hash(class),
                spaces: Default::default(),
            });
            table.spaces[space as usize].push(Range {
                first,
                last: first + ((1u64 << shift) - 1) as u32,
                slot: slot as u32,
            });
        }
        for table in classes.values_mut() {
            for ranges in &mut table.spaces {
                ranges.sort_unstable_by_key(|r| r.first);
                ranges.shrink_to_fit();
            }
        }
        Decoder {
            scheme,
            classes,
            slots: self.held,
        }
    }
}
