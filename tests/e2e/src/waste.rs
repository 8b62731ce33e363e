//! The targets of the waste lens (`tests/waste`): compiled once a process; what their comments say of useless loads and stores, compared with a report.
//!
//! A comment is `// KIND PERCENT: Class.method -> Class.method`: of the accesses of that kind that the first method makes, so many per cent are waste, and the second method
//! makes the other access of the pair.

use crate::{javac, root, sources};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How far a measured share may be from the true one, in points.
pub const WITHIN: f64 = 5.0;
/// Answers that are needed where the share is nothing or all.
const NEEDED: u64 = 100;
/// Answers that are needed elsewhere: five points are then five standard deviations of a share of one half.
const NEEDED_FOR_A_HALF: u64 = 2500;

/// What a comment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// `dead_store`, `silent_store` or `silent_load`.
    pub kind: String,
    /// How many of a hundred.
    pub percent: u32,
    /// Class and method of the first access.
    pub first: (String, String),
    /// Those of the second.
    pub second: (String, String),
}

impl Expected {
    /// Answers that are needed to say that it is so.
    pub fn needed(&self) -> u64 {
        match self.percent {
            0 | 100 => NEEDED,
            _ => NEEDED_FOR_A_HALF,
        }
    }

    /// Whether it is a store to a reference.
    pub fn of_reference(&self) -> bool {
        self.first.0 == "waste.Reference"
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Expected {
            kind,
            percent,
            first,
            second,
        } = self;
        write!(
            f,
            "{kind} {percent} %: {}.{} -> {}.{}",
            first.0, first.1, second.0, second.1
        )
    }
}

/// Classes, and what their comments say.
pub struct Suite {
    dir: tempfile::TempDir,
    /// All comments.
    pub expected: Vec<Expected>,
}

impl Suite {
    /// The class path.
    pub fn classes(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
}

/// The suite, compiled once a process.
pub fn suite() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    SUITE.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let files = sources(&root().join("tests/waste/waste"));
        javac(&files, dir.path(), &[]);
        let mut expected = Vec::new();
        for file in &files {
            let text = std::fs::read_to_string(file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let comments = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("// "));
            expected.extend(comments.filter_map(parse));
        }
        Suite { dir, expected }
    })
}

/// `None`: a comment of another kind.
fn parse(comment: &str) -> Option<Expected> {
    let (head, pair) = comment.split_once(": ")?;
    let (kind, percent) = head.split_once(' ')?;
    let (first, second) = pair.split_once(" -> ")?;
    let method = |text: &str| {
        let (class, method) = text.split_once('.')?;
        Some((format!("waste.{class}"), method.to_owned()))
    };
    Some(Expected {
        kind: kind.to_owned(),
        percent: percent.parse().ok()?,
        first: method(first)?,
        second: method(second)?,
    })
}

/// What a report says of a pair: answers to questions that began in the first method, and those that the second method made waste.
pub fn found(report: &Value, expected: &Expected) -> (u64, u64) {
    let list = |name: &str| {
        let list = report["waste"][name].as_array();
        list.unwrap_or_else(|| panic!("no {name} in the report"))
    };
    let is = |value: &Value, method: &(String, String)| {
        value["class"] == *method.0 && value["method"] == *method.1
    };
    let number = |value: &Value| value.as_u64().expect("a count");
    let of_kind = |value: &&Value| value["kind"] == *expected.kind;
    let lines = list("lines").iter().filter(of_kind);
    let completed = lines.filter(|line| is(line, &expected.first));
    let pairs = list("pairs").iter().filter(of_kind);
    let wasteful = pairs.filter(|pair| {
        is(&pair["first"][0], &expected.first) && is(&pair["second"][0], &expected.second)
    });
    (
        completed.map(|line| number(&line["completed"])).sum(),
        wasteful.map(|pair| number(&pair["count"])).sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_reports() {
        let method = |class: &str, method: &str| (class.to_owned(), method.to_owned());
        let expected = parse("dead_store 50: A.put -> B.over").unwrap();
        assert_eq!(expected.kind, "dead_store");
        assert_eq!(expected.percent, 50);
        assert_eq!(expected.first, method("waste.A", "put"));
        assert_eq!(expected.second, method("waste.B", "over"));
        assert_eq!(parse("note: A.put -> B.over"), None);
        let at = |class, method| json!([{"class": class, "method": method}, {"class": "waste.All", "method": "main"}]);
        let report = json!({"waste": {
            "lines": [
                {"kind": "dead_store", "class": "waste.A", "method": "put", "completed": 7},
                {"kind": "dead_store", "class": "waste.A", "method": "put", "completed": 3},
                {"kind": "silent_store", "class": "waste.A", "method": "put", "completed": 90},
            ],
            "pairs": [
                {"kind": "dead_store", "count": 4, "first": at("waste.A", "put"), "second": at("waste.B", "over")},
                {"kind": "dead_store", "count": 2, "first": at("waste.A", "put"), "second": at("waste.A", "put")},
            ],
        }});
        assert_eq!(found(&report, &expected), (10, 4));
    }
}
