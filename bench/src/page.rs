//! The page `evaluation.md` and its plots, from the raw figures alone.

use crate::chart::{Chart, short};
use crate::evaluation::ENGINES;
use crate::results::{Key, OK, PLAIN, Profile, Replay, Results, Run};
use crate::stats::{geometric_mean, median, with_range};
use crate::{bounded, instructions};
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::workloads::MEASURED;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// In a table: no program has a figure.
const NONE: &str = "–";

/// An engine and a k.
type Column = (&'static str, u32);

/// What a figure takes from the counts.
type Field = dyn Fn(&Profile) -> Option<f64>;

/// A value for the plot with its words for the table.
#[derive(Clone, Default)]
struct Cell {
    value: Option<f64>,
    text: String,
}

/// Programs down, engines and k across.
struct Matrix {
    columns: Vec<Column>,
    rows: Vec<String>,
    cells: Vec<Vec<Cell>>,
}

/// What a table and a plot are called, and what they measure.
struct Caption<'a> {
    file: String,
    title: String,
    unit: &'a str,
    reference: Option<f64>,
}

/// The raw figures, ordered for reading.
struct View<'a> {
    results: &'a Results,
    runs: BTreeMap<Key, Vec<&'a Run>>,
    jdks: Vec<u32>,
    dir: &'a Path,
}

/// Writes the page and the plots into the directory of the raw figures.
pub fn write(dir: &Path) -> Result<()> {
    let mut results = Results::read(dir)?;
    results.keep_version();
    ensure!(!results.runs.is_empty(), "no results in {}", dir.display());
    let runs = results.by_variant();
    let jdks: BTreeSet<u32> = runs.keys().map(|key| key.jdk).collect();
    let view = View {
        results: &results,
        runs,
        jdks: jdks.into_iter().rev().collect(),
        dir,
    };
    let mut text = String::from("# Evaluation: the seed's figures, redone\n\n");
    view.head(&mut text)?;
    for &jdk in &view.jdks {
        view.summary(&mut text, jdk)?;
    }
    for &jdk in &view.jdks {
        view.times(&mut text, jdk)?;
    }
    view.counts(&mut text)?;
    view.replays(&mut text)?;
    instructions::section(dir, &mut text)?;
    bounded::section(dir, &mut text)?;
    view.failures(&mut text)?;
    text += include_str!("method.md");
    // What people have to say about the figures stays when the page is made again.
    let notes = dir.join("notes.md");
    if notes.exists() {
        text += "\n";
        text += &fs::read_to_string(notes)?;
    }
    fs::write(dir.join("evaluation.md"), text).context("evaluation.md")
}

/// Writes the page again, if there is something for it: other commands add sections to it.
pub fn remake(dir: &Path) -> Result<()> {
    if !dir.join("runs.csv").exists() {
        eprintln!("{}: no page without `evaluation`", dir.display());
        return Ok(());
    }
    write(dir)
}

