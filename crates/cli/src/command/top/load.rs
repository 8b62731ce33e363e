//! The profiles of an output directory as they are now, as rows. Nothing in it is changed: what is not sealed yet is sealed to a temporary directory, as the command that
//! started the JVM may be about to seal it itself.

use super::app::Want;
use crate::failure::{Result, cannot, damaged};
use crate::output::{self, MANIFEST};
use crate::{control, sealing, show};
use borescope_profile::{Existing, Opened, sites};
use borescope_report::{JsonOptions, MethodGlob, Sources, TextOptions, size, thousands};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// Methods, lines or pairs of a profile at most.
const ROWS: usize = 1000;
/// Where figures come from.
pub struct Source {
    /// The output directory.
    pub dir: PathBuf,
    /// Source text for reports.
    pub sources: Sources,
}

/// Figures.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// One a profile.
    pub tabs: Vec<Tab>,
    /// The report that was wanted.
    pub detail: Option<Vec<String>>,
    /// What is amiss.
    pub message: Option<String>,
}

/// A profile.
#[derive(Clone, Debug)]
pub struct Tab {
    /// Lens and JVM.
    pub title: String,
    /// What values are.
    pub unit: &'static str,
    /// Of all rows, those that are not shown included.
    pub total: u64,
    /// Methods, lines or pairs of lines.
    pub rows: Vec<Row>,
    /// What there is to know of all of it.
    pub note: String,
    /// The JVM, if it takes snapshots.
    pub takes_snapshots: Option<u32>,
}

/// A method, a line or a pair of lines.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name, no two of a tab alike.
    pub name: String,
    /// The methods that its report is about.
    pub glob: String,
    /// What is counted.
    pub value: u64,
    /// That, for people.
    pub shown: String,
    /// What else is to be said.
    pub note: String,
}

impl Source {
    /// Looks at what there is.
    pub fn load(&self, want: &Want) -> Result<Loaded> {
        let mut loaded = Loaded::default();
        if let Some(pid) = want.snapshot {
            loaded.message = Some(match control::find(pid).and_then(|jvm| jvm.snapshot()) {
                Ok(number) => format!("snapshot {number} of JVM {pid} taken"),
                Err(failure) => failure.to_string(),
            });
        }
        let room = tempfile::tempdir().map_err(|e| {
            cannot!("no temporary directory: {e}; set TMPDIR to one that can be written")
        })?;
        let mut profiles = Vec::new();
        if self.dir.join(MANIFEST).is_file() {
            profiles.push((self.dir.clone(), None));
        }
        profiles.extend(output::profiles(&self.dir)?.into_iter().map(|p| (p, None)));
        let mut failure = None;
        for spool in output::spools(&self.dir)? {
            let out = room.path().join(output::name(&spool).as_ref());
            match borescope_profile::seal_any(&spool, &out, Existing::Refuse, &mut |_| {}) {
                Ok(()) => {
                    let pid = output::still_running(&spool)
                        .then(|| output::name(&spool).split('-').next()?.parse().ok());
                    profiles.push((out, pid.flatten()));
                }
                // It may have been sealed meanwhile, which the next look shows.
                Err(e) => failure = Some(sealing::failure(e)),
            }
        }
        let mut titles = HashSet::new();
        for (dir, running) in profiles {
            let profile = show::open(&dir)?;
            let mut tab = tab(&profile, running)?;
            if !titles.insert(tab.title.clone()) {
                continue; // sealed between the two looks
            }
            tab.takes_snapshots = running.filter(|_| matches!(profile, Opened::Sites(_)));
            if let Some((_, glob)) = want.detail.as_ref().filter(|(of, _)| *of == tab.title) {
                loaded.detail = Some(self.report(&profile, glob, want.width)?);
            }
            loaded.tabs.push(tab);
        }
        match (loaded.tabs.is_empty(), failure) {
            (false, _) => Ok(loaded),
            (true, Some(failure)) => Err(failure),
            (true, None) => Err(damaged!(
                "no profile in {}: it holds neither {MANIFEST} nor a spool of an agent",
                self.dir.display()
            )),
        }
    }

