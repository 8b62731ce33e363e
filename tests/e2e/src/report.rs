//! Reads what `borescope report --format json` prints (the contract is docs/formats.md), strictly: a missing field panics.

use serde_json::Value;

/// A path: the half-open ranges of bytecode it executes, in order, adjacent ones joined.
pub type Ranges = Vec<(u16, u32)>;

/// A path that ran.
#[derive(Clone, Debug)]
pub struct PathCount {
    /// Path ID.
    pub id: String,
    /// How often it ran to its end.
    pub count: u64,
    /// Source lines.
    pub lines: Vec<u16>,
    /// What it executes.
    pub ranges: Ranges,
}

/// A short branch whose ways the report does not tell apart. Blocks are half-open ranges of bytecode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The block that ends in the branch.
    pub head: (u16, u32),
    /// What is between: no path names it.
    pub arms: Vec<(u16, u32)>,
    /// Where the ways meet.
    pub join: (u16, u32),
}

/// A method of the report.
#[derive(Clone, Debug)]
pub struct Method {
    /// Class with dots.
    pub class: String,
    /// Method name.
    pub method: String,
    /// Descriptor.
    pub descriptor: String,
    /// SourceFile attribute.
    pub source_file: Option<String>,
    /// Number of acyclic paths, in decimal.
    pub num_paths: String,
    /// How often it was entered; if [`Method::unfinished`] is unknown, how many activations ended by a return or an athrow.
    pub activations: u64,
    /// Paths an exception interrupted, if that is known.
    pub unfinished: Option<u64>,
    /// Branches whose ways are not told apart.
    pub merged: Vec<Merged>,
    /// Level 1.
    pub paths: Vec<PathCount>,
    /// Sequences of 2..=k IDs.
    pub ngrams: Vec<(Vec<String>, u64)>,
}

impl Method {
    /// (class, method, descriptor).
    pub fn key(&self) -> (String, String, String) {
        (
            self.class.clone(),
            self.method.clone(),
            self.descriptor.clone(),
        )
    }
}

/// What stayed plain.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Class with dots.
    pub class: String,
    /// Method name; empty = the whole class.
    pub method: String,
    /// Descriptor.
    pub descriptor: String,
    /// Why.
    pub reason: String,
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The methods.
    pub methods: Vec<Method>,
    /// What stayed plain.
    pub skipped: Vec<Skipped>,
    /// Length of the longest sequences.
    pub k: usize,
    /// The engine that counted.
    pub engine: String,
    /// `merge` or `split`: whether short branches are told apart.
    pub branches: String,
    /// Methods that have no probe because they have a single path and no loop.
    pub straight_line: u64,
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field]
        .as_array()
        .unwrap_or_else(|| panic!("'{field}' is no array in {value:.200}"))
}

fn number(value: &Value, field: &str) -> u64 {
    value[field]
        .as_u64()
        .unwrap_or_else(|| panic!("'{field}' is no number in {value:.200}"))
}

fn string(value: &Value, field: &str) -> String {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("'{field}' is no string in {value:.200}"))
        .to_owned()
}

impl Report {
    /// Reads the paths section of a report. Every count must be exact: bounds that differ, or a method that is not exact, panic.
    pub fn read(json: &Value) -> Report {
        assert_eq!(json["schema"], 1, "schema of the report");
        let paths = &json["paths"];
        Report {
            methods: list(paths, "methods").iter().map(method).collect(),
            skipped: list(json, "skipped")
                .iter()
                .map(|s| Skipped {
                    class: string(s, "class"),
                    method: s["method"].as_str().unwrap_or_default().to_owned(),
                    descriptor: s["descriptor"].as_str().unwrap_or_default().to_owned(),
                    reason: string(s, "reason"),
                })
                .collect(),
            k: number(paths, "k") as usize,
            engine: string(paths, "engine"),
            branches: string(paths, "branches"),
            straight_line: number(&paths["totals"], "straight_line"),
        }
    }
}

fn method(value: &Value) -> Method {
    let name = format!("{}.{}", string(value, "class"), string(value, "method"));
    assert_eq!(value["exact"], true, "{name} is not exact");
    Method {
        class: string(value, "class"),
        method: string(value, "method"),
        descriptor: string(value, "descriptor"),
        source_file: value["source_file"].as_str().map(str::to_owned),
        num_paths: string(value, "num_paths"),
        activations: number(value, "activations"),
        unfinished: match value["unfinished"] {
            Value::Null if value.get("unfinished").is_some() => None,
            _ => Some(number(value, "unfinished")),
        },
        merged: list(value, "merged").iter().map(merged).collect(),
        paths: list(value, "paths").iter().map(path).collect(),
        ngrams: list(value, "ngrams")
            .iter()
            .map(|gram| {
                let count = number(gram, "count");
                assert_eq!(
                    (number(gram, "lo"), number(gram, "hi")),
                    (count, count),
                    "bounds in {name}"
                );
                (
                    list(gram, "ids")
                        .iter()
                        .map(|id| id.as_str().expect("IDs are strings").to_owned())
                        .collect(),
                    count,
                )
            })
            .collect(),
    }
}

fn range(value: &Value) -> (u16, u32) {
    let start = value[0].as_u64().expect("start of a range");
    let end = value[1].as_u64().expect("end of a range");
    (
        u16::try_from(start).expect("a bytecode index"),
        u32::try_from(end).expect("a bytecode index"),
    )
}

fn merged(value: &Value) -> Merged {
    Merged {
        head: range(&value["head"]),
        arms: list(value, "arms").iter().map(range).collect(),
        join: range(&value["join"]),
    }
}

fn path(value: &Value) -> PathCount {
    let mut ranges = Ranges::new();
    for (start, end) in list(value, "bcis").iter().map(range) {
        push_range(&mut ranges, start, end);
    }
    PathCount {
        id: string(value, "id"),
        count: number(value, "count"),
        lines: list(value, "lines")
            .iter()
            .map(|l| l.as_u64().expect("a line") as u16)
            .collect(),
        ranges,
    }
}

/// Appends a range, joining it to the last one if they are adjacent.
pub fn push_range(ranges: &mut Ranges, start: u16, end: u32) {
    match ranges.last_mut() {
        Some(last) if last.1 == u32::from(start) => last.1 = end,
        _ => ranges.push((start, end)),
    }
}
