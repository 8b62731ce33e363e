//! The sites lens's figures: the seed's figures 11 (allocation sites per class) and 12 (collisions per hash value), as a page with tables and plots: of an
//! invented trace, and of those that the agent records of programs.

use crate::chart::{Chart, short};
use crate::evaluation::{chosen, session};
use crate::results::Session;
use crate::run::{Runner, spool};
use anyhow::{Context as _, Result};
use borescope_e2e::programs::Program;
use borescope_profile::trace::{self, Summary};
use borescope_sites::demo;
use borescope_sites::simulate::{ClassRow, Collisions, Row, figure_12, sites_per_class};
use borescope_sites::trace::Trace;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Traces, as NAME=FILE, instead of the invented one and those of programs
    #[arg(long = "trace", value_name = "NAME=FILE", value_parser = named)]
    traces: Vec<(String, PathBuf)>,
    /// Programs that run under the agent, which records their traces; `none`: the invented trace alone
    #[arg(long, value_delimiter = ',', default_values_t = ["none".to_owned()])]
    programs: Vec<String>,
    /// Leave the other sections of the page as they are
    #[arg(long)]
    add: bool,
    /// The JDK that they run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Widths of the hash field, in bits
    #[arg(long, value_delimiter = ',', default_values_t = [14, 15, 31])]
    width: Vec<u8>,
    /// What random numbers start with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where page and plots go
    #[arg(long, default_value = "docs/evaluation")]
    out: PathBuf,
}

/// Classes in figure 11's plot and table.
const CLASSES: usize = 20;
const PAGE: &str = "sites-figures.md";

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file))
            if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '-') =>
        {
            Ok((name.to_owned(), file.into()))
        }
        _ => Err("a trace is NAME=FILE, the name of letters, digits and -".into()),
    }
}

/// Writes page and plots.
pub fn run(args: &Args) -> Result<()> {
    let path = args.out.join(PAGE);
    let mut page = match args.add {
        true => Page::read(&fs::read_to_string(&path).with_context(|| path.display().to_string())?),
        false => Page::default(),
    };
    page.intro = "# Allocation sites: the seed's figures 11 and 12, redone\n\n\
         Made by `cargo run --release -p borescope-bench -- sites-figures`. A *hashed* object is one whose identity hash was asked for. *Collisions* of a hash value:\n\
         the hashed objects of one class that have it, 1 if all differ; *average*: hashed objects by distinct values; *maximum*: over all values. *In look-up*: what a\n\
         look-up of a hashed object meets. Rows: *random*, as without borescope; *static*, the site's number itself; *dynamic* and *hybrid*, numbers that get shorter, with\n\
         the seed's policy or ours ([sites-numbering.md](../sites-numbering.md)). The highest bit of *hybrid* is a flag: of 15 bits it is the seed's 14.\n"
        .into();
    let runner = Runner::new(600)?;
    if args.traces.is_empty() && !page.has("demo") {
        let source = format!(
            "**No program ran: this is the invented trace of `borescope simulate --demo`, seed {}.** Its shape (14,933 sites in the largest class, as in the seed's Trade6; few\n\
             classes have most sites; a heavy tail of objects per site) is from life, its objects are not.",
            args.seed
        );
        let _alone = runner.alone()?;
        let trace = demo::trace(args.seed, demo::LARGEST);
        page.set("demo", section("demo", &source, &trace, args)?);
    }
    if args.traces.is_empty() && args.programs != ["none"] {
        let programs = chosen(&args.programs)?;
        let with = session(&[args.jdk], BTreeMap::new())?;
        for program in programs {
            let (trace, summary) = record(&runner, program, args.jdk)?;
            let source = recorded(program, args.jdk, &summary, &with);
            let _alone = runner.alone()?;
            page.set(program.name, section(program.name, &source, &trace, args)?);
        }
    }
    for (name, file) in &args.traces {
        let open = File::open(file).with_context(|| file.display().to_string())?;
        let trace =
            Trace::read(BufReader::new(open)).with_context(|| file.display().to_string())?;
        let source = format!("Trace of {name}, recorded by the agent.");
        page.set(name, section(name, &source, &trace, args)?);
    }
    fs::write(&path, page.text()).with_context(|| path.display().to_string())
}

