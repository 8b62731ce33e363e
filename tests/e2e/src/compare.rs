//! Compares a report with what the witness saw: every method, path and sequence of paths must have the same count on both sides.

use crate::code::{ClassFile, Code, Kind, parse};
use crate::expect::Seen;
use crate::merge::Contracted;
use crate::oracle::{self, Counts, Interner, Shape, derive, shape};
use crate::report::{self, Ranges, Report};
use crate::witness::{Method, Record};
use std::collections::{BTreeMap, BTreeSet};

/// (class with dots, method, descriptor).
pub type Key = (String, String, String);

/// What was asked of borescope, beside engine and k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `--branches merge`: short branches are not told apart.
    pub merge: bool,
    /// `--straight-line`: methods with a single path and no loop are counted too.
    pub straight_line: bool,
}

impl Asked {
    /// All ways to ask, the default first.
    pub const ALL: [Asked; 4] = [
        Asked {
            merge: true,
            straight_line: false,
        },
        Asked {
            merge: false,
            straight_line: true,
        },
        Asked {
            merge: false,
            straight_line: false,
        },
        Asked {
            merge: true,
            straight_line: true,
        },
    ];

    /// The options of `borescope paths`. What is the default is left out.
    pub fn options(self) -> Vec<&'static str> {
        let mut options = Vec::new();
        if !self.merge {
            options.extend(["--branches", "split"]);
        }
        if self.straight_line {
            options.push("--straight-line");
        }
        options
    }
}

/// A record with its class files read and the shapes of its methods found, to be compared with many reports.
pub struct Witnessed {
    record: Record,
    classes: Vec<ClassFile>,
    /// What the oracle says of each method without looking at a report, as far as it can.
    seen: Vec<Option<Seen>>,
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
    /// Methods of which only finished paths are counted.
    pub slots: usize,
    /// Branches whose ways were not told apart.
    pub merged: usize,
    /// Methods without probes since they have a single path.
    pub straight_line: u64,
    /// For the comments: what the report says, and where it does not tell all, what the witness saw.
    pub seen: Vec<Seen>,
}

