//! What the sites lens costs: CPU against plain runs of real programs, with an interval that many interleaved runs give; bytes that they allocate and pauses for collections;
//! the start of a program that only says hello; and identity hashes of 1,000,000 objects of one site in an IdentityHashMap.

use crate::evaluation::chosen;
use crate::gc_log::{Collections, collections};
use crate::run::Runner;
use crate::stats::{Interval, geometric_mean, interval, median, with_range};
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::programs::{Program, drivers};
use borescope_e2e::sites::{Log, programs, spool};
use borescope_e2e::workloads::ALLOCATING;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [What::Cpu, What::Collections, What::Startup, What::Identity])]
    what: Vec<What>,
    /// Programs
    #[arg(long, value_delimiter = ',', default_values_t = ["ecj", "h2", "scala", "lucene", "boxes"].map(str::to_owned))]
    programs: Vec<String>,
    /// Turns: each runs everything plain and in each variant, beginning with another one
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// Turns for collections: what a program allocates hardly differs from run to run
    #[arg(long, default_value_t = 3)]
    collection_runs: usize,
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

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum What {
    /// CPU time of programs
    Cpu,
    /// What they allocate, and pauses for collections
    Collections,
    /// Start to end of a program that only says hello
    Startup,
    /// Identity hashes of many objects of one site
    Identity,
}

/// How the agent runs, and its options.
const VARIANTS: [(&str, &str); 4] = [
    ("application classes", "jdk=0,attribute=0"),
    ("and the JDK's", "jdk=1,attribute=0"),
    ("and callers (default)", "jdk=1,attribute=1"),
    (
        "and what does not leave its method",
        "jdk=1,attribute=1,local=1",
    ),
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
    let programs = args.programs.iter().map(|name| named(name));
    let programs: Vec<&Program> = programs.collect::<Result<_>>()?;
    for what in &args.what {
        match what {
            What::Cpu => cpu(&runner, args, &programs)?,
            What::Collections => allocated(&runner, args, &programs)?,
            What::Startup => startup(&runner, args)?,
            What::Identity => identity(&runner, args)?,
        }
    }
    Ok(())
}

fn named(name: &str) -> Result<&'static Program> {
    match ALLOCATING.iter().find(|program| program.name == name) {
        Some(program) => Ok(program),
        None => Ok(chosen(&[name.to_owned()])?[0]),
    }
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
    runs: usize,
    mut measure: impl FnMut(usize, Option<&str>) -> Result<f64>,
) -> Result<[Vec<f64>; VARIANTS.len() + 1]> {
    crate::stats::interleaved(runs, |i| match i.checked_sub(1) {
        None => measure(i, None),
        Some(variant) => {
            let out = tempfile::tempdir()?;
            let how = format!(
                "lens=sites,out={},{}",
                out.path().display(),
                VARIANTS[variant].1
            );
            let value = measure(i, Some(&how))?;
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
            let times = turns(args.runs, |_, options| {
                let cpu = program_run(runner, args, program, jdk, options, &[])?;
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

/// Runs a program, with options of the JVM before its own; its CPU time.
fn program_run(
    runner: &Runner,
    args: &Args,
    program: &Program,
    jdk: u32,
    options: Option<&str>,
    more: &[String],
) -> Result<f64> {
    let files = tempfile::tempdir()?;
    let own = program.arguments(files.path());
    let arguments = args.option.iter().chain(more).cloned().chain(own);
    runner
        .java(jdk, options, arguments.map(Into::into))?
        .well(program)
}

/// Young generations of a size of their own: the more collections, the better is known what was allocated.
const YOUNG: &str = "-Xmn16m";

fn allocated(runner: &Runner, args: &Args, programs: &[&'static Program]) -> Result<()> {
    println!(
        "MiB allocated, and milliseconds of pauses for collections, by the JVM's log of collections ({YOUNG}; from the first to the last that the program caused), {} turns:\n",
        args.collection_runs
    );
    header("program");
    for &jdk in &args.jdk {
        for program in programs {
            let mut pauses: [Vec<f64>; VARIANTS.len() + 1] = Default::default();
            let bytes = turns(args.collection_runs, |at, options| {
                let files = tempfile::tempdir()?;
                let log = files.path().join("log");
                let options_of_log = [
                    YOUNG.to_owned(),
                    format!("-Xlog:gc:file={}:none:filecount=0", log.display()),
                ];
                program_run(runner, args, program, jdk, options, &options_of_log)?;
                let text = std::fs::read_to_string(&log)?;
                let Collections {
                    allocated,
                    pauses: paused,
                } = collections(&text).with_context(|| format!("no collections:\n{text}"))?;
                pauses[at].push(paused);
                eprintln!(
                    "{} on JDK {jdk} {}: {allocated:.0} MiB, {paused:.0} ms",
                    program.name,
                    options.unwrap_or("plain")
                );
                Ok(allocated)
            })?;
            line(program.name, jdk, &bytes, "MiB");
            line(&format!("{}, pauses", program.name), jdk, &pauses, "ms");
        }
    }
    println!();
    Ok(())
}

fn startup(runner: &Runner, args: &Args) -> Result<()> {
    println!(
        "Milliseconds from start to end of a program that only says hello, the snapshot at its end included: plain, and how many more (median, range):\n"
    );
    header("");
    for &jdk in &args.jdk {
        let times = turns(args.runs, |_, options| {
            let program = ["-cp".into(), drivers().into(), "Hello".into()];
            let before = args.option.iter().map(Into::into);
            let ran = runner.java(jdk, options, before.chain(program))?;
            ensure!(
                ran.code == Ok(0) && ran.stdout == b"hello\n",
                "{:?} {}",
                ran.code,
                ran.stderr
            );
            Ok(ran.wall * 1e3)
        })?;
        let [plain, with @ ..] = &times;
        print!("| hello | {jdk} | {:.0} ms |", median(plain).unwrap_or(0.0));
        for variant in with {
            let more: Vec<f64> = variant.iter().zip(plain).map(|(a, b)| a - b).collect();
            print!(" {} |", with_range(&more, 0).unwrap_or_default());
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
        let times = turns(args.runs, |_, options| {
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
