//! The page of the comparison: a table for each program and JDK, out of the rows alone.

use super::{HEAP, Leak, Row, TOOLS, Tool};
use crate::results::{OK, Session};
use crate::stats::{median, with_range};
use anyhow::Result;
use std::fmt::Write as _;

const HEAD: &str = "# The sites lens beside other tools

Three programs with a planted leak (`tests/sites/programs`), each run plain and under each tool, one after the other: what does the tool say of the line that leaks, and what does it cost?
Made by `cargo run --release -p borescope-bench -- sites-peers`; [sites-peers.csv](sites-peers.csv) has a line for each run.
";

const HOW: &str = "
## How to read it

- **Leaked objects with their line**: of the objects that the planted line has made and that are alive at the end (the program counts them itself), how many the tool gives that line. *Exact*: all
  objects of the heap are looked at. *Sample*: those it happened to pick; what it says of the rest is an estimate.
- **Rank of the planted line** among all lines that the tool names, by its own figures (live bytes; estimated live bytes; samples), 1 = said to hold most. A line is the innermost one of the
  stack that is not the JDK's, for every tool alike.
- **With a line**: the share of the live bytes (of samples: of what they stand for) that has such a line.
- **CPU**: user and system time of the JVM with all its threads from start to end, to the plain run of the same turn; that of a process of the tool's own stands beside it. One run tells nothing of
  differences below about 10 %; `sites-cost` measures ours well. In every run the program collects twice at its end; a snapshot or dump comes after that.
- **Heap**: in use after these collections, to the plain run. **Peak memory**: the most that the process had (VmHWM): heap with garbage, and what the tool keeps outside of it.

## What the others can that borescope cannot

- **async-profiler** has the whole stack of each sample, so it also tells who called the line; it runs on more JDKs and processors, is loaded into any running JVM, costs least (above), and samples
  CPU, locks and native memory in the same run. A leak that is a large part of the heap, such as these, shows in a few samples; a small one need not show at all.
- **JFR** comes with the JDK and can be switched on in any running JVM. It has whole stacks, the time of each allocation, and on request the way from each sampled object to a root: **who holds it**, of which
  borescope only has a guess (as many nodes of a collection as objects). It keeps 256 objects unless told otherwise (`old-object-queue-size`).
- **The class histogram** needs nothing before it is asked for, and is exact: objects and bytes by class, without lines. Where the class leaks from a single line, that is often enough; of `byte[]` or
  `String[]` it says little.
- borescope marks objects as they are made, so it must be there before (attached later, it knows what was made since), on Linux, x86-64, JDK 17 to 25.
";

/// The page.
pub fn page(session: &Session, leaks: &[&Leak], rows: &[Row]) -> Result<String> {
    let mut text = String::from(HEAD);
    writeln!(
        text,
        "\n- Run of {}: {}; turns: {}",
        session.started,
        session.with(),
        rows.iter().map(|r| r.turn).max().unwrap_or(0)
    )?;
    for (jdk, version) in &session.jdks {
        writeln!(text, "- JDK {jdk} (and its JFR and jcmd): {version}")?;
    }
    writeln!(
        text,
        "- async-profiler: tools.profiler:async-profiler:4.1, the library out of the jar whose SHA-256 `tests/fetch` checks"
    )?;
    let jars: Vec<&str> = session.jars.values().flatten().map(|j| &**j).collect();
    if !jars.is_empty() {
        writeln!(text, "- Jars: {}", jars.join(", "))?;
    }
    writeln!(
        text,
        "\nEvery JVM has `{HEAP}` and else:\n\n| tool | how |\n|---|---|"
    )?;
    for tool in TOOLS {
        let how = match (tool, tool.options("libasyncProfiler.so", "FILE")) {
            (_, Some(options)) => format!("`{options}`, then `jfr print`"),
            (Tool::Borescope, _) => "`borescope sites -- java ...`, then `borescope report`".into(),
            (Tool::Histogram, _) => "`jcmd PID GC.class_histogram` at the end".into(),
            _ => "no option".into(),
        };
        writeln!(text, "| {} | {how} |", tool.name())?;
    }
    for leak in leaks {
        let (class, line) = leak.planted()?;
        writeln!(
            text,
            "\n## {}\n\n`{}`; planted: {class} ({}.java:{line}), `{}`",
            title(leak.title),
            leak.program().join(" "),
            leak.main,
            leak.ty
        )?;
        for jdk in session.jdks.keys() {
            let of = |r: &&Row| r.program == leak.main && r.jdk == *jdk;
            let rows: Vec<&Row> = rows.iter().filter(of).collect();
            table(&mut text, *jdk, &rows)?;
        }
    }
    text.push_str(HOW);
    Ok(text)
}