impl Witnessed {
    /// Reads the class files of a record.
    ///
    /// An error means that the record contradicts the class files.
    pub fn new(record: Record) -> Result<Witnessed, String> {
        let classes: Vec<ClassFile> = record
            .classes
            .iter()
            .map(|(_, bytes)| parse(bytes))
            .collect();
        let mut witnessed = Witnessed {
            record,
            classes,
            seen: Vec::new(),
            shapes: Vec::new(),
        };
        witnessed.shapes = witnessed
            .record
            .methods
            .iter()
            .map(|m| witnessed.code(m).map(shape))
            .collect();
        witnessed.seen = (0..witnessed.record.methods.len())
            .map(|index| witnessed.see(index))
            .collect::<Result<_, _>>()?;
        Ok(witnessed)
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

    /// Compares a report with what was `asked`. `plain` and `varies` tell by source file and method name which methods may stay plain, and which have counts
    /// that differ from run to run: of those only the shape of the paths is compared.
    pub fn compare(
        &self,
        report: &Report,
        asked: Asked,
        plain: &Marks,
        varies: &Marks,
    ) -> Findings {
        let mut findings = Findings::default();
        let branches = if asked.merge { "merge" } else { "split" };
        if report.branches != branches {
            findings.wrong.push(format!(
                "branches: {} reported, {branches} asked",
                report.branches
            ));
        }
        let mut reported: BTreeMap<Key, Vec<&report::Method>> = BTreeMap::new();
        for method in &report.methods {
            reported.entry(method.key()).or_default().push(method);
        }
        for (index, method) in self.ran() {
            let key = self.key(method);
            let name = format!("{}.{}{}", key.0, key.1, key.2);
            let skipped = skipped(report, &key);
            let may_be_plain =
                plain.has(&self.source(method), &key.1) || self.has_subroutine(method);
            let candidates = reported.entry(key).or_default();
            let straight = !asked.straight_line
                && candidates.is_empty()
                && self.is_straight(index, asked.merge);
            match (skipped, may_be_plain) {
                (Some(_), true) => continue,
                (Some(s), false) => {
                    findings
                        .wrong
                        .push(format!("{name} stayed plain: {}", s.reason));
                    continue;
                }
                (None, true) if !straight => findings
                    .wrong
                    .push(format!("{name} should have stayed plain")),
                (None, _) => {}
            }
            findings.methods += 1;
            if straight {
                findings.seen.extend(self.seen[index].clone());
                continue;
            }
            let vague = varies.has(&self.source(method), &method.name);
            // Versions of a class under one name: any one that agrees is the right one, and is used up.
            let mut best: Option<(usize, Vec<String>, usize)> = None;
            for (at, candidate) in candidates.iter().enumerate() {
                let (wrong, grams) = self.differences(index, candidate, report, asked, vague);
                if best
                    .as_ref()
                    .is_none_or(|(_, least, _)| wrong.len() < least.len())
                {
                    best = Some((at, wrong, grams));
                }
            }
            match best {
                Some((at, wrong, grams)) => {
                    let method = candidates.remove(at);
                    findings.slots += usize::from(method.unfinished.is_none());
                    findings.merged += method.merged.len();
                    findings.seen.extend(self.told(index, method, asked));
                    findings
                        .wrong
                        .extend(wrong.into_iter().map(|w| format!("{name}: {w}")));
                    findings.grams += grams;
                }
                // Nothing of it was finished, and fixed counters count nothing else.
                None if self.never_ended(index, report) => {
                    findings.seen.extend(self.seen[index].clone());
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
        findings.straight_line = report.straight_line;
        let (least, most) = self.straight_lines(report, asked);
        if !(least..=most).contains(&report.straight_line) {
            findings.wrong.push(format!(
                "{} methods with a single path reported, {least} to {most} by the oracle",
                report.straight_line
            ));
        }
        findings
    }

    /// Whether a method has a single path and no loop; with `merge`, when every branch is merged that can be.
    fn is_straight(&self, index: usize, merge: bool) -> bool {
        let (Some(code), Some(shape)) =
            (self.code(&self.record.methods[index]), &self.shapes[index])
        else {
            return false;
        };
        shape.is_straight() || merge && oracle::shape(&Contracted::most(code).code).is_straight()
    }

    /// Whether a method may have fixed counters, and no path of it was ever finished.
    fn never_ended(&self, index: usize, report: &Report) -> bool {
        let seen = self.seen[index].as_ref();
        let shape = self.shapes[index].as_ref();
        report.engine == "automaton"
            && seen.is_some_and(|seen| seen.paths.is_empty())
            && (report.k == 1 || shape.is_some_and(|shape| shape.back.is_empty()))
    }

    /// How many methods have a single path and no loop, of all in the loaded classes. What is merged in methods that did not run cannot be
    /// known, so this gives bounds.
    fn straight_lines(&self, report: &Report, asked: Asked) -> (u64, u64) {
        if asked.straight_line {
            return (0, 0);
        }
        let reported: BTreeSet<Key> = report.methods.iter().map(|m| m.key()).collect();
        let ran: BTreeSet<(usize, &str, &str)> = self
            .ran()
            .map(|(_, m)| (m.class, m.name.as_str(), m.descriptor.as_str()))
            .collect();
        let (mut least, mut most) = (0, 0);
        for (class, file) in self.classes.iter().enumerate() {
            let name = self.record.classes[class].0.replace('/', ".");
            for code in &file.methods {
                let key = (name.clone(), code.name.clone(), code.descriptor.clone());
                let subroutine = code.insns.values().any(|i| i.kind == Kind::Subroutine);
                if subroutine || skipped(report, &key).is_some() {
                    continue;
                }
                if shape(code).is_straight() {
                    (least, most) = (least + 1, most + 1);
                } else if asked.merge
                    && !reported.contains(&key)
                    && shape(&Contracted::most(code).code).is_straight()
                {
                    most += 1;
                    let did_run = ran.contains(&(class, &code.name, &code.descriptor));
                    least += u64::from(did_run);
                }
            }
        }
        (least, most)
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
        report: &Report,
        asked: Asked,
        vague: bool,
    ) -> (Vec<String>, usize) {
        let method = &self.record.methods[index];
        let (Some(mut code), Some(mut shape)) = (self.code(method), self.shapes[index].as_ref())
        else {
            return (vec!["has no code".to_owned()], 0);
        };
        let (contracted, runs, without);
        let mut steps = &method.runs;
        if !reported.merged.is_empty() {
            contracted = match Contracted::by(code, &reported.merged) {
                Ok(contracted) => contracted,
                Err(error) => return (vec![error], 0),
            };
            runs = steps.iter().map(|run| contracted.run(run)).collect();
            without = oracle::shape(&contracted.code);
            (code, shape, steps) = (&contracted.code, &without, &runs);
        }
        let mut interner = Interner::default();
        let known = reported.paths.iter().map(|p| &p.ranges);
        let want = match derive(code, shape, steps, report.k, known, &mut interner) {
            Ok(counts) => counts,
            Err(error) => return (vec![error], 0),
        };
        let mut wrong = Vec::new();
        if !asked.merge && !reported.merged.is_empty() {
            wrong.push("has merged branches, though they were to be told apart".to_owned());
        }
        if !asked.straight_line && shape.is_straight() {
            wrong.push("has a single path and no loop, so it should have no probe".to_owned());
        }
        for path in &reported.paths {
            let lines = lines_of(code, &path.ranges);
            if !path.lines.iter().copied().eq(lines.iter().copied()) {
                let (id, told) = (&path.id, &path.lines);
                wrong.push(format!("path {id} has lines {told:?}, but {lines:?}"));
            }
        }
        if let Some(paths) = shape.num_paths.filter(|n| *n < 1e15)
            && reported.num_paths != format!("{paths}")
        {
            wrong.push(format!(
                "num_paths: {} reported, {paths} by the oracle",
                reported.num_paths
            ));
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
        // Fixed counters tell of an activation only that a path of it ended.
        let compared = match reported.unfinished {
            Some(got) => [
                ("activations", want.activations, reported.activations),
                ("unfinished", want.unfinished, got),
            ],
            None => [
                ("activations", want.ended, reported.activations),
                ("ended paths", want.ended, reported.activations),
            ],
        };
        if reported.unfinished.is_none() && report.engine != "automaton" {
            wrong.push(format!("{}: unfinished paths not counted", report.engine));
        }
        for (what, want, got) in compared {
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

    /// What the oracle says of a method, all paths told apart; `None` for one that did not run, or that it cannot follow.
    fn see(&self, index: usize) -> Result<Option<Seen>, String> {
        let method = &self.record.methods[index];
        let (Some(code), Some(shape)) = (self.code(method), &self.shapes[index]) else {
            return Ok(None);
        };
        if method.runs.is_empty() || self.has_subroutine(method) {
            return Ok(None);
        }
        let mut interner = Interner::default();
        let none = std::iter::empty();
        let counts = derive(code, shape, &method.runs, 1, none, &mut interner)
            .map_err(|e| format!("{:?}: {e}", self.key(method)))?;
        let paths = counts.grams.iter().map(|(gram, count)| {
            let lines = lines_of(code, &interner.paths[gram[0] as usize]);
            (lines.into_iter().collect(), *count)
        });
        Ok(Some(Seen {
            file: self.source(method),
            method: method.name.clone(),
            activations: counts.activations,
            unfinished: counts.unfinished,
            merged: None,
            paths: paths.collect(),
        }))
    }

    /// What the oracle says of every method that ran, for [`crate::expect::Target::check`].
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.iter().flatten().cloned().collect()
    }

    /// What the report says of a method, for [`crate::expect::Target::check`]; what it leaves open is taken from the witness.
    fn told(&self, index: usize, reported: &report::Method, asked: Asked) -> Option<Seen> {
        let mut seen = self.seen[index].clone()?;
        if reported.merged.is_empty() {
            let path = |p: &report::PathCount| (p.lines.iter().copied().collect(), p.count);
            seen.paths = reported.paths.iter().map(path).collect();
        }
        if let Some(unfinished) = reported.unfinished {
            seen.activations = reported.activations;
            seen.unfinished = unfinished;
        }
        seen.merged = asked.merge.then_some(reported.merged.len() as u64);
        Some(seen)
    }
}

/// What a report says of a method, or its class, that stayed plain.
fn skipped<'a>(report: &'a Report, key: &Key) -> Option<&'a report::Skipped> {
    report.skipped.iter().find(|s| {
        s.class == key.0 && (s.method.is_empty() || (s.method == key.1 && s.descriptor == key.2))
    })
}

/// The source lines of a path in order, without repeats in a row.
fn lines_of(code: &Code, ranges: &Ranges) -> Vec<u16> {
    let inside = |&(start, end): &(u16, u32)| {
        let insns = code.insns.range(start..).map(|(bci, _)| *bci);
        insns.take_while(move |bci| u32::from(*bci) < end)
    };
    let mut lines: Vec<u16> = ranges
        .iter()
        .flat_map(inside)
        .filter_map(|bci| line_of(code, bci))
        .collect();
    lines.dedup();
    lines
}

fn line_of(code: &Code, bci: u16) -> Option<u16> {
    let after = code.lines.partition_point(|(start, _)| *start <= bci);
    code.lines[..after].last().map(|(_, line)| *line)
}

/// The counts of a reported method, by the numbers of `interner`.
fn counts_of(method: &report::Method, interner: &mut Interner) -> Result<Counts, String> {
    let mut counts = Counts::default();
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

/// Methods by source file and name.
#[derive(Clone, Debug, Default)]
pub struct Marks(pub BTreeSet<(String, String)>);

impl Marks {
    fn has(&self, file: &str, method: &str) -> bool {
        self.0.contains(&(file.to_owned(), method.to_owned()))
    }
}
