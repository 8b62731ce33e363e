//! Text for people: what to do first, then pairs of lines, then totals, then how samples fared and what is not measured.

use std::io::Write;

use borescope_profile::waste::{Kind, Manifest, Profile};
use borescope_waste::analysis::text::text as instruction;
use borescope_waste::handler::code::Bytes;
use borescope_waste::rank::LeafPair;
use borescope_waste::{Frame, Waste};

use super::lines::{Lines, doubtful, type_of};
use super::{asked, kind, tree};
use crate::page::{Look, Page};
use crate::words::{self, percent, plural, thousands};
use crate::{Error, MethodGlob, TextOptions, skipped};

/// Findings at the top.
const FIRST: usize = 3;
/// Answers of a kind below which its shares say little.
const FEW: u64 = 100;
/// What the figures of a pair are.
pub(super) const ESTIMATES: &str = "Of each pair: kind, type, samples, and their share of all answered samples of that kind with its 95 % interval. All shares are estimates.";

/// Writes the report of a profile for people.
pub fn text(profile: &Profile, options: &TextOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let mut page = Page::new(options.width, options.color);
        let lines = Lines::of(profile);
        header(&mut page, profile.manifest());
        let wanted = |pair: &&LeafPair| lines.wanted(pair, options.method.as_ref());
        let pairs: Vec<&LeafPair> = lines.ranking.pairs.iter().filter(wanted).collect();
        if answers(profile.manifest()) == 0 {
            nothing(&mut page, profile.manifest());
        } else {
            first(&mut page, &lines, &pairs, options);
            all(&mut page, &lines, &pairs, options);
            initialising(&mut page, &lines, options);
            kinds(&mut page, profile.manifest());
        }
        samples(&mut page, profile.manifest());
        not_measured(&mut page, profile, options);
        Ok(out.write_all(page.take().as_bytes())?)
    })
}

pub(super) fn answers(m: &Manifest) -> u64 {
    let completed = |kind: &Kind| kind.wasteful.saturating_add(kind.useful);
    m.kinds.values().map(completed).fold(0, u64::saturating_add)
}

pub(super) fn header(page: &mut Page, m: &Manifest) {
    let target = &m.target;
    let known = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    let command = known(&target.command);
    page.line(Look::Bold, &words::keep_start(&command, page.width));
    if let Some(warning) = m.source().warning() {
        let text = format!("the source of samples, {}, is {warning}.", m.source);
        page.para(Look::Advice, "Careful: ", &text);
    }
    let time = match target.ended {
        Some(ended) => {
            let ran = ended.saturating_sub(target.started);
            format!("ran {}", words::duration(ran))
        }
        None => "did not end in order (killed, or still running when sealed)".to_owned(),
    };
    let rate = match m.weight.as_str() {
        "cpu-time" => format!(
            "{} for each second of CPU time",
            plural(m.rate.into(), "tick", "ticks")
        ),
        _ => format!(
            "one sample in {}",
            plural(m.rate.into(), "access", "accesses")
        ),
    };
    let text = format!(
        "JDK {}, {} collector, {time}; {} samples: {rate}, {}, floating point equal within {} %",
        known(&target.jdk),
        known(&target.collector),
        m.source,
        plural(m.watches.into(), "watch a thread", "watches a thread"),
        f64::from(m.tolerance_ppm) / 10_000.0,
    );
    page.para(Look::Plain, "", &text);
    for (what, torn) in [("the log", &m.log_torn), ("the table", &m.table_torn)] {
        if let Some(why) = torn {
            let text = format!("a part of {what} could not be read ({why}).");
            page.para(Look::Advice, "Incomplete: ", &text);
        }
    }
}

