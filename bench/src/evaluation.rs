//! The seed's evaluation, redone: every program in every variant, turn by turn. A turn of a program runs it plain, under the
//! baselines and in every variant, one right after the other, beginning with another one each turn: what else changes on the machine
//! meets all alike, and ratios are taken within a turn.
//!
//! It can be done in slices: what earlier sessions with the same agent measured counts, the program whose variants have the fewest turns is
//! next, and a turn that ended early is made up for by one of those variants that lack it, with runs of its own of the plain program and
//! the baselines.

use crate::results::{Key, OK, PLAIN, Profile, Results, Run, Session, Turns};
use crate::run::{self, Ran, Runner};
use crate::{counts, page};
use anyhow::{Context as _, Result, bail, ensure};
use borescope_e2e::programs::Program;
use borescope_e2e::workloads::MEASURED;
use borescope_e2e::{agent, java, root};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How an engine is run.
#[derive(PartialEq)]
pub struct Engine {
    /// Name in options and tables.
    pub name: &'static str,
    /// Options of the agent.
    options: &'static str,
    /// From 1 or 2 up; `false` = 1 alone.
    ks: (u32, bool),
    /// Also the k-IPF of what it counted: figures 12 to 14.
    pub forest: bool,
    /// The baseline with the same numbering.
    pub baseline: &'static str,
}

/// Every engine.
pub const ENGINES: &[Engine] = &[
    Engine {
        name: "automaton",
        options: "engine=automaton",
        ks: (1, true),
        forest: false,
        baseline: "blpp-hash",
    },
    Engine {
        name: "automaton-split",
        options: "engine=automaton,branches=split",
        ks: (1, true),
        forest: true,
        baseline: "blpp-hash-split",
    },
    Engine {
        name: "ksf",
        options: "engine=ksf",
        ks: (2, true),
        forest: false,
        baseline: "blpp-hash",
    },
    Engine {
        name: "ksf-split",
        options: "engine=ksf,branches=split",
        ks: (2, true),
        forest: false,
        baseline: "blpp-hash-split",
    },
    Engine {
        name: "ksf-mtf",
        options: "engine=ksf-mtf",
        ks: (2, true),
        forest: false,
        baseline: "blpp-hash",
    },
    Engine {
        name: "blpp-hash",
        options: "engine=blpp-hash",
        ks: (1, false),
        forest: false,
        baseline: "blpp-hash",
    },
    Engine {
        name: "blpp-hash-split",
        options: "engine=blpp-hash,branches=split",
        ks: (1, false),
        forest: false,
        baseline: "blpp-hash-split",
    },
    Engine {
        name: "blpp-dense",
        options: "engine=blpp-dense",
        ks: (1, false),
        forest: false,
        baseline: "blpp-hash",
    },
];

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Turns of every program, those of earlier sessions with the same agent counted: each runs it plain and in every variant
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Minutes after which no further run begins; the next call goes on from there
    #[arg(long, value_name = "MINUTES")]
    budget: Option<u64>,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = [25, 17])]
    jdk: Vec<u32>,
    /// Programs [default: all]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Longest sequences; engines that can count single paths with k = 1 are also run so
    #[arg(long, value_delimiter = ',', default_values_t = [2, 3, 4, 6, 8, 11, 16])]
    k: Vec<u32>,
    /// Engines: automaton, automaton-split, ksf, ksf-split, ksf-mtf, blpp-hash, blpp-hash-split, blpp-dense
    #[arg(long, value_delimiter = ',', default_values_t = ["automaton", "automaton-split", "ksf", "ksf-mtf", "blpp-hash", "blpp-hash-split", "blpp-dense"].map(String::from))]
    engines: Vec<String>,
    /// Seconds of CPU after which a run is given up
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Counter memory of the agent in bytes, instead of its default
    #[arg(long)]
    memory: Option<u64>,
    /// Times only: leave out hash operations, space and k-IPF
    #[arg(long)]
    no_counts: bool,
    /// Where results and page go
    #[arg(long, default_value = "docs/evaluation")]
    out: PathBuf,
    /// Forget the results that are there
    #[arg(long)]
    fresh: bool,
    /// Only make page and plots from the results that are there
    #[arg(long)]
    page_only: bool,
}

/// An engine with a k.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    engine: &'static Engine,
    k: u32,
}

