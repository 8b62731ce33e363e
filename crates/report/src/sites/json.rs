//! JSON for tools: one object, the contract of docs/formats. Streamed: a snapshot at a time, each site on a line.

use std::collections::BTreeMap;
use std::io::Write;

use borescope_profile::sites::{Live, Place, Profile, Site, Snapshot};
use serde::Serialize;

use super::At;
use super::heap::{Change, Heap, compare, wanted};
use crate::json::{SCHEMA, list, write_head};
use crate::{Error, JsonOptions};

/// Writes the profile as one JSON object and a line feed.
pub fn json(profile: &Profile, options: &JsonOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| write(profile, options, out))
}

#[derive(Serialize)]
struct Head<'a> {
    mode: &'a str,
    hash_shift: u8,
    spare_bits: u8,
    jdk: bool,
    attribute: bool,
    attached: bool,
    log_torn: &'a Option<String>,
    snapshots_torn: &'a Option<String>,
    notices: &'a [String],
}

#[derive(Serialize)]
struct SnapshotHead<'a> {
    number: u32,
    at: u64,
    took_ms: u64,
    cause: &'a str,
    live_only: bool,
    listed: bool,
    live_objects: u64,
    live_bytes: u64,
    with_site_objects: u64,
    with_site_bytes: u64,
    with_app_objects: u64,
    with_app_bytes: u64,
    unknown_objects: u64,
    unknown_bytes: u64,
    unknown_reasons: BTreeMap<&'a str, u64>,
    unknown_reason_bytes: BTreeMap<&'a str, u64>,
}

impl<'a> SnapshotHead<'a> {
    fn of(one: &'a Snapshot) -> Self {
        let unknown = one.unknown.iter();
        SnapshotHead {
            number: one.number,
            at: one.at,
            took_ms: one.took_ms,
            cause: &one.cause,
            live_only: one.live_only,
            listed: one.listed,
            live_objects: one.live.objects,
            live_bytes: one.live.bytes,
            with_site_objects: one.with_site.objects,
            with_site_bytes: one.with_site.bytes,
            with_app_objects: one.with_app.objects,
            with_app_bytes: one.with_app.bytes,
            unknown_objects: unknown.clone().map(|(_, sum)| sum.objects).sum(),
            unknown_bytes: unknown.clone().map(|(_, sum)| sum.bytes).sum(),
            unknown_reasons: unknown
                .clone()
                .map(|(reason, sum)| (reason.as_str(), sum.objects))
                .collect(),
            unknown_reason_bytes: unknown
                .map(|(reason, sum)| (reason.as_str(), sum.bytes))
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct SiteJson<'a> {
    #[serde(rename = "type")]
    ty: &'a str,
    class: &'a str,
    method: &'a str,
    descriptor: &'a str,
    source_file: &'a Option<String>,
    line: u16,
    bci: u16,
    kind: &'a str,
    declared: &'a str,
    app_class: Option<&'a str>,
    app_method: Option<&'a str>,
    app_descriptor: Option<&'a str>,
    app_source_file: Option<&'a str>,
    app_line: Option<u16>,
    live_objects: u64,
    live_bytes: u64,
    /// Allocations are not counted.
    allocated: Option<u64>,
}

impl<'a> SiteJson<'a> {
    fn of(site: &'a Site, live: &'a Live) -> Self {
        let app = site.app.as_ref();
        SiteJson {
            ty: &live.ty,
            class: &site.at.class,
            method: &site.at.method,
            descriptor: &site.at.descriptor,
            source_file: &site.at.source_file,
            line: site.at.line,
            bci: site.bci,
            kind: &site.kind,
            declared: &site.ty,
            app_class: app.map(|app| &*app.class),
            app_method: app.map(|app| &*app.method),
            app_descriptor: app.map(|app| &*app.descriptor),
            app_source_file: app.and_then(|app| app.source_file.as_deref()),
            app_line: app.map(|app| app.line),
            live_objects: live.sum.objects,
            live_bytes: live.sum.bytes,
            allocated: None,
        }
    }
}

#[derive(Serialize)]
struct UnknownJson<'a> {
    #[serde(rename = "type")]
    ty: &'a str,
    reason: &'a str,
    live_objects: u64,
    live_bytes: u64,
}

fn write(profile: &Profile, options: &JsonOptions, out: &mut dyn Write) -> Result<(), Error> {
    let m = profile.manifest();
    let top = options.top.unwrap_or(usize::MAX);
    let glob = options.method.as_ref();
    write_head(&m.borescope, &m.target, profile.skipped(), options, out)?;
    out.write_all(b",\n\"sites\":")?;
    open(
        out,
        &Head {
            mode: &m.mode,
            hash_shift: m.header.hash_shift,
            spare_bits: m.header.spare_bits,
            jdk: m.jdk,
            attribute: m.attribute,
            attached: m.attached,
            log_torn: &m.log_torn,
            snapshots_torn: &m.snapshots_torn,
            notices: &m.notices,
        },
    )?;
    out.write_all(b",\"snapshots\":[")?;
    list(out, m.snapshots.iter(), |out, snapshot| {
        let live = profile.live(snapshot.number)?;
        open(out, &SnapshotHead::of(snapshot))?;
        out.write_all(b",\"sites\":[")?;
        let known = live.iter().filter_map(|live| {
            let site = profile.site(live.site?)?;
            wanted(site, glob).then(|| SiteJson::of(site, live))
        });
        list(out, known.take(top), |out, site| {
            Ok(serde_json::to_writer(out, &site)?)
        })?;
        out.write_all(b"],\"unknown\":[")?;
        let unknown = live.iter().filter_map(|live| {
            Some(UnknownJson {
                ty: &live.ty,
                reason: live.reason.as_deref()?,
                live_objects: live.sum.objects,
                live_bytes: live.sum.bytes,
            })
        });
        list(out, unknown.take(top), |out, row| {
            Ok(serde_json::to_writer(out, &row)?)
        })?;
        Ok(out.write_all(b"]}")?)
    })?;
    Ok(out.write_all(b"]}}\n")?)
}

/// An object without its closing brace.
fn open(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    let mut head = serde_json::to_vec(value)?;
    head.pop();
    Ok(out.write_all(&head)?)
}

#[derive(Serialize)]
struct Side<'a> {
    pid: u32,
    command: &'a str,
    #[serde(flatten)]
    snapshot: SnapshotHead<'a>,
}

