//! The tables of a profile: their columns (docs/formats.md describes each), a row in, a row out.

use crate::model::{
    EdgeKind, Interval, Loop, Merged, Method, MethodEstimate, PathRow, Skipped, StartKind,
};
use crate::table::Column;

/// `methods.parquet`.
pub(crate) const METHODS: &str = "message methods {
    REQUIRED INT32 method; REQUIRED BYTE_ARRAY class (STRING); REQUIRED BYTE_ARRAY name (STRING);
    REQUIRED BYTE_ARRAY descriptor (STRING); OPTIONAL BYTE_ARRAY source_file (STRING); REQUIRED BYTE_ARRAY loader (STRING);
    REQUIRED BYTE_ARRAY class_hash (STRING); REQUIRED INT32 instances; REQUIRED BYTE_ARRAY num_paths (STRING);
    REQUIRED INT32 numbered_paths; REQUIRED INT64 activations; OPTIONAL INT64 unfinished; REQUIRED INT64 ids;
    REQUIRED INT64 paths; REQUIRED INT64 kipf_nodes; REQUIRED INT64 merged; REQUIRED BOOLEAN exact; REQUIRED BOOLEAN paths_exact;
    OPTIONAL INT64 chosen; OPTIONAL INT64 activations_lo; OPTIONAL INT64 activations_hi; OPTIONAL INT64 unfinished_lo;
    OPTIONAL INT64 unfinished_hi; OPTIONAL INT64 ids_lo; OPTIONAL INT64 ids_hi;
    OPTIONAL INT32 first_line; OPTIONAL INT32 last_line; }";

/// `paths.parquet`.
pub(crate) const PATHS: &str = "message paths {
    REQUIRED INT32 method; REQUIRED INT32 id; REQUIRED INT64 count; OPTIONAL INT64 lo; OPTIONAL INT64 hi;
    REQUIRED GROUP lines (LIST) { REPEATED GROUP list { REQUIRED INT32 element; } }
    REQUIRED GROUP bcis (LIST) { REPEATED GROUP list { REQUIRED GROUP element { REQUIRED INT32 start; REQUIRED INT32 end; } } }
    REQUIRED BOOLEAN starts_at_entry; REQUIRED BOOLEAN starts_at_loop_head; REQUIRED BOOLEAN starts_at_handler;
    REQUIRED BOOLEAN starts_at_cut; REQUIRED BYTE_ARRAY ends (STRING); }";

/// `kipf.parquet`.
pub(crate) const KIPF: &str = "message kipf {
    REQUIRED INT32 method; REQUIRED INT32 node; OPTIONAL INT32 parent; REQUIRED INT32 depth; REQUIRED INT32 id;
    REQUIRED INT64 count; REQUIRED INT64 lo; OPTIONAL INT64 hi; REQUIRED INT64 truncated; }";

/// `merged.parquet`.
pub(crate) const MERGED: &str = "message merged {
    REQUIRED INT32 method; REQUIRED GROUP head { REQUIRED INT32 start; REQUIRED INT32 end; }
    REQUIRED GROUP arms (LIST) { REPEATED GROUP list { REQUIRED GROUP element { REQUIRED INT32 start; REQUIRED INT32 end; } } }
    REQUIRED GROUP join { REQUIRED INT32 start; REQUIRED INT32 end; }
    REQUIRED GROUP lines (LIST) { REPEATED GROUP list { REQUIRED INT32 element; } } }";

/// `skipped.parquet`.
pub(crate) const SKIPPED: &str = "message skipped {
    REQUIRED BYTE_ARRAY class (STRING); REQUIRED BYTE_ARRAY name (STRING); REQUIRED BYTE_ARRAY descriptor (STRING);
    REQUIRED BYTE_ARRAY lens (STRING); REQUIRED BYTE_ARRAY reason (STRING); }";

/// `code.parquet`.
pub(crate) const CODE: &str = "message code {
    REQUIRED INT32 method; REQUIRED GROUP lines (LIST) { REPEATED GROUP list { REQUIRED INT32 element; } } }";

