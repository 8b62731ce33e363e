//! JSON for tools: one object, the contract of docs/formats. An element of `pairs` is a pair of full contexts; those of the same two lines follow one
//! another, in the order in which a person should look at them.

use std::collections::BTreeMap;
use std::io::Write;

use borescope_profile::waste::{Kind, Pair, Place, Profile, What};
use borescope_waste::Waste;
use borescope_waste::analysis::text::text as instruction;
use borescope_waste::rank::LeafPair;
use serde::Serialize;

use super::lines::{Lines, type_of};
use crate::json::{list, write_head};
use crate::{Error, JsonOptions};

#[derive(Serialize)]
struct Head<'a> {
    source: &'a str,
    weight: &'a str,
    rate: u32,
    tolerance_ppm: u32,
    watches: u8,
    attached: bool,
    samples: &'a BTreeMap<String, u64>,
    kinds: BTreeMap<&'a str, KindJson>,
    unfinished: u64,
    log_torn: &'a Option<String>,
    table_torn: &'a Option<String>,
    notices: &'a [String],
}

/// Totals of a kind.
#[derive(Serialize)]
pub(super) struct KindJson {
    asked: u64,
    completed: u64,
    wasteful: u64,
    unanswered: u64,
    fraction: f64,
}

impl KindJson {
    pub(super) fn of(kind: &Kind) -> KindJson {
        let completed = kind.wasteful.saturating_add(kind.useful);
        KindJson {
            asked: kind.asked,
            completed,
            wasteful: kind.wasteful,
            unanswered: kind.unanswered,
            fraction: fraction(kind.wasteful, completed),
        }
    }
}

/// 0 of nothing.
pub(super) fn fraction(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

/// A frame.
#[derive(Serialize)]
struct FrameJson<'a> {
    class: Option<&'a str>,
    method: Option<&'a str>,
    descriptor: Option<&'a str>,
    source_file: Option<&'a str>,
    line: u16,
    bci: Option<i32>,
    /// The bytecode there cannot do the access.
    doubtful: bool,
    /// Why there is no method.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<&'a str>,
}

impl<'a> FrameJson<'a> {
    fn at(place: &'a Place, bci: Option<i32>, doubtful: bool) -> Self {
        FrameJson {
            class: Some(&place.class),
            method: Some(&place.method),
            descriptor: Some(&place.descriptor),
            source_file: place.source_file.as_deref(),
            line: place.line,
            bci,
            doubtful,
            unknown: None,
        }
    }

    fn none(why: &'a str) -> Self {
        FrameJson {
            class: None,
            method: None,
            descriptor: None,
            source_file: None,
            line: 0,
            bci: None,
            doubtful: false,
            unknown: Some(why),
        }
    }
}

/// The frames of a context, the innermost first.
fn frames(profile: &Profile, context: u32, doubtful: Option<bool>) -> Vec<FrameJson<'_>> {
    let mut frames = Vec::new();
    let mut next = Some(context);
    // A caller's number is below its callee's: this ends.
    while let Some(context) = next
        .and_then(|number| number.checked_sub(1))
        .and_then(|index| profile.contexts().get(index as usize))
    {
        let doubtful = frames.is_empty() && doubtful == Some(true);
        frames.push(match &context.what {
            What::At(place, bci) => {
                FrameJson::at(place, Some(*bci).filter(|bci| *bci >= 0), doubtful)
            }
            What::Unnamed => FrameJson::none("unnamed"),
            What::Cut => FrameJson::none("cut"),
            What::Deeper => FrameJson::none("deeper"),
            What::Unknown => FrameJson::none("unknown"),
        });
        next = context.caller;
    }
    frames
}

#[derive(Serialize)]
struct PairJson<'a> {
    /// Place of its two lines in the ranking, from 1 on.
    rank: usize,
    kind: &'a str,
    /// Samples of these two contexts.
    count: u64,
    /// Of all completed ones of the kind.
    share: f64,
    /// Samples of the two lines, in all contexts.
    lines_count: u64,
    lines_share: f64,
    lines_share_lo: f64,
    lines_share_hi: f64,
    #[serde(rename = "type")]
    ty: &'a str,
    first: Vec<FrameJson<'a>>,
    second: Vec<FrameJson<'a>>,
    first_instruction: Option<String>,
    second_instruction: Option<String>,
    first_width: u8,
    second_width: u8,
    initialising: bool,
    hint: &'a str,
}

#[derive(Serialize)]
struct LineJson<'a> {
    kind: &'a str,
    #[serde(flatten)]
    line: FrameJson<'a>,
    completed: u64,
    wasteful: u64,
}

