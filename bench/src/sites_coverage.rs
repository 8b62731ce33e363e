//! How much of a large heap the sites lens can name: the share of bytes with a site, and with a line of the application; and why not the rest.

use crate::evaluation::chosen;
use crate::run::Runner;
use anyhow::{Result, ensure};
use borescope_allocations::is_jdk;
use borescope_e2e::sites::{Log, Place, Row, programs, rows, spool};
use std::collections::BTreeMap;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Programs whose whole heap is looked at, dead objects included, since little of it is alive at the end
    #[arg(long, value_delimiter = ',', default_values_t = ["ecj".to_owned(), "h2".into(), "lucene".into()])]
    programs: Vec<String>,
    /// JDKs
    #[arg(long, value_delimiter = ',', default_values_t = [17, 25])]
    jdk: Vec<u32>,
}

/// Programs with a leak, and arguments that are to leave 200 MB or more: what leaves less is refused.
const LEAKS: [(&str, &[&str]); 3] = [
    ("CacheLeak", &["2000", "40000"]),
    ("ReaderLeak", &["5000", "20000"]),
    ("ListenerLeak", &["40000"]),
];

/// Least bytes in the heap.
const LEAST: u64 = 200 << 20;

/// Prints a table.
pub fn run(args: &Args) -> Result<()> {
    let runner = Runner::new(600)?;
    println!(
        "Bytes in the heap at the end: with a site, with a line of the application, and why not the rest.\n\n\
         | program | JDK | heap | with a site | with a line of the application | the rest |\n|---|---|---|---|---|---|"
    );
    for &jdk in &args.jdk {
        for (main, arguments) in LEAKS {
            let java = ["-Xmx2g", "-cp", programs(), main].into_iter();
            let words: Vec<String> = java
                .chain(arguments.iter().copied())
                .map(Into::into)
                .collect();
            line(&runner, main, jdk, "", words)?;
        }
        for program in chosen(&args.programs)? {
            let files = tempfile::tempdir()?;
            // A young generation that is never collected.
            let options = ["-XX:+UseSerialGC", "-Xms3g", "-Xmx3g", "-Xmn2500m"].map(String::from);
            let words = options.into_iter().chain(program.arguments(files.path()));
            let name = format!("{}, dead objects included", program.name);
            line(&runner, &name, jdk, ",gc=0", words.collect())?;
        }
    }
    Ok(())
}

fn line(runner: &Runner, name: &str, jdk: u32, options: &str, words: Vec<String>) -> Result<()> {
    let out = tempfile::tempdir()?;
    let how = format!("lens=sites,out={}{options}", out.path().display());
    let ran = runner.java(jdk, Some(&how), words.into_iter().map(Into::into))?;
    let code = ran.code.clone();
    ensure!(code == Ok(0), "{name}: {code:?} {}", ran.stderr);
    let spool = spool(out.path());
    let log = Log::read(&spool);
    let last = log.snapshots().last().map(|s| s.number);
    let Some(last) = last else {
        anyhow::bail!("{name}: no snapshot: {:?}", log.notices());
    };
    let rows = rows(&spool, &log, last);
    let all: u64 = rows.iter().map(|r| r.bytes).sum();
    ensure!(
        all >= LEAST,
        "{name}: a heap of {all} bytes is too small to tell"
    );
    let (mut sites, mut lines) = (0, 0);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for Row { place, bytes, .. } in &rows {
        match place {
            Place::Unknown(why) => *reasons.entry(why).or_default() += bytes,
            Place::Site { class, app, .. } => {
                sites += bytes;
                if app.is_some() || !is_jdk(&class.replace('.', "/")) {
                    lines += bytes;
                } else {
                    *reasons.entry("caller not known").or_default() += bytes;
                }
            }
        }
    }
    let share = |part: u64| format!("{:.2} %", 100.0 * part as f64 / all as f64);
    let rest: Vec<String> = reasons
        .iter()
        .map(|(why, bytes)| format!("{why} {}", share(*bytes)))
        .collect();
    println!(
        "| {name} | {jdk} | {} MB | {} | {} | {} |",
        all >> 20,
        share(sites),
        share(lines),
        rest.join(", ")
    );
    Ok(())
}
