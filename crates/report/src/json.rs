//! JSON for tools: one object, the contract of docs/formats. Streamed: n-grams go out as the forest is walked, methods one at a time, each
//! on a line of its own.

use std::io::Write;

use borescope_paths::{KIpf, chains::Chain};
use borescope_profile::{
    Burst, Interval, Manifest, Merged, Method, MethodDetail, PathRow, Profile, Skipped, Target,
    model::{EdgeKind, StartKind},
};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

use crate::{Error, MethodGlob, chain, words};

/// Chains of a method without `--top`: a few that stand out, not a second list of all n-grams.
const CHAINS: usize = 10;

/// Version of this JSON: fields are added without raising it.
pub(crate) const SCHEMA: u32 = 1;

/// What goes into the JSON.
#[derive(Clone, Debug, Default)]
pub struct JsonOptions {
    /// At most so many elements of each list (methods, and in each method paths, n-grams, chains), the hottest first; `None` = everything.
    pub top: Option<usize>,
    /// Only these methods.
    pub method: Option<MethodGlob>,
}

impl JsonOptions {
    fn wants(&self, class: &str, method: &str) -> bool {
        self.method
            .as_ref()
            .is_none_or(|g| g.matches(class, method))
    }
}

/// Writes the profile as one JSON object and a line feed.
///
/// `methods` holds the methods that ran, the hottest first; `hi` of an n-gram is null where no upper bound is known.
pub fn json(profile: &Profile, options: &JsonOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| write(profile, options, out))
}

fn write(profile: &Profile, options: &JsonOptions, out: &mut dyn Write) -> Result<(), Error> {
    let manifest = profile.manifest();
    let top = options.top.unwrap_or(usize::MAX);
    write_head(
        &manifest.borescope,
        &manifest.target,
        profile.skipped(),
        options,
        out,
    )?;
    let wanted = |class: &str, method: &str| options.wants(class, method);
    out.write_all(b",\n\"paths\":")?;
    // The section's scalar fields, then its list, in one object.
    let mut head = serde_json::to_vec(&Head::of(manifest))?;
    head.pop();
    out.write_all(&head)?;
    out.write_all(b",\"methods\":[")?;
    let methods = hottest(profile.methods())
        .into_iter()
        .filter(|m| wanted(&m.class, &m.method))
        .take(top);
    list(out, methods, |out, m| {
        let detail = profile.detail(m.index)?;
        Ok(serde_json::to_writer(
            out,
            &MethodJson {
                manifest,
                method: m,
                detail: &detail,
                top: options.top,
            },
        )?)
    })?;
    out.write_all(b"]}}\n")?;
    Ok(())
}

/// What reports of all lenses begin with, without the comma behind it.
pub(crate) fn write_head(
    version: &str,
    target: &Target,
    skipped: &[Skipped],
    options: &JsonOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    out.write_all(b"{\"borescope\":")?;
    serde_json::to_writer(&mut *out, version)?;
    write!(out, ",\"schema\":{SCHEMA},\n\"target\":")?;
    serde_json::to_writer(&mut *out, target)?;
    out.write_all(b",\n\"skipped\":[")?;
    let skipped = skipped
        .iter()
        .filter(|s| options.wants(&s.class, &s.method))
        .take(options.top.unwrap_or(usize::MAX));
    list(out, skipped, |out, s| {
        let (class, method) = (words::java_name(&s.class), &s.method);
        Ok(serde_json::to_writer(
            out,
            &SkippedJson {
                class,
                method,
                descriptor: &s.descriptor,
                lens: &s.lens,
                reason: &s.reason,
            },
        )?)
    })?;
    Ok(out.write_all(b"]")?)
}

/// Elements with commas, each on a line.
pub(crate) fn list<T>(
    out: &mut dyn Write,
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(&mut dyn Write, T) -> Result<(), Error>,
) -> Result<(), Error> {
    for (i, item) in items.enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        each(out, item)?;
    }
    Ok(())
}

/// Methods that ran, by falling number of iterations, then of activations, then by index.
pub(crate) fn hottest(methods: &[Method]) -> Vec<&Method> {
    let mut ran: Vec<&Method> = methods
        .iter()
        .filter(|m| m.activations > 0 || m.ids > 0)
        .collect();
    ran.sort_by_key(|m| (std::cmp::Reverse((m.ids, m.activations)), m.index));
    ran
}

