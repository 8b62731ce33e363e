//! Text for people: the answer first (the lines that grew most, or hold most), then the figures, then what is not known.

use std::io::Write;

use borescope_profile::sites::{Manifest, Place, Profile, Snapshot, Sum};

use super::heap::{Change, Entry, Heap, Line, Unknown, compare};
use super::{At, advice};
use crate::page::{Look, Page};
use crate::words::{self, percent, plural, signed, size, thousands};
use crate::{Error, MethodGlob, TextOptions, skipped};

/// Findings at the top.
const FIRST: usize = 3;
/// Types of a line.
const PARTS: usize = 4;
/// Types that are named of objects without a site.
const TYPES: usize = 3;
/// Snapshots that are listed.
const SNAPSHOTS: usize = 10;
/// Objects without a site are told first if they are more than one in so many bytes.
const MUCH: u64 = 100;

/// Writes the report of a profile for people.
pub fn text(profile: &Profile, options: &TextOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let mut page = Page::new(options.width, options.color);
        header(&mut page, profile.manifest());
        match At::last(profile) {
            None => nothing(&mut page, profile.manifest()),
            Some(last) => {
                let first = last.first();
                if let Some(first) = first {
                    changes(&mut page, first, last, options)?;
                }
                most(&mut page, last, options, first.is_none())?;
                snapshots(&mut page, profile.manifest());
            }
        }
        not_measured(&mut page, profile, options);
        Ok(out.write_all(page.take().as_bytes())?)
    })
}

/// Writes what changed from one snapshot to another for people.
pub fn diff_text(
    before: At,
    after: At,
    options: &TextOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let mut page = Page::new(options.width, options.color);
        changes(&mut page, before, after, options)?;
        Ok(out.write_all(page.take().as_bytes())?)
    })
}

pub(super) fn header(page: &mut Page, m: &Manifest) {
    let target = &m.target;
    let known = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    page.line(
        Look::Bold,
        &words::keep_start(&known(&target.command), page.width),
    );
    let time = match target.ended {
        Some(ended) => format!(
            "ran {}",
            words::duration(ended.saturating_sub(target.started))
        ),
        None => "did not end in order (killed, or still running when sealed)".to_owned(),
    };
    let (jdk, collector) = (known(&target.jdk), known(&target.collector));
    let classes = match (m.jdk, m.attribute) {
        (false, _) => "classes of the application only",
        (true, false) => "with the JDK's classes, without the lines that call into the JDK",
        (true, true) => "with the JDK's classes and the lines that call into the JDK",
    };
    let text = format!(
        "JDK {jdk}, {collector} collector, {time}; {} in {}, {classes}",
        plural(m.totals.sites, "site", "sites"),
        plural(m.totals.classes, "class", "classes")
    );
    page.para(Look::Plain, "", &text);
    for (what, torn) in [
        ("the log", &m.log_torn),
        ("the snapshots", &m.snapshots_torn),
    ] {
        if let Some(why) = torn {
            let text = format!("a part of {what} could not be read ({why}).");
            page.para(Look::Advice, "Incomplete: ", &text);
        }
    }
}

pub(super) fn nothing(page: &mut Page, m: &Manifest) {
    page.blank();
    let why = match (&m.snapshots_torn, m.target.sealed_after_crash) {
        (Some(_), _) => "No snapshot could be read.",
        (None, true) => {
            "No snapshot was taken: the JVM was killed, or still runs. `borescope snapshot PID` takes one of a running JVM, --every TIME \
             takes them by the clock."
        }
        (None, false) => "No snapshot was taken.",
    };
    page.para(Look::Bold, "", why);
}

/// `at the OutOfMemoryError`.
pub(super) fn cause(snapshot: &Snapshot) -> &str {
    match snapshot.cause.as_str() {
        "exit" => "at exit",
        "request" => "on request",
        "oom" => "at the OutOfMemoryError",
        "interval" => "by the clock",
        other => other,
    }
}

fn amount(sum: Sum) -> String {
    format!(
        "{} in {}",
        size(sum.bytes),
        plural(sum.objects, "object", "objects")
    )
}

