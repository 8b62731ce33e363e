//! CSV as RFC 4180 has it: a header, CRLF, quotes where needed. One table a lens; docs/exports.md describes the columns.

use std::io::{Error as IoError, Write};

use ::csv::{ErrorKind, Terminator, Writer, WriterBuilder};
use borescope_profile::sites::{Live, Site, Snapshot};
use borescope_profile::{Method, PathRow, Profile, end_name, sites};

use super::{ExportOptions, each_method};
use crate::Error;
use crate::json::starts;
use crate::sites::wanted;

const PATHS: [&str; 16] = [
    "class",
    "method",
    "descriptor",
    "source_file",
    "class_hash",
    "calls",
    "path",
    "count",
    "lo",
    "hi",
    "estimate",
    "starts",
    "ends",
    "first_line",
    "lines",
    "bytecode",
];
const SITES: [&str; 19] = [
    "snapshot",
    "at",
    "cause",
    "type",
    "live_objects",
    "live_bytes",
    "reason",
    "class",
    "method",
    "descriptor",
    "source_file",
    "line",
    "bci",
    "kind",
    "app_class",
    "app_method",
    "app_descriptor",
    "app_source_file",
    "app_line",
];

/// One row for each path that ran.
pub fn paths(profile: &Profile, options: &ExportOptions, out: &mut dyn Write) -> Result<(), Error> {
    table(out, &PATHS, |table| {
        each_method(profile, options, |method, paths| {
            for path in paths {
                table.write_record(path_row(method, path)).map_err(error)?;
            }
            Ok(())
        })
    })
}

/// One row for each snapshot (all, or the one that is asked for), type and site, the objects without a site included.
pub fn sites(
    profile: &sites::Profile,
    snapshot: Option<u32>,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    table(out, &SITES, |table| {
        let of = |one: &&Snapshot| snapshot.is_none_or(|number| one.number == number);
        for snapshot in profile.manifest().snapshots.iter().filter(of) {
            for live in profile.live(snapshot.number)? {
                let site = live.site.and_then(|site| profile.site(site));
                if site.is_none_or(|site| wanted(site, options.method.as_ref())) {
                    let row = site_row(snapshot, &live, site);
                    table.write_record(row).map_err(error)?;
                }
            }
        }
        Ok(())
    })
}

fn table(
    out: &mut dyn Write,
    header: &[&str],
    rows: impl FnOnce(&mut Writer<&mut dyn Write>) -> Result<(), Error>,
) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let mut table = WriterBuilder::new()
            .terminator(Terminator::CRLF)
            .from_writer(out);
        table.write_record(header).map_err(error)?;
        rows(&mut table)?;
        Ok(table.flush()?)
    })
}

fn error(error: ::csv::Error) -> Error {
    match error.into_kind() {
        ErrorKind::Io(error) => Error::Write(error),
        other => Error::Write(IoError::other(format!("{other:?}"))),
    }
}

fn path_row(method: &Method, path: &PathRow) -> [String; 16] {
    // What is exact has itself as bounds, of a lower bound no upper one is known.
    let (lo, hi) = match (path.interval, method.paths_exact) {
        (Some(interval), _) => (interval.lo, interval.hi),
        (None, true) => (path.count, Some(path.count)),
        (None, false) => (path.count, None),
    };
    let lines: Vec<String> = path.lines.iter().map(u16::to_string).collect();
    let ranges = path
        .bcis
        .iter()
        .map(|(start, end)| format!("{start}-{end}"));
    let ranges: Vec<String> = ranges.collect();
    [
        method.class.clone(),
        method.method.clone(),
        method.descriptor.clone(),
        method.source_file.clone().unwrap_or_default(),
        format!("{:016x}", method.class_hash),
        method.activations.to_string(),
        path.id.to_string(),
        path.count.to_string(),
        lo.to_string(),
        hi.map_or_else(String::new, |hi| hi.to_string()),
        u8::from(method.estimate.is_some()).to_string(),
        starts(path.starts).join(" "),
        end_name(path.ends).to_owned(),
        lines.first().cloned().unwrap_or_default(),
        lines.join(" "),
        ranges.join(" "),
    ]
}

fn site_row(snapshot: &Snapshot, live: &Live, site: Option<&Site>) -> [String; 19] {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let at = site.map(|site| &site.at);
    let app = site.and_then(|site| site.app.as_ref());
    [
        snapshot.number.to_string(),
        snapshot.at.to_string(),
        snapshot.cause.clone(),
        live.ty.clone(),
        live.sum.objects.to_string(),
        live.sum.bytes.to_string(),
        text(live.reason.as_deref()),
        text(at.map(|at| &*at.class)),
        text(at.map(|at| &*at.method)),
        text(at.map(|at| &*at.descriptor)),
        text(at.and_then(|at| at.source_file.as_deref())),
        at.map_or_else(String::new, |at| at.line.to_string()),
        site.map_or_else(String::new, |site| site.bci.to_string()),
        text(site.map(|site| &*site.kind)),
        text(app.map(|app| &*app.class)),
        text(app.map(|app| &*app.method)),
        text(app.map(|app| &*app.descriptor)),
        text(app.and_then(|app| app.source_file.as_deref())),
        app.map_or_else(String::new, |app| app.line.to_string()),
    ]
}
