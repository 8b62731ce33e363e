//! Hot chains: the sequences of path IDs that a person should read first, chosen from a method's k-IPF.
//!
//! The model is the seed's text on figure 4: after 38, 66 % of the times 86 runs; <38, 86, 86, 86, 755> makes up more than half of all
//! runs of 38, and repeats back to back. What a chain *states* (count, covered IDs, repetition) is exact or a proven lower bound; which
//! chains are *chosen* is a matter of taste, fixed by the rules at [`chains`].

use crate::KIpf;
use crate::kipf::Node;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A hot chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The path IDs, one after another in an activation; at most k, never a repetition of a shorter sequence.
    pub ids: Vec<u32>,
    /// Occurrences (exact).
    pub count: u64,
    /// Emitted path IDs that lie in at least one occurrence, see [`covered`].
    pub covered: u64,
    /// `covered` as a part of all the method's emitted path IDs, 0 to 1.
    pub share: f64,
    /// The chain repeats back to back: at least half of its occurrences are proven to be followed by another one at once, see
    /// [`followed_by_itself`].
    pub repeats: bool,
    /// How many of its IDs end by a back edge, that is, how many loop iterations an occurrence completes.
    pub iterations: u32,
    /// What follows the first ID: (ID, part of the first ID's occurrences), by falling share. What lacks to 1 ended the activation.
    pub then: Vec<(u32, f64)>,
}

/// What to look for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Least share of a chain.
    pub min_share: f64,
    /// Most chains.
    pub limit: usize,
}

impl Default for Options {
    /// Up to 10 chains of 5 % and more.
    fn default() -> Options {
        Options {
            min_share: 0.05,
            limit: 10,
        }
    }
}

/// A chain must contain this part of all occurrences of at least one of its IDs (a single ID: be followed by itself so often).
const MIN_ANCHOR: f64 = 0.6;
/// Of the rotations of a cycle, those with this part of the most frequent one's count can be its name.
const SAME_COUNT: f64 = 0.9;
/// How many candidates (those of the largest shares) are compared with each other.
const CANDIDATES: usize = 2000;

/// The hot chains of a method, by falling share.
///
/// `total` is the number of path IDs that the method emitted (if some were lost, more than the forest holds); `continues` tells which IDs
/// end by a back edge, so that a next iteration follows.
///
/// An n-gram is a candidate if it occurs twice or more, covers `min_share` of the IDs, has a back
/// edge inside, is no repetition of a shorter one, and is typical: it holds at least 60 % of all occurrences
/// of one of its IDs (in noise no n-gram does). A single ID is a candidate if it mostly repeats. A cycle has
/// one name: of its rotations that are about as frequent as the most frequent one, the lexicographically
/// least (which begins in the outermost loop: cfg numbers path starts in bytecode order).
///
/// Candidates are taken greedily, the one first that covers most IDs which are not expected to lie in chains taken before. So no
/// piece of a taken chain follows it, no overlap of two taken chains, and no chain with the run of an inner loop at its end.
#[must_use]
pub fn chains(
    forest: &KIpf,
    total: u64,
    continues: impl Fn(u32) -> bool,
    options: &Options,
) -> Vec<Chain> {
    let total = total.max(forest.total());
    let least = least_covered(total, options.min_share);
    let mut taken: Vec<Chain> = Vec::new();
    // What is new in a candidate only shrinks as others are taken, so an old figure is an upper bound: when it has been renewed and
    // still leads, it is the best.
    let mut queue: BinaryHeap<Candidate> = candidates(forest, total, least, &continues).into();
    while taken.len() < options.limit
        && let Some(mut best) = queue.pop()
    {
        if best.renewed != taken.len() {
            let new = new_in(forest, &best.ids.0, &taken) / best.ids.0.len() as f64;
            // What is not new counts against it, so that ends which only lead over to a taken chain fall off.
            best.gain = (best.covered as f64 * (2.0 * new - 1.0)) as u64;
            best.renewed = taken.len();
            if best.gain as f64 >= least {
                queue.push(best);
            }
            continue;
        }
        let (Reverse(ids), count) = (best.ids, best.count);
        taken.push(Chain {
            count,
            covered: best.covered,
            share: best.covered as f64 / total as f64,
            repeats: followed_by_itself(forest, &ids).saturating_mul(2) >= count,
            iterations: ids.iter().filter(|&&id| continues(id)).count() as u32,
            then: successors(forest, &ids[..1]),
            ids,
        });
    }
    taken.sort_by(|a, b| (b.covered, a.ids.len(), &a.ids).cmp(&(a.covered, b.ids.len(), &b.ids)));
    taken
}

