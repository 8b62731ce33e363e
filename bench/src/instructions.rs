//! Instructions an item of the engines of `crates/paths`, counted by valgrind (callgrind) on the streams of `replay.rs`: the same number each
//! time, where the CPU time of such short steps is mostly noise.
//!
//! valgrind runs this program again, on one engine and a file of streams. What it counts for a run that only walks the streams
//! (start, reading the file and the loop) is taken off.

use crate::evaluation::{chosen, commit};
use crate::replay::{Stream, streams};
use crate::results::{self, append};
use crate::run::Runner;
use crate::{chart, page};
use anyhow::{Context as _, Result, bail, ensure};
use borescope_e2e::workloads::MEASURED;
use borescope_paths::Engine;
use borescope_paths::automaton::Automaton;
use borescope_paths::blpp::BlppHash;
use borescope_paths::ksf::Ksf;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engines, and whether they run with each k.
const ENGINES: [(&str, bool); 4] = [
    ("blpp-hash", false),
    ("automaton", true),
    ("ksf", true),
    ("ksf-mtf", true),
];
/// Walks the streams only.
const WALK: &str = "walk";

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// JDK that runs the programs
    #[arg(long, default_value_t = 25)]
    jdk: u32,
    /// Programs [default: all]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Longest sequences
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8, 16])]
    k: Vec<u32>,
    /// Path IDs of a program's streams
    #[arg(long, default_value_t = 500_000)]
    items: u64,
    /// Seconds of CPU after which a run of a program is given up
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Where results and page go
    #[arg(long, default_value = "docs/evaluation")]
    out: PathBuf,
}

/// What valgrind runs.
#[derive(clap::Args)]
pub struct FeedArgs {
    streams: PathBuf,
    engine: String,
    k: u32,
}

/// One line of `instructions.csv`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Instructions {
    /// Commit of borescope.
    pub commit: String,
    /// Program.
    pub program: String,
    /// Engine.
    pub engine: String,
    /// k.
    pub k: u32,
    /// IDs in the streams.
    pub items: u64,
    /// Instructions, without those of the walk.
    pub instructions: u64,
}

/// Counts, line by line into `instructions.csv`, and makes the page again.
pub fn run(args: &Args) -> Result<()> {
    let valgrind = Command::new("valgrind").arg("--version").output();
    if !valgrind.is_ok_and(|v| v.status.success()) {
        bail!("valgrind is not there or does not start: install the package `valgrind`");
    }
    std::fs::create_dir_all(&args.out)?;
    let runner = Runner::new(args.limit)?;
    let commit = commit()?;
    for program in chosen(&args.programs)? {
        let dir = tempfile::tempdir()?;
        let longest = args.k.iter().copied().max().context("--k")?;
        let ran = runner.profile(program, args.jdk, &format!("k={longest},branches=split"));
        if runner.stopped() {
            bail!("interrupted; what was measured is kept");
        }
        let streams = streams(&ran?.profile, args.items)?;
        let file = dir.path().join("streams");
        std::fs::write(&file, bytes(&streams))?;
        let items: usize = streams
            .iter()
            .flat_map(|s| &s.activations)
            .map(Vec::len)
            .sum();
        let walk = counted(&file, WALK, 1)?;
        for (engine, more) in ENGINES {
            let ks = if more { &args.k[..] } else { &[1] };
            for &k in ks.iter().filter(|k| !more || **k > 1) {
                let instructions = counted(&file, engine, k)?.saturating_sub(walk);
                if runner.stopped() {
                    bail!("interrupted; what was measured is kept");
                }
                let row = Instructions {
                    commit: commit.clone(),
                    program: program.name.to_owned(),
                    engine: engine.to_owned(),
                    k,
                    items: items as u64,
                    instructions,
                };
                eprintln!(
                    "{}, {engine} k={k}: {:.1} an item",
                    program.name,
                    row.per_item()
                );
                append(&args.out.join("instructions.csv"), &row)?;
            }
        }
    }
    page::remake(&args.out)
}

/// What valgrind runs: one engine on the streams of a file.
pub fn feed(args: &FeedArgs) -> Result<()> {
    let streams = parse(&std::fs::read(&args.streams)?).context("not a file of streams")?;
    let k = args.k;
    match args.engine.as_str() {
        WALK => {
            for id in streams.iter().flat_map(|s| s.activations.iter().flatten()) {
                black_box(id);
            }
        }
        "blpp-hash" => fed(&streams, |_| Ok(<BlppHash>::new()))?,
        "automaton" => fed(&streams, |n| Ok(Automaton::new(k, n)?))?,
        "ksf" => fed(&streams, |_| Ok(Ksf::new(k)?))?,
        "ksf-mtf" => fed(&streams, |_| Ok(Ksf::with_move_to_front(k)?))?,
        other => bail!("no engine {other}"),
    }
    // Freeing is no part of an engine.
    std::process::exit(0)
}

