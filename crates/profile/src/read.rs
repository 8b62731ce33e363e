//! Reads a profile directory. The manifest's checksums are compared first, so that damage is told as such and never read as counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use borescope_paths::KIpf;
use borescope_paths::kipf::Bounds;

use crate::model::{Code, Details, Loop, Manifest, Merged, Method, MethodDetail, PathRow, Profile};
use crate::table::{Checksum, Column, TableReader, checksum};
use crate::tables::{self, TABLES};
use crate::{Error, SCHEMA};

/// Name of the manifest in a profile directory.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The one field that is read before the rest, whose shape depends on it.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
    /// Profiles of paths have none.
    #[serde(default)]
    lens: String,
}

pub(crate) fn open(dir: &Path) -> Result<Profile, Error> {
    let manifest = manifest(dir)?;
    for (name, _) in TABLES {
        check(dir, name, &manifest.files)?;
    }
    let later = tables::LATER.map(|(name, schema)| {
        let there = manifest.files.contains_key(name);
        there.then(|| {
            check(dir, name, &manifest.files)?;
            TableReader::open(dir.join(name), schema)
        })
    });
    let [code, loops] = later.map(Option::transpose);
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
        merged: TableReader::open(dir.join("merged.parquet"), tables::MERGED)?,
        path_rows: Groups::new(1 << 18),
        kipf_rows: Groups::new(1 << 21),
        merged_rows: Groups::new(1 << 18),
        code: code?,
        loops: loops?,
        code_rows: Groups::new(1 << 18),
        loop_rows: Groups::new(1 << 18),
    };
    Ok(Profile {
        manifest,
        methods,
        skipped,
        details: Details::Files(Arc::new(Mutex::new(files))),
    })
}

/// The manifest of the profile of paths in `dir`.
fn manifest(dir: &Path) -> Result<Manifest, Error> {
    match manifest_text(dir)? {
        (lens, path, text) if lens.is_empty() => {
            serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error))
        }
        (lens, path, _) => Err(Error::Lens { path, lens }),
    }
}

/// Lens, path and text of the manifest in `dir`; the lens of paths is empty.
pub(crate) fn manifest_text(dir: &Path) -> Result<(String, PathBuf, Vec<u8>), Error> {
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
    Ok((version.lens, path, text))
}

/// Refuses a file that is not the one the manifest names.
pub(crate) fn check(
    dir: &Path,
    name: &str,
    files: &BTreeMap<String, Checksum>,
) -> Result<(), Error> {
    let path = dir.join(name);
    match files.get(name) == Some(&checksum(&path)?) {
        true => Ok(()),
        false => Err(Error::damaged(
            &path,
            "not the file that the manifest names (size or checksum differ)",
        )),
    }
}

pub(crate) fn all(
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
    merged: TableReader,
    path_rows: Groups<PathRow>,
    kipf_rows: Groups<(Option<u32>, u32, u64, Bounds)>,
    merged_rows: Groups<Merged>,
    code: Option<TableReader>,
    loops: Option<TableReader>,
    code_rows: Groups<Vec<u16>>,
    loop_rows: Groups<Loop>,
}

/// Row groups as last decoded. A group holds many small methods, and a report asks for methods in an order of its own: without this
/// each of them would decode the whole group again.
#[derive(Debug)]
struct Groups<T> {
    decoded: BTreeMap<usize, Vec<(u32, T)>>,
    rows: usize,
    /// Rows to keep: tens of megabytes.
    most: usize,
}

impl<T: Clone> Groups<T> {
    fn new(most: usize) -> Self {
        Groups {
            decoded: BTreeMap::new(),
            rows: 0,
            most,
        }
    }

    /// The rows of a method. `read` gives a row and the method it is of.
    fn of(
        &mut self,
        table: &TableReader,
        method: u32,
        mut read: impl FnMut(&mut [Column]) -> Option<(u32, T)>,
    ) -> Result<Vec<T>, Error> {
        let mut out = Vec::new();
        for group in table.groups(i32::try_from(method).ok())? {
            if !self.decoded.contains_key(&group) {
                let mut rows = Vec::new();
                table.rows(group, |columns| {
                    rows.push(read(columns)?);
                    Some(())
                })?;
                if self.rows + rows.len() > self.most {
                    self.decoded.clear();
                    self.rows = 0;
                }
                self.rows += rows.len();
                self.decoded.insert(group, rows);
            }
            let rows = self.decoded.get(&group).into_iter().flatten();
            out.extend(rows.filter(|row| row.0 == method).map(|row| row.1.clone()));
        }
        Ok(out)
    }
}

impl Files {
    /// Lines and loops of a method.
    pub(crate) fn code(&mut self, method: u32) -> Result<Option<Code>, Error> {
        let (Some(code), Some(loops)) = (&self.code, &self.loops) else {
            return Ok(None);
        };
        let lines = self.code_rows.of(code, method, tables::read_code)?;
        let loops = self.loop_rows.of(loops, method, tables::read_loop)?;
        match <[Vec<u16>; 1]>::try_from(lines) {
            Ok([lines]) => Ok(Some(Code { lines, loops })),
            Err(_) => Err(code.damaged("not one row for a method")),
        }
    }

    /// Paths and k-IPF of a method. What is read must be as much as `method` says. Needs the files for itself: they have one position.
    pub(crate) fn detail(
        &mut self,
        manifest: &Manifest,
        method: &Method,
    ) -> Result<MethodDetail, Error> {
        let (k, missing) = (manifest.k, manifest.missing());
        let paths = self
            .path_rows
            .of(&self.paths, method.index, tables::read_path)?;
        if paths.len() as u64 != method.paths {
            return Err(self.paths.damaged("not all paths of a method are there"));
        }
        let nodes = self.kipf_rows.of(&self.kipf, method.index, |columns| {
            let node = tables::read_node(columns)?;
            let bounds = Bounds {
                upper: node.hi.map_or(u64::MAX, |hi| hi.saturating_sub(missing)),
                truncated: node.truncated,
                below: node.count.saturating_sub(node.lo),
            };
            Some((node.method, (node.parent, node.id, node.count, bounds)))
        })?;
        if nodes.len() as u64 != method.kipf_nodes {
            return Err(self
                .kipf
                .damaged("not all nodes of a method's k-IPF are there"));
        }
        let merged = self
            .merged_rows
            .of(&self.merged, method.index, tables::read_merged)?;
        if merged.len() as u64 != method.merged {
            return Err(self
                .merged
                .damaged("not all branches of a method are there"));
        }
        let kipf = KIpf::from_bounded_nodes(k, nodes)
            .map_err(|error| self.kipf.damaged(&error.to_string()))?;
        Ok(MethodDetail {
            paths,
            kipf,
            merged,
        })
    }
}

/// Files of a profile of any lens.
pub(crate) fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let tables = TABLES
        .iter()
        .chain(&tables::LATER)
        .chain(&crate::sites::tables::TABLES)
        .chain(&crate::waste::tables::TABLES);
    tables
        .map(|(name, _)| *name)
        .chain([MANIFEST])
        .map(|name| dir.join(name))
}