impl<'a> Side<'a> {
    fn of(at: At<'a>) -> Self {
        let target = &at.profile.manifest().target;
        Side {
            pid: target.pid,
            command: &target.command,
            snapshot: SnapshotHead::of(at.snapshot),
        }
    }
}

#[derive(Serialize)]
struct ChangeJson {
    before_objects: u64,
    before_bytes: u64,
    after_objects: u64,
    after_bytes: u64,
}

impl ChangeJson {
    fn of(change: &Change) -> Self {
        ChangeJson {
            before_objects: change.before.objects,
            before_bytes: change.before.bytes,
            after_objects: change.after.objects,
            after_bytes: change.after.bytes,
        }
    }
}

#[derive(Serialize)]
struct LineJson<'a> {
    #[serde(flatten)]
    line: &'a Place,
    of_application: bool,
    #[serde(flatten)]
    change: ChangeJson,
    types: Vec<TypeJson<'a>>,
}

#[derive(Serialize)]
struct TypeJson<'a> {
    #[serde(rename = "type")]
    ty: &'a str,
    /// The allocation site, null if it is the line itself.
    site: Option<&'a Place>,
    #[serde(flatten)]
    change: ChangeJson,
}

/// Writes what changed from one snapshot to another as one JSON object and a line feed: lines by falling growth.
pub fn diff_json(
    before: At,
    after: At,
    options: &JsonOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let glob = options.method.as_ref();
        let (old, new) = (Heap::read(before, glob)?, Heap::read(after, glob)?);
        out.write_all(b"{\"borescope\":")?;
        serde_json::to_writer(&mut *out, &after.profile.manifest().borescope)?;
        write!(out, ",\"schema\":{SCHEMA},\n\"before\":")?;
        serde_json::to_writer(&mut *out, &Side::of(before))?;
        out.write_all(b",\n\"after\":")?;
        serde_json::to_writer(&mut *out, &Side::of(after))?;
        out.write_all(b",\n\"lines\":[")?;
        let entries = compare(&old, &new);
        let top = options.top.unwrap_or(usize::MAX);
        list(out, entries.iter().take(top), |out, entry| {
            let types = entry.parts.iter().map(|(what, change)| TypeJson {
                ty: &what.ty,
                site: what.at.as_ref(),
                change: ChangeJson::of(change),
            });
            let line = LineJson {
                line: &entry.line.place,
                of_application: entry.line.of_application,
                change: ChangeJson::of(&entry.change),
                types: types.collect(),
            };
            Ok(serde_json::to_writer(out, &line)?)
        })?;
        Ok(out.write_all(b"]}\n")?)
    })
}
