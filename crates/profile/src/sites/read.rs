//! Reads a profile of sites. As with paths, checksums are compared first.

use std::path::Path;

use super::tables::{self, LIVE, OBJECTS, SITES};
use super::{LENS, Live, Manifest, Object, Profile};
use crate::Error;
use crate::read::{all, check, manifest_text};
use crate::table::TableReader;
use crate::tables::{SKIPPED, read_skipped};

pub(super) fn open(dir: &Path) -> Result<Profile, Error> {
    let (lens, path, text) = manifest_text(dir)?;
    if lens != LENS {
        return Err(Error::Lens { path, lens });
    }
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error))?;
    let listed = manifest.files.contains_key("objects.parquet");
    let files = ["sites.parquet", "live.parquet", "skipped.parquet"];
    let listed = listed.then_some("objects.parquet");
    for name in files.into_iter().chain(listed) {
        check(dir, name, &manifest.files)?;
    }
    let mut sites = Vec::new();
    all(dir, "sites.parquet", SITES, |columns| {
        sites.push(tables::read_site(columns)?);
        Some(())
    })?;
    if !(0..).zip(&sites).all(|(at, site)| site.index == at) {
        return Err(Error::damaged(
            &dir.join("sites.parquet"),
            "sites out of order",
        ));
    }
    let mut skipped = Vec::new();
    all(dir, "skipped.parquet", SKIPPED, |columns| {
        skipped.push(read_skipped(columns)?);
        Some(())
    })?;
    let live = TableReader::open(dir.join("live.parquet"), LIVE)?;
    Ok(Profile {
        dir: dir.to_owned(),
        manifest,
        sites,
        skipped,
        live,
    })
}

pub(super) fn live(profile: &Profile, snapshot: u32) -> Result<Vec<Live>, Error> {
    let mut rows = Vec::new();
    for group in profile.live.groups(i32::try_from(snapshot).ok())? {
        profile.live.rows(group, |columns| {
            let (of, row) = tables::read_live(columns)?;
            if of == snapshot {
                // A site that is not there would be read as if it were unknown.
                row.site
                    .is_none_or(|site| profile.site(site).is_some())
                    .then_some(())?;
                rows.push(row);
            }
            Some(())
        })?;
    }
    Ok(rows)
}

pub(super) fn objects(profile: &Profile) -> Result<Option<Objects>, Error> {
    if !profile.manifest.files.contains_key("objects.parquet") {
        return Ok(None);
    }
    let table = TableReader::open(profile.dir.join("objects.parquet"), OBJECTS)?;
    let groups = table.groups(None)?;
    Ok(Some(Objects {
        table,
        groups: groups.into_iter(),
        rows: Vec::new().into_iter(),
    }))
}

/// Iterates over the listed objects, a row group (up to a million) in memory.
pub struct Objects {
    table: TableReader,
    groups: std::vec::IntoIter<usize>,
    rows: std::vec::IntoIter<Object>,
}

impl Iterator for Objects {
    type Item = Result<Object, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(object) = self.rows.next() {
                return Some(Ok(object));
            }
            let mut rows = Vec::new();
            let read = self.table.rows(self.groups.next()?, |columns| {
                rows.push(tables::read_object(columns)?);
                Some(())
            });
            if let Err(error) = read {
                return Some(Err(error));
            }
            self.rows = rows.into_iter();
        }
    }
}
