//! What the sites lens costs: CPU against plain runs of real programs, with an interval that many interleaved runs give; and identity hashes of 1,000,000 objects
//! of one site in an IdentityHashMap.

use crate::evaluation::chosen;
use crate::run::Runner;
use crate::stats::{Interval, geometric_mean, interval, median};
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::programs::Program;
use borescope_e2e::sites::{Log, programs, spool};

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Programs; `none` measures identity hashes alone
    #[arg(long, value_delimiter = ',', default_values_t = ["ecj".to_owned(), "h2".into(), "lucene".into()])]
    programs: Vec<String>,
    /// Turns: each runs everything plain and in each variant, beginning with another one
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = [17, 25])]
    jdk: Vec<u32>,
    /// Options of the JVM, such as -XX:+UseSerialGC
    #[arg(long, allow_hyphen_values = true)]
    option: Vec<String>,
    /// Objects in the IdentityHashMap
    #[arg(long, default_value_t = 1_000_000)]
    objects: u32,
}

/// How the agent runs, and its options.
const VARIANTS: [(&str, &str); 3] = [
    ("application classes", "jdk=0,attribute=0"),
    ("and the JDK's", "jdk=1,attribute=0"),
    ("and callers (default)", "jdk=1,attribute=1"),
];

/// Prints tables.
pub fn run(args: &Args) -> Result<()> {
    ensure!(
        args.runs > 1,
        "--runs must be at least 2: one says nothing of the spread"
    );
    let runner = Runner::new(300)?;
    println!(
        "Ratio to the plain run of the same turn, {} turns: geometric mean, and in brackets the interval that holds the true one with 95 % (Student's t on \
         logarithms). JVM options: {}.\n",
        args.runs,
        if args.option.is_empty() {
            "none".into()
        } else {
            args.option.join(" ")
        }
    );
    if args.programs != ["none"] {
        cpu(&runner, args, &chosen(&args.programs)?)?;
    }
    identity(&runner, args)
}

fn header(first: &str) {
    print!("| {first} | JDK | plain |");
    for (name, _) in VARIANTS {
        print!(" {name} |");
    }
    println!("\n|---|---|---|{}", "---|".repeat(VARIANTS.len()));
}

/// One turn after the other: plain and each variant, and what each gave.
fn turns(
    args: &Args,
    mut measure: impl FnMut(Option<&str>) -> Result<f64>,
) -> Result<[Vec<f64>; VARIANTS.len() + 1]> {
    crate::stats::interleaved(args.runs, |i| match i.checked_sub(1) {
        None => measure(None),
        Some(variant) => {
            let out = tempfile::tempdir()?;
            let how = format!(
                "lens=sites,out={},{}",
                out.path().display(),
                VARIANTS[variant].1
            );
            let value = measure(Some(&how))?;
            let log = Log::read(&spool(out.path()));
            ensure!(
                log.snapshots().len() == 1,
                "no snapshot: {:?}",
                log.notices()
            );
            Ok(value)
        }
    })
}

fn line(name: &str, jdk: u32, times: &[Vec<f64>], unit: &str) -> Vec<f64> {
    let mut means = Vec::new();
    let mut text = format!(
        "| {name} | {jdk} | {:.2} {unit} |",
        median(&times[0]).unwrap_or(0.0)
    );
    for variant in &times[1..] {
        let ratios: Vec<f64> = variant.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        let Some(Interval { low, mean, high }) = interval(&ratios) else {
            continue;
        };
        text += &format!(" {mean:.3} [{low:.3}, {high:.3}] |");
        means.push(mean);
    }
    println!("{text}");
    means
}

fn cpu(runner: &Runner, args: &Args, programs: &[&'static Program]) -> Result<()> {
    println!("CPU time, the walk of the heap at the end included:\n");
    header("program");
    for &jdk in &args.jdk {
        let mut means: [Vec<f64>; VARIANTS.len()] = Default::default();
        for program in programs {
            let times = turns(args, |options| {
                let files = tempfile::tempdir()?;
                let arguments = args
                    .option
                    .iter()
                    .cloned()
                    .chain(program.arguments(files.path()));
                let cpu = runner
                    .java(jdk, options, arguments.map(Into::into))?
                    .well(program)?;
                eprintln!(
                    "{} on JDK {jdk} {}: {cpu:.2} s",
                    program.name,
                    options.unwrap_or("plain")
                );
                Ok(cpu)
            })?;
            for (of, mean) in means.iter_mut().zip(line(program.name, jdk, &times, "s")) {
                of.push(mean);
            }
        }
        print!("| geometric mean | {jdk} | |");
        for of in &means {
            print!(" {:.3} |", geometric_mean(of).context("no program")?);
        }
        println!();
    }
    println!();
    Ok(())
}

fn identity(runner: &Runner, args: &Args) -> Result<()> {
    println!(
        "An IdentityHashMap filled with {} objects of one site and asked three times for each, fewest milliseconds of 5 rounds in a JVM:\n",
        args.objects
    );
    header("");
    for &jdk in &args.jdk {
        let times = turns(args, |options| {
            let program = [
                "-cp",
                programs(),
                "IdentityCost",
                &args.objects.to_string(),
                "5",
            ]
            .map(str::to_owned);
            let arguments = args
                .option
                .iter()
                .cloned()
                .chain(["-Xmx1g".to_owned()])
                .chain(program);
            let ran = runner.java(jdk, options, arguments.map(Into::into))?;
            ensure!(ran.code == Ok(0), "{:?} {}", ran.code, ran.stderr);
            let printed = String::from_utf8_lossy(&ran.stdout);
            let ms = printed
                .trim()
                .parse()
                .with_context(|| printed.clone().into_owned())?;
            eprintln!(
                "IdentityHashMap on JDK {jdk} {}: {ms:.0} ms",
                options.unwrap_or("plain")
            );
            Ok(ms)
        })?;
        line("IdentityHashMap", jdk, &times, "ms");
    }
    Ok(())
}
