//! The detail of one method: its paths as a table, a matrix of what tells them apart, and what follows what as in the seed's figure 4.

use borescope_paths::chains::Tree;
use borescope_profile::{Merged, Method, PathRow};

use crate::{
    contrast::{Code, contrast},
    names,
    page::{Look, Page},
    source::SourceFile,
    words::{self, percent},
};

/// Paths in a table.
const TABLE_PATHS: usize = 12;
/// Paths in a matrix: more than that nobody compares.
const MATRIX_PATHS: usize = 6;
/// Rows of a matrix.
const MATRIX_ROWS: usize = 16;
/// A row of more lines than this shows no source text.
const ROW_LINES: usize = 4;
/// Rows of a tree.
const TREE_ROWS: usize = 24;
const INDENT: &str = "    ";

/// The paths that ran, the hottest first.
pub(crate) fn table(page: &mut Page, method: &Method, paths: &[PathRow]) {
    let shown = &paths[..paths.len().min(TABLE_PATHS)];
    let rows: Vec<[String; 5]> = shown
        .iter()
        .map(|p| {
            [
                p.id.to_string(),
                match p.interval {
                    Some(of) => words::estimate(p.count, of),
                    None => words::count(method, p.count),
                },
                percent(p.count, method.ids),
                names::starts(p.starts).to_owned(),
                names::ends(p.ends).to_owned(),
            ]
        })
        .collect();
    let titles = ["path", "count", "share", "starts at", "ends by"];
    let width_of = |c: usize| {
        rows.iter()
            .map(|r| r[c].chars().count())
            .chain([titles[c].len()])
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width_of);
    let cells = |row: [&str; 5]| {
        let mut line = INDENT.to_owned();
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
            line.push_str(&if c < 3 {
                format!("{pad}{cell}  ")
            } else {
                format!("{cell}{pad}  ")
            });
        }
        line
    };
    let titles_line = cells(titles);
    // On a narrow page lines go below their path.
    let beside = titles_line.chars().count() + 16 <= page.width;
    page.line(
        Look::Dim,
        &format!("{titles_line}{}", if beside { "lines" } else { "" }),
    );
    for (path, row) in shown.iter().zip(&rows) {
        let left = cells([&row[0], &row[1], &row[2], &row[3], &row[4]]);
        let place = names::place(path);
        let place = ["lines\u{a0}", "line\u{a0}"]
            .iter()
            .find_map(|p| place.strip_prefix(p))
            .unwrap_or(&place);
        if beside {
            page.para(Look::Plain, &left, place);
        } else {
            page.line(Look::Plain, &left);
            page.para(Look::Plain, "        ", &format!("lines {place}"));
        }
    }
    let rest = &paths[shown.len()..];
    if !rest.is_empty() {
        let count = rest.iter().fold(0u64, |sum, p| sum.saturating_add(p.count));
        let more = words::plural(rest.len() as u64, "more path", "more paths");
        page.para(
            Look::Dim,
            INDENT,
            &format!("... and {more}, together {}", percent(count, method.ids)),
        );
    }
}

/// Branches whose ways the table does not tell apart.
pub(crate) fn merged(page: &mut Page, merged: &[Merged]) {
    if merged.is_empty() {
        return;
    }
    let mut lines: Vec<u32> = merged
        .iter()
        .flat_map(|branch| branch.lines.iter().map(|&line| line.into()))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    let arms: Vec<_> = merged
        .iter()
        .flat_map(|branch| &branch.arms)
        .copied()
        .collect();
    // All of them: who wonders about a branch must find it here.
    let place = match lines.as_slice() {
        [] => names::bytecode(&arms),
        [line] => format!("line {line}"),
        _ => format!("lines {}", words::ranges(&lines)),
    };
    page.para(
        Look::Dim,
        INDENT,
        &format!("Not told apart (short branches): {place} (--branches split tells them apart)"),
    );
}

/// The title of a matrix of the paths that start where `first` does.
pub(crate) fn apart(first: &PathRow) -> String {
    let start = match (first.lines.first(), first.bcis.first()) {
        (Some(line), _) => format!("line {line}"),
        (None, Some(range)) => format!("bytecode {}", range.0),
        (None, None) => "one place".to_owned(),
    };
    format!(
        "What tells the paths from {start} ({}) apart:",
        names::starts(first.starts)
    )
}

