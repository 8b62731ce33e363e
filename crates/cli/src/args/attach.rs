//! Options of `attach` and `detach`.

use super::{Ending, SiteOptions, time};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// What an agent looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lens {
    /// Which line allocated each live object
    Sites,
    /// Which paths methods take; not in a JVM that runs already, in this version
    Paths,
}

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// What to look at
    #[arg(long, value_enum, default_value_t = Lens::Sites)]
    pub lens: Lens,
    /// Stay so long, such as 90s, 10m or 2h (Ctrl-C ends it earlier); then take a snapshot, detach and show the report [default: stay
    /// until the program ends, or `borescope detach`]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Wait at most so many seconds for the JVM to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub timeout: u64,
    /// What to mark
    #[command(flatten)]
    pub sites: SiteOptions,
    /// Where the profile goes: a new or empty directory that the JVM's user may write to [default: ./borescope-DATE-TIME.borescope, UTC]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// What is shown at the end
    #[command(flatten)]
    pub ending: Ending,
}

/// Options of `detach`.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
}
