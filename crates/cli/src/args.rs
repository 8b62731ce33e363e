//! The command line: one table from which parsing and `--help` come.

use crate::failure::{self, usage};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use time::time;

mod attach;
mod sites;
mod time;
mod waste;

pub use attach::{AttachArgs, DetachArgs, Lens};
pub use sites::{DiffArgs, SiteOptions, SitesArgs, SnapshotArgs, YesNo};
pub use waste::{WasteArgs, WasteOptions};

/// What each page of help ends with.
const EXIT_CODES: &str = "Exit codes: 0 done; 1 wrong command line; 2 cannot be done here (no JDK, no permission, unsupported JVM);
3 the profile is damaged or empty.";

/// `borescope`.
#[derive(Debug, Parser)]
#[command(
    name = "borescope",
    version,
    about = "Looks into Java programs on stock JVMs: exact path profiles of their methods, which line allocated each live object, and which memory operations did no useful work",
    long_about = "Looks into Java programs on stock HotSpot (JDK 17 and newer, Linux x86-64) without a change to them: an agent instruments class \
        files as they are loaded.\n\n\
        `paths` counts, exactly, which control-flow paths each method takes and which sequences of up to k paths follow one another from \
        iteration to iteration. `sites` tells of every live object which line allocated it, and which lines keep allocating what stays. `waste` samples loads and stores of the compiled code and tells \
        which pairs of lines read or write memory to no use.",
    after_help = "Start here:
  borescope demo                             profile a small bundled program (and: demo sites)
  borescope paths -- java -jar app.jar       which paths do my methods take?
  borescope sites -- java -jar app.jar       which lines allocated what is alive?
  borescope waste -- java -jar app.jar       which loads and stores are useless?
  borescope doctor                           if something does not work
  borescope paths -k 8 --include 'com.acme.*' -- java -jar app.jar
  borescope report borescope-20260131-120000.borescope --method 'Scanner.*'

`borescope COMMAND --help` explains a command.",
    subcommand_required = true,
    arg_required_else_help = false,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program and profile its paths
    #[command(
        long_about = "Runs a program and profiles the control-flow paths of its methods.\n\n\
            The command after `--` is `java ...` (the agent goes in as its first argument) or anything that starts JVMs, such as \
            mvn, gradle or a script: then the agent goes in through JAVA_TOOL_OPTIONS (each JVM says so on standard error), and each JVM that appears gets a \
            profile of its own, in DIR/jvm-PID.\n\n\
            The program keeps its standard streams, its signals and its exit code. What borescope has to say comes on standard error \
            after the program has ended.",
        after_help = "Examples:
  borescope paths -- java -jar app.jar
  borescope paths -k 8 --include 'com.acme.*' --exclude '*Test' -o run1 -- java -cp classes com.acme.Main
  borescope paths --include 'java.util.HashMap*' -- java -jar app.jar      JDK classes, on request
  borescope paths --burst 1/64 -- java -jar server.jar                     a random share of the calls: cheaper, estimates
  borescope paths -- mvn test                                              every JVM that appears

What next: `borescope report DIR` reads the profile again, whole or by method; its .parquet files open in DuckDB and pandas.
Without this command (build tools, containers, servers): `borescope paths --print-agent -o DIR` prints the option that a JVM needs; then `borescope report DIR`.

Exit codes: the program's own; 128 + n if signal n killed it; 1 wrong command line and 2 cannot be done here if it was not started."
    )]
    Paths(PathsArgs),

    /// Run a program and find the lines that allocated its live objects
    #[command(
        long_about = "Runs a program and finds, for every object that is alive at a snapshot, the line that allocated it: the answer to \
            \"what fills the heap, and where does it come from?\"\n\n\
            A snapshot is taken at the end, at the first OutOfMemoryError, on request (`borescope snapshot PID`), and by the clock (--every). The heap \
            grows by nothing: the number of the line stands in bits of the object's header that the JVM does not use. Objects whose line is \
            not known are counted, with the reason.\n\n\
            The command after `--` is `java ...` or anything that starts JVMs, as with `borescope paths`. The program keeps its standard \
            streams, its signals and its exit code.",
        after_help = "Examples:
  borescope sites -- java -jar app.jar
  borescope sites --every 10m -o run1 -- java -jar server.jar               a snapshot every ten minutes: what keeps growing?
  borescope snapshot 4711                                                  one more, now
  borescope sites --jdk no --include 'com.acme.*' -- java -jar app.jar     only what these classes allocate themselves: cheaper

