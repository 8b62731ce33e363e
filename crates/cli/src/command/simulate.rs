//! `borescope simulate`: the numbering of allocation sites tried out on a trace, without a JVM: the seed's figures 11 and 12 as tables.

use crate::args::{Format, SimulateArgs};
use crate::failure::{Result, cannot, damaged, usage};
use crate::{output, say, sealing};
use borescope_profile::trace;
use borescope_report::thousands;
use borescope_sites::simulate::{ClassRow, Row, figure_12, sites_per_class};
use borescope_sites::trace::Trace;
use borescope_sites::{Error, demo};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

/// Classes that the text shows unless told otherwise.
const TOP: usize = 10;

/// Simulates and prints.
pub fn run(args: &SimulateArgs) -> Result<ExitCode> {
    let (source, trace) = match (&args.trace, args.demo) {
        (Some(path), false) => (path.display().to_string(), read(path)?),
        (None, true) => (
            format!("synthetic trace, seed {}", args.seed),
            demo::trace(args.seed, demo::LARGEST),
        ),
        _ => {
            return Err(usage!(
                "give the trace of a program, or --demo for an invented one"
            ));
        }
    };
    let wrong = |e: Error| damaged!("{source}: {e}");
    let classes = sites_per_class(&trace).map_err(wrong)?;
    let rows = figure_12(&trace, &args.width, args.seed).map_err(|e| match e {
        Error::Scheme(_) => usage!("--width: {e}"),
        other => wrong(other),
    })?;
    let top = args.top.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    say::result(match args.format {
        Format::Text => text(
            &source,
            args.demo,
            &classes,
            &rows,
            top.unwrap_or(TOP),
            args,
        ),
        Format::Json => {
            let object = object(
                &source,
                args,
                &classes[..top.unwrap_or(usize::MAX).min(classes.len())],
                &rows,
            );
            format!("{object:#}\n")
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A trace, or what `sites --trace` could not make one of.
fn read(path: &Path) -> Result<Trace> {
    let name = path.display();
    if path.is_dir() {
        return recorded(path);
    }
    let file = File::open(path).map_err(|e| cannot!("cannot read {name}: {e}"))?;
    Trace::read(BufReader::new(file)).map_err(|e| damaged!("{name}: {e}"))
}

/// The trace of a spool, or of the only one in a directory.
fn recorded(dir: &Path) -> Result<Trace> {
    let name = dir.display();
    let mut spools = output::spools(dir)?;
    spools.retain(|spool| trace::is_recorded(spool));
    if trace::is_recorded(dir) {
        spools = vec![dir.to_owned()];
    }
    let spool = match spools.as_slice() {
        [spool] => spool,
        [] => {
            return Err(damaged!(
                "{name} holds no recording: give a file that `borescope sites --trace` made"
            ));
        }
        [first, ..] => {
            return Err(usage!(
                "{name} holds {} recordings: give one of them, such as {}",
                spools.len(),
                first.display()
            ));
        }
    };
    let mut bytes = Vec::new();
    let summary = trace::write(spool, &mut bytes).map_err(sealing::failure)?;
    if summary.lost > 0 {
        let lost = thousands(summary.lost);
        say::note(format_args!(
            "{name} ends early: there was no room for {lost} events more"
        ));
    }
    Trace::read(&bytes[..]).map_err(|e| damaged!("{name}: {e}"))
}

fn object(source: &str, args: &SimulateArgs, classes: &[ClassRow], rows: &[Row]) -> Value {
    let classes: Vec<Value> = classes
        .iter()
        .map(|c| {
            json!({
                "class": c.class, "sites": c.sites, "allocating": c.allocating, "objects": c.objects, "hashed": c.hashed,
            })
        })
        .collect();
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (outcome, total) = (&row.outcome, &row.outcome.total);
            json!({
                "hashing": row.hashing, "width": row.width, "objects": total.objects, "values": total.values,
                "average": total.average(), "average_met": total.average_met(), "max": total.max,
                "exact": outcome.exact, "shared": outcome.shared, "unmarked": outcome.unmarked, "failures": outcome.failures,
            })
        })
        .collect();
    json!({
        "borescope": env!("CARGO_PKG_VERSION"),
        "simulate": {
            "source": source, "synthetic": args.demo, "seed": args.seed,
            "sites_per_class": classes, "collisions": rows,
        },
    })
}

/// Without what could drive a terminal, and at most so long.
fn plain(text: &str, most: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
    clean.take(most).collect()
}

fn text(
    source: &str,
    synthetic: bool,
    classes: &[ClassRow],
    rows: &[Row],
    top: usize,
    args: &SimulateArgs,
) -> String {
    let sum = |of: fn(&ClassRow) -> u64| thousands(classes.iter().map(of).sum());
    let mut out = format!("Allocation sites: {}", plain(source, 200));
    if synthetic {
        out += " (invented: no program ran)";
    }
    let _ = writeln!(
        out,
        "\n{} classes, {} sites, of which {} allocated {} objects; the identity hash of {} was asked for\n",
        thousands(classes.len() as u64),
        sum(|c| c.sites),
        sum(|c| c.allocating),
        sum(|c| c.objects),
        sum(|c| c.hashed)
    );
    out += "Sites per class\n";
    let _ = writeln!(
        out,
        "{:>8}  {:>10}  {:>13}  {:>11}  class",
        "sites", "allocating", "objects", "hashed"
    );
    for c in classes.iter().take(top) {
        let [sites, allocating, objects, hashed] =
            [c.sites, c.allocating, c.objects, c.hashed].map(thousands);
        let name = plain(&c.class, 60);
        let _ = writeln!(
            out,
            "{sites:>8}  {allocating:>10}  {objects:>13}  {hashed:>11}  {name}"
        );
    }
    if classes.len() > top {
        let _ = writeln!(
            out,
            "... and {} classes more (--top)",
            thousands((classes.len() - top) as u64)
        );
    }
    out += "\nCollisions: hashed objects of one class that have the same hash (1: all differ)\n";
    let _ = writeln!(
        out,
        "{:>4}  {:<15}{:>10}{:>12}{:>10}{:>8}{:>8}{:>10}",
        "bits", "hash", "average", "in look-up", "maximum", "exact", "shared", "unmarked"
    );
    for row in rows {
        let outcome = &row.outcome;
        let total = &outcome.total;
        let share = |n: u64| match row.hashing {
            "random" => "-".to_owned(),
            _ => format!("{:.1}%", n as f64 * 100.0 / (total.objects as f64).max(1.0)),
        };
        let _ = writeln!(
            out,
            "{:>4}  {:<15}{:>10.4}{:>12.3}{:>10}{:>8}{:>8}{:>10}",
            row.width,
            row.hashing,
            total.average(),
            total.average_met(),
            thousands(total.max),
            share(outcome.exact),
            share(outcome.shared),
            share(outcome.unmarked)
        );
    }
    let _ = writeln!(
        out,
        "\nrandom: as without borescope; static: the site's number itself; (seed): rules of the patent;\n\
         hybrid: its highest bit is a flag, so hybrid of 15 bits is the patent's 14. Seed of the random numbers: {}",
        args.seed
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        assert_eq!(
            [0, 12, 999, 1000, 1_234_567].map(thousands),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
        assert_eq!(plain("a\u{1b}[2Jb", 4), "a?[2");
    }
}