/// Runs the evaluation.
pub fn run(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.out)?;
    if args.page_only {
        return page::write(&args.out);
    }
    ensure!(args.runs > 0, "--runs must be at least 1");
    let programs = chosen(&args.programs)?;
    let variants = variants(args)?;
    if args.fresh {
        for name in ["runs.csv", "profiles.csv", "replay.csv", "sessions.json"] {
            let path = args.out.join(name);
            if path.exists() {
                std::fs::remove_file(path)?;
            }
        }
    }
    let mut results = Results::read(&args.out)?;
    let jars = programs
        .iter()
        .map(|p| (p.name.to_owned(), p.jar_names()))
        .collect();
    let session = session(&args.jdk, jars)?;
    let started = session.started.clone();
    results.begin(session)?;
    results.keep_version();
    let mut evaluation = Evaluation {
        args,
        results,
        started,
        expected: BTreeMap::new(),
        turns: BTreeMap::new(),
        runner: Runner::new(args.limit)?,
    };
    let outcome = evaluation.all(&programs, &variants);
    page::write(&args.out)?;
    eprintln!("{}", args.out.join("evaluation.md").display());
    outcome
}

struct Evaluation<'a> {
    args: &'a Args,
    results: Results,
    /// The session.
    started: String,
    /// What the programs print, by JDK.
    expected: BTreeMap<(u32, &'static str), Vec<u8>>,
    /// Turns of this session, by JDK and program.
    turns: BTreeMap<(u32, &'static str), u32>,
    runner: Runner,
}

impl Evaluation<'_> {
    fn all(&mut self, programs: &[&'static Program], variants: &[Variant]) -> Result<()> {
        let begun = Instant::now();
        let budget = self.args.budget.map(|m| Duration::from_secs(60 * m));
        let over = || budget.is_some_and(|b| begun.elapsed() >= b);
        let mut cells: Vec<(u32, &'static Program)> = Vec::new();
        for program in programs {
            let jdks = self.args.jdk.iter().filter(|jdk| program.runs_on(**jdk));
            cells.extend(jdks.map(|jdk| (*jdk, *program)));
        }
        while let Some((jdk, program, turn)) =
            next(&self.results.turns(), self.args.runs, &cells, variants)
        {
            *self.turns.entry((jdk, program.name)).or_default() += 1;
            for variant in turn {
                if over() {
                    eprintln!("the budget is used up; the same command goes on from here");
                    return Ok(());
                }
                self.expect(jdk, program)?;
                if !self.runner.stopped() {
                    self.one(jdk, program, variant)?;
                }
                if self.runner.stopped() {
                    bail!("interrupted; what was measured is kept");
                }
            }
        }
        Ok(())
    }

    /// Fills the caches of the file system, and says what the program prints.
    fn expect(&mut self, jdk: u32, program: &'static Program) -> Result<()> {
        if self.expected.contains_key(&(jdk, program.name)) {
            return Ok(());
        }
        let ran = self.runner.program(program, jdk, None)?;
        if !self.runner.stopped() && ran.code != Ok(program.exit) {
            bail!(
                "{} on JDK {jdk} without the agent: {:?}\n{}",
                program.name,
                ran.code,
                ran.stderr
            );
        }
        self.expected.insert((jdk, program.name), ran.stdout);
        Ok(())
    }

    /// One run, and the first time what it counted.
    fn one(&mut self, jdk: u32, program: &'static Program, variant: Option<Variant>) -> Result<()> {
        let turn = self.turns.get(&(jdk, program.name)).copied().unwrap_or(0);
        let key = key(jdk, program, variant);
        let out = tempfile::tempdir()?;
        let options = variant.map(|v| {
            let memory = self.args.memory.map(|m| format!(",memory={m}"));
            format!(
                "lens=paths,k={},{},out={}{}",
                v.k,
                v.engine.options,
                out.path().display(),
                memory.unwrap_or_default()
            )
        });
        let ran = self.runner.program(program, jdk, options.as_deref())?;
        if self.runner.stopped() {
            return Ok(());
        }
        let spool = run::spool(out.path());
        let expected = self.expected.get(&(jdk, program.name));
        let status = judge(&ran, program, expected, variant.is_some(), spool.is_some());
        let spool_bytes = match &spool {
            Some(spool) => Some(run::allocated(spool)?),
            None => None,
        };
        eprintln!(
            "JDK {jdk}, {} {} k={}: {:.2} s CPU, {:.2} s, {status}",
            program.name, key.engine, key.k, ran.cpu, ran.wall
        );
        let good = status == OK;
        self.results.run(Run {
            session: self.started.clone(),
            jdk,
            program: key.program.clone(),
            engine: key.engine.clone(),
            k: key.k,
            turn,
            status,
            cpu_s: ran.cpu,
            wall_s: ran.wall,
            spool_bytes,
        })?;
        if !good {
            return Ok(());
        }
        let (Some(variant), Some(spool)) = (variant, spool) else {
            return Ok(());
        };
        if self.args.no_counts || self.results.counts(&key).is_some() {
            return Ok(());
        }
        // The longest sequences say most about a stream.
        let longest = self.args.k.iter().max() == Some(&key.k);
        let replay = if longest { &self.args.k[..] } else { &[] };
        let read = counts::read(&spool, variant.engine.forest, replay);
        let (mut profile, replays) = read.unwrap_or_else(|error| {
            let profile = Profile {
                status: format!("not readable: {error:#}"),
                ..Profile::default()
            };
            (profile, Vec::new())
        });
        for mut replay in replays {
            replay.session.clone_from(&self.started);
            replay.jdk = jdk;
            replay.program.clone_from(&key.program);
            self.results.replay(replay)?;
        }
        profile.session.clone_from(&self.started);
        (profile.jdk, profile.k) = (jdk, key.k);
        (profile.program, profile.engine) = (key.program, key.engine);
        if profile.status != OK {
            eprintln!("  counts: {}", profile.status);
        }
        self.results.profile(profile)
    }
}

/// The program that is next and its turn: those of its variants that have the fewest turns, after the plain run and the baselines that
/// ratios are taken with. `None` = all have as many as were asked for.
fn next(
    turns: &BTreeMap<Key, Turns>,
    runs: u32,
    cells: &[(u32, &'static Program)],
    variants: &[Variant],
) -> Option<(u32, &'static Program, Vec<Option<Variant>>)> {
    let of = |jdk, program, variant| {
        let turns = turns.get(&key(jdk, program, Some(variant)));
        turns.copied().unwrap_or_default()
    };
    let least = |&(jdk, program): &(u32, &'static Program)| {
        let open = variants.iter().map(|v| of(jdk, program, *v));
        open.filter(|t| !t.failed).map(|t| t.good).min()
    };
    let (fewest, at) = (0..cells.len())
        .filter_map(|at| Some((least(&cells[at])?, at)))
        .min()
        .filter(|(fewest, _)| *fewest < runs)?;
    let (jdk, program) = cells[at];
    let due: Vec<Variant> = variants
        .iter()
        .filter(|v| !of(jdk, program, **v).failed && of(jdk, program, **v).good == fewest)
        .copied()
        .collect();
    let is_baseline = |v: &Variant| {
        let of = due.iter().any(|d| d.engine.baseline == v.engine.name);
        of && !turns
            .get(&key(jdk, program, Some(*v)))
            .is_some_and(|t| t.failed)
    };
    let mut first: Vec<Option<Variant>> = vec![None];
    first.extend(
        variants
            .iter()
            .filter(|v| is_baseline(v))
            .copied()
            .map(Some),
    );
    let mut rest: Vec<Option<Variant>> = due.into_iter().map(Some).collect();
    rest.retain(|v| !first.contains(v));
    for part in [&mut first, &mut rest] {
        let places = part.len().max(1);
        part.rotate_left(fewest as usize * 5 % places);
    }
    first.append(&mut rest);
    Some((jdk, program, first))
}

/// [`OK`], or what is wrong with a run.
fn judge(
    ran: &Ran,
    program: &Program,
    expected: Option<&Vec<u8>>,
    profiled: bool,
    spool: bool,
) -> String {
    match &ran.code {
        Err(why) => return why.clone(),
        Ok(code) if *code != program.exit => return format!("exit code {code}"),
        Ok(_) if profiled && !spool => {
            let said = ran.stderr.lines().find(|l| l.starts_with("borescope: "));
            return said.unwrap_or("no spool").to_owned();
        }
        Ok(_) => {}
    }
    if expected.is_some_and(|expected| *expected != ran.stdout) {
        return "printed something else".to_owned();
    }
    OK.to_owned()
}

fn key(jdk: u32, program: &Program, variant: Option<Variant>) -> Key {
    Key {
        jdk,
        program: program.name.to_owned(),
        engine: variant.map_or(PLAIN, |v| v.engine.name).to_owned(),
        k: variant.map_or(0, |v| v.k),
    }
}

/// The programs of these names, all if there are none.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Program>> {
    if names.is_empty() {
        return Ok(MEASURED.iter().collect());
    }
    let one = |name: &String| {
        let found = MEASURED.iter().find(|p| p.name == name.as_str());
        found.with_context(|| {
            let all: Vec<&str> = MEASURED.iter().map(|p| p.name).collect();
            format!("no program {name}; there are {}", all.join(", "))
        })
    };
    names.iter().map(one).collect()
}

fn variants(args: &Args) -> Result<Vec<Variant>> {
    let mut all = Vec::new();
    for name in &args.engines {
        let engine = ENGINES
            .iter()
            .find(|e| e.name == name.as_str())
            .with_context(|| format!("no engine {name}"))?;
        let (first, more) = engine.ks;
        let mut ks = args.k.clone();
        ks.retain(|k| more && *k > 1);
        if first == 1 {
            ks.insert(0, 1);
        }
        all.extend(ks.into_iter().map(|k| Variant { engine, k }));
    }
    Ok(all)
}

/// What a program says, trimmed.
fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .with_context(|| program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Commit of the checkout, with `-dirty` if it had changes.
pub fn commit() -> Result<String> {
    said("git", &["describe", "--always", "--dirty", "--abbrev=10"])
}

/// Tells builds of the agent apart: a checksum of the library.
pub fn agent_version() -> Result<String> {
    let bytes = std::fs::read(agent()).with_context(|| agent().display().to_string())?;
    Ok(format!("{:08x}", crc32fast::hash(&bytes)))
}

/// What is measured now and with what; `jars` by program.
pub fn session(jdk: &[u32], jars: BTreeMap<String, Vec<String>>) -> Result<Session> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpuinfo
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, m)| m);
    let mut jdks = BTreeMap::new();
    for &jdk in jdk {
        let output = Command::new(java(jdk)).arg("-version").output()?;
        let version = String::from_utf8_lossy(&output.stderr);
        jdks.insert(jdk, version.lines().nth(1).unwrap_or("unknown").to_owned());
    }
    Ok(Session {
        started: said("date", &["-u", "+%FT%TZ"])?,
        borescope: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit()?,
        cpu: model.trim().to_owned(),
        cores: std::thread::available_parallelism()?.get(),
        // What follows the version names whose build it is.
        kernel: said("uname", &["-sr"])?
            .split('-')
            .next()
            .unwrap_or_default()
            .to_owned(),
        agent: agent_version()?,
        jdks,
        jars,
        arguments: std::env::args().skip(1).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(name: &str, k: u32) -> Variant {
        let engine = ENGINES.iter().find(|e| e.name == name).unwrap();
        Variant { engine, k }
    }

    /// Sessions that end after any number of runs: no variant ever has two turns more than another but for the baseline, what
    /// failed is not run again, and whatever runs has a plain run and its baseline before it in its turn.
    #[test]
    fn slices_make_up_for_what_lacks() {
        let bad = variant("ksf", 4);
        let variants = [
            variant("automaton", 1),
            variant("automaton", 4),
            bad,
            variant("ksf-mtf", 4),
            variant("blpp-hash", 1),
        ];
        let cells = [(25, &MEASURED[0]), (17, &MEASURED[0]), (25, &MEASURED[1])];
        for length in 1..40 {
            let mut turns: BTreeMap<Key, Turns> = BTreeMap::new();
            let mut failures = 0;
            let mut left = length;
            while let Some((jdk, program, turn)) = next(&turns, 3, &cells, &variants) {
                let place = |v: &Option<Variant>| turn.iter().position(|t| t == v);
                assert!(turn.len() > 1 && place(&None) < Some(2), "{length}");
                assert!(place(&Some(variants[4])) < Some(2), "{length}");
                for v in turn {
                    // One session has so many runs, but gets beyond its first plain run and baseline.
                    left -= 1;
                    let of = turns.entry(key(jdk, program, v)).or_default();
                    match v == Some(bad) {
                        true => (of.failed, failures) = (true, failures + 1),
                        false => of.good += 1,
                    }
                    if left <= 0 {
                        left = length.max(3);
                        break;
                    }
                }
                let others = variants
                    .iter()
                    .filter(|v| **v != bad && v.engine.name != "blpp-hash");
                let counts = cells.iter().flat_map(|(jdk, program)| {
                    others.clone().map(|v| key(*jdk, program, Some(*v)))
                });
                let counts: Vec<u32> = counts
                    .map(|key| turns.get(&key).copied().unwrap_or_default().good)
                    .collect();
                let (least, most) = (counts.iter().min(), counts.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "{length}: {counts:?}");
            }
            assert_eq!(failures, cells.len(), "{length}");
            assert!(turns.values().all(|t| t.failed || t.good >= 3), "{length}");
        }
    }
}
