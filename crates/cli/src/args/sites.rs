//! Options of the commands of the sites lens.

use super::{Color, Ending, Format, Program, class_glob, time};
use crate::failure::{Result, usage};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// `yes` or `no`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    /// Yes
    #[default]
    Yes,
    /// No
    No,
}

/// How numbers stand in headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// What the JVM's headers have room for
    #[default]
    Auto,
    /// In the bits above the identity hash that the JVM does not use
    Spare,
    /// In the identity hash; what compact object headers need
    Dynamic,
    /// There, too, but of one length: the hashes of a line's objects are soon used up, which makes big identity maps slow. To compare
    Static,
    /// The patent's figure 9C, which no stock HotSpot allows: known, so that it can be refused with the reason
    #[value(hide = true)]
    Hybrid,
}

impl Mode {
    /// As the agent spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Spare => "spare",
            Self::Dynamic => "dynamic",
            Self::Static => "static",
            Self::Hybrid => "hybrid",
        }
    }
}

/// What is marked, and what snapshots do.
#[derive(Debug, Default, Args)]
pub struct SiteOptions {
    /// Mark only what classes allocate that match, such as 'com.acme.*' (`*` any characters, `?` one); may be repeated [default: all]
    #[arg(long, value_name = "GLOB", value_parser = class_glob)]
    pub include: Vec<String>,
    /// Mark nothing that classes allocate that match; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = class_glob)]
    pub exclude: Vec<String>,
    /// Mark what the JDK's classes allocate, too: nodes of maps, contents of strings, arrays of lists
    #[arg(long, value_enum, value_name = "YES|NO", default_value_t = YesNo::Yes, hide_possible_values = true)]
    pub jdk: YesNo,
    /// Find out which line of the application led to what the JDK allocates
    #[arg(long, value_enum, value_name = "YES|NO", default_value_t = YesNo::Yes, hide_possible_values = true)]
    pub attribute: YesNo,
    /// List each live object with its address and site, too (objects.parquet; 20 bytes an object while the snapshot is taken)
    #[arg(long)]
    pub objects: bool,
    /// Do not collect the heap before a snapshot: shorter pauses, but dead objects are counted as well
    #[arg(long)]
    pub no_gc: bool,
    /// Take a snapshot each time so long has passed, such as 30s, 10m or 2h, besides that at the end
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub every: Option<Duration>,
    /// Where the number of a site stands in an object's header
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    pub mode: Mode,
}

impl SiteOptions {
    /// Refuses what no JVM can do, before anything is made.
    pub fn check(&self) -> Result<()> {
        match self.mode {
            Mode::Hybrid => Err(usage!(
                "--mode hybrid would change identity hashes that the JVM itself may have read, for tags and locks: choose auto, spare, dynamic or static; `borescope simulate` shows what hybrid numbers would be like"
            )),
            _ => Ok(()),
        }
    }
}

/// Options of `sites`.
#[derive(Debug, Args)]
pub struct SitesArgs {
    /// What to mark
    #[command(flatten)]
    pub sites: SiteOptions,
    /// Where the profile goes: a new or empty directory [default: ./borescope-DATE-TIME.borescope, UTC]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Instead of a profile, record a trace of allocations and identity hashes for `borescope simulate`, in a new file; the program runs much slower
    #[arg(
        long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["output", "attribute", "objects", "no_gc", "every", "mode", "open", "print_agent"]
    )]
    pub trace: Option<PathBuf>,
    /// What is shown at the end
    #[command(flatten)]
    pub ending: Ending,
    /// What to run
    #[command(flatten)]
    pub program: Program,
}

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
}

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Profile before, or the profile of `sites` of which two snapshots are compared
    #[arg(value_name = "BEFORE", value_hint = ValueHint::DirPath)]
    pub before: PathBuf,
    /// Profile after
    #[arg(value_name = "AFTER", value_hint = ValueHint::DirPath)]
    pub after: Option<PathBuf>,
    /// Snapshot before [default: of two profiles the last of BEFORE, of one the first]
    #[arg(long, value_name = "N")]
    pub from: Option<u32>,
    /// Snapshot after [default: the last, or that of the last OutOfMemoryError]
    #[arg(long, value_name = "N")]
    pub to: Option<u32>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Show the N lines that grew most, or pairs that changed [default: text 10, json everything]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Show only lines in methods that match, such as 'Cache.*' or 'com.acme.*'
    #[arg(long, value_name = "GLOB")]
    pub method: Option<String>,
    /// Quote source lines from here, a directory or a jar or zip with sources (searched by package, then by file name); may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub source: Vec<PathBuf>,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}