/// `acme.Cache.put (Cache.java:52)`.
pub(crate) fn place(place: &Place) -> String {
    let name = format!("{}.{}", words::java_name(&place.class), place.method);
    match (&place.source_file, place.line) {
        (Some(file), 0) => format!("{name} ({file})"),
        (Some(file), line) => format!("{name} ({file}:{line})"),
        (None, 0) => name,
        (None, line) => format!("{name} (line\u{a0}{line})"),
    }
}

/// The line with a remark if it is not one of the application.
pub(super) fn line(entry: &Entry) -> String {
    let text = place(&entry.line.place);
    match entry.line.of_application {
        true => text,
        false => format!("{text}, caller not known"),
    }
}

/// The lines to look at first, of those that grew while the heap did, each with a sentence.
pub(super) fn grown<'a>(
    before: At,
    after: At,
    glob: Option<&MethodGlob>,
    all: &[Entry<'a>],
    most: usize,
) -> Result<Vec<(&'a Line, String)>, Error> {
    let heap = Change {
        before: before.snapshot.live,
        after: after.snapshot.live,
    };
    let grew = |entry: &&Entry| entry.change.bytes() > 0 && heap.bytes() > 0;
    let shown: Vec<&Entry> = all.iter().take_while(grew).take(FIRST.min(most)).collect();
    let lines: Vec<_> = shown.iter().map(|entry| entry.line).collect();
    let (steps, counts) = match same_jvm(before, after) {
        true if !lines.is_empty() => advice::steps(before, after, glob, &lines)?,
        _ => (0, Vec::new()),
    };
    let mut leads = Vec::new();
    for (at, entry) in shown.iter().enumerate() {
        // The first is always told, others if they are in the same class of size.
        if entry.change.bytes() * 5 < shown[0].change.bytes() {
            break;
        }
        let mut text = format!(
            "{} grew by {}",
            line(entry),
            words::size(positive(entry.change.bytes()))
        );
        if let Some((what, change)) = entry.parts.first() {
            text += &format!(" ({} {})", signed(change.objects(), thousands), what.ty);
        }
        text += &match entry.change.bytes() > heap.bytes() {
            true => ", more than the heap as a whole did".into(),
            false => format!(
                ", {} of what the heap grew by",
                percent(positive(entry.change.bytes()), positive(heap.bytes()))
            ),
        };
        if let Some(&grew) = counts.get(at) {
            text += &format!("; it {}", advice::steadily(steps, grew));
        }
        text += ".";
        text += &held_by(entry, all);
        leads.push((entry.line, text));
    }
    Ok(leads)
}

/// The line that holds most, with a sentence, where there is nothing to compare with.
pub(super) fn largest<'a>(at: At, all: &[Entry<'a>]) -> Option<(&'a Line, String)> {
    let entry = all.first()?;
    let live = at.snapshot.live;
    let mut text = format!(
        "{} allocated {}, {} of the heap",
        line(entry),
        size(entry.change.after.bytes),
        percent(entry.change.after.bytes, live.bytes)
    );
    if let Some((what, change)) = entry.parts.first() {
        text += &format!(" ({} {})", thousands(change.after.objects), what.ty);
    }
    text += ".";
    text += &held_by(entry, all);
    text += " Two snapshots tell whether it grows: `borescope snapshot PID`, or --every TIME.";
    Some((entry.line, text))
}