/// What paths that start at one place do not have in common, with source text if there is any.
pub(crate) fn matrix(page: &mut Page, paths: &[&PathRow], source: Option<&SourceFile>) {
    let paths = &paths[..paths.len().min(MATRIX_PATHS)];
    let rows = contrast(paths);
    let [first, _, ..] = paths else { return };
    if rows.is_empty() {
        return;
    }
    page.para(Look::Plain, INDENT, &apart(first));
    // (place, takers, source text)
    let mut cells: Vec<(String, &[bool], &str)> = Vec::new();
    for row in &rows {
        match &row.code {
            Code::Bytecode(ranges) => cells.push((names::bytecode(ranges), &row.takers, "")),
            Code::Lines(lines) => match source {
                Some(file) if lines.len() <= ROW_LINES => {
                    let texts = lines.iter().map(|&l| {
                        (
                            format!("line {l}"),
                            &row.takers[..],
                            file.line(l).unwrap_or(""),
                        )
                    });
                    cells.extend(texts);
                }
                _ => cells.push((words::lines(lines).unwrap_or_default(), &row.takers, "")),
            },
        }
    }
    let hidden = cells.len().saturating_sub(MATRIX_ROWS);
    cells.truncate(MATRIX_ROWS);
    let columns: Vec<usize> = paths
        .iter()
        .map(|p| p.id.to_string().len().max(3) + 1)
        .collect();
    let label = cells
        .iter()
        .map(|c| c.0.chars().count())
        .max()
        .unwrap_or(0)
        .max("path".len());
    let label = label
        .min(
            page.width
                .saturating_sub(INDENT.len() + columns.iter().sum::<usize>()),
        )
        .max(8);
    let ids: String = paths
        .iter()
        .zip(&columns)
        .map(|(p, &w)| format!("{:>w$}", p.id))
        .collect();
    page.line(Look::Dim, &format!("{INDENT}{:<label$}{ids}", "path"));
    for (place, takers, text) in &cells {
        let marks: String = takers
            .iter()
            .zip(&columns)
            .map(|(&t, &w)| format!("{:>w$}", if t { "x" } else { "." }))
            .collect();
        let left = format!("{INDENT}{:<label$}{marks}", words::keep_start(place, label));
        let room = page.width.saturating_sub(left.chars().count() + 2);
        let text = if room < 8 {
            String::new()
        } else {
            words::keep_start(text, room)
        };
        page.line(Look::Plain, &format!("{left}  {text}"));
    }
    if hidden > 0 {
        page.line(
            Look::Dim,
            &format!(
                "{INDENT}... and {}",
                words::plural(hidden as u64, "more difference", "more differences")
            ),
        );
    }
}

/// What follows what: each branch of the tree on a line, with the share of its parent's occurrences that go on that way.
pub(crate) fn tree(page: &mut Page, method: &Method, root: &Tree) {
    let mut rows: Vec<(String, String)> = Vec::new();
    let count = |n| words::number(method, n);
    branch(root, None, String::new(), String::new(), &count, &mut rows);
    let hidden = rows.len().saturating_sub(TREE_ROWS);
    rows.truncate(TREE_ROWS);
    for (lead, text) in rows {
        // Deep branches of a large k would leave no room for words.
        let most = page.width / 2;
        let lead = if lead.chars().count() > most {
            lead.chars().take(most).chain("... ".chars()).collect()
        } else {
            lead
        };
        page.para(Look::Plain, &format!("{INDENT}{lead}"), &text);
    }
    if hidden > 0 {
        page.line(
            Look::Dim,
            &format!(
                "{INDENT}... and {}",
                words::plural(hidden as u64, "more branch", "more branches")
            ),
        );
    }
}

/// One row for `node` and what follows it without branching, then its children. `parent`: the count that the node is a share of.
fn branch(
    node: &Tree,
    parent: Option<u64>,
    lead: String,
    below: String,
    count: &dyn Fn(u64) -> String,
    rows: &mut Vec<(String, String)>,
) {
    let step = |node: &Tree, of: u64| format!("{}\u{a0}{}", percent(node.count, of), node.id);
    let mut text = parent.map_or_else(|| node.id.to_string(), |of| step(node, of));
    let mut last = node;
    // The step before, if the next one may be told as one more of it.
    let (mut shown, mut same) = (text.clone(), 1);
    while let [only] = last.children.as_slice() {
        let next = step(only, last.count);
        if only.id == last.id && (next == shown || only.count == last.count) {
            same += 1;
        } else {
            text.push_str(&format!("{} → {next}", times(same)));
            (shown, same) = (next, 1);
        }
        last = only;
    }
    text.push_str(&times(same));
    if parent.is_none() || !std::ptr::eq(last, node) || last.children.is_empty() {
        text.push_str(&format!("  ({})", count(last.count)));
    }
    rows.push((lead, text));
    for (i, child) in last.children.iter().enumerate() {
        let (mark, under) = if i + 1 == last.children.len() {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        branch(
            child,
            Some(last.count),
            format!("{below}{mark}"),
            format!("{below}{under}"),
            count,
            rows,
        );
    }
}

fn times(n: usize) -> String {
    if n > 1 {
        format!("\u{a0}×{n}")
    } else {
        String::new()
    }
}