/// What comes right after an n-gram of fewer than k IDs: (ID, part of the n-gram's occurrences), by falling share. What lacks to 1 are the
/// activations that end with the n-gram.
#[must_use]
pub fn successors(forest: &KIpf, ids: &[u32]) -> Vec<(u32, f64)> {
    let Some(node) = forest.find(ids) else {
        return Vec::new();
    };
    let all = if ids.is_empty() {
        forest.total()
    } else {
        forest.node_count(node)
    } as f64;
    let part = |v: Node| (forest.node_count(v) as f64 / all).min(1.0);
    let next = forest
        .children(node)
        .into_iter()
        .filter(|&v| forest.node_count(v) > 0);
    next.map(|v| (forest.id(v), part(v))).collect()
}

/// A pruned tree of the forest, as the seed's figure 4 draws it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Path ID.
    pub id: u32,
    /// Occurrences of the sequence from the root to here.
    pub count: u64,
    /// Part of the root's occurrences.
    pub share: f64,
    /// Part of the parent's occurrences (1 for the root).
    pub step: f64,
    /// By falling count.
    pub children: Vec<Tree>,
}

/// The tree of an ID without the nodes whose count is less than `min_share` of the root's (figure 4: 0.1). None if the ID never ran.
#[must_use]
pub fn tree(forest: &KIpf, root: u32, min_share: f64) -> Option<Tree> {
    let node = forest.find(&[root])?;
    let all = forest.node_count(node);
    (all > 0).then(|| subtree(forest, node, all, all, min_share))
}

// As deep as k at most.
fn subtree(forest: &KIpf, node: Node, parent: u64, all: u64, min_share: f64) -> Tree {
    let count = forest.node_count(node);
    let hot = |v: &Node| {
        forest.node_count(*v) > 0 && forest.node_count(*v) as f64 >= min_share * all as f64
    };
    let children = forest.children(node).into_iter().filter(hot);
    Tree {
        id: forest.id(node),
        count,
        share: (count as f64 / all as f64).min(1.0),
        step: (count as f64 / parent as f64).min(1.0),
        children: children
            .map(|v| subtree(forest, v, count, all, min_share))
            .collect(),
    }
}

/// How many emitted IDs lie in an occurrence of the n-gram: exact if its occurrences cannot overlap or k is long enough to see
/// them do so, else a lower bound.
///
/// An occurrence adds all its m IDs but those of the next one if that starts d < m later. Then d is a period of the n-gram g, and
/// the two are one occurrence of the (m+d)-gram `g[..d] g`, whose count is known up to k and bounded by its k-gram pieces beyond. A d with
/// another occurrence in between is no distance to the *next* one. Where only bounds are known, the loss is taken as large as they allow:
/// the smallest d first, at most one next occurrence each.
#[must_use]
pub fn covered(forest: &KIpf, gram: &[u32]) -> u64 {
    let (m, count) = (gram.len(), forest.count(gram));
    let mut followed = count;
    let mut lost = 0u64;
    for d in periods(gram) {
        let pair = [&gram[..d], gram].concat();
        if (1..d).any(|at| pair[at..].starts_with(gram)) {
            continue;
        }
        let width = pair.len().min(forest.k() as usize);
        let most = pair
            .windows(width)
            .map(|w| forest.count(w))
            .min()
            .unwrap_or(0)
            .min(followed);
        followed -= most;
        lost = lost.saturating_add(most.saturating_mul((m - d) as u64));
    }
    count.saturating_mul(m as u64).saturating_sub(lost)
}