/// `loops.parquet`.
pub(crate) const LOOPS: &str = "message loops {
    REQUIRED INT32 method; REQUIRED GROUP head { REQUIRED INT32 start; REQUIRED INT32 end; } REQUIRED INT32 line;
    REQUIRED INT64 zero; REQUIRED INT64 one; REQUIRED INT64 many; REQUIRED INT64 unsure; }";

/// Tables that profiles of earlier versions of this schema do not have.
pub(crate) const LATER: [(&str, &str); 2] = [("code.parquet", CODE), ("loops.parquet", LOOPS)];

/// Files and their schemas, in the order that sealing writes them.
pub(crate) const TABLES: [(&str, &str); 5] = [
    ("methods.parquet", METHODS),
    ("paths.parquet", PATHS),
    ("kipf.parquet", KIPF),
    ("merged.parquet", MERGED),
    ("skipped.parquet", SKIPPED),
];

/// Takes the columns one after another.
pub(crate) struct Next<'a>(std::slice::IterMut<'a, Column>);

impl<'a> Next<'a> {
    pub(crate) fn of(columns: &'a mut [Column]) -> Self {
        Next(columns.iter_mut())
    }

    pub(crate) fn get(&mut self) -> &'a mut Column {
        self.0
            .next()
            .expect("a column for each field of the schema")
    }
}

/// Parquet's widest integer that every reader takes is signed.
fn as_signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn write_method(columns: &mut [Column], method: &Method) {
    let mut to = Next::of(columns);
    to.get().int(i64::from(method.index));
    to.get().text(&*method.class);
    to.get().text(&*method.method);
    to.get().text(&*method.descriptor);
    to.get().text(method.source_file.as_deref());
    to.get().text(&*method.loader);
    to.get().text(&*format!("{:016x}", method.class_hash));
    to.get().int(i64::from(method.instances));
    to.get().text(&*method.num_paths);
    to.get().int(i64::from(method.numbered_paths));
    to.get().count(method.activations);
    to.get().int(method.unfinished.map(as_signed));
    for count in [method.ids, method.paths, method.kipf_nodes, method.merged] {
        to.get().count(count);
    }
    to.get().bool(method.exact);
    to.get().bool(method.paths_exact);
    let estimate = method.estimate;
    to.get().int(estimate.map(|e| as_signed(e.chosen)));
    for interval in [
        estimate.map(|e| e.activations),
        estimate.map(|e| e.unfinished),
        estimate.map(|e| e.ids),
    ] {
        write_interval(&mut to, interval);
    }
    to.get().int(method.lines.map(|lines| i64::from(lines.0)));
    to.get().int(method.lines.map(|lines| i64::from(lines.1)));
}

pub(crate) fn read_method(columns: &mut [Column]) -> Option<Method> {
    let mut from = Next::of(columns);
    Some(Method {
        index: from.get().next_int()?,
        class: from.get().next_text()?,
        method: from.get().next_text()?,
        descriptor: from.get().next_text()?,
        source_file: from.get().next_opt_text()?,
        loader: from.get().next_text()?,
        class_hash: u64::from_str_radix(&from.get().next_text()?, 16).ok()?,
        instances: from.get().next_int()?,
        num_paths: from.get().next_text()?,
        numbered_paths: from.get().next_int()?,
        activations: from.get().next_int()?,
        unfinished: match from.get().next_opt_int()? {
            Some(unfinished) => Some(u64::try_from(unfinished).ok()?),
            None => None,
        },
        ids: from.get().next_int()?,
        paths: from.get().next_int()?,
        kipf_nodes: from.get().next_int()?,
        merged: from.get().next_int()?,
        exact: from.get().next_bool()?,
        paths_exact: from.get().next_bool()?,
        estimate: {
            let chosen = from.get().next_opt_int()?;
            let of: [_; 3] = [
                read_interval(&mut from)?,
                read_interval(&mut from)?,
                read_interval(&mut from)?,
            ];
            match (chosen, of) {
                (None, [None, None, None]) => None,
                (Some(chosen), [Some(activations), Some(unfinished), Some(ids)]) => {
                    Some(MethodEstimate {
                        chosen: chosen.try_into().ok()?,
                        activations,
                        unfinished,
                        ids,
                    })
                }
                _ => return None,
            }
        },
        lines: match (from.get().next_opt_int()?, from.get().next_opt_int()?) {
            (Some(first), Some(last)) => Some((first.try_into().ok()?, last.try_into().ok()?)),
            (None, None) => None,
            _ => return None,
        },
    })
}