impl View<'_> {
    fn head(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "Made by `cargo run --release -p borescope-bench -- evaluation` from [runs.csv](runs.csv) (one line a run), \
             [profiles.csv](profiles.csv) (what was counted)\nand [sessions.json](sessions.json) (with what). Figures are of one \
             build of the agent (the same checksum), machine and JDK only. How each is obtained: [below](#how-the-figures-are-obtained).\n"
        )?;
        let mut jars: BTreeMap<&String, &Vec<String>> = BTreeMap::new();
        for session in &self.results.sessions {
            let of = |r: &&&Run| r.session == session.started;
            let runs = self.runs.values().flatten().filter(of).count();
            if runs == 0 {
                continue;
            }
            writeln!(
                text,
                "- Session of {}: {runs} runs; {}",
                session.started,
                session.with()
            )?;
            for (jdk, version) in &session.jdks {
                writeln!(text, "  - JDK {jdk}: {version}")?;
            }
            jars.extend(&session.jars);
        }
        if self.results.superseded > 0 {
            writeln!(
                text,
                "- {} runs of other builds, machines or JDKs are in runs.csv, and in no figure here.",
                self.results.superseded
            )?;
        }
        let with_jars = jars.iter().filter(|(_, jars)| !jars.is_empty());
        let list: Vec<String> = with_jars
            .map(|(program, jars)| format!("{program}: {}", jars.join(", ")))
            .collect();
        if !list.is_empty() {
            writeln!(
                text,
                "- Jars: {}. The other programs are in `tests/programs`.",
                list.join("; ")
            )?;
        }
        Ok(())
    }

    /// The programs with results on a JDK, in the order of the workloads.
    fn programs(&self, jdk: u32) -> Vec<String> {
        let there: BTreeSet<&String> = self
            .runs
            .keys()
            .filter(|key| key.jdk == jdk)
            .map(|key| &key.program)
            .collect();
        let known = MEASURED.iter().map(|p| p.name.to_owned());
        known.filter(|name| there.contains(name)).collect()
    }

    /// The k that an engine was run with.
    fn ks(&self, jdk: u32, engine: &str) -> Vec<u32> {
        let all: BTreeSet<u32> = self
            .runs
            .keys()
            .filter(|key| key.jdk == jdk && key.engine == engine)
            .map(|key| key.k)
            .collect();
        all.into_iter().collect()
    }

    fn columns(&self, jdk: u32, engine: &'static str) -> Vec<Column> {
        self.ks(jdk, engine)
            .into_iter()
            .map(|k| (engine, k))
            .collect()
    }

    /// CPU time of a variant over that of another in the same turn, turn by turn.
    fn ratios(&self, key: &Key, other: &str, other_k: u32) -> Vec<f64> {
        let runs = self.runs.get(key).into_iter().flatten();
        runs.filter(|run| run.status == OK)
            .filter_map(|run| {
                let beside = self.results.beside(run, other, other_k)?;
                Some(run.cpu_s / beside.cpu_s)
            })
            .collect()
    }

    fn ratio(&self, key: &Key, other: &str, other_k: u32) -> Cell {
        let ratios = self.ratios(key, other, other_k);
        Cell {
            value: median(&ratios),
            text: with_range(&ratios, 2).unwrap_or_else(|| self.why_not(key)),
        }
    }

    /// How many turns the figures are of.
    fn turns(&self, jdk: u32) -> String {
        let mut all: BTreeMap<u32, usize> = BTreeMap::new();
        for (key, turns) in self.results.turns() {
            if key.jdk == jdk && key.engine != PLAIN && !turns.failed {
                *all.entry(turns.good).or_default() += 1;
            }
        }
        let list = all
            .iter()
            .map(|(turns, variants)| format!("{turns} ({variants})"));
        format!(
            "Turns (and how many pairs of program and variant have so many): {}.",
            list.collect::<Vec<_>>().join(", ")
        )
    }

    /// Why there is no figure.
    fn why_not(&self, key: &Key) -> String {
        let runs = self.runs.get(key);
        let bad = runs.and_then(|runs| runs.iter().find(|run| run.status != OK));
        bad.map_or("not run", |run| &run.status).to_owned()
    }

    fn matrix(&self, jdk: u32, columns: Vec<Column>, cell: impl Fn(&Key) -> Cell) -> Matrix {
        let rows = self.programs(jdk);
        let of = |program: &String| {
            let at = |&(engine, k): &Column| {
                cell(&Key {
                    jdk,
                    program: program.clone(),
                    engine: engine.to_owned(),
                    k,
                })
            };
            columns.iter().map(at).collect()
        };
        let cells = rows.iter().map(of).collect();
        Matrix {
            columns,
            rows,
            cells,
        }
    }

    /// Geometric means and worst programs by k: what the figures say in one table.
    fn summary(&self, text: &mut String, jdk: u32) -> Result<()> {
        let ks: BTreeSet<u32> = ENGINES
            .iter()
            .flat_map(|e| self.ks(jdk, e.name))
            .filter(|k| *k > 0)
            .collect();
        let head: Vec<String> = ks.iter().map(|k| format!("k={k}")).collect();
        writeln!(
            text,
            "\n## JDK {jdk} in short\n\nRatios of CPU time; medians of the turns; geometric mean over the programs, and the worst program. {}\n",
            self.turns(jdk)
        )?;
        line(text, "", head)?;
        rule(text, ks.len())?;
        let mut slower: Vec<String> = Vec::new();
        // `inverse`: how many times as fast the engine is, so the lowest is the worst.
        let mut row =
            |name: &str, engine: &str, other: &str, other_k: Option<u32>, inverse: bool| {
                let mut means = Vec::new();
                let mut worst = Vec::new();
                for &k in &ks {
                    let matrix = self.matrix(jdk, vec![("", k)], |key| {
                        let key = Key {
                            engine: engine.to_owned(),
                            ..key.clone()
                        };
                        let mut cell = self.ratio(&key, other, other_k.unwrap_or(k));
                        if inverse {
                            cell.value = cell.value.map(f64::recip);
                        }
                        cell
                    });
                    means.push(matrix.mean(0));
                    worst.push(matrix.extreme(0, inverse));
                }
                if means.iter().all(|m| m == NONE) {
                    return Ok(());
                }
                line(text, &format!("{name}, geometric mean"), means)?;
                line(text, &format!("{name}, worst"), worst)
            };
        for engine in ENGINES {
            let name = format!("{} / plain", engine.name);
            row(&name, engine.name, PLAIN, Some(0), false)?;
        }
        for engine in ENGINES.iter().filter(|e| e.name.starts_with("automaton")) {
            let name = format!("{} / {}", engine.baseline, engine.name);
            row(&name, engine.name, engine.baseline, Some(1), true)?;
        }
        row("ksf / automaton", "automaton", "ksf", None, true)?;
        row("ksf-mtf / automaton", "automaton", "ksf-mtf", None, true)?;
        row("ksf-mtf / ksf", "ksf-mtf", "ksf", None, false)?;
        for engine in ENGINES.iter().filter(|e| e.name.starts_with("automaton")) {
            for &k in &ks {
                let matrix = self.matrix(jdk, vec![(engine.name, k)], |key| {
                    self.ratio(key, engine.baseline, 1)
                });
                let over = |(_, cells): &(&String, &Vec<Cell>)| cells[0].value > Some(1.0);
                let names = matrix.rows.iter().zip(&matrix.cells).filter(over);
                let names: Vec<String> = names
                    .map(|(name, cells)| format!("{name} ({})", cells[0].text))
                    .collect();
                if !names.is_empty() {
                    slower.push(format!("{} k={k}: {}", engine.name, names.join(", ")));
                }
            }
        }
        writeln!(text)?;
        if slower.is_empty() {
            writeln!(
                text,
                "No program is slower under the automaton than under the hash table at k = 1."
            )?;
        } else {
            writeln!(
                text,
                "Slower under the automaton than under the hash table at k = 1:\n"
            )?;
            slower.iter().try_for_each(|s| writeln!(text, "- {s}"))?;
        }
        Ok(())
    }

    /// Figure 8.
    fn times(&self, text: &mut String, jdk: u32) -> Result<()> {
        writeln!(
            text,
            "\n## JDK {jdk}: run time (the seed's figure 8)\n\nMedian and range over the turns of ratios within a turn. The plain programs take:\n"
        )?;
        let plain = self.matrix(jdk, vec![(PLAIN, 0)], |key| {
            let runs = self.runs.get(key).into_iter().flatten();
            let good: Vec<&Run> = runs.filter(|r| r.status == OK).copied().collect();
            let wall: Vec<f64> = good.iter().map(|r| r.wall_s).collect();
            let cpu: Vec<f64> = good.iter().map(|r| r.cpu_s).collect();
            Cell {
                value: median(&cpu),
                text: format!(
                    "{} s of CPU in {} s",
                    with_range(&cpu, 2).unwrap_or_default(),
                    with_range(&wall, 2).unwrap_or_default()
                ),
            }
        });
        plain.table(text, false)?;
        for engine in ENGINES {
            let columns = self.columns(jdk, engine.name);
            if columns.is_empty() {
                continue;
            }
            for (other, other_k) in [(PLAIN, 0), (engine.baseline, 1)] {
                if other == engine.name {
                    continue;
                }
                let caption = Caption {
                    file: format!("time-{}-to-{other}-jdk{jdk}.svg", engine.name),
                    title: format!("JDK {jdk}: CPU time, {} to {other}", engine.name),
                    unit: "ratio",
                    reference: Some(1.0),
                };
                let matrix =
                    self.matrix(jdk, columns.clone(), |key| self.ratio(key, other, other_k));
                if matrix.cells.iter().flatten().any(|c| c.value.is_some()) {
                    writeln!(text, "\n### {} to {other}, JDK {jdk}\n", engine.name)?;
                    self.plot(text, &matrix, &caption)?;
                    matrix.table(text, true)?;
                }
            }
        }
        Ok(())
    }

    /// Figures 9 and 11 to 14, from the newest JDK: what is counted hardly depends on it.
    fn counts(&self, text: &mut String) -> Result<()> {
        let Some(jdk) = self.results.profiles.iter().map(|p| p.jdk).max() else {
            return Ok(());
        };
        let field = |columns: Vec<Column>, value: &Field| {
            self.matrix(jdk, columns, |key| match self.results.counts(key) {
                None => Cell {
                    value: None,
                    text: self.why_not(key),
                },
                Some(profile) => {
                    let value = value(profile);
                    let mark = if profile.status == OK { "" } else { " *" };
                    Cell {
                        value,
                        text: value.map_or(profile.status.clone(), |v| short(v) + mark),
                    }
                }
            })
        };
        let engines = |names: &[&'static str]| -> Vec<Column> {
            let of = |name: &&'static str| self.columns(jdk, name);
            names.iter().flat_map(of).collect()
        };
        let split = engines(&["automaton-split"]);
        let forest = if split.is_empty() {
            engines(&["automaton"])
        } else {
            split
        };
        let per_item = |p: &Profile| Some(p.hash_operations? as f64 / p.items? as f64);
        writeln!(
            text,
            "\n## Hash operations, space and k-IPF, JDK {jdk}\n\n`*` = the counts are not all, see [below](#what-went-wrong)."
        )?;
        let all = [
            "blpp-hash",
            "ksf",
            "ksf-split",
            "automaton",
            "automaton-split",
        ];
        for engine in all {
            let columns = engines(&[engine]);
            if !columns.is_empty() {
                self.figure(
                    text,
                    9,
                    &format!("hash operations an item, {engine}"),
                    "an item",
                    &field(columns, &per_item),
                )?;
            }
        }
        self.figure(
            text,
            9,
            "items (path IDs emitted)",
            "items",
            &field(engines(&["blpp-hash"]), &|p| number(p.items)),
        )?;
        for engine in all {
            let columns = engines(&[engine]);
            if columns.is_empty() {
                continue;
            }
            let (what, value): (&str, &Field) = match engine {
                "blpp-hash" => ("table items", &|p| number(p.edges)),
                "ksf" | "ksf-split" => ("k-SF nodes", &|p| number(p.ksf_nodes)),
                _ => ("counters (edges of rows, fixed ones, run slots)", &|p| {
                    number(Some(p.edges? + p.fixed_counters? + p.run_slots?))
                }),
            };
            let title = format!("space, {what}, {engine}");
            self.figure(text, 11, &title, what, &field(columns.clone(), value))?;
            if engine.starts_with("automaton") {
                self.figure(
                    text,
                    11,
                    &format!("space, rows, {engine}"),
                    "rows",
                    &field(columns.clone(), &|p| number(p.rows)),
                )?;
            }
            self.figure(
                text,
                11,
                &format!("space, MB of counters, {engine}"),
                "MB",
                &field(columns, &|p| Some(p.counter_bytes as f64 / 1e6)),
            )?;
        }
        self.figure(
            text,
            12,
            "k-IPF nodes",
            "nodes",
            &field(forest.clone(), &|p| number(p.kipf_nodes)),
        )?;
        self.figure(
            text,
            13,
            "average degree of inner nodes of the k-IPF",
            "children",
            &field(forest.clone(), &|p| p.kipf_degree),
        )?;
        let ksf = engines(&["ksf"]);
        if !ksf.is_empty() {
            self.figure(
                text,
                13,
                "average degree of inner nodes of the k-SF",
                "children",
                &field(ksf, &|p| p.ksf_degree),
            )?;
        }
        self.figure(
            text,
            14,
            "average depth of the leaves of the k-IPF",
            "path IDs",
            &field(forest, &|p| p.kipf_leaf_depth),
        )
    }

    fn figure(
        &self,
        text: &mut String,
        number: u32,
        title: &str,
        unit: &str,
        matrix: &Matrix,
    ) -> Result<()> {
        if matrix.columns.is_empty() {
            return Ok(());
        }
        writeln!(text, "\n### Figure {number}: {title}\n")?;
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = title.to_lowercase().chars().map(word).collect();
        let words: Vec<&str> = name.split('-').filter(|w| !w.is_empty()).collect();
        let caption = Caption {
            file: format!("figure{number}-{}.svg", words.join("-")),
            title: format!("Figure {number}: {title}"),
            unit,
            reference: None,
        };
        self.plot(text, matrix, &caption)?;
        matrix.table(text, false)
    }

    fn plot(&self, text: &mut String, matrix: &Matrix, caption: &Caption<'_>) -> Result<()> {
        let series: Vec<String> = matrix
            .columns
            .iter()
            .map(|(_, k)| format!("k={k}"))
            .collect();
        let all: BTreeSet<u32> = self
            .runs
            .keys()
            .map(|key| key.k)
            .filter(|k| *k > 0)
            .collect();
        let shade = |(_, k): &Column| all.iter().position(|of| of == k).unwrap_or(0);
        let shades: Vec<usize> = matrix.columns.iter().map(shade).collect();
        let values = |cells: &Vec<Cell>| cells.iter().map(|c| c.value).collect();
        let values: Vec<Vec<Option<f64>>> = matrix.cells.iter().map(values).collect();
        let svg = Chart {
            title: &caption.title,
            unit: caption.unit,
            reference: caption.reference,
            groups: &matrix.rows,
            series: &series,
            shades: &shades,
            values: &values,
        }
        .svg();
        fs::write(self.dir.join(&caption.file), svg).with_context(|| caption.file.clone())?;
        writeln!(text, "![{}]({})\n", caption.title, caption.file)?;
        Ok(())
    }

    /// The k-SF with and without moving hot children to the front.
    fn replays(&self, text: &mut String) -> Result<()> {
        let Some(jdk) = self.results.replays.iter().map(|r| r.jdk).max() else {
            return Ok(());
        };
        writeln!(
            text,
            "\n## The engines by themselves\n\nOn streams with the statistics of the programs' [(how)](#how-the-figures-are-obtained); `ksf-mtf` is the k-SF with \
             each child that is found moved to the front of its list."
        )?;
        let all: BTreeSet<(&str, u32)> = self
            .results
            .replays
            .iter()
            .map(|r| (r.engine.as_str(), r.k))
            .collect();
        let columns = |names: &[&'static str]| -> Vec<Column> {
            let of = |name: &'static str| {
                let ks = all.iter().filter(move |(engine, _)| *engine == name);
                ks.map(move |(_, k)| (name, *k))
            };
            names.iter().flat_map(|name| of(name)).collect()
        };
        let field = |columns: Vec<Column>, value: &dyn Fn(&Replay) -> Option<f64>| {
            self.matrix(jdk, columns, |key| {
                let newest = self.results.replays.iter().rev().find(|r| {
                    r.jdk == jdk
                        && r.program == key.program
                        && r.engine == key.engine
                        && r.k == key.k
                });
                let value = newest.and_then(value);
                Cell {
                    value,
                    text: value.map_or("not run".to_owned(), short),
                }
            })
        };
        writeln!(text, "\n### Nodes scanned in child lists, an item\n")?;
        field(columns(&["ksf", "ksf-mtf"]), &|r| r.scans_per_item).table(text, false)?;
        writeln!(text, "\n### Nanoseconds an item\n")?;
        let engines = ["blpp-hash", "automaton", "ksf", "ksf-mtf"];
        field(columns(&engines), &|r| Some(r.ns_per_item)).table(text, true)
    }

    fn failures(&self, text: &mut String) -> Result<()> {
        writeln!(text, "\n## What went wrong\n")?;
        let mut any = false;
        for run in self.runs.values().flatten().filter(|r| r.status != OK) {
            any = true;
            writeln!(
                text,
                "- JDK {}, {}, {} k={}, turn {}: {} (after {:.1} s of CPU); not run again with this agent",
                run.jdk, run.program, run.engine, run.k, run.turn, run.status, run.cpu_s
            )?;
        }
        for key in self.runs.keys() {
            if let Some(profile) = self.results.counts(key).filter(|p| p.status != OK) {
                any = true;
                writeln!(
                    text,
                    "- JDK {}, {}, {} k={}: the counts are not all: {}",
                    key.jdk, key.program, key.engine, key.k, profile.status
                )?;
            }
        }
        if !any {
            writeln!(text, "Nothing.")?;
        }
        Ok(())
    }
}

