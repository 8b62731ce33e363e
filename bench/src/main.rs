//! Reproduces every figure of README and docs: `cargo run --release -p borescope-bench -- COMMAND`, Markdown on standard output, progress
//! on standard error. Needs what `tests/fetch` fetches and a machine that does nothing else.

mod first;
mod stats;
mod throughput;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures borescope; Markdown on standard output", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Process CPU of ecj, H2 and the SciMark kernels under each engine, against plain runs; writes docs/evaluation.md
    First(first::Args),
    /// MB/s of class bytes through the instrumenter on one core, over the whole corpus
    ThroughputInstrument {
        /// Passes over the corpus
        #[arg(long, default_value_t = 5)]
        passes: usize,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::First(args) => first::run(&args),
        Command::ThroughputInstrument { passes } => {
            print!("{}", throughput::section(passes)?);
            Ok(())
        }
    }
}