/// How many occurrences of the n-gram g are followed at once by another one: exact if 2m <= k, else a lower bound.
///
/// The bound reads gg in windows of k: of the occurrences of the first window, each further window loses at most those of its
/// first k-1 IDs that are not followed by its last one (`c(uy) >= c(u) - (c(v) - c(vy))` for a suffix v of u).
#[must_use]
pub fn followed_by_itself(forest: &KIpf, gram: &[u32]) -> u64 {
    let k = forest.k() as usize;
    let twice = [gram, gram].concat();
    if k < 2 || gram.is_empty() || gram.len() > k {
        return 0;
    }
    let first = forest.count(&twice[..twice.len().min(k)]);
    let lost = twice
        .windows(k)
        .skip(1)
        .map(|w| forest.count(&w[..k - 1]).saturating_sub(forest.count(w)));
    first.saturating_sub(lost.fold(0, u64::saturating_add))
}

/// The periods d < m of a gram: all d with `gram[i] = gram[i + d]`, rising.
fn periods(gram: &[u32]) -> impl Iterator<Item = usize> + '_ {
    (1..gram.len()).filter(|&d| gram[d..] == gram[..gram.len() - d])
}

/// An n-gram that may become a chain; the best is the greatest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Covered IDs that are new, less those that are not.
    gain: u64,
    short: Reverse<usize>,
    ids: Reverse<Vec<u32>>,
    covered: u64,
    count: u64,
    /// With how many taken chains `gain` was found.
    renewed: usize,
}

/// The least number of covered IDs that is worth a line.
fn least_covered(total: u64, min_share: f64) -> f64 {
    (min_share * total as f64).max(1.0)
}

/// The candidates, one for each cycle.
fn candidates(
    forest: &KIpf,
    total: u64,
    least: f64,
    continues: &impl Fn(u32) -> bool,
) -> Vec<Candidate> {
    let mut cycles: BTreeMap<Vec<u32>, Vec<Candidate>> = BTreeMap::new();
    let mut todo: Vec<(Node, Vec<u32>)> = vec![(forest.virtual_root(), Vec::new())];
    while let Some((node, ids)) = todo.pop() {
        // Counts only fall along a branch, so a branch that cannot reach the share even at length k is cut.
        todo.extend(forest.children(node).into_iter().map_while(|v| {
            let count = forest.node_count(v);
            (count >= 2 && count as f64 * f64::from(forest.k()) >= least)
                .then(|| (v, [&ids[..], &[forest.id(v)]].concat()))
        }));
        let count = forest.node_count(node);
        if (count as f64) * (ids.len() as f64) < least {
            continue;
        }
        let covered = covered(forest, &ids).min(total);
        if covered as f64 >= least && is_candidate(forest, &ids, covered, continues) {
            let cycle = cycles.entry(least_rotation(&ids)).or_default();
            let (short, ids) = (Reverse(ids.len()), Reverse(ids));
            cycle.push(Candidate {
                gain: covered,
                short,
                ids,
                covered,
                count,
                renewed: 0,
            });
        }
    }
    let mut chosen: Vec<_> = cycles.into_values().filter_map(name).collect();
    chosen.sort_by(|a, b| b.cmp(a));
    chosen.truncate(CANDIDATES);
    chosen
}