    fn report(&self, profile: &Opened, glob: &str, width: usize) -> Result<Vec<String>> {
        let options = TextOptions {
            width,
            method: Some(MethodGlob::new(glob)),
            source: self.sources.clone(),
            ..TextOptions::default()
        };
        let mut text = Vec::new();
        show::text(profile, &options, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn tab(profile: &Opened, running: Option<u32>) -> Result<Tab> {
    let (lens, target) = match profile {
        Opened::Paths(profile) => ("paths", &profile.manifest().target),
        Opened::Sites(profile) => ("sites", &profile.manifest().target),
        Opened::Waste(profile) => ("waste", &profile.manifest().target),
    };
    let state = match running {
        Some(_) => "runs",
        None => "ended",
    };
    let mut tab = match profile {
        Opened::Paths(profile) => paths(profile),
        Opened::Sites(profile) => sites(profile)?,
        Opened::Waste(_) => waste(profile)?,
    };
    tab.title = format!("{lens} of {}", target.pid);
    tab.note = format!("{} ({state}); {}", target.command, tab.note);
    tab.rows.sort_by_key(|row| Reverse(row.value));
    tab.rows.truncate(ROWS);
    Ok(tab)
}

fn empty(unit: &'static str, note: String) -> Tab {
    Tab {
        title: String::new(),
        unit,
        total: 0,
        rows: Vec::new(),
        note,
        takes_snapshots: None,
    }
}

fn paths(profile: &borescope_profile::Profile) -> Tab {
    let manifest = profile.manifest();
    let mut tab = empty("paths", format!("k = {}", manifest.k));
    for method in profile.methods().iter().filter(|method| method.ids > 0) {
        tab.total += method.ids;
        let mark = match (&method.estimate, method.exact) {
            (Some(_), _) => "estimate, ",
            (None, false) => "lower bound, ",
            (None, true) => "",
        };
        tab.rows.push(Row {
            name: format!("{}.{}{}", method.class, method.method, method.descriptor),
            glob: format!("{}.{}", method.class, method.method),
            value: method.ids,
            shown: thousands(method.ids),
            note: format!("{mark}{} of {} paths ran", method.paths, method.num_paths),
        });
    }
    tab
}

/// By lines of the application, as the report has them.
fn sites(profile: &sites::Profile) -> Result<Tab> {
    let Some(last) = profile.manifest().snapshots.last() else {
        return Ok(empty("bytes", "no snapshot yet: n takes one".into()));
    };
    let mut tab = empty(
        "bytes",
        format!(
            "snapshot {}: {} objects, {}{}",
            last.number,
            thousands(last.live.objects),
            plain(&size(last.live.bytes)),
            if last.live_only {
                ""
            } else {
                ", dead ones included"
            },
        ),
    );
    tab.total = last.live.bytes;
    let mut lines: BTreeMap<String, (String, sites::Sum)> = BTreeMap::new();
    for live in profile.live(last.number).map_err(sealing::failure)? {
        let site = live.site.and_then(|index| {
            let at = profile
                .sites()
                .binary_search_by_key(&index, |site| site.index);
            profile.sites().get(at.ok()?)
        });
        let (name, glob) = match site {
            Some(site) => {
                let place = site.app.as_ref().unwrap_or(&site.at);
                let file = place.source_file.as_deref().unwrap_or("?");
                let jdk = if site.app.is_none() {
                    ", caller not known"
                } else {
                    ""
                };
                (
                    format!(
                        "{}.{} ({file}:{}){jdk}",
                        place.class, place.method, place.line
                    ),
                    format!("{}.{}", place.class, place.method),
                )
            }
            None => (
                format!("(not known: {})", live.reason.as_deref().unwrap_or("?")),
                "*".to_owned(),
            ),
        };
        let (_, sum) = lines.entry(name).or_insert((glob, sites::Sum::default()));
        *sum += live.sum;
    }
    tab.rows = lines
        .into_iter()
        .map(|(name, (glob, sum))| Row {
            name,
            glob,
            value: sum.bytes,
            shown: plain(&size(sum.bytes)),
            note: format!("{} objects", thousands(sum.objects)),
        })
        .collect();
    Ok(tab)
}

/// By pairs of lines, as the report has them.
fn waste(profile: &Opened) -> Result<Tab> {
    let mut text = Vec::new();
    let all = JsonOptions {
        top: Some(ROWS),
        method: None,
    };
    show::json(profile, &all, &mut text)?;
    let json: Value = serde_json::from_slice(&text)
        .map_err(|e| damaged!("the report of waste is no JSON: {e}"))?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let waste = &json["waste"];
    let answered = |kind: &str| number(&waste["kinds"][kind]["completed"]);
    let total = ["dead_store", "silent_store", "silent_load"].map(answered);
    let ticks = number(&waste["samples"]["ticks"]);
    let mut tab = empty("samples", format!("{} ticks, estimates", thousands(ticks)));
    tab.total = total.iter().sum();
    let mut ranks = HashSet::new();
    for pair in waste["pairs"].as_array().into_iter().flatten() {
        if !ranks.insert(number(&pair["rank"])) {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let line = |frame: &Value| {
            format!(
                "{}.{}:{}",
                text(&frame["class"]),
                text(&frame["method"]),
                number(&frame["line"])
            )
        };
        let (first, second) = (&pair["first"][0], &pair["second"][0]);
        let count = number(&pair["lines_count"]);
        tab.rows.push(Row {
            name: format!(
                "{} {} → {} #{}",
                text(&pair["kind"]).replace('_', " "),
                line(first),
                line(second),
                number(&pair["rank"])
            ),
            glob: format!("{}.{}", text(&first["class"]), text(&first["method"])),
            value: count,
            shown: thousands(count),
            note: text(&pair["hint"]),
        });
    }
    Ok(tab)
}

/// With plain blanks.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_whitespace(), " ")
}