What next: `borescope report DIR` shows what grew, `borescope diff DIR --from 2 --to 5` compares two snapshots; the .parquet files open in
DuckDB and pandas.
Without this command (build tools, containers, servers): `borescope sites --print-agent -o DIR` prints the option that a JVM needs; then `borescope report DIR`.

Exit codes: the program's own; 128 + n if signal n killed it; 1 wrong command line and 2 cannot be done here if it was not started."
    )]
    Sites(SitesArgs),

    /// Run a program and find loads and stores that did no useful work
    #[command(
        long_about = "Runs a program and finds memory operations of its compiled code that did no useful work, and the two lines that cause each: values that are \
            overwritten before anything reads them (dead stores), stores of the value that is already there (silent stores), and loads of a value that was \
            loaded before and has not changed (silent loads).\n\n\
            It samples: now and then it takes one access of a thread, watches the place with a debug register of the processor, and looks at what the thread does \
            there next. Nothing is instrumented. Shares are estimates, of sampled CPU time. Interpreted code is not measured.\n\n\
            The command after `--` is `java ...` or anything that starts JVMs, as with `borescope paths`. The program keeps its standard \
            streams, its signals and its exit code.",
        after_help = "Examples:
  borescope waste -- java -jar app.jar
  borescope waste --rate 1000 -o run1 -- java -jar app.jar        more samples of a short run
  borescope report run1 --source src/main/java --contexts         with source text and who called
  borescope report run1 --format collapsed | flamegraph.pl        calling contexts as a flame graph
  borescope diff run1 run2                                        what did the fix change?

Without this command (containers, servers): java -agentpath:/path/libborescope.so=lens=waste,out=DIR ...; then `borescope report DIR`.

