//! How much of a heap the sites lens can name: the share of the live bytes with a site and with a line of the application, and why not the rest. In the leak programs, and in libraries that
//! hold 200 MB and more (`Grown`).

use crate::evaluation::session;
use crate::held::Start;
use crate::results;
use crate::run::Runner;
use crate::sites_peers::HEAP;
use anyhow::{Context as _, Result, bail, ensure};
use borescope_e2e::borescope_report;
use borescope_e2e::programs::jars;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Names of programs [default: all]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = [17, 25])]
    jdk: Vec<u32>,
    /// Where page and table go
    #[arg(long, default_value = "docs/evaluation")]
    out: PathBuf,
}

/// Least live bytes of `Grown`.
const LEAST: u64 = 200 << 20;

/// A heap at the end of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// When the command began.
    session: String,
    /// Major version.
    jdk: u32,
    /// Name.
    program: String,
    /// Objects that are alive.
    objects: u64,
    /// Their bytes.
    bytes: u64,
    /// Those with a site.
    site_bytes: u64,
    /// Those with a line of the application.
    line_bytes: u64,
    /// Why not the others: bytes.
    rest: String,
    /// The types of most of the others.
    types: String,
    /// What the snapshot took.
    took_ms: u64,
}

/// Runs everything, and writes page and table.
pub fn run(args: &Args) -> Result<()> {
    let sources = jars("ecj-3.38.0-sources").remove(0).display().to_string();
    let words = |words: &[&str]| words.iter().copied().map(String::from).collect();
    let mut programs: Vec<(&str, u64, Vec<String>)> = vec![
        ("CacheLeak", 0, words(&["CacheLeak", "2000", "40000"])),
        ("ReaderLeak", 0, words(&["ReaderLeak", "5000", "2000"])),
        ("ListenerLeak", 0, words(&["ListenerLeak", "20000"])),
        ("h2", LEAST, words(&["Grown", "h2", "700000"])),
        ("lucene", LEAST, words(&["Grown", "lucene", "2200000"])),
        ("ecj", LEAST, words(&["Grown", "ecj", "3", &sources])),
    ];
    let known: Vec<String> = programs.iter().map(|p| p.0.to_owned()).collect();
    let strange = args.programs.iter().find(|name| !known.contains(name));
    ensure!(
        strange.is_none(),
        "no program {strange:?}; there are {known:?}"
    );
    programs
        .retain(|(name, ..)| args.programs.is_empty() || args.programs.iter().any(|p| p == name));
    let runner = Runner::new(300)?;
    let session = session(&args.jdk, BTreeMap::new())?;
    let mut rows = Vec::new();
    for &jdk in &args.jdk {
        for (name, least, program) in &programs {
            let files = tempfile::tempdir()?;
            let out = files.path().join("out");
            let options = [HEAP.to_owned()];
            let start = Start {
                jdk,
                sites: Some(&out),
                options: &options,
                program,
            };
            let held = runner.held(&start, |_| Ok(()));
            if runner.stopped() {
                bail!("interrupted; nothing is written");
            }
            let held = held.with_context(|| format!("{name} on JDK {jdk}"))?;
            let row = row(&borescope_report(&out)).context("no snapshot")?;
            ensure!(
                row.bytes >= *least,
                "{name}: {} live bytes are too few to tell",
                row.bytes
            );
            eprintln!(
                "{name} on JDK {jdk}: {} of {} bytes with a line, {:.1} s of CPU",
                row.line_bytes, row.bytes, held.cpu
            );
            rows.push(Row {
                session: session.started.clone(),
                jdk,
                program: (*name).to_owned(),
                ..row
            });
        }
    }
    results::write(&args.out.join("sites-coverage.csv"), &rows)?;
    let mut text = format!(
        "# How much of the heap has a line\n\n\
         Made by `cargo run --release -p borescope-bench -- sites-coverage`; [sites-coverage.csv](sites-coverage.csv) has the figures in bytes. Programs of `tests/sites/programs`, alive at the end, after a full\n\
         collection: the three with a planted leak, and `Grown`, which holds a table of H2, an index of Lucene, or syntax trees of ecj's parser. The goal: 97 % with a site, 95 % with a line of\n\
         the application.\n\n- Run of {}: borescope {} ({}, agent {}); `{}`\n",
        session.started,
        session.borescope,
        session.commit,
        session.agent,
        session.arguments.join(" ")
    );
    for (jdk, version) in &session.jdks {
        writeln!(text, "- JDK {jdk}: {version}")?;
    }
    table(&mut text, &rows)?;
    std::fs::write(args.out.join("sites-coverage.md"), text)?;
    Ok(())
}

