//! What to do about it: findings that follow from the counts alone. A finding says what was seen in every case it counts; it is
//! left out where interrupted or uncounted paths could contradict it.

use borescope_paths::{KIpf, chains::Chain};
use borescope_profile::{Method, MethodDetail, PathRow, model::EdgeKind};

use crate::{
    contrast::minus,
    names::{self, Names},
    words::{self, percent, thousands},
};

/// A pattern, loop or path below this share of the method's iterations is not worth an advice.
const MIN_PERCENT: u64 = 20;
/// Exceptions are dear, so a smaller share of them is worth one.
const MIN_HANDLER_PERCENT: u64 = 5;
/// Below this many iterations nothing is hot.
const MIN_COUNT: u64 = 100;

/// Nobody unrolls by hand further than this.
const UNROLL: usize = 8;

/// Something to try.
pub(crate) struct Finding {
    /// A few words, for the list at the top.
    pub(crate) short: String,
    /// A sentence or two.
    pub(crate) text: String,
    /// Iterations that it is about.
    pub(crate) weight: u64,
    /// What kind of finding, for tools: stable.
    pub(crate) rule: &'static str,
    /// The source lines that it is about, ascending; empty = not known.
    pub(crate) lines: Vec<u32>,
}

/// The kinds of findings, each with what it means.
pub(crate) const RULES: [(&str, &str); 5] = [
    (
        HANDLERS,
        "A large share of the iterations begins in an exception handler.",
    ),
    (PATTERN, "A pattern of several paths repeats back to back."),
    (
        SAME_EVERY_CALL,
        "Every call runs the same paths from entry to exit.",
    ),
    (ONE_WAY, "A loop always takes the same one of its paths."),
    (FOLLOWED, "A path is always followed by the same other one."),
];
const HANDLERS: &str = "exceptions-as-control-flow";
const PATTERN: &str = "repeating-pattern";
const SAME_EVERY_CALL: &str = "same-paths-every-call";
const ONE_WAY: &str = "one-way-loop";
const FOLLOWED: &str = "always-followed";

/// What the counts of a method prove, the weightiest first.
pub(crate) fn findings(method: &Method, detail: &MethodDetail, chains: &[Chain]) -> Vec<Finding> {
    let names = Names::new(&detail.paths);
    let mut all: Vec<Finding> = Vec::new();
    all.extend(handlers(method, detail));
    all.extend(chains.iter().find_map(|c| pattern(method, &names, c)));
    all.extend(
        chains
            .iter()
            .find_map(|c| same_every_call(method, &names, c)),
    );
    all.extend(one_way(method, detail));
    if all.is_empty() {
        all.extend(always_followed(method, detail, &names));
    }
    all.sort_by_key(|f| std::cmp::Reverse(f.weight));
    all
}

fn large(part: u64, whole: u64, min_percent: u64) -> bool {
    part >= MIN_COUNT && u128::from(part) * 100 >= u128::from(whole) * u128::from(min_percent)
}

/// Exceptions as control flow.
fn handlers(method: &Method, detail: &MethodDetail) -> Option<Finding> {
    let caught =
        |p: &&PathRow| p.starts.handler && !p.starts.loop_head && !p.starts.entry && !p.starts.cut;
    let count = detail
        .paths
        .iter()
        .filter(caught)
        .fold(0u64, |sum, p| sum.saturating_add(p.count));
    let hottest = detail.paths.iter().find(caught)?;
    large(count, method.ids, MIN_HANDLER_PERCENT).then(|| Finding {
        short: "exceptions as control flow".to_owned(),
        text: format!(
            "Exceptions as control flow: {} of the iterations ({}) begin in an exception handler, mostly at {}. Test for the case \
             before it throws.",
            percent(count, method.ids),
            words::number(method, count),
            names::place(hottest),
        ),
        weight: count,
        rule: HANDLERS,
        lines: names::lines(hottest),
    })
}

/// A pattern of several paths that repeats back to back.
fn pattern(method: &Method, names: &Names, chain: &Chain) -> Option<Finding> {
    let paths: Vec<&PathRow> = chain
        .ids
        .iter()
        .map(|&id| names.get(id))
        .collect::<Option<_>>()?;
    if !chain.repeats || paths.len() < 2 || !large(chain.covered, method.ids, MIN_PERCENT) {
        return None;
    }
    let head = |p: &PathRow| p.bcis.first().map(|r| r.0);
    let one_loop = paths
        .iter()
        .all(|p| p.starts.loop_head && p.ends == EdgeKind::Back && head(p) == head(paths[0]));
    let n = paths.len();
    Some(Finding {
        short: format!(
            "a pattern of {n} paths repeats back to back ({} of its iterations)",
            percent(chain.covered, method.ids)
        ),
        text: if one_loop && n <= UNROLL {
            format!(
                "One loop, {n} paths in turn: unrolled {n} times, each copy of its body takes one path and its branches are known \
                 beforehand, as long as the pattern lasts."
            )
        } else {
            format!(
                "The same {n} paths come in the same order again and again: a candidate for unrolling them into one straight trace."
            )
        },
        weight: chain.covered,
        rule: PATTERN,
        lines: of_all(&paths),
    })
}