Exit codes: the program's own; 128 + n if signal n killed it; 1 wrong command line; 2 cannot be done here (debug registers or perf_event denied: the \
agent says which and how to mend it; the program ran without it, and 2 replaces only its exit code 0)."
    )]
    Waste(WasteArgs),

    /// Take a snapshot of a JVM that runs under `sites`
    #[command(
        long_about = "Takes a snapshot of the heap of a JVM that runs under `borescope sites`: which line allocated each object that is alive \
            now. The JVM stands still for the time of a full collection and a walk through the heap.",
        after_help = format!("Example:
  borescope snapshot 4711 && borescope report run1

{EXIT_CODES}")
    )]
    Snapshot(SnapshotArgs),

    /// Find the lines that allocate in a JVM that runs already
    #[command(
        long_about = "Goes into a JVM that runs already, without a restart, and marks what it allocates from now on: as `borescope sites`, but objects from before \
            have no line. With --for it leaves again after that time, with a snapshot, and shows the report.\n\n\
            The classes that are loaded are changed in batches; each is a pause, and compiled code is compiled again. On the JVM's standard error JDK 21 and newer \
            warn that an agent was loaded, unless they were started with -XX:+EnableDynamicAgentLoading. Works in containers, as the JVM's user or root.",
        after_help = format!("Examples:
  borescope attach 4711 --for 10m                   ten minutes, then the report
  borescope attach 4711 -o run1                     until the program ends; then `borescope report run1`
  borescope snapshot 4711                           meanwhile: what is alive now
  borescope detach 4711                             out again, with a last snapshot

{EXIT_CODES}")
    )]
    Attach(AttachArgs),

    /// Leave a JVM that borescope was attached to
    #[command(
        long_about = "Takes a last snapshot of a JVM that `borescope attach` went into, makes its classes as they were before, and completes the log. What is \
            marked stays marked; that costs nothing.",
        after_help = format!("Example:
  borescope detach 4711 && borescope report run1

{EXIT_CODES}")
    )]
    Detach(DetachArgs),

    /// Compare two snapshots: which lines grew? Or two profiles of `waste`: what did a fix change?
    #[command(
        long_about = "Compares two snapshots, of one profile of `sites` or of two: which lines of the application have more live objects than \
            before. Lines are compared by class, method and line number: compare runs of the same build.\n\n\
            Of two profiles of `waste`: which pairs are gone, new, more or less. These are compared by methods, since a fix moves lines.",
        after_help = format!("Examples:
  borescope diff run1                      the first snapshot and the last
  borescope diff run1 --from 2 --to 5
  borescope diff run1 run2                 the last snapshots of two runs, or two runs of `waste`

{EXIT_CODES}")
    )]
    Diff(DiffArgs),

    /// Show a profile
    #[command(
        long_about = "Shows a profile. Of `paths`: the hottest methods first, their chains of paths across iterations in source lines, then detail. Of \
            `sites`: the lines whose live objects grew most, and those that hold most. Of `waste`: the pairs of lines whose memory operations could be saved.\n\n\
            A directory that a killed borescope or JVM left behind is completed (sealed) first; nothing that was counted is lost. \
            Of a JVM that still runs, the report shows what it has counted so far.",
        after_help = format!("Examples:
  borescope report run1
  borescope report run1 --method 'com.acme.Scanner.*' --source src/main/java
  borescope report run1 --format json | jq '.paths.methods[0].chains'
  borescope report run1 --format html --source src/main/java --out run1.html     a page for the browser
  borescope report run1 --format pprof --out run1.pb.gz && go tool pprof -top run1.pb.gz
  borescope report run1 --format lcov --source src/main/java --out run1.info     coverage of lines, paths and loops

{EXIT_CODES}")
    )]
    Report(ReportArgs),

    /// Watch what a run has counted so far, live
    #[command(
        long_about = "Shows what the agents of a run have counted so far, and goes on: methods by paths, lines by live bytes of the last snapshot, pairs of lines by samples, \
            each with what came since the figures before. Only the spool is read; the JVM does not notice. Keys: arrows and Enter look into a row, / filters, s sorts, p pauses, \
            n takes a snapshot (sites), Tab goes to the next JVM, q ends it.",
        after_help = format!("Examples:
  borescope top run1
  borescope top 4711 --source src/main/java        the JVM with this process id

{EXIT_CODES}")
    )]
    Top(TopArgs),

    /// Profile a small bundled program and show the result
    #[command(
        long_about = "Profiles a small bundled program and shows the result. `demo paths`: a loop over tokens whose four paths are equally hot but \
            come in one fixed order (which only sequences across iterations show), a loop with two paths in no order, and a flat one. \
            `demo sites`: a shop with a cache that nobody empties, and which line fills it.\n\n\
            Needs a JDK 17 or newer: JAVA_HOME, or java on PATH.",
        after_help = format!("{EXIT_CODES}")
    )]
    Demo(DemoArgs),

    /// Check what works on this machine, and why not
    #[command(
        long_about = "Checks what works on this machine, and says how to mend what does not. It really starts each JDK it finds with \
            the agent: JAVA_HOME, java on PATH, /usr/lib/jvm/*, and those given with --java.",
        after_help = "Exit codes: 0 path profiling works (with at least one JDK; with all of those given by --java); 2 it does not."
    )]
    Doctor(DoctorArgs),

    /// Complete a profile from what an agent counted
    #[command(
        long_about = "Completes a profile from what an agent counted: turns a spool directory (DIR/.spool/PID, made by the agent) into a \
            profile (Parquet files and a manifest). `paths`, `sites`, `waste` and `report` do this by themselves; the spool stays.",
        after_help = format!("Example:
  borescope seal run1/.spool/4711 -o run1-4711

{EXIT_CODES}")
    )]
    Seal(SealArgs),

    /// Try the numbering of allocation sites on a recorded trace
    #[command(
        long_about = "Tries the numbering of allocation sites on a trace, without a JVM: how many allocation sites each class has, and how many objects \
            of a class share an identity hash, with random hashes, with the sites' numbers themselves, and with numbers that get shorter.",
        after_help = format!("Examples:
  borescope simulate --demo                        an invented trace
  borescope sites --trace app.trace -- java -jar app.jar
  borescope simulate app.trace --format json

{EXIT_CODES}")
    )]
    Simulate(SimulateArgs),

    /// Print completions for a shell
    #[command(
        long_about = "Prints a script that makes a shell complete the commands and options of borescope.",
        after_help = "Examples:
  borescope completions bash > ~/.local/share/bash-completion/completions/borescope
  borescope completions zsh > ~/.zfunc/_borescope                          with ~/.zfunc in fpath
  borescope completions fish > ~/.config/fish/completions/borescope.fish"
    )]
    Completions(CompletionsArgs),

    /// Print a page of the manual
    #[command(
        long_about = "Prints a page of the manual in man's format: of borescope, or of one of its commands. It says what --help says.",
        after_help = "Examples:
  borescope man | man -l -
  borescope man report > ~/.local/share/man/man1/borescope-report.1"
    )]
    Man(ManArgs),
}

