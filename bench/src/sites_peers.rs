//! The sites lens beside other tools: programs with a planted leak, once plain and once under each tool, and what each says of the planted line.
//!
//! Every tool is asked for the line that its own figures put first, and a line means the same for all: the innermost line of a stack that is not the JDK's. Samples count
//! as the tool's manual says: one of async-profiler stands for the interval between samples (or its object, if that is larger), those of JFR are one like the other.

mod page;
mod said;

use crate::evaluation::session;
use crate::held::{Held, Start};
use crate::results;
use crate::run::Runner;
use anyhow::{Context as _, Result, bail, ensure};
use borescope_e2e::sites::histogram;
use borescope_e2e::{borescope, borescope_report, jdk, root, run as done};
use said::{Lines, Said};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Programs [default: all]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = [17, 25])]
    jdk: Vec<u32>,
    /// Turns: each runs everything once, beginning with another tool
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Where page and table go
    #[arg(long, default_value = "docs/evaluation")]
    out: PathBuf,
}

/// A program with a leak.
pub struct Leak {
    /// Its main class.
    main: &'static str,
    /// What it is.
    title: &'static str,
    arguments: &'static [&'static str],
    jars: &'static [&'static str],
    /// The class of the planted line.
    class: &'static str,
    /// What the planted line allocates.
    ty: &'static str,
    /// So many of them stay for each thing that the program counts at its end.
    each: u64,
}

/// Those of the end-to-end tests, larger.
pub const LEAKS: [Leak; 3] = [
    Leak {
        main: "CacheLeak",
        title: "H2 with a cache that only grows",
        arguments: &["2000", "20000"],
        jars: &["h2-2.3.232"],
        class: "CacheLeak",
        ty: "CacheLeak$Account",
        each: 2000 / 50,
    },
    Leak {
        main: "ReaderLeak",
        title: "Lucene with readers left open",
        arguments: &["5000", "1000"],
        jars: &["lucene-core-9.12.0"],
        class: "ReaderLeak$Ranks",
        ty: "short[]",
        each: 1,
    },
    Leak {
        main: "ListenerLeak",
        title: "the JDK's HttpServer with listeners that are never removed",
        arguments: &["20000"],
        jars: &[],
        class: "ListenerLeak$Session",
        ty: "java.lang.String[]",
        each: 1,
    },
];

impl Leak {
    /// Main class and arguments.
    pub fn program(&self) -> Vec<String> {
        let words = std::iter::once(self.main).chain(self.arguments.iter().copied());
        words.map(Into::into).collect()
    }

    /// The planted line.
    fn planted(&self) -> Result<(String, u32)> {
        let file = root().join(format!("tests/sites/programs/{}.java", self.main));
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let line = text.lines().position(|l| l.ends_with("// leak"));
        Ok((
            self.class.into(),
            1 + u32::try_from(line.context("no planted line")?)?,
        ))
    }
}

/// Plain, and the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// None.
    Plain,
    /// `borescope sites`.
    Borescope,
    /// Its `alloc` event with `live`.
    AsyncProfiler,
    /// OldObjectSample alone, with stack traces.
    Jfr,
    /// The settings for profiling, with ways to the roots.
    JfrProfile,
    /// `jcmd GC.class_histogram`.
    Histogram,
}

/// In the order of the tables.
pub const TOOLS: [Tool; 6] = [
    Tool::Plain,
    Tool::Borescope,
    Tool::AsyncProfiler,
    Tool::Jfr,
    Tool::JfrProfile,
    Tool::Histogram,
];

/// What the JVM has used until it exits stays within.
pub const HEAP: &str = "-Xmx2g";

impl Tool {
    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Plain => "plain",
            Tool::Borescope => "borescope sites",
            Tool::AsyncProfiler => "async-profiler --live",
            Tool::Jfr => "JFR OldObjectSample",
            Tool::JfrProfile => "JFR profile, with roots",
            Tool::Histogram => "jcmd GC.class_histogram",
        }
    }

    /// Options of the JVM; `file` is where the tool writes.
    pub fn options(self, library: &str, file: &str) -> Option<String> {
        match self {
            Tool::Plain | Tool::Borescope | Tool::Histogram => None,
            Tool::AsyncProfiler => Some(format!(
                "-agentpath:{library}=start,event=alloc,live,jfr,file={file}"
            )),
            Tool::Jfr => Some(format!(
                "-XX:StartFlightRecording:settings=none,+jdk.OldObjectSample#enabled=true,+jdk.OldObjectSample#stackTrace=true,filename={file}"
            )),
            Tool::JfrProfile => Some(format!(
                "-XX:StartFlightRecording:settings=profile,path-to-gc-roots=true,filename={file}"
            )),
        }
    }
}