/// The lines of some paths.
fn of_all(paths: &[&PathRow]) -> Vec<u32> {
    let mut lines: Vec<u32> = paths.iter().flat_map(|path| names::lines(path)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Every call runs the same paths from entry to exit, loops included.
fn same_every_call(method: &Method, names: &Names, chain: &Chain) -> Option<Finding> {
    let first = names.get(*chain.ids.first()?)?;
    let last = names.get(*chain.ids.last()?)?;
    let whole = first.starts.entry
        && !first.starts.loop_head
        && matches!(last.ends, EdgeKind::Return | EdgeKind::Throw)
        && chain.count == method.activations;
    let certain = method.exact && method.unfinished == Some(0);
    let n = chain.ids.len();
    (whole && certain && n > 1 && method.activations >= MIN_COUNT).then(|| Finding {
        short: format!("every call runs the same {n} paths"),
        text: format!(
            "All {} calls run the same {n} paths from entry to exit, so its loops always turn equally often: a candidate for \
             unrolling them completely.",
            thousands(method.activations)
        ),
        weight: chain.covered,
        rule: SAME_EVERY_CALL,
        lines: of_all(&chain.ids.iter().filter_map(|&id| names.get(id)).collect::<Vec<_>>()),
    })
}

/// A loop all of whose turns take the same path although its code has others.
fn one_way(method: &Method, detail: &MethodDetail) -> Option<Finding> {
    // An interrupted or uncounted turn could have gone another way.
    if !method.exact || method.unfinished != Some(0) {
        return None;
    }
    let turns = detail
        .paths
        .iter()
        .filter(|p| p.starts.loop_head && p.ends == EdgeKind::Back);
    let mut alone = turns.clone().filter(|p| {
        let head = p.bcis.first().map(|r| r.0);
        turns
            .clone()
            .filter(|q| q.bcis.first().map(|r| r.0) == head)
            .count()
            == 1
    });
    alone.find_map(|p| {
        let span = (p.bcis.iter().map(|r| r.0).min()?, p.bcis.iter().map(|r| r.1).max()?);
        // No path names the arms of branches that are not told apart, and yet they may have run.
        let arms = detail.merged.iter().map(|branch| &branch.arms);
        let ran = detail.paths.iter().map(|q| &q.bcis).chain(arms);
        let dead = ran.fold(vec![span], |left, bcis| minus(&left, bcis));
        (!dead.is_empty() && large(p.count, method.ids, MIN_PERCENT)).then(|| Finding {
            short: format!("a loop that always takes one path, path\u{a0}{}", p.id),
            text: format!(
                "All {} turns of the loop at {} take path\u{a0}{}; {} inside it never ran. Its tests always decided alike: \
                 a loop for this case alone, with fewer tests, may pay.",
                thousands(p.count),
                names::place(p),
                p.id,
                names::bytecode(&dead),
            ),
            weight: p.count,
            rule: ONE_WAY,
            lines: names::lines(p),
        })
    })
}

/// A path after which only one of the paths that begin at the next loop head ever runs.
fn always_followed(method: &Method, detail: &MethodDetail, names: &Names) -> Option<Finding> {
    let kipf: &KIpf = &detail.kipf;
    if !method.exact || method.unfinished != Some(0) || kipf.k() < 2 {
        return None;
    }
    detail.paths.iter().filter(|p| p.ends == EdgeKind::Back && large(p.count, method.ids, MIN_PERCENT)).find_map(|p| {
        let node = kipf.find(&[p.id])?;
        let [next] = kipf.children(node)[..] else { return None };
        let next = names.get(kipf.id(next)).filter(|n| n.id != p.id && kipf.node_count(next) == p.count)?;
        // Without another way from there it could not be otherwise.
        let head = next.bcis.first().map(|r| r.0);
        detail.paths.iter().any(|q| q.id != next.id && q.bcis.first().map(|r| r.0) == head).then(|| Finding {
            short: format!("path\u{a0}{} is always followed by {}", p.id, next.id),
            text: format!(
                "Path\u{a0}{} is always followed by path\u{a0}{} ({} times), never by another one: at its end the next turn's branches are \
                 already decided, a candidate for joining the two.",
                p.id,
                next.id,
                words::thousands(p.count),
            ),
            weight: p.count,
            rule: FOLLOWED,
            lines: of_all(&[p, next]),
        })
    })
}