/// What grew from one snapshot to another.
fn changes(page: &mut Page, before: At, after: At, options: &TextOptions) -> Result<(), Error> {
    let glob = options.method.as_ref();
    let (old, new) = (Heap::read(before, glob)?, Heap::read(after, glob)?);
    let all = compare(&old, &new);
    let heap = Change {
        before: before.snapshot.live,
        after: after.snapshot.live,
    };
    let grew: Vec<&Entry> = all
        .iter()
        .take_while(|entry| entry.change.bytes() > 0)
        .collect();
    let shown = &grew[..grew.len().min(options.top)];

    unknown_first(page, after.snapshot);
    if !shown.is_empty() && heap.bytes() > 0 {
        page.blank();
        page.line(Look::Bold, "LOOK HERE FIRST");
        for (_, text) in grown(before, after, glob, &all, options.top)? {
            page.para(Look::Advice, "  - ", &text);
        }
    }
    page.blank();
    page.line(
        Look::Bold,
        &format!(
            "WHAT GREW, from snapshot {} to {}",
            name(before, after),
            after.snapshot.number
        ),
    );
    let time = after.snapshot.at.abs_diff(before.snapshot.at);
    let text = format!(
        "{} in {}: from {} ({}) to {} ({}).",
        signed(heap.bytes(), size),
        words::duration(time),
        amount(heap.before),
        cause(before.snapshot),
        amount(heap.after),
        cause(after.snapshot)
    );
    page.para(Look::Plain, "", &text);
    if before.snapshot.live_only != after.snapshot.live_only {
        let text = "one of the two snapshots was taken without a collection and holds dead objects, the other does not.";
        page.para(Look::Advice, "Not comparable: ", text);
    }
    let text = "Of each line: growth, bytes now, their share of the heap. Of its types: growth in bytes and in objects.";
    page.para(Look::Dim, "", text);
    for (number, entry) in (1..).zip(shown) {
        page.blank();
        let now = entry.change.after.bytes;
        let weight = format!(
            "{}  {:>9}  {:>4}",
            signed(entry.change.bytes(), size),
            size(now),
            percent(now, heap.after.bytes)
        );
        title(page, number, entry, &weight, options);
        parts(page, entry, true);
    }
    if shown.is_empty() {
        page.para(Look::Plain, "", "No line has more live bytes than before.");
    }
    more(
        page,
        grew.len() - shown.len(),
        "more line that grew",
        "more lines that grew",
    );
    let shrank = all.iter().filter(|entry| entry.change.bytes() < 0);
    let (lines, bytes) = shrank.fold((0, 0), |(lines, bytes), entry| {
        (lines + 1, bytes + entry.change.bytes())
    });
    if lines > 0 {
        let text = format!(
            "{} shrank, by {} together.",
            plural(lines, "line", "lines"),
            size(positive(-bytes))
        );
        page.blank();
        page.para(Look::Dim, "", &text);
    }
    Ok(())
}

fn positive(n: i128) -> u64 {
    u64::try_from(n.max(0)).unwrap_or(u64::MAX)
}

/// Number of the snapshot before, with its process where it is another one.
fn name(before: At, after: At) -> String {
    let old = before.profile.manifest();
    let number = before.snapshot.number;
    match same_jvm(before, after) {
        true => number.to_string(),
        false => format!("{number} of process {}", old.target.pid),
    }
}

fn same_jvm(before: At, after: At) -> bool {
    let id = |at: At| {
        let target = &at.profile.manifest().target;
        (target.pid, target.started)
    };
    id(before) == id(after)
}

/// Which lines hold most at a snapshot. `answer`: this is what the report is about.
fn most(page: &mut Page, at: At, options: &TextOptions, answer: bool) -> Result<(), Error> {
    let heap = Heap::read(at, options.method.as_ref())?;
    let empty = Heap::default();
    let all = compare(&empty, &heap);
    let shown = &all[..all.len().min(options.top)];
    let live = at.snapshot.live;
    if answer {
        unknown_first(page, at.snapshot);
        if let Some((_, text)) = largest(at, &all).filter(|_| !shown.is_empty()) {
            page.blank();
            page.line(Look::Bold, "LOOK HERE FIRST");
            page.para(Look::Advice, "  - ", &text);
        }
    }
    page.blank();
    let title_text = format!("MOST LIVE BYTES, snapshot {}", at.snapshot.number);
    page.line(Look::Bold, &title_text);
    let dead = match at.snapshot.live_only {
        true => "all alive",
        false => "dead ones included, as the heap was not collected first",
    };
    let text = format!(
        "{} {}, {dead}. Of each line: bytes, their share of the heap. Of its types: bytes and objects.",
        amount(live),
        cause(at.snapshot)
    );
    page.para(Look::Plain, "", &text);
    for (number, entry) in (1..).zip(shown) {
        page.blank();
        let bytes = entry.change.after.bytes;
        let weight = format!("{}  {:>4}", size(bytes), percent(bytes, live.bytes));
        title(page, number, entry, &weight, options);
        parts(page, entry, false);
    }
    if let (true, Some(glob)) = (shown.is_empty(), &options.method) {
        let text = format!("No line with live objects matches {}.", glob.as_str());
        page.para(Look::Plain, "", &text);
    }
    more(page, all.len() - shown.len(), "more line", "more lines");
    unknown(page, at.snapshot, &heap.unknown);
    Ok(())
}

