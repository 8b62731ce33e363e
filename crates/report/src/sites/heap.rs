//! Snapshots by line of the application, fit to be compared across profiles: by names and lines, not by the numbers of a profile.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use borescope_profile::sites::{Live, Place, Site, Sum};

use super::At;
use crate::{Error, MethodGlob};

/// A line that objects are counted under: of the application, or of the JDK where its caller is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) of_application: bool,
}

/// What was allocated for a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct What {
    pub(super) ty: String,
    /// The site, if it is not the line itself.
    pub(super) at: Option<Place>,
}

/// Objects without a site, by reason and type.
pub(super) type Unknown = BTreeMap<(String, String), Sum>;

/// A snapshot.
#[derive(Debug, Default)]
pub(super) struct Heap {
    pub(super) lines: BTreeMap<Line, BTreeMap<What, Sum>>,
    pub(super) unknown: Unknown,
}

/// The line and what is allocated there.
fn placed(site: &Site, live: &Live) -> (Line, What) {
    let place = site.app.as_ref().unwrap_or(&site.at);
    let line = Line {
        place: place.clone(),
        of_application: site.app.is_some(),
    };
    let what = What {
        ty: live.ty.clone(),
        at: (*place != site.at).then(|| site.at.clone()),
    };
    (line, what)
}

/// Whether a site is asked for, by its line in the application or by its own.
pub(crate) fn wanted(site: &Site, glob: Option<&MethodGlob>) -> bool {
    let Some(glob) = glob else { return true };
    let of = |place: &Place| glob.matches(&place.class, &place.method);
    of(&site.at) || site.app.as_ref().is_some_and(of)
}

impl Heap {
    pub(super) fn read(at: At, glob: Option<&MethodGlob>) -> Result<Heap, Error> {
        let mut heap = Heap::default();
        for live in at.profile.live(at.snapshot.number)? {
            match live.site.and_then(|site| at.profile.site(site)) {
                Some(site) if wanted(site, glob) => {
                    let (line, what) = placed(site, &live);
                    *heap.lines.entry(line).or_default().entry(what).or_default() += live.sum;
                }
                Some(_) => {}
                None => {
                    let reason = live.reason.unwrap_or_default();
                    *heap.unknown.entry((reason, live.ty)).or_default() += live.sum;
                }
            }
        }
        Ok(heap)
    }

    /// Bytes of each line.
    pub(super) fn bytes(&self) -> HashMap<&Line, u64> {
        let sum = |parts: &BTreeMap<What, Sum>| parts.values().map(|sum| sum.bytes).sum();
        self.lines
            .iter()
            .map(|(line, parts)| (line, sum(parts)))
            .collect()
    }
}

/// Before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) before: Sum,
    pub(super) after: Sum,
}

impl Change {
    pub(super) fn bytes(&self) -> i128 {
        i128::from(self.after.bytes) - i128::from(self.before.bytes)
    }

    pub(super) fn objects(&self) -> i128 {
        i128::from(self.after.objects) - i128::from(self.before.objects)
    }
}

/// A line before and after.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) line: &'a Line,
    pub(super) change: Change,
    /// The parts, sorted as the entries are.
    pub(super) parts: Vec<(&'a What, Change)>,
}

/// What counts more comes first: growth, then what there is now.
fn weight(change: &Change) -> Reverse<(i128, i128, i128)> {
    Reverse((
        change.bytes(),
        i128::from(change.after.bytes),
        change.objects(),
    ))
}

/// All lines of two heaps, those that grew most first. With an empty `before`: those that have most.
pub(super) fn compare<'a>(before: &'a Heap, after: &'a Heap) -> Vec<Entry<'a>> {
    let mut lines: BTreeMap<&Line, BTreeMap<&What, Change>> = BTreeMap::new();
    for (heap, is_after) in [(before, false), (after, true)] {
        for (line, parts) in &heap.lines {
            let of_line = lines.entry(line).or_default();
            for (what, &sum) in parts {
                let change = of_line.entry(what).or_default();
                *(if is_after {
                    &mut change.after
                } else {
                    &mut change.before
                }) += sum;
            }
        }
    }
    let of_line = |(line, parts): (&'a Line, BTreeMap<&'a What, Change>)| {
        let mut change = Change::default();
        for part in parts.values() {
            change.before += part.before;
            change.after += part.after;
        }
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_by_key(|part| weight(&part.1));
        Entry {
            line,
            change,
            parts,
        }
    };
    let mut entries: Vec<Entry> = lines.into_iter().map(of_line).collect();
    entries.sort_by_key(|entry| weight(&entry.change));
    entries
}