/// How counts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// k-gram automaton: one step an item (default)
    Automaton,
    /// k-slab forest as published; for comparison
    Ksf,
    /// The same with the child found last in front of its siblings; for comparison
    KsfMtf,
    /// Single paths (k = 1) in hash tables, as in Ball and Larus; for comparison
    BlppHash,
    /// Single paths (k = 1) in arrays
    BlppDense,
}

impl Engine {
    /// As the agent spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Automaton => "automaton",
            Self::Ksf => "ksf",
            Self::KsfMtf => "ksf-mtf",
            Self::BlppHash => "blpp-hash",
            Self::BlppDense => "blpp-dense",
        }
    }

    /// Whether it counts single paths only.
    pub fn single_paths(self) -> bool {
        matches!(self, Self::BlppHash | Self::BlppDense)
    }
}

/// Whether short branches are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Branches {
    /// Branches that the JIT compiler can turn into conditional moves (`x < 0 ? -x : x`) are not told apart: they stay fast
    Merge,
    /// Every branch is told apart; loops with short branches on data may run much slower
    Split,
}

/// Options of `paths`.
#[derive(Debug, Args)]
pub struct PathsArgs {
    /// Count sequences of up to K paths, 1 to 64 [default: 4; 1 with the blpp engines]
    #[arg(short, value_name = "K", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub k: Option<u8>,
    /// How counts are kept; all engines count the same
    #[arg(long, value_enum, default_value_t = Engine::Automaton)]
    pub engine: Engine,
    /// Whether the two ways of a short branch, such as `x < 0 ? -x : x`, count as two paths or, much faster, as one; the report names
    /// the lines of branches that are not told apart
    #[arg(long, value_enum, default_value_t = Branches::Merge)]
    pub branches: Branches,
    /// Count methods with a single path and no loop (getters and the like) too: all that they tell is how often they are called, and
    /// they are most of the calls
    #[arg(long)]
    pub straight_line: bool,
    /// Profile only classes that match, such as 'com.acme.*' (`*` any characters, `?` one); may be repeated [default: all but the JDK]
    #[arg(long, value_name = "GLOB", value_parser = class_glob)]
    pub include: Vec<String>,
    /// Leave classes alone that match; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = class_glob)]
    pub exclude: Vec<String>,
    /// Where the profile goes: a new or empty directory [default: ./borescope-DATE-TIME.borescope, UTC]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Limit on memory for counters, such as 512M or 2G [default: 64M]: beyond it longer sequences are not told apart, and their counts
    /// have a lower and an upper bound
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Limit on the sequences kept: rows of counters for each method and thread [default: 4096]; beyond it the counts of longer
    /// sequences have a lower and an upper bound
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub rows: Option<u32>,
    /// For production: profile only a random share of the calls, such as 1/64 (1/2 to 1/65536). Counts are then estimates, each with
    /// the interval that holds the true one in 95 of 100 cases; methods without loops, which cost little, are still counted exactly
    #[arg(long, value_name = "1/N", value_parser = one_in)]
    pub burst: Option<u32>,
    /// What is shown at the end
    #[command(flatten)]
    pub ending: Ending,
    /// What to run
    #[command(flatten)]
    pub program: Program,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For tools: one JSON object on standard output
    Json,
}

