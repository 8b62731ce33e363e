//! The data of a page about allocation sites: lines of the application with what they have alive at each snapshot, by type.

use std::collections::BTreeMap;
use std::io::Write;

use borescope_profile::sites::{Place, Profile, Snapshot, Sum};
use serde::Serialize;

use super::heap::{Heap, Line, What};
use super::text;
use super::{At, Leads};
use crate::html::{Around, HtmlOptions, begun, cut, said};
use crate::words::{self, plural, thousands};
use crate::{Error, TextOptions};

/// Bytes for the lines.
const LINES: usize = 3_800_000;
/// Lines, unless asked for otherwise.
const MOST_LINES: usize = 5_000;
/// Snapshots.
const SNAPSHOTS: usize = 24;
/// Types and sites of a line.
const PARTS: usize = 24;

/// Writes a profile of allocation sites as a page.
pub fn html(profile: &Profile, options: &HtmlOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let data = data(profile, options)?;
        crate::html::write(&profile.manifest().target.command, &data, out)
    })
}

fn data(profile: &Profile, options: &HtmlOptions) -> Result<Vec<u8>, Error> {
    let m = profile.manifest();
    let glob = options.method.as_ref();
    let about = said(|page| text::header(page, m));
    let mut data = begun("sites", &m.borescope, &about)?;
    let notes = said(|page| text::not_measured(page, profile, &TextOptions::default()));
    data.field("notes", &notes.get(1..))?;
    let Some(last) = At::last(profile) else {
        data.field("nothing", &said(|page| text::nothing(page, m)))?;
        return Ok(data.finish());
    };
    let shown = chosen(&m.snapshots, last.snapshot);
    let mut heaps = Vec::new();
    for snapshot in &shown {
        heaps.push(Heap::read(At { profile, snapshot }, glob)?);
    }
    let snapshots: Vec<SnapshotJson> = shown
        .iter()
        .zip(&heaps)
        .map(|(snapshot, heap)| SnapshotJson::of(snapshot, heap, m.target.started))
        .collect();
    let at = |number: u32| shown.iter().position(|one| one.number == number);
    data.field("snapshots", &snapshots)?;
    data.field("last", &at(last.snapshot.number))?;
    data.field(
        "first",
        &last.first().and_then(|first| at(first.snapshot.number)),
    )?;
    data.field(
        "doubt",
        &said(|page| text::unknown_first(page, last.snapshot)),
    )?;

    let lines = lines(&heaps);
    let most = options.top.unwrap_or(MOST_LINES);
    let rows = lines
        .iter()
        .take(most)
        .map(|(line, parts)| LineJson::of(line, parts, heaps.len(), options));
    let written = data.list("lines", rows, LINES)?;
    let rest = lines.get(written..).unwrap_or_default();
    data.field("rest", &Rest::of(rest, heaps.len()))?;
    data.field("leads", &leads(last, glob, &lines)?)?;
    let mut folded = Vec::new();
    if !rest.is_empty() {
        folded.push(format!(
            "The table has {} of {} that had live objects; the others are in it as one.",
            plural(written as u64, "line", "lines"),
            thousands(lines.len() as u64)
        ));
    }
    if shown.len() < m.snapshots.len() {
        folded.push(format!(
            "{} of {} snapshots are here.",
            shown.len(),
            thousands(m.snapshots.len() as u64)
        ));
    }
    data.field("folded", &folded)?;
    Ok(data.finish())
}

/// The snapshots to show: of many some, evenly, with the first and those that the report is about.
fn chosen<'a>(all: &'a [Snapshot], last: &Snapshot) -> Vec<&'a Snapshot> {
    let step = |at: usize| at * all.len().saturating_sub(1) / (SNAPSHOTS - 2);
    let some: Vec<usize> = match all.len() {
        0..=SNAPSHOTS => (0..all.len()).collect(),
        _ => (0..SNAPSHOTS - 1).map(step).collect(),
    };
    let shown = |(at, one): &(usize, &Snapshot)| some.contains(at) || one.number == last.number;
    all.iter()
        .enumerate()
        .filter(shown)
        .map(|(_, one)| one)
        .collect()
}

/// What is said of a snapshot. The names are those of the JSON report.
#[derive(Serialize)]
struct SnapshotJson<'a> {
    number: u32,
    after_ms: u64,
    took_ms: u64,
    cause: &'a str,
    live_only: bool,
    live_objects: u64,
    live_bytes: u64,
    with_site_bytes: u64,
    with_app_bytes: u64,
    after: String,
    unknown: Vec<UnknownJson<'a>>,
}

/// Objects without a site, for one reason.
#[derive(Serialize)]
struct UnknownJson<'a> {
    reason: &'a str,
    words: &'a str,
    objects: u64,
    bytes: u64,
    types: Vec<&'a str>,
}