/// What a program's section begins with.
fn recorded(program: &Program, jdk: u32, summary: &Summary, with: &Session) -> String {
    let mut text = format!(
        "**Recorded by the agent** in a run of {}: {} ({}) on JDK {jdk} ({}), borescope {} ({}, agent {}): every allocation in bytecode, and each object's first reference of its\n\
         identity hash. Not in it: what native code and the VM allocate ({} references of the hashes of these or of objects hashed before), and {} references of objects that were\n\
         locked.",
        with.started,
        program.name,
        program.jar_names().join(", "),
        with.jdks[&jdk],
        with.borescope,
        with.commit,
        with.agent,
        summary.unmarked,
        summary.locked
    );
    if summary.lost > 0 {
        let lost = summary.lost;
        text += &format!(" It ends early: there was no room for {lost} events more.");
    }
    text
}

/// The page: what stands before the sections, and these by name.
#[derive(Default)]
struct Page {
    intro: String,
    sections: Vec<(String, String)>,
}

impl Page {
    fn read(text: &str) -> Self {
        let mut parts = text.split("\n## ");
        let intro = parts.next().unwrap_or_default().to_owned();
        let section = |part: &str| {
            let (name, body) = part.split_once('\n').unwrap_or((part, ""));
            (name.to_owned(), body.to_owned())
        };
        Self {
            intro,
            sections: parts.map(section).collect(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|(n, _)| n == name)
    }

    /// In place of the section of that name, or at the end.
    fn set(&mut self, name: &str, body: String) {
        match self.sections.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = body,
            None => self.sections.push((name.to_owned(), body)),
        }
    }

    fn text(&self) -> String {
        let mut text = self.intro.clone();
        for (name, body) in &self.sections {
            text += &format!("\n## {name}\n{body}");
        }
        text
    }
}

/// Runs a program under the agent.
fn record(runner: &Runner, program: &Program, jdk: u32) -> Result<(Trace, Summary)> {
    let files = tempfile::tempdir()?;
    let out = files.path().join("out");
    let options = format!("lens=sites,trace=1,out={}", out.display());
    let cpu = runner
        .program(program, jdk, Some(&options))?
        .well(program)?;
    let _alone = runner.alone()?;
    let spool = spool(&out).context("no spool")?;
    let file = files.path().join("trace");
    let mut writer = BufWriter::new(File::create(&file)?);
    let summary = trace::write(&spool, &mut writer)?;
    writer.flush()?;
    eprintln!("{}: {summary:?} in {cpu:.1} s of CPU", program.name);
    let trace = Trace::read(BufReader::new(File::open(&file)?))?;
    Ok((trace, summary))
}

/// A section without its heading.
fn section(name: &str, source: &str, trace: &Trace, args: &Args) -> Result<String> {
    let mut text = String::new();
    let classes = sites_per_class(trace)?;
    let rows = figure_12(trace, &args.width, args.seed)?;
    let sum = |of: fn(&ClassRow) -> u64| -> u64 { classes.iter().map(of).sum() };
    writeln!(
        text,
        "\n{source}\n\n{} classes, {} sites, of which {} allocated {} objects; {} were hashed.\n",
        classes.len(),
        sum(|c| c.sites),
        sum(|c| c.allocating),
        sum(|c| c.objects),
        sum(|c| c.hashed)
    )?;
    figure11(&mut text, name, &classes, &args.out)?;
    figure12(&mut text, name, &rows, &args.out)?;
    Ok(text)
}

fn figure11(text: &mut String, name: &str, classes: &[ClassRow], out: &Path) -> Result<()> {
    let most = &classes[..classes.len().min(CLASSES)];
    let groups: Vec<String> = most.iter().map(|c| short_name(&c.class)).collect();
    let values: Vec<Vec<Option<f64>>> = most
        .iter()
        .map(|c| vec![Some(c.sites as f64), Some(c.allocating as f64)])
        .collect();
    let title = format!("Figure 11: allocation sites per class, {name}");
    let svg = Chart {
        title: &title,
        unit: "sites",
        reference: None,
        groups: &groups,
        series: &["sites".into(), "that allocated".into()],
        shades: &[5, 2],
        values: &values,
    }
    .svg();
    let file = format!("sites-figure11-{name}.svg");
    fs::write(out.join(&file), svg).with_context(|| file.clone())?;
    writeln!(
        text,
        "### Figure 11: sites per class\n\n![{title}]({file})\n"
    )?;
    writeln!(
        text,
        "| class | sites | that allocated | objects | hashed |\n|---|---|---|---|---|"
    )?;
    for c in most {
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} |",
            c.class, c.sites, c.allocating, c.objects, c.hashed
        )?;
    }
    if classes.len() > most.len() {
        writeln!(
            text,
            "\nThe {} classes with most sites, of {}.",
            most.len(),
            classes.len()
        )?;
    }
    Ok(())
}

/// The name without its package.
fn short_name(class: &str) -> String {
    class.rsplit(['.', '/']).next().unwrap_or(class).to_owned()
}

