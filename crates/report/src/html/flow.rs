//! The control flow that ran: stretches of bytecode and how often one led to another, added up from the counts of the paths and of pairs of paths.
//!
//! A path says which bytecode it runs in which order, so each of its steps from one stretch to the next was taken as often as the path was.
//! From the end of a path to the start of the next one leads what pairs of paths count. Nothing here is guessed: code that no path ran
//! is not in the picture, nor is a path that an exception interrupted.

use std::collections::{BTreeMap, BTreeSet};

use borescope_profile::{Method, MethodDetail, PathRow, model::EdgeKind};
use serde::Serialize;

use crate::contrast::Range;
use crate::names::lines;

/// Boundaries of stretches; a picture of more is none.
const CUTS: usize = 72;
/// Paths that are looked at.
const PATHS: usize = 400;

/// The picture.
#[derive(Debug, Default, Serialize)]
pub(super) struct Flow {
    /// By bytecode.
    pub(super) blocks: Vec<Block>,
    /// By start and target.
    pub(super) edges: Vec<Edge>,
    /// It is made of so many of the method's paths, the hottest ones ...
    pub(super) paths: usize,
    /// ... which have so many of its iterations.
    pub(super) iterations: u64,
}

/// A stretch of bytecode that is run as a whole.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Block {
    /// Half-open.
    pub(super) bcis: Range,
    /// Lines that the same paths run: always when this is run, and never else (of the paths in the picture). A profile does not say which
    /// line a stretch is of.
    pub(super) lines: Vec<u32>,
    /// Times it was run.
    pub(super) count: u64,
    /// The method is entered here.
    pub(super) entry: bool,
    /// An exception handler begins here.
    pub(super) handler: bool,
    /// Times the method was left here by a return, and by an athrow.
    pub(super) returns: u64,
    pub(super) throws: u64,
    /// Where pairs are not counted (k = 1): times a turn of a loop ended here, and led to a loop head that is not known.
    pub(super) turns: u64,
}

/// How often one stretch led to another.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) count: u64,
    pub(super) kind: Kind,
}

/// How.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Within a path.
    Forward,
    /// To the next turn of a loop.
    Back,
    /// From one path to another that begins where the method was cut to have fewer paths.
    Cut,
    /// To an exception handler.
    Exception,
}

impl Flow {
    pub(super) fn of(method: &Method, detail: &MethodDetail) -> Flow {
        let (paths, cuts) = chosen(&detail.paths);
        // A stretch lies between two neighbouring boundaries, if some path runs it.
        let cuts: Vec<u32> = cuts.into_iter().collect();
        let runs =
            |path: &PathRow, bcis: Range| path.bcis.iter().any(|r| r.0 <= bcis.0 && bcis.1 <= r.1);
        let lines = by_takers(paths);
        let mut blocks: Vec<Block> = Vec::new();
        for bcis in cuts.windows(2).map(|w| (w[0], w[1])) {
            let of = |at: &usize| runs(&paths[*at], bcis);
            let takers: Vec<usize> = (0..paths.len()).filter(of).collect();
            if takers.is_empty() {
                continue;
            }
            let lines = lines.get(&takers).cloned().unwrap_or_default();
            let takers = takers.iter().map(|&at| &paths[at]);
            let starts = takers
                .clone()
                .filter(|p| p.bcis.first().is_some_and(|r| r.0 == bcis.0))
                .map(|p| p.starts);
            blocks.push(Block {
                bcis,
                lines,
                count: sum(takers.map(|p| p.count)),
                entry: starts.clone().any(|kind| kind.entry),
                handler: starts.clone().any(|kind| kind.handler),
                returns: 0,
                throws: 0,
                turns: 0,
            });
        }
        let mut edges: BTreeMap<(usize, usize, Kind), u64> = BTreeMap::new();
        let mut add = |from, to, kind, count: u64| {
            let sum: &mut u64 = edges.entry((from, to, kind)).or_default();
            *sum = sum.saturating_add(count);
        };
        let mut ends: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for path in paths {
            let way = way(path, &blocks);
            for step in way.windows(2) {
                add(step[0], step[1], Kind::Forward, path.count);
            }
            if let (Some(&first), Some(&last)) = (way.first(), way.last()) {
                ends.insert(path.id, (first, last));
            }
        }
        for path in paths {
            let Some(&(_, last)) = ends.get(&path.id) else {
                continue;
            };
            let mut next = 0u64;
            let node = detail.kipf.find(&[path.id]);
            for child in node.map_or(Vec::new(), |node| detail.kipf.children(node)) {
                let count = detail.kipf.node_count(child);
                next = next.saturating_add(count);
                let then = paths.iter().find(|p| p.id == detail.kipf.id(child));
                if let Some((then, &(first, _))) = then.and_then(|p| Some((p, ends.get(&p.id)?)))
                    && count > 0
                {
                    add(last, first, kind(path, then), count);
                }
            }
            let left = path.count.saturating_sub(next);
            let pairs = detail.kipf.k() > 1;
            let block = &mut blocks[last];
            let to = match path.ends {
                EdgeKind::Return => &mut block.returns,
                EdgeKind::Throw => &mut block.throws,
                EdgeKind::Back | EdgeKind::Cut if !pairs => &mut block.turns,
                // The next path was interrupted, or is not in the picture.
                _ => continue,
            };
            *to = to.saturating_add(left);
        }
        let edges = edges.into_iter().map(|((from, to, kind), count)| Edge {
            from,
            to,
            count,
            kind,
        });
        Flow {
            edges: edges.collect(),
            blocks,
            paths: paths.len(),
            iterations: sum(paths.iter().map(|p| p.count)).min(method.ids),
        }
    }
}

/// Lines by the paths that run them.
fn by_takers(paths: &[PathRow]) -> BTreeMap<Vec<usize>, Vec<u32>> {
    let mut takers: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, path) in paths.iter().enumerate() {
        for line in lines(path) {
            takers.entry(line).or_default().push(at);
        }
    }
    let mut by: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
    for (line, takers) in takers {
        by.entry(takers).or_default().push(line);
    }
    by
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// As many of the hottest paths as make a picture, and the boundaries of their ranges.
fn chosen(paths: &[PathRow]) -> (&[PathRow], BTreeSet<u32>) {
    let mut cuts: BTreeSet<u32> = BTreeSet::new();
    for (at, path) in paths.iter().enumerate() {
        let more = path.bcis.iter().flat_map(|r| [r.0, r.1]);
        let with: BTreeSet<u32> = cuts.iter().copied().chain(more).collect();
        if with.len() > CUTS || at >= PATHS {
            return (&paths[..at], cuts);
        }
        cuts = with;
    }
    (paths, cuts)
}

/// The stretches that a path runs, in order.
fn way(path: &PathRow, blocks: &[Block]) -> Vec<usize> {
    let of = |range: &Range| {
        let from = blocks.partition_point(|b| b.bcis.0 < range.0);
        let to = blocks.partition_point(|b| b.bcis.0 < range.1);
        from..to.max(from)
    };
    path.bcis.iter().flat_map(of).collect()
}

fn kind(path: &PathRow, then: &PathRow) -> Kind {
    let starts = then.starts;
    let only_handler = starts.handler && !starts.loop_head && !starts.entry && !starts.cut;
    match path.ends {
        _ if only_handler => Kind::Exception,
        EdgeKind::Cut => Kind::Cut,
        EdgeKind::Throw => Kind::Exception,
        _ => Kind::Back,
    }
}
