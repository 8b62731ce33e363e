//! Compares a report with what the witness saw: every method, path and sequence of paths must have the same count on both sides.

use crate::code::{ClassFile, Code, Kind, parse};
use crate::expect::Seen;
use crate::oracle::{Counts, Interner, Shape, derive, shape};
use crate::report::{self, Report};
use crate::witness::{Method, Record};
use std::collections::{BTreeMap, BTreeSet};

/// (class with dots, method, descriptor).
pub type Key = (String, String, String);

/// A record with its class files read and the shapes of its methods found, to be compared with many reports.
pub struct Witnessed {
    record: Record,
    classes: Vec<ClassFile>,
    shapes: Vec<Option<Shape>>,
}

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Differences; empty = the report is exact.
    pub wrong: Vec<String>,
    /// Methods compared.
    pub methods: usize,
    /// Sequences of 1..=k paths compared.
    pub grams: usize,
}

impl Witnessed {
    /// Reads the class files of a record.
    pub fn new(record: Record) -> Witnessed {
        let classes: Vec<ClassFile> = record
            .classes
            .iter()
            .map(|(_, bytes)| parse(bytes))
            .collect();
        let mut witnessed = Witnessed {
            record,
            classes,
            shapes: Vec::new(),
        };
        witnessed.shapes = witnessed
            .record
            .methods
            .iter()
            .map(|m| witnessed.code(m).map(shape))
            .collect();
        witnessed
    }

    fn code(&self, method: &Method) -> Option<&Code> {
        let mut methods = self.classes[method.class].methods.iter();
        methods.find(|c| c.name == method.name && c.descriptor == method.descriptor)
    }

    fn key(&self, method: &Method) -> Key {
        let class = self.record.classes[method.class].0.replace('/', ".");
        (class, method.name.clone(), method.descriptor.clone())
    }

    /// SourceFile attribute of a method's class.
    fn source(&self, method: &Method) -> String {
        self.classes[method.class]
            .source
            .clone()
            .unwrap_or_default()
    }

    /// The methods that ran: index, key.
    fn ran(&self) -> impl Iterator<Item = (usize, &Method)> {
        self.record
            .methods
            .iter()
            .enumerate()
            .filter(|(_, m)| !m.runs.is_empty())
    }

    /// Compares a report. `plain` and `varies` tell by source file and method name which methods may stay plain, and which have counts
    /// that differ from run to run: of those only the shape of the paths is compared.
    pub fn compare(&self, report: &Report, plain: &Marks, varies: &Marks) -> Findings {
        let mut findings = Findings::default();
        let mut reported: BTreeMap<Key, Vec<&report::Method>> = BTreeMap::new();
        for method in report.methods.iter().filter(|m| m.activations > 0) {
            let key = (
                method.class.clone(),
                method.method.clone(),
                method.descriptor.clone(),
            );
            reported.entry(key).or_default().push(method);
        }
        for (index, method) in self.ran() {
            let key = self.key(method);
            let name = format!("{}.{}{}", key.0, key.1, key.2);
            let skipped = report.skipped.iter().find(|s| {
                s.class == key.0
                    && (s.method.is_empty() || (s.method == key.1 && s.descriptor == key.2))
            });
            let may_be_plain =
                plain.has(&self.source(method), &key.1) || self.has_subroutine(method);
            match (skipped, may_be_plain) {
                (Some(_), true) => continue,
                (Some(s), false) => {
                    findings
                        .wrong
                        .push(format!("{name} stayed plain: {}", s.reason));
                    continue;
                }
                (None, true) => findings
                    .wrong
                    .push(format!("{name} should have stayed plain")),
                (None, false) => {}
            }
            let candidates = reported.entry(key).or_default();
            findings.methods += 1;
            let vague = varies.has(&self.source(method), &method.name);
            // Versions of a class under one name: any one that agrees is the right one, and is used up.
            let mut best: Option<(usize, Vec<String>, usize)> = None;
            for (at, candidate) in candidates.iter().enumerate() {
                let (wrong, grams) = self.differences(index, candidate, report.k, vague);
                if best
                    .as_ref()
                    .is_none_or(|(_, least, _)| wrong.len() < least.len())
                {
                    best = Some((at, wrong, grams));
                }
            }
            match best {
                Some((at, wrong, grams)) => {
                    candidates.remove(at);
                    findings
                        .wrong
                        .extend(wrong.into_iter().map(|w| format!("{name}: {w}")));
                    findings.grams += grams;
                }
                None => findings
                    .wrong
                    .push(format!("{name} ran, but is not in the report")),
            }
        }
        for (key, left) in reported {
            for method in left {
                let count = method.activations;
                findings.wrong.push(format!(
                    "{}.{}{} is reported ({count} activations) but did not run",
                    key.0, key.1, key.2
                ));
            }
        }
        findings
    }

    fn has_subroutine(&self, method: &Method) -> bool {
        self.code(method)
            .is_some_and(|code| code.insns.values().any(|i| i.kind == Kind::Subroutine))
    }