/// How a profile is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// For people
    Text,
    /// For tools: one JSON object
    Json,
    /// For people, in a browser: one page that needs nothing else, of at most 5 MB (paths, sites)
    Html,
    /// For `go tool pprof`, speedscope and the like: paths or live objects as stacks
    Pprof,
    /// Collapsed stacks, as for flame graphs: a line a stack; of `waste`, a line a pair of calling contexts
    Collapsed,
    /// A table: a row a path, or a row a snapshot, site and type
    Csv,
    /// Of paths: coverage of lines, paths and turns of loops, for genhtml and the like
    Lcov,
    /// What the report leads with, for code review
    Sarif,
}

impl View {
    /// As it is typed.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it is made for another program, not by us or for a person.
    pub fn is_export(self) -> bool {
        !matches!(self, Self::Text | Self::Json | Self::Html)
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory that `paths`, `sites`, `waste` or the agent has written
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// How to show it
    #[arg(long, value_enum, default_value_t = View::Text)]
    pub format: View,
    /// Write it to this file instead of standard output; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Then open the file that --out names, as the desktop opens such files
    #[arg(long, requires = "out")]
    pub open: bool,
    /// Of sites as pprof, collapsed or csv: only this snapshot [default: the last, or that of the last OutOfMemoryError; csv all]
    #[arg(long, value_name = "N")]
    pub snapshot: Option<u32>,
    /// Show the N hottest methods, and of each the N hottest sequences; of `sites`, N lines, of `waste`, N pairs of lines [default: text 10, json everything, html
    /// what there is room for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Show only methods (of `sites` and `waste`: lines in methods) that match, such as 'Scanner.*' or 'com.acme.*'
    #[arg(long, value_name = "GLOB")]
    pub method: Option<String>,
    /// Quote source lines from here, a directory or a jar or zip with sources (searched by package, then by file name), and name files as they are found here; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub source: Vec<PathBuf>,
    /// List every class and method that was not instrumented, with the reason
    #[arg(long)]
    pub skipped: bool,
    /// Of `waste`: show who called, the full calling contexts of each pair, as a tree
    #[arg(long)]
    pub contexts: bool,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// The program to be profiled.
#[derive(Debug, Default, Args)]
pub struct Program {
    /// Run nothing, but print the option that makes a JVM load the agent with these options: for build tools and scripts
    #[arg(long, conflicts_with_all = ["command", "quiet", "open"])]
    pub print_agent: bool,
    /// The program to run, after `--`
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

impl Program {
    /// An error if there is nothing to do; `lens`: the command it is for.
    pub fn check(&self, lens: &str) -> failure::Result<()> {
        match self.command.is_empty() && !self.print_agent {
            true => Err(usage!(
                "no command: put it after `--`, as in `borescope {lens} -- java -jar app.jar`"
            )),
            false => Ok(()),
        }
    }
}

/// What is shown when a program has been profiled.
#[derive(Debug, Default, Args)]
pub struct Ending {
    /// Say only where the profile is
    #[arg(short, long)]
    pub quiet: bool,
    /// Make the report's page as well, report.html in the profile, and open it in the browser
    #[arg(long)]
    pub open: bool,
}

/// Options of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The directory that `paths`, `sites` or `waste` named, or the process id of the JVM
    #[arg(value_name = "DIR|PID", value_hint = ValueHint::DirPath)]
    pub target: PathBuf,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub interval: u32,
    /// Quote source lines from here, a directory or a jar or zip with sources; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub source: Vec<PathBuf>,
}

/// What `demo` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoLens {
    /// Control-flow paths, of loops over tokens
    Paths,
    /// Allocation sites, of a shop whose cache nobody empties
    Sites,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// What to show
    #[arg(value_enum, value_name = "LENS", default_value_t = DemoLens::Paths)]
    pub lens: DemoLens,
    /// paths: count sequences of up to K paths, 1 to 64 [default: 4]
    #[arg(short, value_name = "K", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub k: Option<u8>,
    /// Where the profile goes: a new or empty directory [default: ./borescope-DATE-TIME.borescope, UTC]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Check this java as well; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub java: Vec<PathBuf>,
    /// Check that profiles can be written here
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
}

/// Options of `seal`.
#[derive(Debug, Args)]
pub struct SealArgs {
    /// Spool directory: the one that holds meta.log
    #[arg(value_name = "SPOOL", value_hint = ValueHint::DirPath)]
    pub spool: PathBuf,
    /// Where the profile goes: a new or empty directory
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
}

/// Options of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A trace of allocations and identity hashes, of `sites --trace`; or the recording that such a run has left
    #[arg(value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub trace: Option<PathBuf>,
    /// An invented trace, with the sites of a large program
    #[arg(long, conflicts_with = "trace")]
    pub demo: bool,
    /// Widths of the hash field to try, in bits
    #[arg(long, value_name = "BITS", value_delimiter = ',', default_values_t = [14, 15, 31], value_parser = clap::value_parser!(u8).range(8..=31))]
    pub width: Vec<u8>,
    /// What random numbers start with: the same gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Show the N classes with most sites [default: text 10, json everything]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command that the page is about [default: all of borescope]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// A glob over class names as in Java source: `com.acme.*`, `*Test`, `java.util.HashMap$Node`.
fn class_glob(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a glob must not be empty: write '*' for every class".into());
    }
    match text
        .chars()
        .find(|c| !(c.is_alphanumeric() || "./_$*?-".contains(*c)))
    {
        Some(c) => Err(format!(
            "{c:?} cannot be part of a class name: one glob an option, as in 'com.acme.*' (`*` any characters, `?` one)"
        )),
        None => Ok(text.to_owned()),
    }
}

