//! Reports of the sites lens: the lines that grew or hold most, as text, JSON or a page for a browser, and what differs between two snapshots.

mod advice;
mod heap;
mod html;
mod json;
mod text;

use borescope_profile::sites::{Profile, Snapshot};

use crate::{Error, MethodGlob};
use heap::{Heap, Line, compare};

pub(crate) use heap::wanted;
pub use html::html;
pub use json::{diff_json, json};
pub(crate) use text::place as place_words;
pub use text::{diff_text, text};

/// A snapshot of a profile.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// One of its snapshots.
    pub snapshot: &'a Snapshot,
}

impl<'a> At<'a> {
    /// The snapshot of this number, if there is one.
    pub fn number(profile: &'a Profile, number: u32) -> Option<At<'a>> {
        let mut snapshots = profile.manifest().snapshots.iter();
        let snapshot = snapshots.find(|snapshot| snapshot.number == number)?;
        Some(At { profile, snapshot })
    }

    /// The snapshot that a question about the profile is most likely about: the last one at an OutOfMemoryError (what comes after may have
    /// lost what was in the way), else the last.
    pub fn last(profile: &'a Profile) -> Option<At<'a>> {
        let snapshots = &profile.manifest().snapshots;
        let full = snapshots.iter().rev().find(|one| one.cause == "oom");
        let snapshot = full.or(snapshots.last())?;
        Some(At { profile, snapshot })
    }

    /// The first snapshot of the profile, if it came before this one.
    pub fn first(self) -> Option<At<'a>> {
        let first = self.profile.manifest().snapshots.first()?;
        (first.number < self.snapshot.number).then_some(At {
            snapshot: first,
            ..self
        })
    }
}

/// Where to look first: lines, each with a sentence, and whether it says that the line grew.
pub(crate) struct Leads {
    pub(crate) lines: Vec<(Line, String)>,
    pub(crate) grew: bool,
}

impl Leads {
    pub(crate) fn of(last: At, glob: Option<&MethodGlob>) -> Result<Leads, Error> {
        let after = Heap::read(last, glob)?;
        let Some(first) = last.first() else {
            let empty = Heap::default();
            let largest = text::largest(last, &compare(&empty, &after));
            let lines = largest.map(|(line, text)| (line.clone(), text));
            return Ok(Leads {
                lines: lines.into_iter().collect(),
                grew: false,
            });
        };
        let before = Heap::read(first, glob)?;
        let all = compare(&before, &after);
        let grown = text::grown(first, last, glob, &all, usize::MAX)?;
        let lines = grown.into_iter().map(|(line, text)| (line.clone(), text));
        Ok(Leads {
            lines: lines.collect(),
            grew: true,
        })
    }
}
