//! Reproduces the times of README and docs; other figures there name their command, or say that there is none: `cargo run --release -p borescope-bench --
//! COMMAND`, progress on standard error. Needs what `tests/fetch` fetches and a machine that does nothing else: or what else it does takes a lock (`run::Runner::new`).

mod bounded;
mod burst;
mod chart;
mod counts;
mod evaluation;
mod gc_log;
mod grams;
mod held;
mod instructions;
mod machine_code;
mod page;
mod replay;
mod results;
mod run;
mod sites_cost;
mod sites_coverage;
mod sites_figures;
mod sites_peers;
mod startup;
mod stats;
mod throughput;
mod vectorize;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures borescope", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The seed's evaluation: every program under every engine and k, against plain runs; results, page and plots go to docs/evaluation
    Evaluation(evaluation::Args),
    /// The hottest sequences under the limits on rows and memory, against runs without
    Bounded(bounded::Args),
    /// What burst mode costs against plain runs, and how many of its intervals hold the counts of an exact run
    Burst(burst::Args),
    /// Instructions an item of the engines by themselves, counted by valgrind
    Instructions(instructions::Args),
    /// An engine on a file of streams: what `instructions` lets valgrind run
    #[command(hide = true)]
    Feed(instructions::FeedArgs),
    /// The sites lens: CPU, bytes allocated, pauses and start-up against plain runs, with intervals; identity hashes of a million objects of one site
    SitesCost(sites_cost::Args),
    /// The sites lens: sites per class and collisions of identity hashes in traces (the seed's figures 11 and 12); page and plots go to docs/evaluation
    SitesFigures(sites_figures::Args),
    /// The sites lens beside async-profiler, JFR and the class histogram: planted leaks, and what each tool says of them; page and table go to docs/evaluation
    SitesPeers(sites_peers::Args),
    /// The sites lens: how much of large heaps has a site and a line of the application; page and table go to docs/evaluation
    SitesCoverage(sites_coverage::Args),
    /// What C2 makes of a method's innermost loops, plain and with probes (needs objdump)
    MachineCode(machine_code::Args),
    /// How much longer a program takes that only says hello
    Startup(startup::Args),
    /// CPU of programs whose inner loops the JIT compiler vectorizes
    Vectorize(vectorize::Args),
    /// MB/s of class bytes through the instrumenter on one core, over the whole corpus
    ThroughputInstrument {
        /// Passes over the corpus
        #[arg(long, default_value_t = 5)]
        passes: usize,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Evaluation(args) => evaluation::run(&args),
        Command::Bounded(args) => bounded::run(&args),
        Command::Burst(args) => burst::run(&args),
        Command::Instructions(args) => instructions::run(&args),
        Command::Feed(args) => instructions::feed(&args),
        Command::SitesCost(args) => sites_cost::run(&args),
        Command::SitesFigures(args) => sites_figures::run(&args),
        Command::SitesPeers(args) => sites_peers::run(&args),
        Command::SitesCoverage(args) => sites_coverage::run(&args),
        Command::MachineCode(args) => machine_code::run(&args),
        Command::Startup(args) => startup::run(&args),
        Command::Vectorize(args) => vectorize::run(&args),
        Command::ThroughputInstrument { passes } => {
            print!("{}", throughput::section(passes)?);
            Ok(())
        }
    }
}
