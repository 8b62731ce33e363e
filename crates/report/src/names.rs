//! How the report speaks of the paths of one method: by ID and lines, and by what distinguishes two paths of the same lines.

use std::collections::HashMap;

use borescope_profile::{
    PathRow,
    model::{EdgeKind, StartKind},
};

use crate::{
    contrast::{Range, minus},
    words,
};

/// The paths of one method, to be named.
pub(crate) struct Names<'a> {
    by_id: HashMap<u32, &'a PathRow>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(paths: &'a [PathRow]) -> Self {
        Self {
            by_id: paths.iter().map(|p| (p.id, p)).collect(),
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&'a PathRow> {
        self.by_id.get(&id).copied()
    }

    /// `path 86 (lines 12-18)`, with what sets it off from those of `others` that have the same lines.
    pub(crate) fn full(&self, id: u32, others: &[u32]) -> String {
        let Some(path) = self.get(id) else {
            return format!("path\u{a0}{id}");
        };
        let mut text = format!("path\u{a0}{id} ({}", place(path));
        let twin = others
            .iter()
            .filter(|&&o| o != id)
            .filter_map(|&o| self.get(o))
            .find(|o| lines(o) == lines(path));
        if let Some(twin) = twin.filter(|_| !path.lines.is_empty()) {
            text.push_str(&format!(", {}", difference(path, twin)));
        } else {
            // Long lists of lines mostly agree: name those that no other one has.
            let rest: Vec<u32> = others
                .iter()
                .filter(|&&o| o != id)
                .filter_map(|&o| self.get(o))
                .flat_map(lines)
                .collect();
            let (all, mut own) = (lines(path), lines(path));
            own.retain(|line| !rest.contains(line));
            if !own.is_empty() && own.len() < all.len() {
                text.push_str(&format!("; only it {}", words::ranges(&own)));
            }
        }
        if path.starts.handler && !path.starts.loop_head && !path.starts.entry {
            text.push_str(", from an exception handler");
        }
        text.push(')');
        text
    }
}

/// The lines of a path, ascending, each once (a profile has them in execution order).
pub(crate) fn lines(path: &PathRow) -> Vec<u32> {
    let mut lines: Vec<u32> = path.lines.iter().map(|&l| l.into()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// `lines 12-15, 18`, or bytecode where the class has no line numbers.
pub(crate) fn place(path: &PathRow) -> String {
    words::lines(&lines(path)).unwrap_or_else(|| bytecode(&path.bcis))
}

/// `bytecode 0-7, 12-14` (ends inclusive, as lines are).
pub(crate) fn bytecode(ranges: &[Range]) -> String {
    let parts: Vec<String> = ranges
        .iter()
        .filter(|r| r.0 < r.1)
        .map(|r| format!("{}-{}", r.0, r.1 - 1))
        .collect();
    match parts.as_slice() {
        [] => "no bytecode".to_owned(),
        [a, b, .., z] if parts.len() > 4 => format!("bytecode\u{a0}{a}, {b}, ...\u{a0}{z}"),
        _ => format!("bytecode\u{a0}{}", parts.join(", ")),
    }
}

/// How `path` differs from a path with the same lines.
fn difference(path: &PathRow, twin: &PathRow) -> String {
    let (more, less) = (minus(&path.bcis, &twin.bcis), minus(&twin.bcis, &path.bcis));
    match (more.is_empty(), less.is_empty()) {
        (false, _) => format!("with {}, unlike {}", bytecode(&more), twin.id),
        (true, false) => format!("without {}, unlike {}", bytecode(&less), twin.id),
        (true, true) if path.ends != twin.ends => {
            format!("ends by {}, unlike {}", ends(path.ends), twin.id)
        }
        (true, true) => format!(
            "same code as {}, in another order or to another loop",
            twin.id
        ),
    }
}

/// Where paths begin, in words: `entry`, `loop`, `handler`, `cut`.
pub(crate) fn starts(kind: StartKind) -> &'static str {
    match kind {
        StartKind { handler: true, .. } => "handler",
        StartKind {
            loop_head: true,
            entry: true,
            ..
        } => "entry/loop",
        StartKind {
            loop_head: true, ..
        } => "loop",
        StartKind { entry: true, .. } => "entry",
        StartKind { cut: true, .. } => "cut",
        _ => "?",
    }
}

/// How paths end, in words.
pub(crate) fn ends(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Back => "back edge",
        EdgeKind::Return => "return",
        EdgeKind::Throw => "throw",
        EdgeKind::Cut => "cut",
        EdgeKind::Forward => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32, lines: &[u16], bcis: &[Range], ends: EdgeKind) -> PathRow {
        let starts = StartKind {
            handler: id == 9,
            ..StartKind::default()
        };
        PathRow {
            id,
            count: 1,
            interval: None,
            lines: lines.to_vec(),
            bcis: bcis.to_vec(),
            starts,
            ends,
        }
    }

    #[test]
    fn twins_are_told_apart() {
        use EdgeKind::*;
        let paths = [
            path(1, &[3, 4], &[(0, 9)], Back),
            path(2, &[3, 4], &[(0, 12)], Back),
            path(3, &[3, 4], &[(0, 9)], Return),
            path(4, &[5], &[(20, 22)], Back),
            path(5, &[], &[(0, 4), (9, 9), (10, 12)], Back),
            path(6, &[5], &[(20, 22)], Back),
            path(8, &[4, 8], &[(5, 13)], Back),
            path(9, &[7], &[(30, 31)], Back),
        ];
        let names = Names::new(&paths);
        let full = |id, others: &[u32]| words::plain(&names.full(id, others));
        assert_eq!(full(1, &[1, 4]), "path 1 (lines 3-4)");
        assert_eq!(
            full(1, &[2]),
            "path 1 (lines 3-4, without bytecode 9-11, unlike 2)"
        );
        assert_eq!(
            full(2, &[1]),
            "path 2 (lines 3-4, with bytecode 9-11, unlike 1)"
        );
        assert_eq!(
            full(3, &[1]),
            "path 3 (lines 3-4, ends by return, unlike 1)"
        );
        assert_eq!(
            full(4, &[6]),
            "path 4 (line 5, same code as 6, in another order or to another loop)"
        );
        assert_eq!(full(1, &[8, 4]), "path 1 (lines 3-4; only it 3)");
        assert_eq!(full(5, &[5]), "path 5 (bytecode 0-3, 10-11)");
        assert_eq!(full(9, &[]), "path 9 (line 7, from an exception handler)");
        assert_eq!(full(77, &[1]), "path 77");
    }
}