fn figure12(text: &mut String, name: &str, rows: &[Row], out: &Path) -> Result<()> {
    writeln!(text, "\n### Figure 12: collisions per hash value\n")?;
    let mut hashings: Vec<&str> = Vec::new();
    let mut widths: Vec<u8> = Vec::new();
    for row in rows {
        if !hashings.contains(&row.hashing) {
            hashings.push(row.hashing);
        }
        widths.push(row.width);
    }
    widths.sort_unstable();
    widths.dedup();
    let groups: Vec<String> = hashings.iter().map(|&h| h.to_owned()).collect();
    let series: Vec<String> = widths.iter().map(|w| format!("{w} bits")).collect();
    let shades: Vec<usize> = (0..widths.len()).map(|i| 1 + 2 * i).collect();
    type Value = fn(&Collisions) -> f64;
    let plots: [(&str, Value); 2] = [("average", |c| c.average()), ("maximum", |c| c.max as f64)];
    for (what, value) in plots {
        let cell = |hashing: &str, width: u8| {
            let row = rows
                .iter()
                .find(|r| r.hashing == hashing && r.width == width);
            row.map(|r| value(&r.outcome.total))
        };
        let values: Vec<Vec<Option<f64>>> = hashings
            .iter()
            .map(|h| widths.iter().map(|&w| cell(h, w)).collect())
            .collect();
        let title = format!("Figure 12: {what} collisions per hash value, {name}");
        let svg = Chart {
            title: &title,
            unit: "objects per hash value",
            reference: Some(1.0),
            groups: &groups,
            series: &series,
            shades: &shades,
            values: &values,
        }
        .svg();
        let file = format!("sites-figure12-{what}-{name}.svg");
        fs::write(out.join(&file), svg).with_context(|| file.clone())?;
        writeln!(text, "![{title}]({file})\n")?;
    }
    writeln!(
        text,
        "| bits | hash | average | in look-up | maximum | exact | shared | no number | failed searches |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    for row in rows {
        let (outcome, total) = (&row.outcome, &row.outcome.total);
        let share = |n: u64| match row.hashing {
            "random" => "–".to_owned(),
            _ => format!(
                "{:.1} %",
                100.0 * n as f64 / (total.objects as f64).max(1.0)
            ),
        };
        writeln!(
            text,
            "| {} | {} | {:.4} | {} | {} | {} | {} | {} | {} |",
            row.width,
            row.hashing,
            total.average(),
            short(total.average_met()),
            total.max,
            share(outcome.exact),
            share(outcome.shared),
            share(outcome.unmarked),
            outcome.failures
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_every_plot_that_it_names() {
        let out = tempfile::tempdir().unwrap();
        let file = out.path().join("t");
        let bytes = demo::trace(3, 30).write(Vec::new()).unwrap();
        fs::write(&file, bytes).unwrap();
        let args = Args {
            traces: vec![("small".into(), file)],
            programs: vec!["none".into()],
            add: false,
            jdk: 17,
            width: vec![14, 31],
            seed: 1,
            out: out.path().to_owned(),
        };
        run(&args).unwrap();
        let page = fs::read_to_string(out.path().join(PAGE)).unwrap();
        assert!(page.contains("Trace of small, recorded") && !page.contains("invented trace of"));
        let plots: Vec<&str> = page
            .split("](")
            .filter_map(|rest| rest.split_once(')'))
            .map(|(file, _)| file)
            .filter(|file| file.ends_with(".svg"))
            .collect();
        assert_eq!(plots.len(), 3);
        for plot in plots {
            let svg = fs::read_to_string(out.path().join(plot)).unwrap();
            assert!(svg.contains("<title>"), "{plot}");
        }
        // 15 bits at random, and six rows a width.
        assert_eq!(page.matches(" | random | ").count(), 3);
        assert_eq!(page.matches("\n| 31 | ").count(), 6);
    }

    #[test]
    fn sections_are_added_and_replaced() {
        let text = "# A\n\nintro\n\n## x\n\none\n\n### y\n\n## z\n\ntwo\n";
        let mut page = Page::read(text);
        assert_eq!(page.text(), text);
        page.set("x", "\nnew\n".into());
        page.set("last", "\n3\n".into());
        assert!(page.has("z") && !page.has("y"));
        let expected = "# A\n\nintro\n\n## x\n\nnew\n\n## z\n\ntwo\n\n## last\n\n3\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn names_of_traces() {
        assert_eq!(named("h2=a=b"), Ok(("h2".into(), "a=b".into())));
        assert!(named("=a").is_err() && named("a/b=c").is_err() && named("x").is_err());
    }
}