fn is_candidate(
    forest: &KIpf,
    gram: &[u32],
    covered: u64,
    continues: &impl Fn(u32) -> bool,
) -> bool {
    let count = forest.count(gram);
    let Some((last, front)) = gram.split_last() else {
        return false;
    };
    if front.is_empty() {
        return continues(*last)
            && followed_by_itself(forest, gram) as f64 >= MIN_ANCHOR * count as f64;
    }
    if !front.iter().any(|&id| continues(id)) {
        return false;
    }
    // A power, or the beginning of a repetition: its root stands for it.
    if let Some(p) = periods(gram).next() {
        let root = &gram[..p];
        let repeats = || followed_by_itself(forest, root).saturating_mul(2) >= forest.count(root);
        if gram.len().is_multiple_of(p) || repeats() {
            return false;
        }
    }
    let single = |id: &u32| forest.count(std::slice::from_ref(id)) as f64;
    // Overlapping occurrences share IDs, so each brings covered / m of its own.
    let own = covered as f64 / gram.len() as f64;
    let times = |id: &u32| gram.iter().filter(|x| *x == id).count() as f64;
    gram.iter()
        .any(|id| times(id) * own >= MIN_ANCHOR * single(id))
}

fn least_rotation(gram: &[u32]) -> Vec<u32> {
    let rotations = (0..gram.len()).map(|at| [&gram[at..], &gram[..at]].concat());
    rotations.min().unwrap_or_default()
}

/// Which of a cycle's rotations names it.
fn name(rotations: Vec<Candidate>) -> Option<Candidate> {
    let most = rotations.iter().map(|r| r.count).max()? as f64;
    // The greatest `Reverse` is the least rotation.
    rotations
        .into_iter()
        .filter(|r| r.count as f64 >= SAME_COUNT * most)
        .max_by(|a, b| a.ids.cmp(&b.ids))
}

/// How many of a gram's IDs are not expected to lie in taken chains.
///
/// A taken chain h can lie over an occurrence of the gram g in four ways: g holds h; g starts with an end of h; g ends with a
/// beginning of h; h (or, if it repeats, a run of it) holds g.
fn new_in(forest: &KIpf, gram: &[u32], taken: &[Chain]) -> f64 {
    let m = gram.len();
    let all = forest.count(gram).max(1) as f64;
    let mut old = vec![0.0; m];
    let mut mark =
        |from: usize, to: usize, part: f64| old[from..to].iter_mut().for_each(|p| *p += part);
    for Chain {
        ids,
        count,
        repeats,
        ..
    } in taken
    {
        let len = ids.len();
        for at in (0..m).filter(|&at| gram[at..].starts_with(ids)) {
            mark(at, at + len, 1.0);
        }
        for n in 1..m.min(len) {
            if ids.ends_with(&gram[..n]) {
                mark(
                    0,
                    n,
                    estimate(forest, &[&ids[..len - n], gram].concat()) / all,
                );
            }
            if ids.starts_with(&gram[m - n..]) {
                mark(
                    m - n,
                    m,
                    estimate(forest, &[gram, &ids[n..]].concat()) / all,
                );
            }
        }
        let shown = if *repeats { len + m } else { len };
        let text: Vec<u32> = ids.iter().cycle().take(shown).copied().collect();
        let times = (0..len).filter(|&at| text[at..].starts_with(gram)).count();
        mark(0, m, times as f64 * *count as f64 / all);
    }
    old.iter().map(|p| 1.0 - p.min(1.0)).sum()
}

/// Occurrences of a gram of any length: exact up to k; beyond, each ID is taken to depend on the k-1 before it only.
fn estimate(forest: &KIpf, gram: &[u32]) -> f64 {
    let k = forest.k() as usize;
    let first = forest.count(&gram[..gram.len().min(k)]) as f64;
    let steps = gram.windows(k).skip(1).map(|w| {
        let before = if k == 1 {
            forest.total()
        } else {
            forest.count(&w[..k - 1])
        };
        forest.count(w) as f64 / before.max(1) as f64
    });
    first * steps.product::<f64>()
}
