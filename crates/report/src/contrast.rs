//! What tells paths of one method apart. In go some paths, out comes a matrix: one row for code that some of the paths run and
//! others do not, by line where lines tell, by bytecode range where two paths have the same lines.

use borescope_profile::PathRow;

use crate::names::lines;

/// A half-open range of bytecode indices.
pub(crate) type Range = (u32, u32);

/// Code, and for each path whether it runs it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What.
    pub(crate) code: Code,
    /// For each path whether it runs this.
    pub(crate) takers: Vec<bool>,
}

/// What a row is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Source lines, ascending.
    Lines(Vec<u32>),
    /// Bytecode, ascending.
    Bytecode(Vec<Range>),
}

/// Rows for the code that some paths run and some do not: by line, then the bytecode that alone tells some of them apart.
pub(crate) fn contrast(paths: &[&PathRow]) -> Vec<Row> {
    let of_path: Vec<Vec<u32>> = paths.iter().map(|p| lines(p)).collect();
    let mut all: Vec<u32> = of_path.concat();
    all.sort_unstable();
    all.dedup();
    let mut rows: Vec<Row> = Vec::new();
    for line in all {
        let takers: Vec<bool> = of_path
            .iter()
            .map(|p| p.binary_search(&line).is_ok())
            .collect();
        match rows.last_mut() {
            Some(Row {
                code: Code::Lines(lines),
                takers: last,
            }) if *last == takers => lines.push(line),
            _ => rows.push(Row {
                code: Code::Lines(vec![line]),
                takers,
            }),
        }
    }
    rows.extend(bytecode(paths, &of_path));
    rows.retain(|row| row.takers.contains(&false));
    rows
}

/// Bytecode in which paths of the same lines differ.
fn bytecode(paths: &[&PathRow], lines: &[Vec<u32>]) -> Vec<Row> {
    let mut cuts: Vec<u32> = paths
        .iter()
        .flat_map(|p| p.bcis.iter().flat_map(|r| [r.0, r.1]))
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut rows: Vec<Row> = Vec::new();
    for atom in cuts.windows(2) {
        let takers: Vec<bool> = paths
            .iter()
            .map(|p| p.bcis.iter().any(|r| r.0 <= atom[0] && atom[1] <= r.1))
            .collect();
        let tells = (0..paths.len())
            .any(|a| (0..a).any(|b| takers[a] != takers[b] && lines[a] == lines[b]));
        if !tells {
            continue;
        }
        match rows.iter_mut().find(|r| r.takers == takers) {
            Some(Row {
                code: Code::Bytecode(ranges),
                ..
            }) => match ranges.last_mut() {
                Some(last) if last.1 == atom[0] => last.1 = atom[1],
                _ => ranges.push((atom[0], atom[1])),
            },
            _ => rows.push(Row {
                code: Code::Bytecode(vec![(atom[0], atom[1])]),
                takers,
            }),
        }
    }
    rows
}

/// Bytecode ranges of `path` that `other` does not run, ascending.
pub(crate) fn minus(path: &[Range], other: &[Range]) -> Vec<Range> {
    let mut left: Vec<Range> = path.iter().copied().filter(|r| r.0 < r.1).collect();
    for &(start, end) in other.iter().filter(|r| r.0 < r.1) {
        left = left
            .into_iter()
            .flat_map(|(a, b)| [(a, b.min(start)), (a.max(end), b)])
            .filter(|r| r.0 < r.1)
            .collect();
    }
    left.sort_unstable();
    left.dedup();
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use borescope_profile::model::{EdgeKind, StartKind};

    fn path(lines: &[u16], bcis: &[Range]) -> PathRow {
        PathRow {
            id: 0,
            count: 1,
            interval: None,
            lines: lines.to_vec(),
            bcis: bcis.to_vec(),
            starts: StartKind::default(),
            ends: EdgeKind::Back,
        }
    }

    fn by_line(lines: &[u32], takers: &[bool]) -> Row {
        Row {
            code: Code::Lines(lines.to_vec()),
            takers: takers.to_vec(),
        }
    }

    fn by_bci(bcis: &[Range], takers: &[bool]) -> Row {
        Row {
            code: Code::Bytecode(bcis.to_vec()),
            takers: takers.to_vec(),
        }
    }

    #[test]
    fn by_line_where_lines_tell() {
        let a = path(&[10, 11, 12, 14], &[(0, 8), (12, 20)]);
        let b = path(&[10, 13, 14], &[(0, 4), (8, 20)]);
        assert_eq!(
            contrast(&[&a, &b]),
            [
                by_line(&[11, 12], &[true, false]),
                by_line(&[13], &[false, true])
            ]
        );
    }

    #[test]
    fn by_bytecode_within_a_line() {
        // x = c ? f() : g(); on one line
        let a = path(&[7, 8], &[(0, 10), (15, 25)]);
        let b = path(&[7, 8], &[(0, 5), (10, 25)]);
        assert_eq!(
            contrast(&[&a, &b]),
            [
                by_bci(&[(5, 10)], &[true, false]),
                by_bci(&[(10, 15)], &[false, true])
            ]
        );
        assert_eq!(minus(&a.bcis, &b.bcis), [(5, 10)]);
        assert_eq!(minus(&b.bcis, &a.bcis), [(10, 15)]);
        assert_eq!(minus(&a.bcis, &a.bcis), []);
        let c = path(&[9], &[(30, 40)]);
        assert_eq!(
            contrast(&[&a, &b, &c]),
            [
                by_line(&[7, 8], &[true, true, false]),
                by_line(&[9], &[false, false, true]),
                by_bci(&[(5, 10)], &[true, false, false]),
                by_bci(&[(10, 15)], &[false, true, false])
            ]
        );
    }

    #[test]
    fn without_lines_or_paths() {
        assert_eq!(
            contrast(&[&path(&[], &[(0, 4)]), &path(&[], &[(0, 2)])]),
            [by_bci(&[(2, 4)], &[true, false])]
        );
        assert_eq!(contrast(&[]), []);
        assert_eq!(
            contrast(&[&path(&[], &[(9, 3)]), &path(&[], &[])]),
            [],
            "a range the wrong way round is nothing"
        );
    }
}
