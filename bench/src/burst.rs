//! Burst mode: what it costs, turn by turn against plain runs, and how many of its 95 % intervals hold the count of a run that counts everything.

use crate::evaluation::chosen;
use crate::grams::{Gram, counts, name};
use crate::run::{Profiled, Runner};
use crate::stats::{geometric_mean, median, with_range};
use anyhow::{Context as _, Result, ensure};
use borescope_profile::Profile;
use std::collections::HashMap;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// One in so many activations is chosen
    #[arg(long, value_delimiter = ',', default_values_t = [64])]
    one_in: Vec<u32>,
    /// Programs [default: all]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Turns: each runs a program plain and with each share
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// JDK
    #[arg(long, default_value_t = 25)]
    jdk: u32,
    /// Length of sequences
    #[arg(short, long, default_value_t = 4)]
    k: u32,
    /// Seconds of CPU after which a run is given up
    #[arg(long, default_value_t = 300)]
    limit: u64,
}

/// Prints a table.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs must be at least 1");
    let runner = Runner::new(args.limit)?;
    let programs = chosen(&args.programs)?;
    println!(
        "JDK {}, k = {}, {} turns: CPU time against the plain run of the same turn, median (range). Held: estimated counts of paths and \
         sequences, from 5 chosen activations on, whose 95 % interval holds the count of an exact run; `–` where two exact runs differ.\n",
        args.jdk, args.k, args.runs
    );
    println!("| program | one in | burst / plain | held |\n|---|---|---|---|");
    let mut ratios: HashMap<u32, Vec<f64>> = HashMap::new();
    for program in programs {
        let mut turns: HashMap<u32, Vec<f64>> = HashMap::new();
        let mut last: HashMap<u32, Profiled> = HashMap::new();
        for turn in 0..args.runs {
            eprintln!("{}, turn {}", program.name, turn + 1);
            let plain = runner.program(program, args.jdk, None)?.well(program)?;
            for &one_in in &args.one_in {
                let options = format!("k={},burst={one_in}", args.k);
                let burst = runner.profile(program, args.jdk, &options)?;
                turns.entry(one_in).or_default().push(burst.cpu / plain);
                last.insert(one_in, burst);
            }
        }
        let exact = || -> Result<HashMap<Gram, u64>> {
            let options = format!("k={},memory=34359738368,rows=4294967295", args.k);
            let exact = runner.profile(program, args.jdk, &options)?;
            counts(&exact.profile, 1..=args.k)
        };
        let truth = exact()?;
        let same = truth == exact()?;
        for &one_in in &args.one_in {
            let (of, profile) = (&turns[&one_in], &last[&one_in].profile);
            ratios.entry(one_in).or_default().extend(median(of));
            let held = match (same, held(&truth, profile)?) {
                (true, (held, all)) if all > 0 => {
                    format!(
                        "{held} of {all} ({:.1} %)",
                        100.0 * held as f64 / all as f64
                    )
                }
                (true, _) => "none estimated".to_owned(),
                (false, _) => "–".to_owned(),
            };
            let ratio = with_range(of, 2).unwrap_or_default();
            println!("| {} | {one_in} | {ratio} | {held} |", program.name);
        }
    }
    for one_in in &args.one_in {
        let mean = ratios.get(one_in).and_then(|all| geometric_mean(all));
        println!(
            "| geometric mean | {one_in} | {:.3} | |",
            mean.context("no program")?
        );
    }
    Ok(())
}

/// Estimates that hold the truth, and all of those from at least a handful of chosen activations.
fn held(truth: &HashMap<Gram, u64>, profile: &Profile) -> Result<(u64, u64)> {
    let (mut held, mut all) = (0, 0);
    for method in profile.methods() {
        if method.estimate.is_none_or(|e| e.chosen < 5) {
            continue;
        }
        let kipf = profile.detail(method.index)?.kipf;
        let name = name(method);
        for length in 1..=kipf.k() {
            for (ids, _) in kipf.level(length) {
                let node = kipf.find(&ids).context("a sequence without a node")?;
                let (lo, hi) = (kipf.lower(node), kipf.upper(node));
                let count = truth.get(&(name.clone(), ids)).copied().unwrap_or(0);
                all += 1;
                held += u64::from(lo <= count && count <= hi);
            }
        }
    }
    Ok((held, all))
}
