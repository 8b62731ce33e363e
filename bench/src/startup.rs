//! How much longer a program takes that only says hello: what the agent costs before and after the program does anything.

use crate::run::{self, Runner};
use crate::stats::{interleaved, with_range};
use anyhow::{Result, ensure};
use borescope_e2e::programs::drivers;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Turns: each runs the program with the agent and without
    #[arg(long, default_value_t = 21)]
    runs: usize,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = borescope_e2e::JDKS)]
    jdk: Vec<u32>,
}

/// Prints a table.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs must be at least 1");
    let runner = Runner::new(60)?;
    println!(
        "Milliseconds from start to end, {} turns: median (range); `more` within each turn.\n",
        args.runs
    );
    println!("| JDK | plain | with the agent | more |\n|---|---|---|---|");
    for &jdk in &args.jdk {
        let [plain, profiled] = interleaved(args.runs, |i| {
            let out = tempfile::tempdir()?;
            let options = format!("lens=paths,k=4,out={}", out.path().display());
            let options = (i == 1).then_some(options);
            let arguments = ["-cp".into(), drivers().into(), "Hello".into()];
            let ran = runner.java(jdk, options.as_deref(), arguments)?;
            ensure!(
                ran.code == Ok(0) && ran.stdout == b"hello\n",
                "{:?} {}",
                ran.code,
                ran.stderr
            );
            ensure!(
                i == 0 || run::spool(out.path()).is_some(),
                "no spool: {}",
                ran.stderr
            );
            Ok(ran.wall * 1e3)
        })?;
        let more: Vec<f64> = profiled.iter().zip(&plain).map(|(a, b)| a - b).collect();
        let cell = |v: &[f64]| with_range(v, 0).unwrap_or_default();
        println!(
            "| {jdk} | {} | {} | {} |",
            cell(&plain),
            cell(&profiled),
            cell(&more)
        );
    }
    Ok(())
}
