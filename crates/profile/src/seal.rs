//! Seals a spool: into a directory beside the final one first, which is renamed when all of it is on the disk.
//!
//! Memory: the decoded `meta.log`, 8 bytes for each row of counters.bin, the sums of its slots (at most 16 MiB), 256 MiB of its pages, and the k-IPF of one method at a time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use borescope_spool::counters::Damage;
use borescope_spool::layout::{Engine, Stop};

use crate::burst::Chosen;
use crate::gather::{Gathered, Spool};
use crate::model::{Manifest, Method, Totals};
use crate::read;
use crate::table::TableWriter;
use crate::tables::{self, CODE, KIPF, LOOPS, MERGED, METHODS, Node, PATHS, SKIPPED};
use crate::{Error, SCHEMA};

/// What to do with a profile that has the name of the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone: [`Error::Exists`].
    Refuse,
    /// Replace it. Anything that is not a profile is left alone all the same.
    Replace,
}

/// How far sealing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Methods done.
    pub done: usize,
    /// Methods there are.
    pub methods: usize,
}

/// Seals the spool `spool` (which is only read, and may still be written by a JVM) into the profile directory `out`. Nothing appears
/// under that name until the profile is complete and on the disk.
pub fn seal(
    spool: &Path,
    out: &Path,
    existing: Existing,
    progress: &mut dyn FnMut(Progress),
) -> Result<Manifest, Error> {
    directory(
        out,
        existing,
        || Spool::open(spool),
        |spool, dir| write(spool, dir, progress),
    )
}

/// Makes the directory `out` of what `open` gives: `write` fills it under another name.
pub(crate) fn directory<S, M>(
    out: &Path,
    existing: Existing,
    open: impl FnOnce() -> Result<S, Error>,
    write: impl FnOnce(&S, &Path) -> Result<M, Error>,
) -> Result<M, Error> {
    let (parent, name) = split(out)?;
    clean(out, &parent, &prefix(&name));
    check_out(out, existing)?;
    let spool = open()?;
    let temp = Temp::make(&parent, &name)?;
    let manifest = write(&spool, &temp.0)?;
    temp.publish(out, existing)?;
    Ok(manifest)
}