fn fed<E: Engine>(streams: &[Stream], make: impl Fn(u32) -> Result<E>) -> Result<()> {
    for stream in streams {
        let mut engine = make(stream.num_paths)?;
        engine.feed(&stream.activations);
        std::mem::forget(black_box(engine));
    }
    Ok(())
}

/// Instructions of this program on a file of streams.
fn counted(streams: &Path, engine: &str, k: u32) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .arg("feed")
        .arg(streams)
        .args([engine, &k.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind: {said}");
    collected(&said).with_context(|| format!("valgrind counted nothing: {said}"))
}

/// The number in `==1== Collected : 123`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|l| l.split_once("Collected :"))?.1;
    line.trim().parse().ok()
}

/// For each stream its number of paths and activations, for each activation its length and IDs.
fn bytes(streams: &[Stream]) -> Vec<u8> {
    let mut words: Vec<u32> = Vec::new();
    for stream in streams {
        words.extend([stream.num_paths, stream.activations.len() as u32]);
        for ids in &stream.activations {
            words.push(ids.len() as u32);
            words.extend(ids);
        }
    }
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn parse(bytes: &[u8]) -> Option<Vec<Stream>> {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let mut words = words.filter_map(|w| Some(u32::from_le_bytes(w.try_into().ok()?)));
    let mut streams = Vec::new();
    while let Some(num_paths) = words.next() {
        let activations = (0..words.next()?)
            .map(|_| (0..words.next()?).map(|_| words.next()).collect())
            .collect::<Option<_>>()?;
        streams.push(Stream {
            num_paths,
            activations,
        });
    }
    rest.is_empty().then_some(streams)
}

impl Instructions {
    fn per_item(&self) -> f64 {
        self.instructions as f64 / self.items as f64
    }
}

/// The page's section, if there are figures.
pub fn section(dir: &Path, text: &mut String) -> Result<()> {
    let rows: Vec<Instructions> = results::rows(&dir.join("instructions.csv"))?;
    let Some(last) = rows.last() else {
        return Ok(());
    };
    let cells: BTreeMap<(&str, u32, &str), &Instructions> = rows
        .iter()
        .filter(|r| r.commit == last.commit)
        .map(|r| ((r.engine.as_str(), r.k, r.program.as_str()), r))
        .collect();
    let columns: Vec<(&str, u32)> = ENGINES
        .iter()
        .flat_map(|(engine, _)| {
            let mut ks: Vec<u32> = cells
                .keys()
                .filter(|c| c.0 == *engine)
                .map(|c| c.1)
                .collect();
            ks.dedup();
            ks.into_iter().map(move |k| (*engine, k))
        })
        .collect();
    writeln!(
        text,
        "\n### Instructions an item\n\n`bench -- instructions`, [instructions.csv](instructions.csv), commit {}: counted by valgrind on such streams, of {} IDs at most; without \
         those that only walk the stream. Making the engine's rows, nodes and tables is in them.\n",
        last.commit,
        cells.values().map(|r| r.items).max().unwrap_or_default()
    )?;
    writeln!(
        text,
        "| program |{}\n|---|{}",
        columns.iter().fold(String::new(), |all, (engine, k)| all
            + &format!(" {engine} k={k} |")),
        "---|".repeat(columns.len())
    )?;
    for program in MEASURED {
        let of = |(engine, k): &(&'static str, u32)| cells.get(&(*engine, *k, program.name));
        let all: Vec<_> = columns.iter().map(of).collect();
        if all.iter().any(Option::is_some) {
            write!(text, "| {} |", program.name)?;
            for cell in all {
                let text_of = |row: &&Instructions| chart::short(row.per_item());
                write!(text, " {} |", cell.map_or("not run".to_owned(), text_of))?;
            }
            writeln!(text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_come_back() {
        let streams = [
            (3, vec![vec![0, 2], vec![]]),
            (1, vec![]),
            (9, vec![vec![8; 5]]),
        ];
        let made: Vec<Stream> = streams
            .iter()
            .cloned()
            .map(|(num_paths, activations)| Stream {
                num_paths,
                activations,
            })
            .collect();
        let mut file = bytes(&made);
        let again: Vec<_> = parse(&file)
            .unwrap()
            .into_iter()
            .map(|s| (s.num_paths, s.activations))
            .collect();
        assert_eq!(again, streams);
        file.truncate(file.len() - 4);
        assert!(parse(&file).is_none());
    }

    #[test]
    fn what_valgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 1240351\n==7== \n";
        assert_eq!(collected(said), Some(1_240_351));
        assert_eq!(collected("==7== error"), None);
    }
}
