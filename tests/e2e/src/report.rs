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
    /// How often it was entered.
    pub activations: u64,
    /// Paths an exception interrupted.
    pub unfinished: u64,
    /// Level 1.
    pub paths: Vec<PathCount>,
    /// Sequences of 2..=k IDs.
    pub ngrams: Vec<(Vec<String>, u64)>,
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
        unfinished: number(value, "unfinished"),
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

fn path(value: &Value) -> PathCount {
    let mut ranges = Ranges::new();
    for range in list(value, "bcis") {
        let start =
            u16::try_from(range[0].as_u64().expect("start of a range")).expect("a bytecode index");
        let end =
            u32::try_from(range[1].as_u64().expect("end of a range")).expect("a bytecode index");
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