fn more(page: &mut Page, rest: usize, one: &str, many: &str) {
    if rest > 0 {
        page.blank();
        let text = format!(
            "... and {} (--top N shows more)",
            plural(rest as u64, one, many)
        );
        page.para(Look::Dim, "", &text);
    }
}

fn title(page: &mut Page, number: usize, entry: &Entry, weight: &str, options: &TextOptions) {
    let lead = format!("{number}. ");
    let room = page.width.saturating_sub(weight.chars().count() + 2);
    let name = words::keep_end_after(&lead, &line(entry), room.max(page.width / 2));
    page.both_ends(Look::Bold, &name, weight);
    let place = &entry.line.place;
    let source = place
        .source_file
        .as_ref()
        .and_then(|file| options.source.find(&place.class, file));
    let text = source
        .as_ref()
        .and_then(|file| file.line(place.line.into()));
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        page.line(
            Look::Dim,
            &words::keep_start(&format!("   {text}"), page.width),
        );
    }
}

/// Types that a line allocated, and where if not there. `growth`: those that grew, by how much.
fn parts(page: &mut Page, entry: &Entry, growth: bool) {
    let keep = |change: &Change| !growth || change.bytes() > 0;
    let kept: Vec<_> = entry.parts.iter().filter(|part| keep(&part.1)).collect();
    for (what, change) in kept.iter().take(PARTS) {
        let now = change.after;
        let lead = match growth {
            false => format!("{:>11}{:>13}  ", size(now.bytes), thousands(now.objects)),
            true => format!(
                "{:>11}{:>13}  ",
                signed(change.bytes(), size),
                signed(change.objects(), thousands)
            ),
        };
        let text = match &what.at {
            None => what.ty.clone(),
            Some(at) => format!("{} from\u{a0}{}", what.ty, place(at)),
        };
        page.para(Look::Plain, &lead, &text);
    }
    let rest = kept.iter().skip(PARTS);
    let (count, bytes) = rest.fold((0, 0), |(count, bytes), (_, change)| {
        (count + 1, bytes + change.bytes())
    });
    if count > 0 {
        let lead = format!("{:>11}{:>13}  ", size(positive(bytes)), "");
        page.para(
            Look::Dim,
            &lead,
            &plural(count, "more type or site", "more types and sites"),
        );
    }
}

fn held_by(entry: &Entry, all: &[Entry]) -> String {
    match advice::collection(entry, all) {
        Some((line, node)) if line == entry.line => format!(
            " As many {node} were made by the same line: the collection that it fills likely holds them."
        ),
        Some((line, node)) => format!(
            " As many {node} came from {}: the collection that is filled there likely holds them.",
            place(&line.place)
        ),
        None => String::new(),
    }
}

/// The reasons of the tables in a few words.
fn in_short(reason: &str) -> &str {
    match reason {
        "vm or native" => "made by the VM, by native code or at start",
        "before attach, or vm or native" => "older than the attach, or made by the VM",
        "hash taken first" => "there at the start or hashed early",
        "header in a monitor" => "locked",
        other => other,
    }
}

/// What the reasons of the tables mean.
pub(super) fn in_words(reason: &str) -> &str {
    match reason {
        "vm or native" => {
            "allocated by the VM or native code, before the agent was ready, or by code that is not marked (see the end)"
        }
        "before attach, or vm or native" => {
            "allocated before the agent was attached, by the VM or native code, or by code that is not marked (see the end)"
        }
        "hash taken first" => {
            "they had an identity hash before they could be marked: there at the start (classes, strings and the JVM's archived objects), or hashed early"
        }
        "header in a monitor" => "their header was in a monitor that could not be read",
        "foreign mark" => "their header holds what the agent never wrote",
        "site record lost" => "the record of their site was lost",
        other => other,
    }
}

/// How much has no site and why, in short, if it is much; [`unknown`] says more.
pub(super) fn unknown_first(page: &mut Page, snapshot: &Snapshot) {
    let live = snapshot.live.bytes;
    let missing = live.saturating_sub(snapshot.with_site.bytes);
    if missing.saturating_mul(MUCH) <= live {
        return;
    }
    let mut reasons: Vec<_> = snapshot.unknown.iter().collect();
    reasons.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    let each: Vec<String> = reasons
        .iter()
        .map(|(reason, sum)| format!("{} {}", percent(sum.bytes, live), in_short(reason)))
        .collect();
    let text = format!(
        "{} of the bytes have no site: {} (more below).",
        percent(missing, live),
        each.join(", ")
    );
    page.para(Look::Advice, "Not known: ", &text);
}