impl<'a> SnapshotJson<'a> {
    fn of(one: &'a Snapshot, heap: &'a Heap, started: u64) -> Self {
        let after_ms = one.at.saturating_sub(started);
        let unknown = one.unknown.iter().map(|(reason, sum)| UnknownJson {
            reason,
            words: text::in_words(reason),
            objects: sum.objects,
            bytes: sum.bytes,
            types: text::main_types(reason, &heap.unknown),
        });
        SnapshotJson {
            number: one.number,
            after_ms,
            took_ms: one.took_ms,
            cause: text::cause(one),
            live_only: one.live_only,
            live_objects: one.live.objects,
            live_bytes: one.live.bytes,
            with_site_bytes: one.with_site.bytes,
            with_app_bytes: one.with_app.bytes,
            after: words::duration(after_ms),
            unknown: unknown.collect(),
        }
    }
}

/// At each snapshot.
type Series = Vec<Sum>;
/// What a line allocated.
type Parts<'a> = Vec<(&'a What, Series)>;

fn total<'a>(series: impl Iterator<Item = &'a Series>, snapshots: usize) -> Series {
    let mut sum = vec![Sum::default(); snapshots];
    for one in series {
        sum.iter_mut().zip(one).for_each(|(sum, one)| *sum += *one);
    }
    sum
}

/// The most bytes that it ever had: what decides on who is left out.
fn weight(series: &Series) -> u64 {
    series.iter().map(|sum| sum.bytes).max().unwrap_or(0)
}

/// All lines, the largest first, with their parts, the largest first.
fn lines(heaps: &[Heap]) -> Vec<(&Line, Parts<'_>)> {
    let mut lines: BTreeMap<&Line, BTreeMap<&What, Series>> = BTreeMap::new();
    for (at, heap) in heaps.iter().enumerate() {
        for (line, parts) in &heap.lines {
            let of_line = lines.entry(line).or_default();
            for (what, sum) in parts {
                let empty = || vec![Sum::default(); heaps.len()];
                of_line.entry(what).or_insert_with(empty)[at] = *sum;
            }
        }
    }
    let mut all: Vec<(&Line, Parts)> = lines
        .into_iter()
        .map(|(line, parts)| {
            let mut parts: Parts = parts.into_iter().collect();
            parts.sort_by_key(|(_, series)| std::cmp::Reverse(weight(series)));
            (line, parts)
        })
        .collect();
    all.sort_by_cached_key(|(_, parts)| {
        let of_parts = parts.iter().map(|(_, series)| series);
        std::cmp::Reverse(weight(&total(of_parts, heaps.len())))
    });
    all
}

/// Objects and bytes at each snapshot.
#[derive(Serialize)]
struct SeriesJson {
    objects: Vec<u64>,
    bytes: Vec<u64>,
}

impl SeriesJson {
    fn of(series: &Series) -> Self {
        SeriesJson {
            objects: series.iter().map(|sum| sum.objects).collect(),
            bytes: series.iter().map(|sum| sum.bytes).collect(),
        }
    }
}

#[derive(Serialize)]
struct LineJson<'a> {
    /// `acme.Cache.put (Cache.java:52)`
    name: String,
    #[serde(flatten)]
    place: &'a Place,
    of_application: bool,
    parts: Vec<PartJson<'a>>,
    /// Types and sites that found no room.
    others: Option<Rest>,
    source: Option<Around>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    #[serde(rename = "type")]
    ty: &'a str,
    /// The allocation site, if it is not the line itself.
    site: Option<String>,
    #[serde(flatten)]
    series: SeriesJson,
}

/// What is not listed.
#[derive(Serialize)]
struct Rest {
    count: usize,
    #[serde(flatten)]
    series: SeriesJson,
}

impl Rest {
    fn of(lines: &[(&Line, Parts)], snapshots: usize) -> Option<Self> {
        let series = lines
            .iter()
            .flat_map(|(_, parts)| parts.iter().map(|(_, s)| s));
        (!lines.is_empty()).then(|| Rest {
            count: lines.len(),
            series: SeriesJson::of(&total(series, snapshots)),
        })
    }
}

impl<'a> LineJson<'a> {
    fn of(line: &'a Line, parts: &'a Parts, snapshots: usize, options: &HtmlOptions) -> Self {
        let (listed, rest) = parts.split_at(parts.len().min(PARTS));
        let listed = listed.iter().map(|(what, series)| PartJson {
            ty: &what.ty,
            site: what.at.as_ref().map(text::place),
            series: SeriesJson::of(series),
        });
        let others = || Rest {
            count: rest.len(),
            series: SeriesJson::of(&total(rest.iter().map(|(_, s)| s), snapshots)),
        };
        LineJson {
            name: text::place(&line.place),
            place: &line.place,
            of_application: line.of_application,
            parts: listed.collect(),
            others: (!rest.is_empty()).then(others),
            source: Around::of(&line.place, &options.source),
        }
    }
}

#[derive(Serialize)]
struct LeadJson {
    /// Place of the line in the list.
    line: Option<usize>,
    text: String,
}

/// Where to look first: the sentences of the text report.
fn leads(
    last: At,
    glob: Option<&crate::MethodGlob>,
    lines: &[(&Line, Parts)],
) -> Result<Vec<LeadJson>, Error> {
    let lead = |(line, text): (Line, String)| LeadJson {
        line: lines.iter().position(|(of, _)| **of == line),
        text: cut(&text, 2_000),
    };
    Ok(Leads::of(last, glob)?.lines.into_iter().map(lead).collect())
}