#[derive(Serialize)]
struct SkippedJson<'a> {
    class: String,
    method: &'a str,
    descriptor: &'a str,
    lens: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Head<'a> {
    k: u32,
    engine: &'a str,
    branches: &'a str,
    burst: &'a Option<Burst>,
    straight_line: bool,
    stopped: &'a Option<String>,
    lost: u64,
    log_torn: &'a Option<String>,
    counters_torn: &'a Option<String>,
    notices: &'a [String],
    totals: &'a borescope_profile::Totals,
}

impl<'a> Head<'a> {
    fn of(m: &'a Manifest) -> Self {
        Self {
            k: m.k,
            engine: &m.engine,
            branches: &m.branches,
            burst: &m.burst,
            straight_line: m.straight_line,
            stopped: &m.stopped,
            lost: m.lost,
            log_torn: &m.log_torn,
            counters_torn: &m.counters_torn,
            notices: &m.notices,
            totals: &m.totals,
        }
    }
}

/// What a method is and how much it ran.
pub(crate) fn method_fields<M: SerializeMap>(map: &mut M, m: &Method) -> Result<(), M::Error> {
    map.serialize_entry("class", &words::java_name(&m.class))?;
    map.serialize_entry("method", &m.method)?;
    map.serialize_entry("descriptor", &m.descriptor)?;
    map.serialize_entry("source_file", &m.source_file)?;
    map.serialize_entry("loader", &m.loader)?;
    map.serialize_entry("class_hash", &format!("{:016x}", m.class_hash))?;
    map.serialize_entry("instances", &m.instances)?;
    map.serialize_entry("lines", &m.lines)?;
    map.serialize_entry("num_paths", &m.num_paths)?;
    map.serialize_entry("numbered_paths", &m.numbered_paths)?;
    map.serialize_entry("activations", &m.activations)?;
    map.serialize_entry("iterations", &m.ids)?;
    map.serialize_entry("unfinished", &m.unfinished)?;
    let estimate = m.estimate.as_ref();
    map.serialize_entry("chosen", &estimate.map(|e| e.chosen))?;
    map.serialize_entry("activations_interval", &estimate.map(|e| e.activations))?;
    map.serialize_entry("iterations_interval", &estimate.map(|e| e.ids))?;
    map.serialize_entry("unfinished_interval", &estimate.map(|e| e.unfinished))?;
    map.serialize_entry("exact", &m.exact)?;
    map.serialize_entry("paths_exact", &m.paths_exact)?;
    Ok(())
}

struct MethodJson<'a> {
    manifest: &'a Manifest,
    method: &'a Method,
    detail: &'a MethodDetail,
    top: Option<usize>,
}

impl Serialize for MethodJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            manifest,
            method: m,
            detail,
            top,
        } = *self;
        let limit = top.unwrap_or(usize::MAX);
        let mut map = serializer.serialize_map(None)?;
        method_fields(&mut map, m)?;
        map.serialize_entry("merged", &Each(detail.merged.iter().map(MergedJson)))?;
        map.serialize_entry(
            "paths",
            &Each(detail.paths.iter().take(limit).map(PathJson)),
        )?;
        map.serialize_entry(
            "ngrams",
            &Grams {
                manifest,
                method: m,
                kipf: &detail.kipf,
                top,
            },
        )?;
        let chains = chain::hot(m, detail, top.unwrap_or(CHAINS));
        let chains = chains
            .iter()
            .map(|c| ChainJson(c, chain_interval(manifest, m, &detail.kipf, c)));
        map.serialize_entry("chains", &Each(chains))?;
        map.end()
    }
}

/// What an estimate of a chain's count is worth; `None` = not an estimate.
pub(crate) fn chain_interval(
    manifest: &Manifest,
    method: &Method,
    kipf: &KIpf,
    chain: &Chain,
) -> Option<Interval> {
    let node = kipf
        .find(&chain.ids)
        .filter(|_| method.estimate.is_some())?;
    Some(Interval {
        lo: kipf.lower(node),
        hi: manifest.upper(method, kipf.upper(node)),
    })
}

/// A list from an iterator that can be walked again.
pub(crate) struct Each<I>(pub(crate) I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Each<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

struct MergedJson<'a>(&'a Merged);

impl Serialize for MergedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Merged {
            head,
            arms,
            join,
            lines,
        } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("head", head)?;
        map.serialize_entry("arms", arms)?;
        map.serialize_entry("join", join)?;
        map.serialize_entry("lines", lines)?;
        map.end()
    }
}