/// The types with most bytes of the objects that have no site for this reason.
pub(super) fn main_types<'a>(reason: &str, unknown: &'a Unknown) -> Vec<&'a str> {
    let mut types: Vec<_> = unknown.iter().filter(|(key, _)| key.0 == *reason).collect();
    types.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    types.iter().take(TYPES).map(|(key, _)| &*key.1).collect()
}

fn reasons(page: &mut Page, snapshot: &Snapshot, unknown: &Unknown) {
    let mut reasons: Vec<_> = snapshot.unknown.iter().collect();
    reasons.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    for (reason, sum) in reasons {
        let types = main_types(reason, unknown);
        let text = format!(
            "{} ({}): {}; most of it {}",
            percent(sum.bytes, snapshot.live.bytes),
            amount(*sum),
            in_words(reason),
            types.join(", ")
        );
        page.para(Look::Plain, "  - ", &text);
    }
}

/// Objects without a site by reason, and how many have one but no line of the application.
pub(super) fn unknown(page: &mut Page, snapshot: &Snapshot, types: &Unknown) {
    let live = snapshot.live.bytes;
    let missing = live.saturating_sub(snapshot.with_site.bytes);
    if missing > 0 {
        page.blank();
        page.line(Look::Bold, "NOT KNOWN");
        let text = format!(
            "{} of the bytes ({}) have no site:",
            percent(missing, live),
            size(missing)
        );
        page.para(Look::Plain, "", &text);
        reasons(page, snapshot, types);
    }
    let no_line = snapshot
        .with_site
        .bytes
        .saturating_sub(snapshot.with_app.bytes);
    if no_line > 0 {
        page.blank();
        let text = format!(
            "{} of the bytes ({}) have a site in the JDK, but not the line of the application that led to it: they are listed under the \
             JDK's line, with \"caller not known\".",
            percent(no_line, live),
            size(no_line)
        );
        page.para(Look::Plain, "", &text);
    }
}

/// An entry a snapshot; of many the first and the last ones.
pub(super) fn snapshots(page: &mut Page, m: &Manifest) {
    page.blank();
    page.line(Look::Bold, "SNAPSHOTS");
    let left_out = match m.snapshots.len() {
        0..=SNAPSHOTS => 0..0,
        many => 1..many + 1 - SNAPSHOTS,
    };
    for (at, one) in m.snapshots.iter().enumerate() {
        if left_out.contains(&at) {
            if at == left_out.start {
                let count = plural(left_out.len() as u64, "more", "more");
                page.line(
                    Look::Dim,
                    &format!("     ... {count} (manifest.json has them)"),
                );
            }
            continue;
        }
        let after = words::duration(one.at.saturating_sub(m.target.started));
        let text = format!(
            "{} after {after}: {}; {} of the bytes have a site, {} a line of the application{}; the application stood still for {}{}",
            cause(one),
            amount(one.live),
            percent(one.with_site.bytes, one.live.bytes),
            percent(one.with_app.bytes, one.live.bytes),
            match one.live_only {
                true => "",
                false => "; dead objects included",
            },
            words::duration(one.took_ms),
            match one.listed {
                true => "; objects.parquet has each object",
                false => "",
            }
        );
        page.para(Look::Plain, &format!("{:>3}  ", one.number), &text);
    }
}

pub(super) fn not_measured(page: &mut Page, profile: &Profile, options: &TextOptions) {
    let m = profile.manifest();
    if m.notices.is_empty() && profile.skipped().is_empty() {
        return;
    }
    page.blank();
    page.line(Look::Bold, "NOT MARKED");
    for notice in &m.notices {
        page.para(Look::Plain, "  - ", notice);
    }
    if m.totals.skipped_sites > 0 {
        let (sites, all) = (
            m.totals.skipped_sites,
            m.totals.sites + m.totals.skipped_sites,
        );
        let text = format!(
            "{} of {} get no mark, for these reasons:",
            thousands(sites),
            plural(all, "site", "sites")
        );
        page.para(Look::Plain, "  - ", &text);
    }
    skipped::by_reason(
        page,
        profile.skipped(),
        "with unmarked sites",
        options.skipped,
    );
}
