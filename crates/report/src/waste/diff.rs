//! What a change of the program changed: pairs of two profiles, compared by kind and methods, since a change moves lines.

use std::collections::BTreeMap;
use std::io::Write;

use borescope_profile::waste::Profile;
use borescope_waste::Waste;
use borescope_waste::analysis::interval::{Share, difference};
use borescope_waste::rank::LeafPair;
use serde::Serialize;

use super::json::{KindJson, kinds};
use super::kind;
use super::lines::Lines;
use crate::json::{SCHEMA, list};
use crate::page::{Look, Page};
use crate::words::{self, percent, plural, thousands};
use crate::{Error, JsonOptions, TextOptions};

/// What pairs are compared by: kind, and class and method of both accesses.
type Key = (Waste, String, String);

/// A pair before and after.
#[derive(Debug)]
struct Change {
    key: Key,
    /// Samples, and answered ones of the kind.
    before: (u64, u64),
    after: (u64, u64),
    /// After less before, of the shares.
    share: Share,
    /// Its place in the ranking, of the profile in which it is higher.
    saving: f64,
}

impl Change {
    /// In the 95 % interval of the difference is no 0.
    fn sure(&self) -> bool {
        self.share.lo > 0.0 || self.share.hi < 0.0
    }

    fn verdict(&self) -> &'static str {
        match (self.sure(), self.before.0, self.after.0) {
            (false, ..) => "no clear change",
            (true, _, 0) => "gone",
            (true, 0, _) => "new",
            (true, ..) if self.share.share < 0.0 => "less",
            (true, ..) => "more",
        }
    }
}

/// Pairs with what could be saved, and answered samples by kind.
fn sums(lines: &Lines, wanted: impl Fn(&LeafPair) -> bool) -> BTreeMap<Key, (u64, f64)> {
    let mut sums = BTreeMap::new();
    for pair in lines.ranking.pairs.iter().filter(|pair| wanted(pair)) {
        let method = |frame| match lines.place(frame) {
            Some(place) => format!("{}.{}", words::java_name(&place.class), place.method),
            None => lines.name(frame),
        };
        let key = (pair.waste, method(pair.first), method(pair.second));
        let sum: &mut (u64, f64) = sums.entry(key).or_default();
        sum.0 = sum.0.saturating_add(pair.count);
        sum.1 += pair.saving;
    }
    sums
}

/// All pairs of either profile: sure changes first, in each part what could be saved most first.
fn compare(before: &Profile, after: &Profile, options: &JsonOptions) -> Vec<Change> {
    let (old, new) = (Lines::of(before), Lines::of(after));
    let glob = options.method.as_ref();
    let of_old = sums(&old, |pair| old.wanted(pair, glob));
    let of_new = sums(&new, |pair| new.wanted(pair, glob));
    let completed = |profile: &Profile, waste| profile.manifest().accounts().completed(waste);
    let keys: std::collections::BTreeSet<&Key> = of_old.keys().chain(of_new.keys()).collect();
    let mut changes: Vec<Change> = keys
        .into_iter()
        .map(|key| {
            let get = |sums: &BTreeMap<Key, (u64, f64)>| sums.get(key).copied().unwrap_or_default();
            let ((old, saved), (new, saves)) = (get(&of_old), get(&of_new));
            let before = (old, completed(before, key.0).max(old));
            let after = (new, completed(after, key.0).max(new));
            // Without any sample on one side nothing is known of it.
            let known = before.1 > 0 && after.1 > 0;
            let unknown = Share {
                share: 0.0,
                lo: -1.0,
                hi: 1.0,
            };
            Change {
                key: key.clone(),
                before,
                after,
                share: if known {
                    difference(before, after)
                } else {
                    unknown
                },
                saving: saved.max(saves),
            }
        })
        .collect();
    changes.sort_by(|a, b| {
        let order = b.sure().cmp(&a.sure());
        order.then(b.saving.total_cmp(&a.saving))
    });
    changes
}

