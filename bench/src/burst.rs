//! Burst mode: what it costs, turn by turn against plain runs, and how many of its 95 % intervals hold the count of a run that counts everything.

use crate::evaluation::chosen;
use crate::run::{self, Runner};
use crate::stats::{geometric_mean, median, with_range};
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::programs::Program;
use borescope_profile::{Existing, Profile, seal};
use std::collections::HashMap;
use std::path::Path;

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

/// A sequence of path IDs in a method.
type Gram = (String, Vec<u32>);

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
        let mut last: HashMap<u32, Profile> = HashMap::new();
        for turn in 0..args.runs {
            eprintln!("{}, turn {}", program.name, turn + 1);
            let plain = ended(program, runner.program(program, args.jdk, None)?)?;
            for &one_in in &args.one_in {
                let options = format!("burst={one_in}");
                let (cpu, profile) = profiled(&runner, program, args, &options)?;
                turns.entry(one_in).or_default().push(cpu / plain);
                last.insert(one_in, profile);
            }
        }
        let exact = |runner| -> Result<Profile> {
            Ok(profiled(runner, program, args, "memory=34359738368,rows=4294967295")?.1)
        };
        let truth = counts(&exact(&runner)?)?;
        let same = truth == counts(&exact(&runner)?)?;
        for &one_in in &args.one_in {
            let (of, profile) = (&turns[&one_in], &last[&one_in]);
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

/// The CPU time of a run that went well.
fn ended(program: &Program, ran: run::Ran) -> Result<f64> {
    let well = ran.code == Ok(program.exit);
    ensure!(well, "{}: {:?} {}", program.name, ran.code, ran.stderr);
    Ok(ran.cpu)
}

fn profiled(
    runner: &Runner,
    program: &Program,
    args: &Args,
    options: &str,
) -> Result<(f64, Profile)> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("p");
    let options = format!("lens=paths,k={},out={},{options}", args.k, out.display());
    let cpu = ended(program, runner.program(program, args.jdk, Some(&options))?)?;
    let spool = run::spool(&out).context("no spool")?;
    let sealed = out.join("sealed");
    seal(&spool, &sealed, Existing::Refuse, &mut |_| ())?;
    in_memory(&sealed).map(|profile| (cpu, profile))
}

/// The profile, that of the directory being gone soon.
fn in_memory(dir: &Path) -> Result<Profile> {
    let profile = Profile::open(dir)?;
    let mut details = std::collections::BTreeMap::new();
    for method in profile.methods() {
        details.insert(method.index, profile.detail(method.index)?);
    }
    let (manifest, methods) = (profile.manifest().clone(), profile.methods().to_vec());
    Ok(Profile::from_parts(
        manifest,
        methods,
        profile.skipped().to_vec(),
        details,
    ))
}

fn name(method: &borescope_profile::Method) -> String {
    format!(
        "{}.{}{} {:x}",
        method.class, method.method, method.descriptor, method.class_hash
    )
}

/// All paths and sequences of methods that ran.
fn counts(profile: &Profile) -> Result<HashMap<Gram, u64>> {
    let mut all = HashMap::new();
    for method in profile.methods().iter().filter(|m| m.ids > 0) {
        let kipf = profile.detail(method.index)?.kipf;
        let name = name(method);
        for length in 1..=kipf.k() {
            for (ids, count) in kipf.level(length) {
                *all.entry((name.clone(), ids)).or_default() += count;
            }
        }
    }
    Ok(all)
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
