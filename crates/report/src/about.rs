//! What reports for people say of one method: its name, how much it ran, how far its counts can be trusted, and which of its paths to
//! show side by side.

use borescope_paths::chains::Chain;
use borescope_profile::{Method, PathRow};

use crate::{
    names::Names,
    words::{self, plural, thousands},
};

/// Groups of paths that are compared.
const GROUPS: usize = 3;

/// `java.util.Scanner.next(Pattern)`
pub(crate) fn name(method: &Method) -> String {
    format!(
        "{}.{}{}",
        words::java_name(&method.class),
        method.method,
        words::parameters(&method.descriptor)
    )
}

/// Where it is, how often it ran, and how many of its paths.
pub(crate) fn facts(m: &Method) -> String {
    let mut facts: Vec<String> = place(m).into_iter().collect();
    facts.push(format!(
        "{}\u{a0}{} of {}{} iterations on average",
        words::count(m, m.activations),
        if m.activations == 1 { "call" } else { "calls" },
        if m.estimate.is_some() { "about " } else { "" },
        words::mean(m.ids, m.activations)
    ));
    facts.push(format!(
        "{} of {} paths ran",
        thousands(m.paths),
        big(&m.num_paths)
    ));
    if let Some(unfinished) = m.unfinished.filter(|&n| n > 0) {
        facts.push(match m.estimate {
            Some(_) => format!("{}\u{a0}unfinished paths", words::about(unfinished)),
            None => plural(unfinished, "unfinished path", "unfinished paths"),
        });
    }
    facts.join("; ")
}

/// `Scanner.java:12-40`
pub(crate) fn place(m: &Method) -> Option<String> {
    let file = m.source_file.as_ref()?;
    Some(match m.lines {
        Some((a, b)) if a != b => format!("{file}:{a}-{b}"),
        Some((a, _)) => format!("{file}:{a}"),
        None => file.clone(),
    })
}

/// Why its counts are not simply what they are, if so.
pub(crate) fn doubt(m: &Method) -> Option<String> {
    match (m.estimate, m.paths_exact, m.exact) {
        (Some(e), ..) => Some(format!(
            "Estimated from {}: {} iterations {}, calls {}.",
            plural(e.chosen, "profiled call", "profiled calls"),
            words::about(m.ids),
            words::interval(e.ids),
            words::interval(e.activations)
        )),
        (None, false, _) => {
            Some("Counts are lower bounds, shares are of what was counted.".to_owned())
        }
        (None, true, false) => {
            Some("Paths are exact; counts of sequences are lower bounds.".to_owned())
        }
        (None, true, true) => None,
    }
}

/// Paths that start at one place, those of the chains first: they differ by branches (those that start elsewhere differ anyway).
pub(crate) fn groups<'a>(chains: &[Chain], paths: &'a [PathRow]) -> Vec<Vec<&'a PathRow>> {
    let names = Names::new(paths);
    let mut groups: Vec<Vec<&PathRow>> = Vec::new();
    let start = |p: &PathRow| p.bcis.first().map(|r| r.0);
    for id in chains
        .iter()
        .flat_map(|c| &c.ids)
        .copied()
        .chain(paths.iter().map(|p| p.id))
    {
        let Some(path) = names.get(id) else { continue };
        match groups.iter_mut().find(|g| start(g[0]) == start(path)) {
            Some(group) if group.iter().all(|p| p.id != id) => group.push(path),
            Some(_) => {}
            None => groups.push(vec![path]),
        }
    }
    groups.retain(|g| g.len() > 1);
    groups.truncate(GROUPS);
    groups
}

/// Paths whose followers to show: those that chains begin with, then the hottest.
pub(crate) fn roots(chains: &[Chain], paths: &[PathRow]) -> Vec<u32> {
    let mut roots: Vec<u32> = Vec::new();
    for id in chains
        .iter()
        .filter_map(|c| c.ids.first().copied())
        .chain(paths.iter().map(|p| p.id))
    {
        if !roots.contains(&id) {
            roots.push(id);
        }
    }
    roots
}

/// A decimal number of any length: `1,234`, `about 10^41`.
pub(crate) fn big(decimal: &str) -> String {
    match decimal.parse::<u64>() {
        Ok(n) => thousands(n),
        Err(_) if decimal.len() > 1 => format!("about 10^{}", decimal.len() - 1),
        Err(_) => decimal.to_owned(),
    }
}
