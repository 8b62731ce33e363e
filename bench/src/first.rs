//! First speed figures: how much more CPU a program takes under each engine. Plain runs and all variants take turns, so that what else
//! changes on the machine meets all alike; a ratio is taken within one turn.

use crate::stats::{cpu, geometric_mean, median};
use crate::throughput;
use anyhow::{Context as _, Result, bail, ensure};
use borescope_e2e::programs::{Program, workload};
use borescope_e2e::{agent, java};
use nix::sys::resource::UsageWho;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Turns: each runs the program plain and in every variant
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = [17, 25])]
    jdk: Vec<u32>,
    /// Programs
    #[arg(long, value_delimiter = ',', default_values_t = ["ecj", "h2", "fft", "sor", "montecarlo", "sparse", "lu"].map(String::from))]
    programs: Vec<String>,
    /// Only the speed of programs, not that of the instrumenter
    #[arg(long)]
    no_throughput: bool,
}

/// Engine and k.
const VARIANTS: [(&str, u32); 6] = [
    ("automaton", 1),
    ("automaton", 4),
    ("automaton", 16),
    ("blpp-hash", 1),
    ("ksf", 4),
    ("ksf", 16),
];

/// What one run took.
struct Run {
    cpu: Duration,
    /// Of the spool, allocated on disk.
    spool: u64,
    stdout: Vec<u8>,
}

/// All turns of one program on one JDK.
struct Row {
    name: String,
    plain: Vec<Duration>,
    /// By variant.
    runs: Vec<Vec<Run>>,
}

impl Row {
    /// Of a variant to plain, turn by turn.
    fn ratios(&self, variant: usize) -> Vec<f64> {
        self.runs[variant]
            .iter()
            .zip(&self.plain)
            .map(|(run, plain)| run.cpu.as_secs_f64() / plain.as_secs_f64())
            .collect()
    }
}

/// Prints the page.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs must be at least 1");
    let mut text = head(args)?;
    for &jdk in &args.jdk {
        let mut rows = Vec::new();
        for name in &args.programs {
            rows.push(measure(
                &workload(name).with_context(|| format!("no program {name}"))?,
                jdk,
                args.runs,
            )?);
        }
        table(&mut text, jdk, &rows)?;
    }
    if !args.no_throughput {
        write!(text, "\n## Instrumenting\n\n{}", throughput::section(5)?)?;
    }
    print!("{text}");
    Ok(())
}

fn measure(program: &Program, jdk: u32, turns: usize) -> Result<Row> {
    let mut row = Row {
        name: program.name.to_owned(),
        plain: Vec::new(),
        runs: VARIANTS.map(|_| Vec::new()).into(),
    };
    // Fills the caches of the file system.
    once(program, jdk, None)?;
    for turn in 1..=turns {
        let plain = once(program, jdk, None)?;
        eprint!(
            "JDK {jdk} {} turn {turn} of {turns}: plain {:.2} s;",
            program.name,
            plain.cpu.as_secs_f64()
        );
        for (runs, variant) in row.runs.iter_mut().zip(VARIANTS) {
            let run = once(program, jdk, Some(variant))?;
            ensure!(
                run.stdout == plain.stdout,
                "{} {variant:?} printed something else than the plain run",
                program.name
            );
            eprint!(
                " {} {} {:.2} s;",
                variant.0,
                variant.1,
                run.cpu.as_secs_f64()
            );
            runs.push(run);
        }
        eprintln!();
        row.plain.push(plain.cpu);
    }
    Ok(row)
}

