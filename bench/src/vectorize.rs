//! CPU of programs whose inner loops C2 turns into vector instructions when they are plain: a probe that touches memory on each turn ends
//! that and costs about ten times the plain program's time, as `blpp-dense` shows; a run probe must not.

use crate::run::{self, Runner};
use crate::stats::{interleaved, with_range};
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::programs::Program;
use borescope_e2e::workloads::{MEASURED, VECTOR_ADD};

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Turns
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = borescope_e2e::JDKS)]
    jdk: Vec<u32>,
}

/// Engine and k; the first is the plain program.
const VARIANTS: [Option<(&str, u32)>; 5] = [
    None,
    Some(("automaton", 1)),
    Some(("automaton", 4)),
    Some(("automaton", 16)),
    Some(("blpp-dense", 1)),
];

/// Prints a table.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs must be at least 1");
    let runner = Runner::new(300)?;
    println!(
        "CPU time, ratio to the plain run of the same turn, {} turns: median (range).\n",
        args.runs
    );
    print!("| program | JDK | plain, s |");
    for (engine, k) in VARIANTS.iter().flatten() {
        print!(" {engine} k={k} |");
    }
    println!("\n|---|---|---|{}", "---|".repeat(VARIANTS.len() - 1));
    let lu = MEASURED.iter().find(|p| p.name == "lu");
    for program in [&VECTOR_ADD, lu.context("a program named lu")?] {
        for &jdk in &args.jdk {
            let times: [Vec<f64>; VARIANTS.len()] =
                interleaved(args.runs, |i| once(&runner, program, jdk, VARIANTS[i]))?;
            let mut line = format!(
                "| {} | {jdk} | {} |",
                program.name,
                with_range(&times[0], 2).unwrap_or_default()
            );
            for variant in &times[1..] {
                let ratios: Vec<f64> = variant.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
                line += &format!(" {} |", with_range(&ratios, 2).unwrap_or_default());
            }
            println!("{line}");
        }
    }
    Ok(())
}

fn once(runner: &Runner, program: &Program, jdk: u32, variant: Option<(&str, u32)>) -> Result<f64> {
    let out = tempfile::tempdir()?;
    let options = variant.map(|(engine, k)| {
        format!(
            "lens=paths,k={k},engine={engine},out={}",
            out.path().display()
        )
    });
    let ran = runner.program(program, jdk, options.as_deref())?;
    let cpu = ran.well(program)?;
    ensure!(
        variant.is_none() || run::spool(out.path()).is_some(),
        "no spool: {}",
        ran.stderr
    );
    eprintln!(
        "{} on JDK {jdk} {variant:?}: {:.2} s CPU",
        program.name, cpu
    );
    Ok(cpu)
}
