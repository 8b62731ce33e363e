//! Expectations that stand as comments on the lines of the Java targets.
//!
//! A comment is `// key: number, key: number ...` or a single word. On the line that declares a method (or a `static {` block) the keys are
//! `activations`, `paths` (distinct), `items` (finished paths, summed) and `unfinished`, over all methods of that name in the file, with every
//! branch told apart; `merged` is how many are not, if they need not be;
//! `plain` means that the method stays plain, and `varies` that its counts differ from run to run, so that only what the
//! comment states is compared. On any other line `runs` is how many finished paths cross the line. A line that holds nothing but
//! `// expect NAME: ...` speaks of a method that the target assembles at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What one comment expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Line, from 1.
    pub line: u16,
    /// The method that the line declares.
    pub method: Option<String>,
    /// Numbers by key.
    pub numbers: BTreeMap<String, u64>,
    /// The single word.
    pub word: Option<String>,
}

/// The expectations of one source file.
#[derive(Clone, Debug)]
pub struct Target {
    /// File name, as in the SourceFile attribute.
    pub file: String,
    /// Its comments.
    pub expectations: Vec<Expectation>,
}

/// What there is to say about one method, whoever says it: borescope's report or the oracle.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// SourceFile attribute.
    pub file: String,
    /// Method name.
    pub method: String,
    /// Times entered.
    pub activations: u64,
    /// Interrupted paths.
    pub unfinished: u64,
    /// Branches whose ways are not told apart, of a report where they may be so.
    pub merged: Option<u64>,
    /// The lines of each distinct path, and how often it ran.
    pub paths: Vec<(BTreeSet<u16>, u64)>,
}

const ON_METHODS: [&str; 5] = ["activations", "paths", "items", "unfinished", "merged"];
const WORDS: [&str; 2] = ["plain", "varies"];

impl Target {
    /// Reads the comments of a source file.
    pub fn read(path: &Path) -> Target {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let expectations = text
            .lines()
            .enumerate()
            .filter_map(|(index, line)| {
                parse(line, index as u16 + 1)
                    .unwrap_or_else(|e| panic!("{file}:{}: {e}", index + 1))
            })
            .collect();
        Target { file, expectations }
    }

    /// The methods that the word stands on.
    pub fn marked(&self, word: &str) -> BTreeSet<String> {
        let marked = self
            .expectations
            .iter()
            .filter(|e| e.word.as_deref() == Some(word));
        marked.filter_map(|e| e.method.clone()).collect()
    }

    /// Compares every comment with what was seen; returns the differences and how many numbers were compared.
    pub fn check(&self, seen: &[Seen]) -> (Vec<String>, usize) {
        let (mut wrong, mut compared) = (Vec::new(), 0);
        let here = || seen.iter().filter(|s| s.file == self.file);
        for expectation in &self.expectations {
            for (key, want) in &expectation.numbers {
                let of_method =
                    || here().filter(|s| expectation.method.as_ref() == Some(&s.method));
                let got: u64 = match key.as_str() {
                    "activations" => of_method().map(|s| s.activations).sum(),
                    "unfinished" => of_method().map(|s| s.unfinished).sum(),
                    "merged" if of_method().all(|s| s.merged.is_none()) => continue,
                    "merged" => of_method().filter_map(|s| s.merged).sum(),
                    "paths" => of_method().map(|s| s.paths.len() as u64).sum(),
                    "items" => of_method().flat_map(|s| &s.paths).map(|p| p.1).sum(),
                    _ => {
                        let crossing = here()
                            .flat_map(|s| &s.paths)
                            .filter(|p| p.0.contains(&expectation.line));
                        crossing.map(|p| p.1).sum()
                    }
                };
                compared += 1;
                if got != *want {
                    wrong.push(format!(
                        "{}:{}: {key}: {want} expected, {got} found",
                        self.file, expectation.line
                    ));
                }
            }
        }
        (wrong, compared)
    }
}

fn parse(text: &str, line: u16) -> Result<Option<Expectation>, String> {
    let Some((code, comment)) = text.split_once("// ") else {
        return Ok(None);
    };
    // A comment on a line of its own explains, or speaks of a method that has no line of its own.
    let (method, list) = match (code.trim(), comment.strip_prefix("expect ")) {
        ("", None) => return Ok(None),
        ("", Some(rest)) => {
            let (name, list) = rest.split_once(": ").ok_or("expect NAME: ...")?;
            (Some(name.to_owned()), list)
        }
        (code, _) => (declared(code), comment),
    };
    let (mut numbers, mut word) = (BTreeMap::new(), None);
    for item in list.trim().split(", ") {
        match item.split_once(": ") {
            Some((key, value)) => {
                let known = if method.is_some() {
                    ON_METHODS.contains(&key)
                } else {
                    key == "runs"
                };
                let value = value
                    .parse()
                    .map_err(|_| format!("'{value}' is no number"))?;
                if !known {
                    return Err(format!("'{key}' cannot be expected here"));
                }
                numbers.insert(key.to_owned(), value);
            }
            None if method.is_some() && WORDS.contains(&item) => word = Some(item.to_owned()),
            None => return Err(format!("'{item}' is no expectation")),
        }
    }
    Ok(Some(Expectation {
        line,
        method,
        numbers,
        word,
    }))
}

/// The method that a line declares: the name before the first parenthesis of a line that is not a statement.
fn declared(code: &str) -> Option<String> {
    if code == "static {" {
        return Some("<clinit>".to_owned());
    }
    let head = code.strip_suffix('{')?.split('(').next()?.trim();
    let name = head.rsplit(' ').next()?;
    let statement = [
        "if",
        "for",
        "while",
        "switch",
        "catch",
        "synchronized",
        "try",
        "}",
    ];
    let first = head.split(' ').next()?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
    if !code.contains('(') || !is_name || code.contains("->") || code.contains('=') {
        return None;
    }
    if statement.contains(&first) && (first != "synchronized" || head == "synchronized") {
        return None;
    }
    let constructor = name.starts_with(char::is_uppercase);
    Some(if constructor {
        "<init>".to_owned()
    } else {
        name.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_declarations() {
        let e = parse(
            "    static int sum(int[] a) throws Bad { // activations: 2, paths: 3",
            7,
        )
        .unwrap()
        .unwrap();
        assert_eq!(
            (e.line, e.method.as_deref(), e.numbers["paths"]),
            (7, Some("sum"), 3)
        );
        let e = parse("        for (int i = 0; i < n; i++) { // runs: 12", 8)
            .unwrap()
            .unwrap();
        assert_eq!((e.method, e.numbers["runs"]), (None, 12));
        assert_eq!(declared("synchronized int get() {").as_deref(), Some("get"));
        assert_eq!(declared("synchronized (this) {"), None);
        assert_eq!(declared("} catch (E e) {"), None);
        assert_eq!(declared("Thread t = new Thread(() -> {"), None);
        assert_eq!(declared("Point(int x) {").as_deref(), Some("<init>"));
        let e = parse("    // expect hidden: plain, activations: 1", 1);
        let e = e.unwrap().unwrap();
        assert_eq!(
            (e.method.as_deref(), e.word.as_deref()),
            (Some("hidden"), Some("plain"))
        );
        assert_eq!(
            parse("    // runs: 12 would be no expectation here", 1),
            Ok(None)
        );
        assert!(parse("x++; // runs: many", 1).is_err());
        assert!(parse("x++; // because", 1).is_err());
        assert!(parse("x++; // paths: 1", 1).is_err());
    }
}