/// Of the last snapshot of a report.
fn row(report: &Value) -> Option<Row> {
    let last = report["sites"]["snapshots"].as_array()?.last()?;
    let number = |name: &str| last[name].as_u64();
    let (bytes, site_bytes, line_bytes) = (
        number("live_bytes")?,
        number("with_site_bytes")?,
        number("with_app_bytes")?,
    );
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, bytes) in last["unknown_reason_bytes"].as_object()? {
        reasons.insert(reason, bytes.as_u64()?);
    }
    reasons.insert(
        "a line of the JDK, caller not known",
        site_bytes - line_bytes,
    );
    let mut types: BTreeMap<&str, u64> = BTreeMap::new();
    let jdk = last["sites"]
        .as_array()?
        .iter()
        .filter(|s| s["app_class"].is_null());
    for of in jdk.chain(last["unknown"].as_array()?) {
        *types.entry(of["type"].as_str()?).or_default() += of["live_bytes"].as_u64()?;
    }
    Some(Row {
        session: String::new(),
        jdk: 0,
        program: String::new(),
        objects: number("live_objects")?,
        bytes,
        site_bytes,
        line_bytes,
        rest: largest(reasons, usize::MAX),
        types: largest(types, 4),
        took_ms: number("took_ms")?,
    })
}

/// `name: bytes; ...`, most bytes first.
fn largest(of: BTreeMap<&str, u64>, most: usize) -> String {
    let mut all: Vec<(&str, u64)> = of.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let words: Vec<String> = all
        .iter()
        .take(most)
        .map(|(name, bytes)| format!("{name}: {bytes}"))
        .collect();
    words.join("; ")
}

fn table(text: &mut String, rows: &[Row]) -> Result<()> {
    writeln!(
        text,
        "\n| program | JDK | live | with a site | with a line of the application | the rest, by reason | its types |\n|---|---|---|---|---|---|---|"
    )?;
    for row in rows {
        let share = |part: u64| format!("{:.2} %", 100.0 * part as f64 / row.bytes as f64);
        let shares = |list: &str| -> Option<String> {
            let one = |part: &str| {
                let (name, bytes) = part.rsplit_once(": ")?;
                Some(format!("{name} {}", share(bytes.parse().ok()?)))
            };
            let all: Option<Vec<String>> = list
                .split("; ")
                .filter(|p| !p.is_empty())
                .map(one)
                .collect();
            Some(all?.join(", "))
        };
        writeln!(
            text,
            "| {} | {} | {} MiB | {} | {} | {} | {} |",
            row.program,
            row.jdk,
            row.bytes >> 20,
            share(row.site_bytes),
            share(row.line_bytes),
            shares(&row.rest).context("reasons")?,
            shares(&row.types).context("types")?
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shares_add_up() {
        let last = json!({
            "live_objects": 5, "live_bytes": 1 << 20, "with_site_bytes": 3 << 18, "with_app_bytes": 1 << 19, "took_ms": 7,
            "unknown_reason_bytes": {"vm or native": 1 << 18, "foreign mark": 0},
            "sites": [{"type": "A", "app_class": "x", "live_bytes": 1 << 19}, {"type": "B", "app_class": null, "live_bytes": 1 << 18}],
            "unknown": [{"type": "C", "live_bytes": 3 << 16}, {"type": "B", "live_bytes": 1 << 16}],
        });
        let row = row(&json!({"sites": {"snapshots": [last]}})).unwrap();
        let mut text = String::new();
        table(
            &mut text,
            &[Row {
                program: "p".into(),
                jdk: 17,
                ..row
            }],
        )
        .unwrap();
        let line = "| p | 17 | 1 MiB | 75.00 % | 50.00 % | a line of the JDK, caller not known 25.00 %, vm or native 25.00 % | B 31.25 %, C 18.75 % |";
        assert!(text.ends_with(&format!("{line}\n")), "{text}");
    }
}