/// One run, with the agent put in directly: what is measured is the JVM, from start to end, with all its threads.
fn once(program: &Program, jdk: u32, variant: Option<(&str, u32)>) -> Result<Run> {
    let files = tempfile::tempdir()?;
    let profile = tempfile::tempdir()?;
    let mut command = Command::new(java(jdk));
    if let Some((engine, k)) = variant {
        let (agent, out) = (agent().display(), profile.path().display());
        command.arg(format!(
            "-agentpath:{agent}=lens=paths,k={k},engine={engine},out={out}"
        ));
    }
    command
        .args(program.arguments(files.path()))
        .stdin(Stdio::null());
    // Children are measured by difference, so there must be no other meanwhile: nothing here runs in parallel.
    let before = cpu(UsageWho::RUSAGE_CHILDREN)?;
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let cpu = cpu(UsageWho::RUSAGE_CHILDREN)? - before;
    if output.status.code() != Some(program.exit) {
        bail!(
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let spool = allocated(profile.path())?;
    ensure!(
        variant.is_none() || spool > 0,
        "{command:?} left no spool: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Run {
        cpu,
        spool,
        stdout: output.stdout,
    })
}

/// Bytes that the files below a directory take on disk: the counter file is sparse.
fn allocated(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() {
            allocated(&entry.path())?
        } else {
            meta.blocks() * 512
        };
    }
    Ok(sum)
}

fn head(args: &Args) -> Result<String> {
    let said = |program: &str, arguments: &[&str]| -> Result<String> {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .with_context(|| program.to_owned())?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpuinfo
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, m)| m);
    let mut text = format!(
        "# First speed figures\n\n\
         Made by `cargo run --release -p borescope-bench -- first --runs {}` on {}, borescope {} ({}), {} with {} cores.\n\n\
         Each figure is the CPU time (user and system, all threads, start to end: JIT and class loading included) of the JVM with the agent,\n\
         as a ratio to the plain run of the same turn: median, and in brackets the range over the turns. Every class that is not the JDK's is\n\
         instrumented. Turns interleave plain and all variants. The engines `blpp-hash` (k = 1, hash table: Ball and Larus) and `ksf` (as published)\n\
         are the baselines. Not included: completing the profile (`borescope seal`), which happens after the program has ended.\n\n",
        args.runs,
        said("date", &["-u", "+%F"])?,
        env!("CARGO_PKG_VERSION"),
        said("git", &["rev-parse", "--short", "HEAD"])?,
        model.trim(),
        std::thread::available_parallelism()?
    );
    for &jdk in &args.jdk {
        let output = Command::new(java(jdk)).arg("-version").output()?;
        let version = String::from_utf8_lossy(&output.stderr);
        writeln!(
            text,
            "- JDK {jdk}: {}",
            version.lines().nth(1).unwrap_or("unknown")
        )?;
    }
    Ok(text)
}

fn table(text: &mut String, jdk: u32, rows: &[Row]) -> Result<()> {
    writeln!(text, "\n## JDK {jdk}: CPU, ratio to plain\n")?;
    write!(text, "| program | plain, s |")?;
    for (engine, k) in VARIANTS {
        write!(text, " {engine} k={k} |")?;
    }
    writeln!(text, "\n|---|---|{}", "---|".repeat(VARIANTS.len()))?;
    for row in rows {
        let plain: Vec<f64> = row.plain.iter().map(Duration::as_secs_f64).collect();
        write!(text, "| {} | {} |", row.name, with_range(&plain)?)?;
        for variant in 0..VARIANTS.len() {
            write!(text, " {} |", with_range(&row.ratios(variant))?)?;
        }
        writeln!(text)?;
    }
    write!(text, "| geometric mean | |")?;
    for variant in 0..VARIANTS.len() {
        let medians: Vec<f64> = rows
            .iter()
            .filter_map(|row| median(&row.ratios(variant)))
            .collect();
        write!(
            text,
            " {:.2} |",
            geometric_mean(&medians).context("at least one program")?
        )?;
    }
    writeln!(
        text,
        "\n\nSpool on disk, MB (median):\n\n| program |{}",
        VARIANTS
            .map(|(engine, k)| format!(" {engine} k={k} |"))
            .concat()
    )?;
    writeln!(text, "|---|{}", "---|".repeat(VARIANTS.len()))?;
    for row in rows {
        write!(text, "| {} |", row.name)?;
        for runs in &row.runs {
            let sizes: Vec<f64> = runs.iter().map(|r| r.spool as f64 / 1e6).collect();
            write!(
                text,
                " {:.1} |",
                median(&sizes).context("at least one turn")?
            )?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn with_range(values: &[f64]) -> Result<String> {
    let (low, high) = values
        .iter()
        .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    Ok(format!(
        "{:.2} ({low:.2}..{high:.2})",
        median(values).context("at least one turn")?
    ))
}