/// A path of a method.
pub(crate) struct PathJson<'a>(pub(crate) &'a PathRow);

impl Serialize for PathJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let p = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &Id(p.id))?;
        map.serialize_entry("count", &p.count)?;
        map.serialize_entry("interval", &p.interval)?;
        map.serialize_entry("lines", &p.lines)?;
        map.serialize_entry("bcis", &p.bcis)?;
        map.serialize_entry("starts", &starts(p.starts))?;
        map.serialize_entry("ends", ends(p.ends))?;
        map.end()
    }
}

/// Why a path may start where it does: several reasons can hold for one block.
pub(crate) fn starts(kind: StartKind) -> Vec<&'static str> {
    let all = [
        (kind.entry, "entry"),
        (kind.loop_head, "loop"),
        (kind.handler, "handler"),
        (kind.cut, "cut"),
    ];
    all.into_iter().filter(|k| k.0).map(|k| k.1).collect()
}

fn ends(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Forward => "forward",
        EdgeKind::Back => "back",
        EdgeKind::Cut => "cut",
        EdgeKind::Return => "return",
        EdgeKind::Throw => "throw",
    }
}

/// A path ID: a decimal string, as all IDs in the contract.
struct Id(u32);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A chain and what its count is worth.
pub(crate) struct ChainJson<'a>(pub(crate) &'a Chain, pub(crate) Option<Interval>);

impl Serialize for ChainJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let c = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ids", &Ids(&c.ids))?;
        map.serialize_entry("count", &c.count)?;
        map.serialize_entry("interval", &self.1)?;
        map.serialize_entry("covered", &c.covered)?;
        map.serialize_entry("share", &c.share)?;
        map.serialize_entry("repeats", &c.repeats)?;
        map.serialize_entry(
            "then",
            &Each(c.then.iter().map(|&(id, share)| Then { id: Id(id), share })),
        )?;
        map.end()
    }
}

#[derive(Serialize)]
struct Then {
    id: Id,
    share: f64,
}

struct Ids<'a>(&'a [u32]);

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|&id| Id(id)))
    }
}

#[derive(Serialize)]
struct Gram<'a> {
    ids: Ids<'a>,
    count: u64,
    lo: u64,
    hi: Option<u64>,
}

/// N-grams of two and more IDs: all, depth first, or the hottest.
struct Grams<'a> {
    manifest: &'a Manifest,
    method: &'a Method,
    kipf: &'a KIpf,
    top: Option<usize>,
}

impl Grams<'_> {
    fn gram<'i>(&self, ids: &'i [u32], count: u64, below: u64, upper: u64) -> Gram<'i> {
        let hi = self.manifest.upper(self.method, upper);
        Gram {
            ids: Ids(ids),
            count,
            lo: count.saturating_sub(below),
            hi,
        }
    }
}

impl Serialize for Grams<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        match self.top {
            Some(top) => {
                for (ids, count) in hottest_grams(self.kipf, top) {
                    let upper = self.kipf.upper_of(&ids);
                    let node = self.kipf.find(&ids);
                    let below = node.map_or(0, |node| self.kipf.bounds(node).below);
                    seq.serialize_element(&self.gram(&ids, count, below, upper))?;
                }
            }
            None => {
                let mut ids: Vec<u32> = Vec::new();
                for (node, bounds) in self.kipf.bounded_nodes() {
                    ids.truncate((node.depth as usize).saturating_sub(1));
                    ids.push(node.id);
                    if ids.len() >= 2 && node.count > 0 {
                        seq.serialize_element(&self.gram(
                            &ids,
                            node.count,
                            bounds.below,
                            bounds.upper,
                        ))?;
                    }
                }
            }
        }
        seq.end()
    }
}

/// The `top` n-grams of any length from 2 that occur most often; of equals the longer first, then by IDs.
fn hottest_grams(kipf: &KIpf, top: usize) -> Vec<(Vec<u32>, u64)> {
    let mut all: Vec<(Vec<u32>, u64)> = (2..=kipf.k()).flat_map(|n| kipf.top(n, top)).collect();
    all.sort_by(|a, b| {
        b.1.cmp(&a.1)
            .then(b.0.len().cmp(&a.0.len()))
            .then_with(|| a.0.cmp(&b.0))
    });
    all.truncate(top);
    all
}
