//! Reads a profile directory. The manifest's checksums are compared first, so that damage is told as such and never read as counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use borescope_paths::KIpf;

use crate::model::{Details, Manifest, Method, MethodDetail, Profile};
use crate::table::{TableReader, checksum};
use crate::tables::{self, TABLES};
use crate::{Error, SCHEMA};

/// Name of the manifest in a profile directory.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The one field that is read before the rest, whose shape depends on it.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
}

pub(crate) fn open(dir: &Path) -> Result<Profile, Error> {
    let manifest = manifest(dir)?;
    for (name, _) in TABLES {
        let path = dir.join(name);
        let found = checksum(&path)?;
        if manifest.files.get(name) != Some(&found) {
            return Err(Error::damaged(
                &path,
                "not the file that the manifest names (size or checksum differ)",
            ));
        }
    }
    let mut methods: Vec<Method> = Vec::new();
    all(dir, "methods.parquet", tables::METHODS, |columns| {
        methods.push(tables::read_method(columns)?);
        Some(())
    })?;
    if !methods.is_sorted_by(|a, b| a.index < b.index) {
        return Err(Error::damaged(
            &dir.join("methods.parquet"),
            "methods out of order",
        ));
    }
    let mut skipped = Vec::new();
    all(dir, "skipped.parquet", tables::SKIPPED, |columns| {
        skipped.push(tables::read_skipped(columns)?);
        Some(())
    })?;
    let files = Files {
        paths: TableReader::open(dir.join("paths.parquet"), tables::PATHS)?,
        kipf: TableReader::open(dir.join("kipf.parquet"), tables::KIPF)?,
    };
    Ok(Profile {
        manifest,
        methods,
        skipped,
        details: Details::Files(Arc::new(Mutex::new(files))),
    })
}

/// The manifest of the profile in `dir`.
pub(crate) fn manifest(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join(MANIFEST);
    let text = fs::read(&path).map_err(Error::io(&path))?;
    let version: Version =
        serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error))?;
    if version.schema != SCHEMA {
        return Err(Error::Schema {
            path,
            found: version.schema,
        });
    }
    serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error))
}

fn all(
    dir: &Path,
    name: &str,
    schema: &str,
    mut row: impl FnMut(&mut [crate::table::Column]) -> Option<()>,
) -> Result<(), Error> {
    let table = TableReader::open(dir.join(name), schema)?;
    for group in table.groups(None)? {
        table.rows(group, &mut row)?;
    }
    Ok(())
}

/// The tables that are read a method at a time.
#[derive(Debug)]
pub(crate) struct Files {
    paths: TableReader,
    kipf: TableReader,
}

impl Files {
    /// Paths and k-IPF of a method. What is read must be as much as `method` says. Needs the files for itself: they have one position.
    pub(crate) fn detail(&mut self, k: u32, method: &Method) -> Result<MethodDetail, Error> {
        let index = i32::try_from(method.index).ok();
        let mut paths = Vec::new();
        for group in self.paths.groups(index)? {
            self.paths.rows(group, |columns| {
                let (of, path) = tables::read_path(columns)?;
                if of == method.index {
                    paths.push(path);
                }
                Some(())
            })?;
        }
        if paths.len() as u64 != method.paths {
            return Err(self.paths.damaged("not all paths of a method are there"));
        }
        let mut nodes = Vec::new();
        for group in self.kipf.groups(index)? {
            self.kipf.rows(group, |columns| {
                let node = tables::read_node(columns)?;
                if node.method == method.index {
                    nodes.push((node.parent, node.id, node.count));
                }
                Some(())
            })?;
        }
        if nodes.len() as u64 != method.kipf_nodes {
            return Err(self
                .kipf
                .damaged("not all nodes of a method's k-IPF are there"));
        }
        let kipf =
            KIpf::from_nodes(k, nodes).map_err(|error| self.kipf.damaged(&error.to_string()))?;
        Ok(MethodDetail { paths, kipf })
    }
}

/// Files of a profile.
pub(crate) fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    TABLES
        .iter()
        .map(|(name, _)| *name)
        .chain([MANIFEST])
        .map(|name| dir.join(name))
}