/// Writes what changed for people.
pub fn diff_text(
    before: &Profile,
    after: &Profile,
    options: &TextOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let mut page = Page::new(options.width, options.color);
        let all = compare(
            before,
            after,
            &JsonOptions {
                top: None,
                method: options.method.clone(),
            },
        );
        page.line(Look::Bold, "WHAT CHANGED");
        for waste in Waste::ALL {
            let of = |profile: &Profile| {
                let kind = profile.manifest().kinds.get(waste.name()).copied();
                let kind = kind.unwrap_or_default();
                let completed = kind.wasteful.saturating_add(kind.useful);
                format!(
                    "{} of {}",
                    percent(kind.wasteful, completed),
                    plural(completed, "sample", "samples")
                )
            };
            let text = format!("{} -> {}", of(before), of(after));
            page.para(
                Look::Plain,
                &format!("  {:<14}", format!("{}s", kind(waste))),
                &text,
            );
        }
        if before.manifest().weight != after.manifest().weight {
            let text =
                "the samples of the two profiles do not stand for the same (CPU time, accesses).";
            page.para(Look::Advice, "Not comparable: ", text);
        }
        let text = "Pairs are compared by kind and methods, as a change moves lines. Of each: its share of the answered samples of its kind before and after; a change is told as one if chance alone does not explain it (95 %).";
        page.para(Look::Dim, "", text);
        let sure = all.iter().filter(|change| change.sure()).count();
        for change in all.iter().take(options.top.min(sure.max(1))) {
            page.blank();
            one(&mut page, change);
        }
        page.blank();
        let shown = options.top.min(sure.max(1)).min(all.len());
        let rest = format!(
            "{} changed for sure, {} in all{}.",
            plural(sure as u64, "pair of methods", "pairs of methods"),
            thousands(all.len() as u64),
            if shown < sure {
                " (--top N shows more)"
            } else {
                ""
            }
        );
        page.para(Look::Dim, "", &rest);
        Ok(out.write_all(page.take().as_bytes())?)
    })
}

fn one(page: &mut Page, change: &Change) {
    let (waste, first, second) = &change.key;
    let share = |(part, whole): (u64, u64)| percent(part, whole);
    let title = format!("{}, {}", change.verdict(), kind(*waste));
    let weight = format!(
        "{} -> {}  ({} -> {} samples)",
        share(change.before),
        share(change.after),
        thousands(change.before.0),
        thousands(change.after.0)
    );
    page.both_ends(Look::Bold, &title, &words::plain(&weight));
    let line = |page: &mut Page, lead: &str, text: &str| {
        let line = words::keep_end_after(lead, text, page.width);
        page.line(Look::Plain, &line);
    };
    match first == second {
        true => line(page, "   both    ", first),
        false => {
            line(page, "   first   ", first);
            line(page, "   second  ", second);
        }
    }
}

#[derive(Serialize)]
struct Side<'a> {
    pid: u32,
    command: &'a str,
    source: &'a str,
    weight: &'a str,
    kinds: BTreeMap<&'a str, KindJson>,
}

impl<'a> Side<'a> {
    fn of(profile: &'a Profile) -> Side<'a> {
        let m = profile.manifest();
        let kind = |name| KindJson::of(&m.kinds.get(name).copied().unwrap_or_default());
        Side {
            pid: m.target.pid,
            command: &m.target.command,
            source: &m.source,
            weight: &m.weight,
            kinds: kinds().map(|(_, name)| (name, kind(name))).collect(),
        }
    }
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    kind: &'a str,
    first: &'a str,
    second: &'a str,
    before_count: u64,
    before_completed: u64,
    after_count: u64,
    after_completed: u64,
    difference: f64,
    difference_lo: f64,
    difference_hi: f64,
    verdict: &'a str,
}

/// Writes what changed as one JSON object and a line feed.
pub fn diff_json(
    before: &Profile,
    after: &Profile,
    options: &JsonOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    crate::buffered(out, |out| {
        out.write_all(b"{\"borescope\":")?;
        serde_json::to_writer(&mut *out, &after.manifest().borescope)?;
        write!(out, ",\"schema\":{SCHEMA},\n\"before\":")?;
        serde_json::to_writer(&mut *out, &Side::of(before))?;
        out.write_all(b",\n\"after\":")?;
        serde_json::to_writer(&mut *out, &Side::of(after))?;
        out.write_all(b",\n\"pairs\":[")?;
        let all = compare(before, after, options);
        let top = options.top.unwrap_or(usize::MAX);
        list(out, all.iter().take(top), |out, change| {
            let pair = ChangeJson {
                kind: change.key.0.name(),
                first: &change.key.1,
                second: &change.key.2,
                before_count: change.before.0,
                before_completed: change.before.1,
                after_count: change.after.0,
                after_completed: change.after.1,
                difference: change.share.share,
                difference_lo: change.share.lo,
                difference_hi: change.share.hi,
                verdict: change.verdict(),
            };
            Ok(serde_json::to_writer(out, &pair)?)
        })?;
        Ok(out.write_all(b"]}\n")?)
    })
}