/// Why there is no answer, as far as the counters tell.
pub(super) fn nothing(page: &mut Page, m: &Manifest) {
    let get = |name: &str| m.samples.get(name).copied().unwrap_or(0);
    let (ticks, plain) = (get("ticks"), get("not_compiled"));
    let why = match ticks {
        0 => "No tick came: the program used too little CPU time. Run it longer, or raise --rate.",
        _ if plain >= ticks / 10 * 9 => {
            "Nearly all ticks fell outside of compiled code, where nothing is measured: interpreter (-Xint?), VM, native code or system calls. Let the program run longer, so that it is compiled."
        }
        _ => {
            "No watched place was accessed again before its watch ended. Run the program longer, or raise --rate."
        }
    };
    page.blank();
    page.para(Look::Bold, "", "No pair of accesses was completed.");
    page.para(Look::Plain, "", why);
}

/// `of sampled CPU time at stores`.
pub(super) fn of_what(m: &borescope_waste::Profile, waste: Waste) -> String {
    format!("{} at {}", m.source.weight().words(), asked(waste))
}

fn first(page: &mut Page, lines: &Lines, pairs: &[&LeafPair], options: &TextOptions) {
    if pairs.is_empty() {
        return;
    }
    page.blank();
    page.line(Look::Bold, "LOOK HERE FIRST");
    for pair in pairs.iter().take(FIRST.min(options.top)) {
        page.para(Look::Advice, "  - ", &finding(lines, pair));
    }
}