fn write_interval(to: &mut Next, interval: Option<Interval>) {
    to.get().int(interval.map(|of| as_signed(of.lo)));
    to.get().int(interval.and_then(|of| of.hi).map(as_signed));
}

/// `None` = a value that no profile has.
fn read_interval(from: &mut Next) -> Option<Option<Interval>> {
    let (lo, hi) = (from.get().next_opt_int()?, from.get().next_opt_int()?);
    let count = |value: Option<i64>| value.map(u64::try_from).transpose().ok();
    match (count(lo)?, count(hi)?) {
        (None, None) => Some(None),
        (Some(lo), hi) if hi.is_none_or(|hi| lo <= hi) => Some(Some(Interval { lo, hi })),
        _ => None,
    }
}

pub(crate) fn write_path(columns: &mut [Column], method: u32, path: &PathRow) {
    let mut to = Next::of(columns);
    to.get().int(i64::from(method));
    to.get().int(i64::from(path.id));
    to.get().count(path.count);
    write_interval(&mut to, path.interval);
    to.get().list(path.lines.iter().map(|&line| line.into()));
    to.get().list(path.bcis.iter().map(|range| range.0));
    to.get().list(path.bcis.iter().map(|range| range.1));
    let StartKind {
        entry,
        loop_head,
        handler,
        cut,
    } = path.starts;
    for kind in [entry, loop_head, handler, cut] {
        to.get().bool(kind);
    }
    to.get().text(end_name(path.ends));
}

/// The row, with its method in front.
pub(crate) fn read_path(columns: &mut [Column]) -> Option<(u32, PathRow)> {
    let mut from = Next::of(columns);
    let method = from.get().next_int()?;
    let (id, count) = (from.get().next_int()?, from.get().next_int()?);
    let interval = read_interval(&mut from)?;
    let lines = from.get().next_list()?;
    let (starts, ends) = (from.get().next_list()?, from.get().next_list()?);
    if starts.len() != ends.len() {
        return None;
    }
    let path = PathRow {
        id,
        count,
        interval,
        lines,
        bcis: starts.into_iter().zip(ends).collect(),
        starts: StartKind {
            entry: from.get().next_bool()?,
            loop_head: from.get().next_bool()?,
            handler: from.get().next_bool()?,
            cut: from.get().next_bool()?,
        },
        ends: end_of(&from.get().next_text()?)?,
    };
    Some((method, path))
}

/// Word for how a path ends, in the tables and in reports.
pub fn end_name(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Forward => "forward",
        EdgeKind::Back => "back",
        EdgeKind::Cut => "cut",
        EdgeKind::Return => "return",
        EdgeKind::Throw => "throw",
    }
}

fn end_of(name: &str) -> Option<EdgeKind> {
    [
        EdgeKind::Back,
        EdgeKind::Cut,
        EdgeKind::Return,
        EdgeKind::Throw,
    ]
    .into_iter()
    .find(|&kind| end_name(kind) == name)
}

/// A row of `kipf.parquet`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) method: u32,
    pub(crate) node: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) depth: u32,
    pub(crate) id: u32,
    pub(crate) count: u64,
    /// Lower bound of the true count, or lower end of an estimate's interval.
    pub(crate) lo: u64,
    /// Upper bound of the true count, or upper end; `None` = unknown.
    pub(crate) hi: Option<u64>,
    /// Occurrences of which nothing more is known, not even the ID before.
    pub(crate) truncated: u64,
}

pub(crate) fn write_node(columns: &mut [Column], node: &Node) {
    let mut to = Next::of(columns);
    to.get().int(i64::from(node.method));
    to.get().int(i64::from(node.node));
    to.get().int(node.parent.map(i64::from));
    to.get().int(i64::from(node.depth));
    to.get().int(i64::from(node.id));
    to.get().count(node.count);
    to.get().count(node.lo);
    to.get().int(node.hi.map(as_signed));
    to.get().count(node.truncated);
}