/// Writes the profile as one JSON object and a line feed.
pub fn json(profile: &Profile, options: &JsonOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| write(profile, options, out))
}

fn write(profile: &Profile, options: &JsonOptions, out: &mut dyn Write) -> Result<(), Error> {
    let m = profile.manifest();
    let top = options.top.unwrap_or(usize::MAX);
    let glob = options.method.as_ref();
    let lines = Lines::of(profile);
    write_head(&m.borescope, &m.target, profile.skipped(), options, out)?;
    out.write_all(b",\n\"waste\":")?;
    let mut head = serde_json::to_vec(&Head {
        source: &m.source,
        weight: &m.weight,
        rate: m.rate,
        tolerance_ppm: m.tolerance_ppm,
        watches: m.watches,
        attached: m.attached,
        samples: &m.samples,
        kinds: m
            .kinds
            .iter()
            .map(|(name, kind)| (&**name, KindJson::of(kind)))
            .collect(),
        unfinished: m.totals.unfinished,
        log_torn: &m.log_torn,
        table_torn: &m.table_torn,
        notices: &m.notices,
    })?;
    head.pop();
    out.write_all(&head)?;
    out.write_all(b",\"pairs\":[")?;
    let useful = lines.ranking.pairs.iter().map(|pair| (pair, false));
    let all = useful.chain(lines.ranking.initialising.iter().map(|pair| (pair, true)));
    let shown = all.filter(|(pair, _)| lines.wanted(pair, glob));
    let rows = (1..).zip(shown).flat_map(|(rank, (pair, initialising))| {
        let rows = lines.rows(pair, initialising);
        let ty = type_of(&rows, &pair.shapes);
        let rows = by_contexts(&rows).into_iter();
        rows.map(move |(row, count)| (rank, pair, ty.clone(), row, count))
            .collect::<Vec<_>>()
    });
    list(out, rows.take(top), |out, (rank, pair, ty, row, count)| {
        let pair = pair_json(profile, (rank, pair, &ty), row, count);
        Ok(serde_json::to_writer(out, &pair)?)
    })?;
    out.write_all(b"],\"lines\":[")?;
    let began = lines.began();
    let places: Vec<_> = began
        .iter()
        .filter_map(|((waste, frame), began)| Some((waste, lines.place(*frame)?, began)))
        .filter(|(_, place, _)| glob.is_none_or(|glob| glob.matches(&place.class, &place.method)))
        .collect();
    list(
        out,
        places.iter().take(top),
        |out, (waste, place, began)| {
            Ok(serde_json::to_writer(
                out,
                &LineJson {
                    kind: waste.name(),
                    line: FrameJson::at(place, None, false),
                    completed: began.completed,
                    wasteful: began.wasteful,
                },
            )?)
        },
    )?;
    Ok(out.write_all(b"]}}\n")?)
}

/// For each pair of contexts the row with most samples, and the samples of all.
fn by_contexts<'a>(rows: &[&'a Pair]) -> Vec<(&'a Pair, u64)> {
    let mut sums: BTreeMap<(u32, u32), (&Pair, u64)> = BTreeMap::new();
    for row in rows {
        let sum = sums
            .entry((row.pair.first, row.pair.second))
            .or_insert((row, 0));
        sum.1 = sum.1.saturating_add(row.count);
    }
    let mut sums: Vec<_> = sums.into_values().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sums
}

fn pair_json<'a>(
    profile: &'a Profile,
    (rank, leaf, ty): (usize, &'a LeafPair, &'a str),
    row: &'a Pair,
    count: u64,
) -> PairJson<'a> {
    let kind = profile.manifest().kinds.get(leaf.waste.name());
    let completed = kind.map_or(0, |kind| kind.wasteful.saturating_add(kind.useful));
    PairJson {
        rank,
        kind: leaf.waste.name(),
        count,
        share: fraction(count, completed.max(count)),
        lines_count: leaf.count,
        lines_share: leaf.share.share,
        lines_share_lo: leaf.share.lo,
        lines_share_hi: leaf.share.hi,
        ty,
        first: frames(profile, row.pair.first, row.doubtful[0]),
        second: frames(profile, row.pair.second, row.doubtful[1]),
        first_instruction: instruction(&row.pair.first_instruction),
        second_instruction: instruction(&row.pair.second_instruction),
        first_width: row.pair.detail.first.width,
        second_width: row.pair.detail.second.width,
        initialising: row.pair.detail.initialising,
        hint: leaf.hint.words(),
    }
}

/// The kinds in their order, with names as in JSON.
pub(super) fn kinds() -> impl Iterator<Item = (Waste, &'static str)> {
    Waste::ALL.into_iter().map(|waste| (waste, waste.name()))
}