/// A run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// When the command began.
    pub session: String,
    /// Major version.
    pub jdk: u32,
    /// Main class.
    pub program: String,
    /// Tool.
    pub tool: String,
    /// From 1.
    pub turn: usize,
    /// [`results::OK`], or why there are no figures.
    pub status: String,
    /// Objects that the planted line has made and that are alive.
    pub leaked: u64,
    /// How many of them the tool gives that line.
    pub attributed: Option<u64>,
    /// The planted line among those that the tool names: 1 = it is said to hold most.
    pub rank: Option<usize>,
    /// How many lines it names.
    pub lines: Option<usize>,
    /// What it says of the planted line: bytes, exact or estimated.
    pub line_bytes: Option<u64>,
    /// Samples at the planted line.
    pub line_samples: Option<u64>,
    /// All samples.
    pub samples: Option<u64>,
    /// Share of all live bytes (of samples: of what they stand for) that has a line.
    pub with_line: Option<f64>,
    /// The first finding of the report names the planted line.
    pub first: Option<bool>,
    /// The class of the objects in the histogram, by bytes.
    pub class_rank: Option<usize>,
    /// User and system time of the JVM, seconds.
    pub cpu_s: f64,
    /// That of the tool's own process.
    pub beside_s: f64,
    /// Seconds, without the looking at it.
    pub wall_s: f64,
    /// Bytes of heap in use after a full collection at the end.
    pub heap: u64,
    /// Most bytes of memory that the process had.
    pub resident: u64,
}

/// Runs everything, and writes page and table.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs must be at least 1");
    let leaks: Vec<&Leak> = match args.programs.is_empty() {
        true => LEAKS.iter().collect(),
        false => {
            let one = |name: &String| {
                let found = LEAKS.iter().find(|l| l.main == name);
                found.with_context(|| {
                    format!("no program {name}; there are {:?}", LEAKS.map(|l| l.main))
                })
            };
            args.programs.iter().map(one).collect::<Result<_>>()?
        }
    };
    let runner = Runner::new(300)?;
    let library = async_profiler();
    if let Err(error) = &library {
        eprintln!("async-profiler is not run: {error:#}");
    }
    let jars = leaks.iter().map(|l| {
        (
            l.main.to_owned(),
            l.jars.iter().map(|j| format!("{j}.jar")).collect(),
        )
    });
    let session = session(&args.jdk, jars.collect())?;
    let mut rows = Vec::new();
    for turn in 0..args.runs {
        for &jdk in &args.jdk {
            for leak in &leaks {
                let mut printed = String::new();
                for i in 0..TOOLS.len() {
                    let tool = TOOLS[(turn + i) % TOOLS.len()];
                    let made = match (tool, &library) {
                        (Tool::AsyncProfiler, Err(error)) => Err(format!("not run: {error:#}")),
                        (_, library) => {
                            let library = library.as_deref().unwrap_or(Path::new(""));
                            let made = one(&runner, leak, jdk, tool, library, &mut printed);
                            made.map_err(|error| format!("{error:#}"))
                        }
                    };
                    if runner.stopped() {
                        bail!("interrupted; nothing is written");
                    }
                    let row = made.unwrap_or_else(|status| Row {
                        status,
                        ..Row::default()
                    });
                    eprintln!(
                        "{} on JDK {jdk} under {}: {}, {:.2} s",
                        leak.main,
                        tool.name(),
                        row.status,
                        row.cpu_s
                    );
                    rows.push(Row {
                        session: session.started.clone(),
                        jdk,
                        program: leak.main.into(),
                        tool: tool.name().into(),
                        turn: turn + 1,
                        ..row
                    });
                }
            }
        }
    }
    results::write(&args.out.join("sites-peers.csv"), &rows)?;
    let page = page::page(&session, &leaks, &rows)?;
    std::fs::write(args.out.join("sites-peers.md"), page)?;
    Ok(())
}

/// The library, fetched if it is not there.
fn async_profiler() -> Result<PathBuf> {
    let output = Command::new(root().join("tests/fetch"))
        .arg("peers")
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("it cannot be fetched");
    ensure!(output.status.success(), "{last}");
    Ok(root().join(".cache/peers/async-profiler-4.1/libasyncProfiler.so"))
}

