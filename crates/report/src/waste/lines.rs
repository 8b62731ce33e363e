//! Pairs by source lines: bytecode indexes are too fine (C2's debug information names the right one for about half of the pairs), so a frame is a method and a line
//! here, and the pure crate ranks these.

use std::collections::{BTreeMap, HashMap};

use borescope_profile::waste::{Pair, Place, Profile, What};
use borescope_waste::handler::watches::Shape;
use borescope_waste::rank::{LeafPair, Ranking, rank};
use borescope_waste::{Element, Frame, Waste};

use crate::MethodGlob;
use crate::words;

/// A method of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// Its place; the line is in the frame.
    Named(Place),
    /// The log does not have it.
    Unnamed,
}

/// What makes pairs one: whether an access initialises, kind, first line, second line.
type Key = (bool, Waste, Frame, Frame);

/// A profile by lines, ranked.
pub(super) struct Lines<'a> {
    /// The profile by lines.
    pub(super) profile: borescope_waste::Profile,
    /// Its pairs in the order in which a person should look at them.
    pub(super) ranking: Ranking,
    methods: Vec<Method>,
    /// The rows of each leaf pair.
    rows: BTreeMap<Key, Vec<&'a Pair>>,
}

/// Answers to the questions that began at a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Began {
    /// All that are in the table.
    pub(super) completed: u64,
    /// Waste.
    pub(super) wasteful: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn of(profile: &'a Profile) -> Lines<'a> {
        let manifest = profile.manifest();
        let mut by_line = borescope_waste::Profile::new(manifest.source());
        by_line.accounts = manifest.accounts();
        let mut methods: Vec<Method> = Vec::new();
        let mut known: HashMap<Method, u64> = HashMap::new();
        let mut number = |method: Method| {
            let next = Frame::FIRST_METHOD + known.len() as u64;
            *known.entry(method).or_insert_with_key(|method| {
                methods.push(method.clone());
                next
            })
        };
        let mut nodes = vec![0u32];
        for context in profile.contexts() {
            let frame = match &context.what {
                What::At(place, _) => Frame {
                    bci: place.line.into(),
                    method: number(Method::Named(Place {
                        line: 0,
                        ..place.clone()
                    })),
                },
                What::Unnamed => Frame {
                    bci: 0,
                    method: number(Method::Unnamed),
                },
                What::Cut => Frame::CUT,
                What::Deeper => Frame::DEEPER,
                What::Unknown => Frame::UNKNOWN,
            };
            let caller = context.caller.and_then(|caller| nodes.get(caller as usize));
            let caller = caller.copied().unwrap_or(0);
            nodes.push(by_line.contexts.intern(caller, frame));
        }
        let node = |context: u32| nodes.get(context as usize).copied().unwrap_or(0);
        let mut rows: BTreeMap<Key, Vec<&Pair>> = BTreeMap::new();
        for row in profile.pairs() {
            let pair = borescope_waste::Pair {
                first: node(row.pair.first),
                second: node(row.pair.second),
                ..row.pair
            };
            by_line.add(pair, row.count);
            if pair.wasteful {
                let leaf = |node| by_line.contexts.leaf(node).unwrap_or(Frame::UNKNOWN);
                let lines = (leaf(pair.first), leaf(pair.second));
                let key = (pair.detail.initialising, pair.waste, lines.0, lines.1);
                rows.entry(key).or_default().push(row);
            }
        }
        let ranking = rank(&by_line);
        Lines {
            profile: by_line,
            ranking,
            methods,
            rows,
        }
    }

    /// The place of a frame; `None`: it is none, or its method has no name.
    pub(super) fn place(&self, frame: Frame) -> Option<Place> {
        let index = frame.method.checked_sub(Frame::FIRST_METHOD)?;
        match self.methods.get(usize::try_from(index).ok()?)? {
            Method::Named(place) => Some(Place {
                line: u16::try_from(frame.bci).unwrap_or(0),
                ..place.clone()
            }),
            Method::Unnamed => None,
        }
    }

    /// A frame in words.
    pub(super) fn name(&self, frame: Frame) -> String {
        match (frame, self.place(frame)) {
            (_, Some(place)) => crate::sites::place_words(&place),
            (Frame::CUT, None) => "(callers found no room in the table)".into(),
            (Frame::DEEPER, None) => "(deeper than what was read)".into(),
            (Frame::UNKNOWN, None) => "(context not known)".into(),
            (_, None) => "(a method that was unloaded before it was named)".into(),
        }
    }

    /// Whether a report is about a pair: one of its two lines is in a method that was asked for.
    pub(super) fn wanted(&self, pair: &LeafPair, glob: Option<&MethodGlob>) -> bool {
        glob.is_none_or(|glob| {
            [pair.first, pair.second].into_iter().any(|frame| {
                let place = self.place(frame);
                place.is_some_and(|place| glob.matches(&place.class, &place.method))
            })
        })
    }

    /// The rows of a leaf pair, most samples first.
    pub(super) fn rows(&self, pair: &LeafPair, initialising: bool) -> Vec<&'a Pair> {
        let key = (initialising, pair.waste, pair.first, pair.second);
        let mut rows = self.rows.get(&key).cloned().unwrap_or_default();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// For each line at which questions began, the answers.
    pub(super) fn began(&self) -> Vec<((Waste, Frame), Began)> {
        let mut lines: BTreeMap<(Waste, Frame), Began> = BTreeMap::new();
        for (pair, &count) in &self.profile.pairs {
            let leaf = self.profile.contexts.leaf(pair.first);
            let began = lines
                .entry((pair.waste, leaf.unwrap_or(Frame::UNKNOWN)))
                .or_default();
            began.completed = began.completed.saturating_add(count);
            if pair.wasteful {
                began.wasteful = began.wasteful.saturating_add(count);
            }
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_by_key(|(_, began)| std::cmp::Reverse(began.completed));
        lines
    }
}

/// The type of what a leaf pair accesses: what the bytecode says in most samples, else what the machine does.
pub(super) fn type_of(rows: &[&Pair], shapes: &[Shape; 2]) -> String {
    let mut votes: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        if let Some(ty) = row.types.iter().flatten().next() {
            let sum = votes.entry(ty).or_insert(0);
            *sum = sum.saturating_add(row.count);
        }
    }
    let most = votes.into_iter().max_by_key(|(_, count)| *count);
    most.map_or_else(|| machine_type(&shapes[0]), |(ty, _)| ty.to_owned())
}

/// What a machine access says of the type.
fn machine_type(shape: &Shape) -> String {
    let size = shape.element.size();
    match (shape.element, shape.width / size.max(1)) {
        (Element::F32, 1) => "float".into(),
        (Element::F64, 1) => "double".into(),
        (Element::F32, n) => format!("{n} floats"),
        (Element::F64, n) => format!("{n} doubles"),
        (Element::Bits, _) => words::plain(&words::plural(shape.width.into(), "byte", "bytes")),
    }
}

/// Whether the bytecode of the first or second line cannot do the access in most samples in which it is known.
pub(super) fn doubtful(rows: &[&Pair]) -> [bool; 2] {
    [0, 1].map(|side| {
        let (mut yes, mut no) = (0u64, 0u64);
        for row in rows {
            match row.doubtful[side] {
                Some(true) => yes = yes.saturating_add(row.count),
                Some(false) => no = no.saturating_add(row.count),
                None => {}
            }
        }
        yes > no
    })
}