/// `1048576`, `2048K`, `512M`, `2G` as bytes.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    match number.and_then(|n| n.checked_mul(1 << shift)) {
        Some(bytes) if bytes >= 1 << 20 => Ok(bytes),
        _ => Err(
            "a size is at least 1M: a number of bytes, or one that ends in K, M or G, such as 512M"
                .into(),
        ),
    }
}

/// `1/64` as 64.
fn one_in(text: &str) -> Result<u32, String> {
    let n = text.strip_prefix("1/").unwrap_or_default();
    n.parse()
        .ok()
        .filter(|value: &u32| (2..=65536).contains(value) && value.to_string() == n)
        .ok_or_else(|| "a share of the calls is 1/N, with N from 2 to 65536, such as 1/64".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn table_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(size("1048576"), Ok(1 << 20));
        assert_eq!(size("2048k"), Ok(2 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for bad in [
            "",
            "0",
            "1048575",
            "M",
            "1T",
            "-1",
            "+1",
            "1.5G",
            "99999999999999999999",
            "18014398509481984K",
            "1ü",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(one_in("1/2"), Ok(2));
        assert_eq!(one_in("1/65536"), Ok(65536));
        for bad in [
            "", "64", "1/1", "1/0", "1/65537", "2/64", "1/", "1/064", "1/+64", "0.01", "1/ü",
        ] {
            assert!(one_in(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn globs() {
        for good in [
            "*",
            "com.acme.*",
            "com/acme/*",
            "*Test",
            "java.util.HashMap$Node",
            "Ünï?ode",
            "a-b",
        ] {
            assert_eq!(class_glob(good).as_deref(), Ok(good));
        }
        for bad in ["", "a b", "a;b", "a,b", "[ab]", "a*\n"] {
            assert!(class_glob(bad).is_err(), "{bad:?}");
        }
    }
}
