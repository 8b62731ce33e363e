//! A hot chain in a person's words: which path comes after which how often, what share of the method's iterations that makes.

use std::collections::HashSet;

use borescope_paths::{
    KIpf,
    chains::{self, Chain},
};
use borescope_profile::{Method, MethodDetail, PathRow, model::EdgeKind};

use crate::{
    names::Names,
    page::{Look, Page},
    words::{self, percent, percent_floor, plural, thousands},
};

/// Steps of a long chain that are told; the others are in the tree.
const STEPS: usize = 6;
/// A successor that is not on the chain is told from this share on.
const ASIDE_PERCENT: u64 = 10;

/// The hot chains of a method.
pub(crate) fn hot(method: &Method, detail: &MethodDetail, limit: usize) -> Vec<Chain> {
    let back: HashSet<u32> = detail
        .paths
        .iter()
        .filter(|p| p.ends == EdgeKind::Back)
        .map(|p| p.id)
        .collect();
    let options = chains::Options {
        limit,
        ..chains::Options::default()
    };
    chains::chains(&detail.kipf, method.ids, |id| back.contains(&id), &options)
}

/// The chain as IDs, then in words.
pub(crate) fn describe(
    page: &mut Page,
    method: &Method,
    kipf: &KIpf,
    names: &Names,
    chain: &Chain,
) {
    let Some(&first) = chain.ids.first() else {
        return;
    };
    page.para(Look::Bold, "    ", &arrows(&chain.ids));
    let counted = match (method.exact, method.estimate) {
        (true, _) => "",
        (false, None) => " of those counted",
        (false, Some(_)) => " of those profiled",
    };
    let mut text = if chain.ids.len() == 1 {
        let (all, again) = (kipf.count(&[first]), kipf.count(&[first, first]));
        let in_a_row = match all.saturating_sub(again) {
            runs if runs > 0 && method.exact => {
                format!(", {} times in a row on average", words::mean(all, runs))
            }
            _ => String::new(),
        };
        format!(
            "After {}, {}{counted} take the same path again{in_a_row}.",
            names.full(first, &[]),
            percent(again, all)
        )
    } else {
        story(kipf, names, &chain.ids, counted)
    };
    // Where only sequences are bounded, what they cover is a lower bound of a share of all.
    let bounded = method.paths_exact && !method.exact;
    let covers = if surely_all(kipf, &chain.ids) && !bounded {
        percent(chain.covered, method.ids)
    } else {
        format!("at least {}", percent_floor(chain.covered, method.ids))
    };
    let subject = match chain.ids.len() {
        1 => "It".to_owned(),
        n => format!("This {n}-path pattern"),
    };
    text.push_str(&format!(
        " {subject} covers {covers} of the method's{} iterations",
        match (method.paths_exact, method.estimate) {
            (true, _) => "",
            (false, None) => " counted",
            (false, Some(_)) => " profiled",
        }
    ));
    text.push_str(&match (chain.repeats, chain.ids.len()) {
        (true, 2..) => " and repeats back to back.".to_owned(),
        (_, 1) => ".".to_owned(),
        _ if method.estimate.is_some() => format!(" ({} times).", words::about(chain.count)),
        _ => format!(" ({}).", plural(chain.count, "time", "times")),
    });
    page.para(Look::Plain, "      ", &text);
}

/// `After path 38 (lines 12-18), 66 % take path 86 (line 20) next, then always 86, 755 (line 31).`
fn story(kipf: &KIpf, names: &Names, ids: &[u32], counted: &str) -> String {
    let mut named: Vec<u32> = Vec::new();
    let mut name = |id: u32| {
        if named.contains(&id) {
            return format!("path\u{a0}{id}");
        }
        named.push(id);
        names.full(id, ids)
    };
    let counts: Vec<u64> = (1..=ids.len()).map(|n| kipf.count(&ids[..n])).collect();
    let mut text = format!("After {},", name(ids[0]));
    // Steps that differ neither in their path nor in being certain are told as one.
    let certain = |i: usize| counts[i] == counts[i - 1];
    let steps: Vec<usize> = (1..ids.len()).collect();
    let told: Vec<&[usize]> = steps
        .chunk_by(|&a, &b| a > 1 && ids[a] == ids[b] && certain(a) && certain(b))
        .collect();
    let mut always = false;
    for (n, step) in told.iter().enumerate() {
        let i = step[0];
        if n >= STEPS {
            text.push_str(&format!(", and so on ({} more)", ids.len() - i));
            break;
        }
        text.push_str(&match (n, certain(i), always) {
            (0, true, _) => format!(" all{counted} take "),
            (0, false, _) => format!(" {}{counted} take ", percent(counts[1], counts[0])),
            (_, true, true) => ", ".to_owned(),
            (_, true, false) if counted.is_empty() => ", then always ".to_owned(),
            (_, true, false) => format!(", then all{counted} take "),
            (_, false, _) => format!(", then {} take ", percent(counts[i], counts[i - 1])),
        });
        always = certain(i) && n > 0;
        text.push_str(&name(ids[i]));
        match (n, step.len()) {
            (0, _) => text.push_str(" next"),
            (_, 1) => {}
            (_, times) => text.push_str(&format!("\u{a0}×{times}")),
        }
    }
    text.push('.');
    // What else comes after the first path, as in the seed's reading of figure 4.
    let aside = kipf.find(&ids[..1]).and_then(|node| {
        kipf.children(node)
            .into_iter()
            .map(|v| (kipf.id(v), kipf.node_count(v)))
            .find(|&(id, _)| id != ids[1])
    });
    if let Some((id, count)) =
        aside.filter(|a| u128::from(a.1) * 100 >= u128::from(counts[0]) * u128::from(ASIDE_PERCENT))
    {
        text.push_str(&format!(
            " ({}{counted} take {} instead.)",
            percent(count, counts[0]),
            name(id)
        ));
    }
    text
}

/// What stands in for chains where there are none.
pub(crate) fn without(page: &mut Page, method: &Method, paths: &[PathRow], names: &Names, k: u32) {
    let Some(hottest) = paths.first() else { return };
    let place = names.full(hottest.id, &[]);
    let text = match paths.len() {
        1 if method.estimate.is_some() => format!("Each profiled call only takes {place}."),
        1 => format!("Always takes {place}."),
        _ => format!(
            "Most often {place}: {} of the iterations.",
            percent(hottest.count, method.ids)
        ),
    };
    page.para(Look::Plain, "    ", &text);
    if k > 1 && paths.len() > 1 && method.ids > method.activations {
        page.para(
            Look::Dim,
            "    ",
            &format!("No sequence of up to {k} paths stands out."),
        );
    }
}

/// `38 → 86 ×3 → 755`
fn arrows(ids: &[u32]) -> String {
    let runs: Vec<String> = ids
        .chunk_by(|a, b| a == b)
        .map(|run| match run.len() {
            1 => run[0].to_string(),
            n => format!("{}\u{a0}×{}", run[0], thousands(n as u64)),
        })
        .collect();
    runs.join(" → ")
}

/// Whether what the chain covers is known exactly: its occurrences cannot overlap, or k shows all of them that do (see
/// [`borescope_paths::chains::covered`]).
fn surely_all(kipf: &KIpf, ids: &[u32]) -> bool {
    let m = ids.len();
    (1..m)
        .filter(|&d| ids[d..] == ids[..m - d])
        .all(|d| m + d <= kipf.k() as usize)
}