pub(crate) fn read_node(columns: &mut [Column]) -> Option<Node> {
    let mut from = Next::of(columns);
    let (method, node) = (from.get().next_int()?, from.get().next_int()?);
    let parent = match from.get().next_opt_int()? {
        Some(parent) => Some(u32::try_from(parent).ok()?),
        None => None,
    };
    let (depth, id, count) = (
        from.get().next_int()?,
        from.get().next_int()?,
        from.get().next_int()?,
    );
    let lo: u64 = from.get().next_int()?;
    let hi = from.get().next_opt_int()?.map(|hi| hi.max(0) as u64);
    let fits = lo <= count && hi.is_none_or(|hi| count <= hi);
    fits.then_some(Node {
        method,
        node,
        parent,
        depth,
        id,
        count,
        lo,
        hi,
        truncated: from.get().next_int()?,
    })
}

pub(crate) fn write_merged(columns: &mut [Column], method: u32, merged: &Merged) {
    let Merged {
        head,
        arms,
        join,
        lines,
    } = merged;
    let mut to = Next::of(columns);
    for value in [method, head.0, head.1] {
        to.get().int(i64::from(value));
    }
    to.get().list(arms.iter().map(|arm| arm.0));
    to.get().list(arms.iter().map(|arm| arm.1));
    for value in [join.0, join.1] {
        to.get().int(i64::from(value));
    }
    to.get().list(lines.iter().map(|&line| line.into()));
}

/// The row, with its method in front.
pub(crate) fn read_merged(columns: &mut [Column]) -> Option<(u32, Merged)> {
    let mut from = Next::of(columns);
    let method = from.get().next_int()?;
    let head = (from.get().next_int()?, from.get().next_int()?);
    let (starts, ends) = (from.get().next_list()?, from.get().next_list()?);
    if starts.len() != ends.len() {
        return None;
    }
    let merged = Merged {
        head,
        arms: starts.into_iter().zip(ends).collect(),
        join: (from.get().next_int()?, from.get().next_int()?),
        lines: from.get().next_list()?,
    };
    Some((method, merged))
}

pub(crate) fn write_code(columns: &mut [Column], method: u32, lines: &[u16]) {
    let mut to = Next::of(columns);
    to.get().int(i64::from(method));
    to.get().list(lines.iter().map(|&line| line.into()));
}

/// The row, with its method in front.
pub(crate) fn read_code(columns: &mut [Column]) -> Option<(u32, Vec<u16>)> {
    let mut from = Next::of(columns);
    Some((from.get().next_int()?, from.get().next_list()?))
}

pub(crate) fn write_loop(columns: &mut [Column], method: u32, of: &Loop) {
    let mut to = Next::of(columns);
    for value in [method, of.head.0, of.head.1, of.line.into()] {
        to.get().int(i64::from(value));
    }
    for count in [of.zero, of.one, of.many, of.unsure] {
        to.get().count(count);
    }
}

/// The row, with its method in front.
pub(crate) fn read_loop(columns: &mut [Column]) -> Option<(u32, Loop)> {
    let mut from = Next::of(columns);
    let method = from.get().next_int()?;
    let of = Loop {
        head: (from.get().next_int()?, from.get().next_int()?),
        line: from.get().next_int()?,
        zero: from.get().next_int()?,
        one: from.get().next_int()?,
        many: from.get().next_int()?,
        unsure: from.get().next_int()?,
    };
    Some((method, of))
}

pub(crate) fn write_skipped(columns: &mut [Column], skipped: &Skipped) {
    let Skipped {
        class,
        method,
        descriptor,
        lens,
        reason,
    } = skipped;
    for (column, text) in columns
        .iter_mut()
        .zip([class, method, descriptor, lens, reason])
    {
        column.text(text.as_str());
    }
}

pub(crate) fn read_skipped(columns: &mut [Column]) -> Option<Skipped> {
    let mut from = Next::of(columns);
    Some(Skipped {
        class: from.get().next_text()?,
        method: from.get().next_text()?,
        descriptor: from.get().next_text()?,
        lens: from.get().next_text()?,
        reason: from.get().next_text()?,
    })
}