impl Matrix {
    fn values(&self, column: usize) -> Vec<f64> {
        let of = |cells: &Vec<Cell>| cells.get(column)?.value;
        self.cells.iter().filter_map(of).collect()
    }

    /// Geometric mean of a column; says so if not all programs are in it.
    fn mean(&self, column: usize) -> String {
        let values = self.values(column);
        let Some(mean) = geometric_mean(&values) else {
            return NONE.to_owned();
        };
        match values.len() == self.rows.len() {
            true => format!("{mean:.2}"),
            false => format!("{mean:.2} ({} of {})", values.len(), self.rows.len()),
        }
    }

    /// The largest value of a column, or the lowest, and its program.
    fn extreme(&self, column: usize, lowest: bool) -> String {
        let rows = self.rows.iter().zip(&self.cells);
        let mut all: Vec<(f64, &String)> = rows
            .filter_map(|(row, cells)| Some((cells.get(column)?.value?, row)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let extreme = if lowest { all.first() } else { all.last() };
        extreme.map_or(NONE.to_owned(), |(value, row)| format!("{value:.2} {row}"))
    }

    fn table(&self, text: &mut String, mean: bool) -> Result<()> {
        let head = |(engine, k): &Column| match *k {
            0 => (*engine).to_owned(),
            k => format!("{engine} k={k}"),
        };
        line(text, "program", self.columns.iter().map(head))?;
        rule(text, self.columns.len())?;
        for (row, cells) in self.rows.iter().zip(&self.cells) {
            line(text, row, cells.iter().map(|c| c.text.clone()))?;
        }
        if mean {
            let all = (0..self.columns.len()).map(|column| self.mean(column));
            line(text, "geometric mean", all)?;
        }
        Ok(())
    }
}

fn number(value: Option<u64>) -> Option<f64> {
    value.map(|v| v as f64)
}

fn line(text: &mut String, name: &str, cells: impl IntoIterator<Item = String>) -> Result<()> {
    write!(text, "| {name} |")?;
    for cell in cells {
        write!(text, " {} |", cell.replace('|', "\\|").replace('\n', " "))?;
    }
    writeln!(text)?;
    Ok(())
}

fn rule(text: &mut String, columns: usize) -> Result<()> {
    writeln!(text, "|---|{}", "---|".repeat(columns))?;
    Ok(())
}
