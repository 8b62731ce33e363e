//! Reads a profile of waste. As with the other lenses, checksums are compared first.

use std::path::Path;

use super::tables::{self, CONTEXTS, PAIRS};
use super::{LENS, Manifest, Profile};
use crate::Error;
use crate::read::{all, check, manifest_text};
use crate::tables::{SKIPPED, read_skipped};

pub(super) fn open(dir: &Path) -> Result<Profile, Error> {
    let (lens, path, text) = manifest_text(dir)?;
    if lens != LENS {
        return Err(Error::Lens { path, lens });
    }
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error))?;
    for name in ["contexts.parquet", "pairs.parquet", "skipped.parquet"] {
        check(dir, name, &manifest.files)?;
    }
    let mut contexts = Vec::new();
    all(dir, "contexts.parquet", CONTEXTS, |columns| {
        let (number, context) = tables::read_context(columns)?;
        // A caller stands before what it calls: so there are no circles.
        let in_order = number as usize == contexts.len() + 1;
        let below = context
            .caller
            .is_none_or(|caller| (1..number).contains(&caller));
        (in_order && below).then(|| contexts.push(context))
    })?;
    let mut pairs = Vec::new();
    let known = |number: u32| number as usize <= contexts.len();
    all(dir, "pairs.parquet", PAIRS, |columns| {
        let pair = tables::read_pair(columns)?;
        let there = known(pair.pair.first) && known(pair.pair.second);
        there.then(|| pairs.push(pair))
    })?;
    let mut skipped = Vec::new();
    all(dir, "skipped.parquet", SKIPPED, |columns| {
        skipped.push(read_skipped(columns)?);
        Some(())
    })?;
    Ok(Profile {
        manifest,
        contexts,
        pairs,
        skipped,
    })
}