fn write(spool: &Spool, dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Manifest, Error> {
    let create = |name: &str, schema| TableWriter::create(dir.join(name), schema);
    let mut methods = create("methods.parquet", METHODS)?;
    let mut paths = create("paths.parquet", PATHS)?;
    let mut kipf = create("kipf.parquet", KIPF)?;
    let mut merged = create("merged.parquet", MERGED)?;
    let mut code = create("code.parquet", CODE)?;
    let mut loops = create("loops.parquet", LOOPS)?;
    let mut skipped = create("skipped.parquet", SKIPPED)?;
    let mut totals = Totals {
        classes: spool.log.classes,
        methods: spool.log.methods.len() as u64,
        straight_line: spool.log.straight_lines,
        skipped: spool.log.skipped.len() as u64,
        ..Totals::default()
    };
    let mut damage = Damage::default();
    let mut chosen = Chosen::default();
    let all = spool.log.methods.len();
    for (done, &index) in spool.log.methods.keys().enumerate() {
        progress(Progress { done, methods: all });
        let gathered = spool.method(index, &mut damage)?;
        let (method, detail) = (&gathered.method, &gathered.detail);
        methods.row(|columns| tables::write_method(columns, method))?;
        write_detail(&mut paths, &mut kipf, &gathered)?;
        for branch in &detail.merged {
            merged.row(|columns| tables::write_merged(columns, index, branch))?;
        }
        merged.end_method()?;
        code.row(|columns| tables::write_code(columns, index, &gathered.code.lines))?;
        code.end_method()?;
        for one in &gathered.code.loops {
            loops.row(|columns| tables::write_loop(columns, index, one))?;
        }
        loops.end_method()?;
        add(&mut totals, method);
        gathered.chosen.iter().for_each(|more| chosen.add(more));
    }
    progress(Progress {
        done: all,
        methods: all,
    });
    for row in &spool.log.skipped {
        skipped.row(|columns| tables::write_skipped(columns, row))?;
    }
    let mut files = std::collections::BTreeMap::new();
    for (name, table) in [
        ("methods.parquet", methods),
        ("paths.parquet", paths),
        ("kipf.parquet", kipf),
        ("merged.parquet", merged),
        ("code.parquet", code),
        ("loops.parquet", loops),
        ("skipped.parquet", skipped),
    ] {
        files.insert(name.to_owned(), table.finish()?);
    }
    let manifest = manifest(spool, totals, &chosen, &damage, files);
    write_manifest(dir, &manifest)?;
    Ok(manifest)
}

fn write_detail(
    paths: &mut TableWriter,
    kipf: &mut TableWriter,
    gathered: &Gathered,
) -> Result<(), Error> {
    let Gathered { method, detail, .. } = gathered;
    for path in &detail.paths {
        paths.row(|columns| tables::write_path(columns, method.index, path))?;
    }
    paths.end_method()?;
    for (node, (entry, bounds)) in (0..).zip(detail.kipf.bounded_nodes()) {
        let borescope_paths::kipf::Entry {
            parent,
            depth,
            id,
            count,
        } = entry;
        let node = Node {
            method: method.index,
            node,
            parent,
            depth,
            id,
            count,
            lo: count.saturating_sub(bounds.below),
            hi: gathered
                .missing
                .map(|missing| bounds.upper.saturating_add(missing)),
            truncated: bounds.truncated,
        };
        kipf.row(|columns| tables::write_node(columns, &node))?;
    }
    kipf.end_method()
}

fn add(totals: &mut Totals, method: &Method) {
    totals.methods_executed += u64::from(method.activations > 0 || method.ids > 0);
    for (total, value) in [
        (&mut totals.activations, method.activations),
        (&mut totals.ids, method.ids),
        (&mut totals.unfinished, method.unfinished.unwrap_or(0)),
        (&mut totals.paths, method.paths),
        (&mut totals.kipf_nodes, method.kipf_nodes),
    ] {
        *total = total.saturating_add(value);
    }
}

fn manifest(
    spool: &Spool,
    totals: Totals,
    chosen: &Chosen,
    damage: &Damage,
    files: std::collections::BTreeMap<String, crate::table::Checksum>,
) -> Manifest {
    let header = spool.header();
    let mut notices = spool.log.notices.clone();
    let (methods, rows) = spool.unknown();
    if methods > 0 {
        notices.push(format!("{methods} method(s) with {rows} row(s) of counts have no description in the log: left out"));
    }
    let mut torn = spool.rows_damage().clone();
    torn.places += damage.places;
    torn.first = torn.first.or(damage.first);
    let burst = (spool.log.one_in > 0).then(|| {
        let lost = header.lost.saturating_mul(spool.log.one_in.into());
        let missing = (torn.places == 0).then_some(lost);
        spool.estimator(missing).manifest(chosen, &totals)
    });
    Manifest {
        burst,
        borescope: env!("CARGO_PKG_VERSION").into(),
        schema: SCHEMA,
        target: spool.log.target.clone(),
        engine: match header.engine {
            Engine::Automaton => "automaton",
            Engine::Ksf => "ksf",
            Engine::KsfMtf => "ksf-mtf",
            Engine::BlppHash => "blpp-hash",
            Engine::BlppDense => "blpp-dense",
        }
        .into(),
        k: spool.k(),
        branches: if spool.log.merge { "merge" } else { "split" }.into(),
        straight_line: spool.log.straight_line,
        stopped: match header.stop {
            Stop::No => None,
            Stop::Memory => Some("the memory limit was reached".into()),
            Stop::DiskFull => Some("the disk that held the spool was full".into()),
        },
        lost: header.lost,
        notices,
        totals,
        log_torn: spool.log.torn.clone(),
        counters_torn: (torn.places > 0).then(|| torn.to_string()),
        files,
    }
}

pub(crate) fn write_manifest(dir: &Path, manifest: &impl serde::Serialize) -> Result<(), Error> {
    let path = dir.join(read::MANIFEST);
    let mut text =
        serde_json::to_vec_pretty(manifest).map_err(|error| Error::damaged(&path, error))?;
    text.push(b'\n');
    let mut file = File::create_new(&path).map_err(Error::io(&path))?;
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(Error::io(&path))
}

/// Refuses an output that must not be touched.
fn check_out(out: &Path, existing: Existing) -> Result<(), Error> {
    let refuse = || {
        Err(Error::Exists {
            path: out.to_owned(),
        })
    };
    match fs::symlink_metadata(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(out)(error)),
        Ok(found) if !found.is_dir() => refuse(),
        Ok(_) => match fs::read_dir(out).map_err(Error::io(out))?.next() {
            None => Ok(()),
            Some(_) if existing == Existing::Replace && out.join(read::MANIFEST).is_file() => {
                Ok(())
            }
            Some(_) => refuse(),
        },
    }
}