fn title(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn table(text: &mut String, jdk: u32, rows: &[&Row]) -> Result<()> {
    writeln!(
        text,
        "\n| JDK {jdk} | leaked objects with their line | rank of the planted line | what it says of the line | with a line | CPU / plain | heap / plain | peak memory |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    for tool in TOOLS {
        let mine: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|r| r.tool == tool.name())
            .collect();
        let good: Vec<&Row> = mine.iter().copied().filter(|r| r.status == OK).collect();
        let Some(first) = good.first() else {
            let why = mine.first().map_or("not run", |r| &r.status);
            writeln!(
                text,
                "| {} | {} | | | | | | |",
                tool.name(),
                why.replace(['|', '\n'], " ")
            )?;
            continue;
        };
        let plain = |row: &Row| {
            let of =
                |r: &&&Row| r.tool == Tool::Plain.name() && r.turn == row.turn && r.status == OK;
            rows.iter().find(of).copied()
        };
        let ratios = |of: fn(&Row) -> f64, decimals: usize| {
            let one = |r: &&Row| Some(of(r) / of(plain(r)?));
            let all: Vec<f64> = good.iter().filter_map(one).collect();
            with_range(&all, decimals).unwrap_or_else(|| "–".into())
        };
        let middle = |of: fn(&Row) -> f64| {
            median(&good.iter().map(|r| of(r)).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        let (cpu, heap) = match tool {
            Tool::Plain => (
                format!("{:.2} s", middle(|r| r.cpu_s)),
                mib(middle(|r| r.heap as f64)),
            ),
            _ => (ratios(|r| r.cpu_s, 2), ratios(|r| r.heap as f64, 3)),
        };
        let beside = match tool {
            Tool::Borescope => format!(" (and {:.1} s beside)", middle(|r| r.beside_s)),
            _ => String::new(),
        };
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {cpu}{beside} | {heap} | {} |",
            tool.name(),
            attributed(first),
            rank(first),
            said(first),
            first
                .with_line
                .map_or("–".into(), |s| format!("{:.1} %", 100.0 * s)),
            mib(middle(|r| r.resident as f64))
        )?;
    }
    Ok(())
}

fn attributed(row: &Row) -> String {
    let Some(n) = row.attributed else {
        return format!("{} leaked", grouped(row.leaked));
    };
    let how = match (row.samples, row.class_rank) {
        (Some(_), _) => "sample",
        (_, Some(_)) => "no lines",
        _ => "exact",
    };
    let share = 100.0 * n as f64 / row.leaked as f64;
    let share = match share {
        s if n > 0 && s < 0.1 => format!("{s:.3} %"),
        s => format!("{s:.1} %"),
    };
    format!("{} of {}: {share} ({how})", grouped(n), grouped(row.leaked))
}

fn rank(row: &Row) -> String {
    let first = match row.first {
        Some(true) => "; first finding of the report",
        Some(false) => "; not the first finding of the report",
        None => "",
    };
    match (row.rank, row.lines, row.class_rank) {
        (Some(rank), Some(lines), _) => format!("{rank} of {}{first}", grouped(lines as u64)),
        (None, Some(lines), None) => format!("not among its {}", grouped(lines as u64)),
        (_, _, Some(class)) => format!("none; its class is number {class}"),
        _ => "–".into(),
    }
}

fn said(row: &Row) -> String {
    let bytes = row.line_bytes.map(|b| mib(b as f64));
    match (row.line_samples, row.samples, bytes) {
        (Some(n), Some(all), Some(bytes)) => format!("about {bytes} ({n} of {all} samples)"),
        (Some(n), Some(all), None) => format!("{n} of {all} samples"),
        (_, _, Some(bytes)) if row.class_rank.is_some() => {
            format!("{bytes} of the class, all lines together")
        }
        (_, _, Some(bytes)) => bytes,
        _ => "–".into(),
    }
}

/// With a unit.
pub fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// Thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites_peers::LEAKS;

    fn row(tool: Tool, turn: usize, cpu_s: f64) -> Row {
        Row {
            jdk: 17,
            program: "CacheLeak".into(),
            tool: tool.name().into(),
            turn,
            status: OK.into(),
            leaked: 1_234_567,
            cpu_s,
            heap: 1 << 20,
            resident: 3 << 20,
            ..Row::default()
        }
    }

    #[test]
    fn a_page_of_what_was_run() {
        let ours = Row {
            attributed: Some(1_234_567),
            rank: Some(1),
            lines: Some(1000),
            line_bytes: Some(5 << 20),
            with_line: Some(0.98),
            first: Some(true),
            beside_s: 0.5,
            ..row(Tool::Borescope, 1, 3.0)
        };
        let sampled = Row {
            attributed: Some(12),
            lines: Some(3),
            line_samples: Some(13),
            samples: Some(20),
            ..row(Tool::Jfr, 1, 2.0)
        };
        let class = Row {
            attributed: Some(0),
            class_rank: Some(2),
            line_bytes: Some(1 << 20),
            ..row(Tool::Histogram, 1, 2.0)
        };
        let not = Row {
            status: "not run: no\nnet".into(),
            ..row(Tool::AsyncProfiler, 1, 0.0)
        };
        let rows = [
            row(Tool::Plain, 1, 2.0),
            row(Tool::Plain, 2, 4.0),
            ours.clone(),
            Row {
                turn: 2,
                cpu_s: 8.0,
                ..ours
            },
            sampled,
            class,
            not,
        ];
        let session = Session {
            jdks: [(17, "x".into())].into(),
            ..Session::default()
        };
        let text = page(&session, &[&LEAKS[0]], &rows).unwrap();
        for line in [
            "| plain | 1,234,567 leaked | – | – | – | 3.00 s | 1.0 MiB | 3.0 MiB |",
            "| borescope sites | 1,234,567 of 1,234,567: 100.0 % (exact) | 1 of 1,000; first finding of the report | 5.0 MiB | 98.0 % | 1.75 (1.50..2.00) (and 0.5 s beside) | \
             1.000 (1.000..1.000) | 3.0 MiB |",
            "| async-profiler --live | not run: no net | | | | | | |",
            "| JFR OldObjectSample | 12 of 1,234,567: 0.001 % (sample) | not among its 3 | 13 of 20 samples | – | 1.00 | 1.000 | 3.0 MiB |",
            "| JFR profile, with roots | not run | | | | | | |",
            "| jcmd GC.class_histogram | 0 of 1,234,567: 0.0 % (no lines) | none; its class is number 2 | 1.0 MiB of the class, all lines together | – | 1.00 | 1.000 | 3.0 MiB |",
        ] {
            assert!(text.contains(line), "{line}\nin\n{text}");
        }
        assert!(
            text.contains("planted: CacheLeak (CacheLeak.java:68)"),
            "{text}"
        );
    }
}
