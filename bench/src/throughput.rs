//! How fast class bytes go through the instrumenter: what the load hook does with a class, without the JVM, on one core.

use crate::stats::{cpu, median};
use anyhow::{Context as _, Result, ensure};
use borescope::instrument::{Instrumenter, Settings, numbered};
use borescope_classfile::ClassFile;
use borescope_spool::layout::Engine;
use nix::sys::resource::UsageWho;
use std::fmt::Write as _;
use std::hint::black_box;

/// Markdown.
pub fn section(passes: usize) -> Result<String> {
    let mut classes: Vec<Vec<u8>> = Vec::new();
    let jars = borescope_e2e::corpus::jars();
    for jar in &jars {
        borescope_e2e::corpus::classes(jar, |_, bytes| classes.push(bytes.to_vec()));
    }
    let bytes: usize = classes.iter().map(Vec::len).sum();
    let megabytes = bytes as f64 / 1e6;
    let mut text = String::new();
    writeln!(
        text,
        "{} classes of {} jars, {megabytes:.0} MB: parse, control flow, numbering, probes, splice; thread CPU time of one core, median of {passes} passes (range).\n",
        classes.len(),
        jars.len()
    )?;
    writeln!(
        text,
        "| engine | MB/s | µs a class | methods instrumented | size |\n|---|---|---|---|---|"
    )?;
    for (name, engine) in [
        ("automaton", Engine::Automaton),
        ("blpp-hash", Engine::BlppHash),
    ] {
        let mut speeds = Vec::new();
        let (mut methods, mut grown) = (0, 0);
        for pass in 0..passes {
            eprintln!("instrument, {name}, pass {} of {passes}", pass + 1);
            let mut instrumenter = Instrumenter::default();
            (methods, grown) = (0, 0);
            let begun = cpu(UsageWho::RUSAGE_THREAD)?;
            for bytes in &classes {
                let class = ClassFile::parse(black_box(bytes))?;
                let settings = Settings::new(engine, 4);
                let done = black_box(instrumenter.instrument(&class, settings, numbered))
                    .context("no slots")?;
                methods += done.methods.len();
                grown += done.bytes.map_or(bytes.len(), |b| b.len());
            }
            speeds.push(megabytes / (cpu(UsageWho::RUSAGE_THREAD)? - begun).as_secs_f64());
        }
        ensure!(methods > 0, "nothing was instrumented");
        let speed = median(&speeds).context("at least one pass")?;
        let (low, high) = speeds
            .iter()
            .fold((f64::MAX, f64::MIN), |(l, h), s| (l.min(*s), h.max(*s)));
        writeln!(
            text,
            "| {name} | {speed:.0} ({low:.0}..{high:.0}) | {:.1} | {methods} | {:.2} x |",
            megabytes * 1e6 / speed / classes.len() as f64,
            grown as f64 / bytes as f64
        )?;
    }
    Ok(text)
}