    /// Differences between a recorded and a reported method, and the number of sequences compared.
    fn differences(
        &self,
        index: usize,
        reported: &report::Method,
        k: usize,
        vague: bool,
    ) -> (Vec<String>, usize) {
        let method = &self.record.methods[index];
        let (Some(code), Some(shape)) = (self.code(method), &self.shapes[index]) else {
            return (vec!["has no code".to_owned()], 0);
        };
        let mut interner = Interner::default();
        let known = reported.paths.iter().map(|p| &p.ranges);
        let want = match derive(code, shape, &method.runs, k, known, &mut interner) {
            Ok(counts) => counts,
            Err(error) => return (vec![error], 0),
        };
        let mut wrong = Vec::new();
        if let Some(paths) = shape.num_paths.filter(|n| *n < 1e15) {
            if reported.num_paths != format!("{paths}") {
                wrong.push(format!(
                    "num_paths: {} reported, {paths} by the oracle",
                    reported.num_paths
                ));
            }
        }
        let got = match counts_of(reported, &mut interner) {
            Ok(got) => got,
            Err(error) => return (vec![error], 0),
        };
        if vague {
            return (wrong, 0);
        }
        let show = |gram: &[u32]| {
            let paths: Vec<String> = gram
                .iter()
                .map(|id| format!("{:?}", interner.paths[*id as usize]))
                .collect();
            paths.join(" then ")
        };
        for (what, want, got) in [
            ("activations", want.activations, got.activations),
            ("unfinished", want.unfinished, got.unfinished),
        ] {
            if want != got {
                wrong.push(format!(
                    "{what}: {got} reported, {want} seen by the witness"
                ));
            }
        }
        let grams: BTreeSet<&Vec<u32>> = want.grams.keys().chain(got.grams.keys()).collect();
        for gram in &grams {
            let count = |side: &Counts| side.grams.get(*gram).copied().unwrap_or(0);
            if count(&want) != count(&got) {
                wrong.push(format!(
                    "<{}>: {} reported, {} seen by the witness",
                    show(gram),
                    count(&got),
                    count(&want)
                ));
            }
        }
        (wrong, grams.len())
    }

    /// What the oracle says of every method that ran, for [`crate::expect::Target::check`].
    pub fn seen(&self) -> Result<Vec<Seen>, String> {
        let mut all = Vec::new();
        for (index, method) in self.ran() {
            let (Some(code), Some(shape)) = (self.code(method), &self.shapes[index]) else {
                continue;
            };
            if self.has_subroutine(method) {
                continue;
            }
            let mut interner = Interner::default();
            let counts = derive(
                code,
                shape,
                &method.runs,
                1,
                std::iter::empty(),
                &mut interner,
            )
            .map_err(|e| format!("{:?}: {e}", self.key(method)))?;
            let paths = counts.grams.iter().map(|(gram, count)| {
                let lines = interner.paths[gram[0] as usize]
                    .iter()
                    .flat_map(|&(start, end)| {
                        code.insns
                            .range(start..)
                            .map(|(bci, _)| *bci)
                            .take_while(move |bci| u32::from(*bci) < end)
                    });
                (lines.filter_map(|bci| line_of(code, bci)).collect(), *count)
            });
            all.push(Seen {
                file: self.source(method),
                method: method.name.clone(),
                activations: counts.activations,
                unfinished: counts.unfinished,
                paths: paths.collect(),
            });
        }
        Ok(all)
    }
}

fn line_of(code: &Code, bci: u16) -> Option<u16> {
    let after = code.lines.partition_point(|(start, _)| *start <= bci);
    code.lines[..after].last().map(|(_, line)| *line)
}

/// The counts of a reported method, by the numbers of `interner`.
fn counts_of(method: &report::Method, interner: &mut Interner) -> Result<Counts, String> {
    let mut counts = Counts {
        activations: method.activations,
        unfinished: method.unfinished,
        ..Counts::default()
    };
    let mut numbers = BTreeMap::new();
    for path in &method.paths {
        let number = interner.number(path.ranges.clone());
        if numbers.insert(&path.id, number).is_some() {
            return Err(format!("path {} is listed twice", path.id));
        }
        *counts.grams.entry(vec![number]).or_default() += path.count;
    }
    for (ids, count) in &method.ngrams {
        let gram: Option<Vec<u32>> = ids.iter().map(|id| numbers.get(id).copied()).collect();
        let gram = gram.ok_or_else(|| format!("{ids:?} has an ID that is not among the paths"))?;
        *counts.grams.entry(gram).or_default() += count;
    }
    Ok(counts)
}

/// What the report says of every method, for [`crate::expect::Target::check`].
pub fn seen(report: &Report) -> Vec<Seen> {
    let methods = report.methods.iter().filter(|m| m.activations > 0);
    methods
        .map(|m| Seen {
            file: m.source_file.clone().unwrap_or_default(),
            method: m.method.clone(),
            activations: m.activations,
            unfinished: m.unfinished,
            paths: m
                .paths
                .iter()
                .map(|p| (p.lines.iter().copied().collect(), p.count))
                .collect(),
        })
        .collect()
}

/// Methods by source file and name.
#[derive(Clone, Debug, Default)]
pub struct Marks(pub BTreeSet<(String, String)>);

impl Marks {
    fn has(&self, file: &str, method: &str) -> bool {
        self.0.contains(&(file.to_owned(), method.to_owned()))
    }
}