/// A pair in a sentence, and what it means in another.
pub(super) fn finding(lines: &Lines, pair: &LeafPair) -> String {
    let place = match pair.first == pair.second {
        true => lines.name(pair.first),
        false => format!("{} and {}", lines.name(pair.first), lines.name(pair.second)),
    };
    format!(
        "{place}: {}, {} {}. {}.",
        plural(
            pair.count,
            kind(pair.waste),
            &format!("{}s", kind(pair.waste))
        ),
        share(lines, pair),
        of_what(&lines.profile, pair.waste),
        capital(pair.hint.words())
    )
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

pub(super) fn share(lines: &Lines, pair: &LeafPair) -> String {
    let kinds = &lines.ranking.kinds;
    let kind = kinds.iter().find(|kind| kind.waste == pair.waste);
    percent(
        pair.count,
        kind.map_or(0, |kind| kind.completed).max(pair.count),
    )
}

fn all(page: &mut Page, lines: &Lines, pairs: &[&LeafPair], options: &TextOptions) {
    page.blank();
    page.line(
        Look::Bold,
        "PAIRS OF LINES, what a change could save most first",
    );
    page.para(Look::Dim, "", ESTIMATES);
    let shown = &pairs[..pairs.len().min(options.top)];
    for (number, pair) in (1..).zip(shown) {
        page.blank();
        one(page, lines, (pair, false), &format!("{number}. "), options);
    }
    if shown.is_empty() {
        page.para(Look::Plain, "", &none(options.method.as_ref()));
    }
    if pairs.len() > shown.len() {
        let rest = (pairs.len() - shown.len()) as u64;
        let text = format!(
            "... and {} (--top N shows more)",
            plural(rest, "more pair of lines", "more pairs of lines")
        );
        page.blank();
        page.para(Look::Dim, "", &text);
    }
}

/// Said in place of pairs.
pub(super) fn none(method: Option<&MethodGlob>) -> String {
    match method {
        Some(glob) => format!(
            "No wasteful pair has a line that matches {}.",
            glob.as_str()
        ),
        None => "No wasteful pair was found.".to_owned(),
    }
}

/// A pair with its two lines.
fn one(
    page: &mut Page,
    lines: &Lines,
    (pair, initialising): (&LeafPair, bool),
    lead: &str,
    options: &TextOptions,
) {
    let rows = lines.rows(pair, initialising);
    let title = format!(
        "{lead}{}, {}",
        kind(pair.waste),
        type_of(&rows, &pair.shapes)
    );
    let weight = words::plain(&format!(
        "{}  {} ({} to {})",
        plural(pair.count, "sample", "samples"),
        share(lines, pair),
        rounded(pair.share.lo),
        rounded(pair.share.hi)
    ));
    page.both_ends(Look::Bold, &title, &weight);
    let sides = [pair.first, pair.second];
    if pair.first == pair.second && pair.instructions[0] == pair.instructions[1] {
        side(
            page,
            lines,
            "both  ",
            pair.first,
            &pair.instructions[0],
            options,
        );
    } else {
        for (at, name) in ["first ", "second"].into_iter().enumerate() {
            side(
                page,
                lines,
                name,
                sides[at],
                &pair.instructions[at],
                options,
            );
        }
    }
    if let Some(text) = doubt(doubtful(&rows)) {
        page.para(Look::Dim, "   ", &text);
    }
    page.para(
        Look::Advice,
        "   ",
        &format!("{}.", capital(pair.hint.words())),
    );
    if let Some(text) = partial(pair) {
        page.para(Look::Dim, "   ", text);
    }
    if options.contexts {
        tree::write(page, lines, pair, 6);
    }
}

pub(super) fn rounded(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What is said of lines that cannot do the access.
pub(super) fn doubt(doubtful: [bool; 2]) -> Option<String> {
    let which = match doubtful {
        [false, false] => return None,
        [true, true] => "both lines",
        [true, false] => "the first line",
        [false, true] => "the second line",
    };
    Some(format!(
        "doubtful: {which} cannot do this access as written; the compiler's notes name a place nearby. The instruction is certain, the method most likely right."
    ))
}

/// What is said of accesses that are mostly not of the same bytes.
pub(super) fn partial(pair: &LeafPair) -> Option<&'static str> {
    let most = pair.partial > pair.count / 2;
    most.then_some("The two accesses touch only partly the same bytes.")
}

/// A line, its source if there is any, and what the machine does there.
fn side(
    page: &mut Page,
    lines: &Lines,
    name: &str,
    frame: Frame,
    code: &Bytes,
    options: &TextOptions,
) {
    let lead = format!("   {name}  ");
    let line = words::keep_end_after(&lead, &lines.name(frame), page.width);
    page.line(Look::Plain, &line);
    let place = lines.place(frame);
    let source = place.as_ref().and_then(|place| {
        let file = place.source_file.as_ref()?;
        let file = options.source.find(&place.class, file)?;
        file.line(place.line.into()).map(str::to_owned)
    });
    let blank = " ".repeat(lead.chars().count());
    if let Some(text) = source.filter(|text| !text.is_empty()) {
        let line = words::keep_start(&format!("{blank}{text}"), page.width);
        page.line(Look::Dim, &line);
    }
    if let Some(text) = instruction(code) {
        let line = words::keep_start(&format!("{blank}[{text}]"), page.width);
        page.line(Look::Dim, &line);
    }
}

fn initialising(page: &mut Page, lines: &Lines, options: &TextOptions) {
    let wanted = |pair: &&LeafPair| lines.wanted(pair, options.method.as_ref());
    let pairs: Vec<&LeafPair> = lines.ranking.initialising.iter().filter(wanted).collect();
    let Some(most) = pairs.first() else {
        return;
    };
    page.blank();
    page.line(Look::Bold, "NEW OBJECTS");
    page.para(Look::Plain, "", &new_objects(lines, most, &pairs));
    if options.contexts {
        for pair in pairs.iter().take(options.top) {
            page.blank();
            one(page, lines, (pair, true), "", options);
        }
    }
}

/// What is said of pairs that set up new objects; `most`: the first of them.
pub(super) fn new_objects(lines: &Lines, most: &LeafPair, pairs: &[&LeafPair]) -> String {
    let count = pairs
        .iter()
        .fold(0u64, |sum, pair| sum.saturating_add(pair.count));
    format!(
        "{} with {}, in which one access initialises a new object or array, as Java requires: only fewer allocations would save these. Most at {}.",
        plural(pairs.len() as u64, "pair of lines", "pairs of lines"),
        plural(count, "sample", "samples"),
        lines.name(most.second)
    )
}

pub(super) fn kinds(page: &mut Page, m: &Manifest) {
    page.blank();
    page.line(Look::Bold, "ALL SAMPLES, by kind");
    for waste in Waste::ALL {
        let of = m.kinds.get(waste.name()).copied().unwrap_or_default();
        let completed = of.wasteful.saturating_add(of.useful);
        let remark = match (waste, completed) {
            (_, 0) => "",
            (_, 1..FEW) => "; few samples: run longer or raise --rate before trusting shares",
            (Waste::SilentLoad, _) => {
                "; in any program most loads are silent, so this figure alone says nothing"
            }
            _ => "",
        };
        let text = format!(
            "{} of {} ({}){remark}",
            thousands(of.wasteful),
            plural(completed, "answered sample", "answered samples"),
            percent(of.wasteful, completed)
        );
        page.para(
            Look::Plain,
            &format!("  {:<14}", format!("{}s", kind(waste))),
            &text,
        );
    }
}

/// How the samples fared.
pub(super) fn samples(page: &mut Page, m: &Manifest) {
    let get = |name: &str| m.samples.get(name).copied().unwrap_or(0);
    page.blank();
    page.line(Look::Bold, "WHAT BECAME OF THE SAMPLES");
    let names = |list: &[(&str, &str)]| {
        let there = list.iter().filter(|(name, _)| get(name) > 0);
        let texts: Vec<String> = there
            .map(|(name, words)| format!("{} {words}", thousands(get(name))))
            .collect();
        texts.join(", ")
    };
    let misses = names(&[
        ("not_compiled", "outside of compiled code"),
        ("left_code", "that left it before an access"),
        ("step_limit", "without an access within the steps allowed"),
        ("undecodable", "at bytes that are no instruction"),
        (
            "seek_ended",
            "ended by a collection, a thread's end or the stop",
        ),
        ("mismatch", "that the processor placed wrongly"),
    ]);
    let refused = names(&[
        ("hidden_address", "whose address could not be told"),
        ("stack", "on the stack"),
        ("outside_heap", "outside of the heap"),
        ("header", "of object headers"),
        ("array_length", "of array lengths"),
        ("barrier", "of the collector's barriers"),
        ("not_asked", "that no question was for"),
        ("passed_over", "passed over, all watches being busy"),
        ("no_register", "without a debug register"),
        ("no_stack", "without a calling context"),
    ]);
    let ends = names(&[
        ("completed", "completed"),
        ("replaced", "replaced by later samples"),
        ("lost_to_gc", "lost to a collection"),
        ("lost_to_unmount", "lost to another virtual thread"),
        ("lost_to_thread_end", "lost to their thread's end"),
        (
            "unknown_access",
            "ended by an access that could not be told",
        ),
        ("new_object", "ended by a new object at the same address"),
        ("open_at_stop", "open at the end"),
    ]);
    let or_none = |text: String| if text.is_empty() { "none".into() } else { text };
    let ticks = format!(
        "{}, {} of which reached an access; the others: {}.",
        plural(get("ticks"), "tick", "ticks"),
        thousands(get("reached")),
        or_none(misses)
    );
    let armed = format!(
        "{} armed; not armed: {}.",
        plural(get("armed"), "watch", "watches"),
        or_none(refused)
    );
    page.para(Look::Plain, "  ", &ticks);
    page.para(Look::Plain, "  ", &armed);
    page.para(
        Look::Plain,
        "  ",
        &format!("Of the watches: {}.", or_none(ends)),
    );
    let lost = names(&[
        (
            "no_room",
            "answers found no room in the table: they count above, but no pair shows them",
        ),
        (
            "contexts_cut",
            "contexts found no room: only their innermost line is known",
        ),
        ("records_lost", "records were lost by the kernel"),
    ]);
    if !lost.is_empty() {
        page.para(Look::Advice, "  ", &format!("{lost}."));
    }
}

pub(super) fn not_measured(page: &mut Page, profile: &Profile, options: &TextOptions) {
    let m = profile.manifest();
    page.blank();
    page.line(Look::Bold, "NOT MEASURED");
    let text = "Interpreted code, the VM, native code; what other threads load. A line is as exact as the compiler's notes: the method is usually right, the line may be a neighbour.";
    page.para(Look::Plain, "  - ", text);
    for notice in &m.notices {
        page.para(Look::Plain, "  - ", notice);
    }
    skipped::by_reason(page, profile.skipped(), "not measured", options.skipped);
}