/// Runs a program under a tool. `printed` is what it must print; nothing = not known yet.
fn one(
    runner: &Runner,
    leak: &Leak,
    major: u32,
    tool: Tool,
    library: &Path,
    printed: &mut String,
) -> Result<Row> {
    let files = tempfile::tempdir()?;
    let out = files.path().join("out");
    let recording = files.path().join("out.jfr");
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .context("a path that is no UTF-8")
    };
    let mut options = vec![HEAP.to_owned()];
    options.extend(tool.options(&text(library)?, &text(&recording)?));
    let start = Start {
        jdk: major,
        sites: (tool == Tool::Borescope).then_some(&*out),
        options: &options,
        program: &leak.program(),
    };
    let mut counted = None;
    let held = runner.held(&start, |pid| {
        if tool == Tool::Histogram {
            let mut jcmd = Command::new(jdk(major).join("bin/jcmd"));
            let output = done(jcmd.args([&pid.to_string(), "GC.class_histogram"]));
            counted = Some(histogram(&String::from_utf8_lossy(&output.stdout)));
        }
        Ok(())
    })?;
    if printed.is_empty() {
        *printed = held.printed.clone();
    }
    ensure!(
        held.printed == *printed,
        "it printed {:?} instead of {printed:?}",
        held.printed
    );
    let kept = printed
        .rsplit(' ')
        .next()
        .and_then(|n| n.parse::<u64>().ok());
    let leaked = leak.each * kept.with_context(|| format!("no number: {printed}"))?;
    let planted = leak.planted()?;
    let row = row(&held, leaked);
    Ok(match tool {
        Tool::Plain => row,
        Tool::Borescope => {
            let report = borescope_report(&out);
            let (lines, with_line) = Lines::of_report(&report).context("no snapshot")?;
            let text = done(Command::new(borescope()).arg("report").arg(&out));
            let text = String::from_utf8_lossy(&text.stdout);
            let named = format!("({}.java:{})", leak.main, planted.1);
            let first = said::first_finding(&text).is_some_and(|line| line.contains(&named));
            Row {
                with_line: Some(with_line),
                first: Some(first),
                ..of_lines(row, &lines, &planted, leak)
            }
        }
        Tool::AsyncProfiler => of_samples(
            row,
            &printed_events(major, &recording, "profiler.LiveObject")?,
            &planted,
            leak,
        ),
        Tool::Jfr | Tool::JfrProfile => of_samples(
            row,
            &printed_events(major, &recording, "jdk.OldObjectSample")?,
            &planted,
            leak,
        ),
        Tool::Histogram => {
            let counted = counted.context("no histogram")?;
            let (objects, bytes) = counted
                .get(leak.ty)
                .context("the class is not in the histogram")?;
            ensure!(
                *objects >= leaked,
                "{objects} in the histogram, {leaked} by the program"
            );
            Row {
                attributed: Some(0),
                class_rank: Some(1 + counted.values().filter(|(_, b)| b > bytes).count()),
                line_bytes: Some(*bytes),
                ..row
            }
        }
    })
}

fn row(held: &Held, leaked: u64) -> Row {
    Row {
        status: results::OK.into(),
        leaked,
        cpu_s: held.cpu,
        beside_s: held.beside,
        wall_s: (held.wall * 100.0).round() / 100.0,
        heap: held.heap,
        resident: held.resident,
        ..Row::default()
    }
}

fn of_lines(row: Row, lines: &Lines, planted: &(String, u32), leak: &Leak) -> Row {
    Row {
        attributed: Some(lines.objects(planted, leak.ty)),
        rank: lines.rank(planted),
        lines: Some(lines.len()),
        line_bytes: lines.weight(planted),
        ..row
    }
}

fn of_samples(row: Row, said: &Said, planted: &(String, u32), leak: &Leak) -> Row {
    let lines = said.lines();
    Row {
        line_bytes: said.estimates.then(|| lines.weight(planted)).flatten(),
        line_samples: Some(said.at(planted)),
        samples: Some(said.samples.len() as u64),
        with_line: said.with_line(),
        ..of_lines(row, &lines, planted, leak)
    }
}

/// The events of a recording, read from what `jfr print` says.
fn printed_events(major: u32, recording: &Path, event: &str) -> Result<Said> {
    ensure!(recording.exists(), "it wrote no recording");
    let mut jfr = Command::new(jdk(major).join("bin/jfr"));
    jfr.args(["print", "--stack-depth", "64", "--events", event]);
    let output = done(jfr.arg(recording));
    Said::read(&String::from_utf8_lossy(&output.stdout), event)
}