/// Ends the name of a replaced profile until it is removed.
const OLD: &str = ".old";

/// A directory beside the final one, removed unless it is published.
struct Temp(PathBuf);

/// `(parent, name)` of the output.
fn split(out: &Path) -> Result<(PathBuf, OsString), Error> {
    let name = out.file_name().ok_or_else(|| Error::Exists {
        path: out.to_owned(),
    })?;
    let parent = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    Ok((parent.to_owned(), name.to_owned()))
}

fn prefix(name: &OsString) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".sealing-");
    prefix
}

impl Temp {
    fn make(parent: &Path, name: &OsString) -> Result<Temp, Error> {
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let mut temp = prefix(name);
        temp.push(std::process::id().to_string());
        let temp = parent.join(temp);
        fs::create_dir(&temp).map_err(Error::io(&temp))?;
        Ok(Temp(temp))
    }

    fn publish(self, out: &Path, existing: Existing) -> Result<(), Error> {
        File::open(&self.0)
            .and_then(|dir| dir.sync_all())
            .map_err(Error::io(&self.0))?;
        // Looked at again: much may have happened meanwhile. An empty directory gives way to a rename.
        check_out(out, existing)?;
        let mut old = None;
        if fs::symlink_metadata(out.join(read::MANIFEST)).is_ok() {
            let mut aside = self.0.clone().into_os_string();
            aside.push(OLD);
            let aside = PathBuf::from(aside);
            fs::rename(out, &aside).map_err(Error::io(out))?;
            old = Some(aside);
        }
        if let Err(error) = fs::rename(&self.0, out) {
            if let Some(aside) = &old {
                // Best effort: the error to tell is the first one.
                let _ = fs::rename(aside, out);
            }
            return Err(Error::io(out)(error));
        }
        let (parent, _) = split(out)?;
        File::open(&parent)
            .and_then(|dir| dir.sync_all())
            .map_err(Error::io(&parent))?;
        if let Some(aside) = old {
            remove(&aside);
        }
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a directory of a profile and nothing else that may be in it. What cannot be removed stays: it is no profile.
fn remove(dir: &Path) {
    for file in read::files(dir) {
        let _ = fs::remove_file(file);
    }
    let _ = fs::remove_dir(dir);
}

/// Removes what sealings of `out` left that were killed (their process is gone), and puts back a profile that one had moved away
/// and not yet replaced.
fn clean(out: &Path, parent: &Path, prefix: &OsString) {
    let Some(prefix) = prefix.to_str() else {
        return;
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else {
            continue;
        };
        let process = rest.strip_suffix(OLD).unwrap_or(rest);
        let Ok(process) = process.parse::<u32>() else {
            continue;
        };
        if process != std::process::id() && Path::new("/proc").join(process.to_string()).exists() {
            continue;
        }
        if rest.ends_with(OLD)
            && fs::symlink_metadata(out).is_err()
            && fs::rename(entry.path(), out).is_ok()
        {
            continue;
        }
        remove(&entry.path());
    }
}
