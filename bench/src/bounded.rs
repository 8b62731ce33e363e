//! What limits on rows and memory cost: the hottest 100 sequences of a run with the default limits against a run without, for every program.

use crate::evaluation::{agent_version, chosen};
use crate::grams::{Gram, counts, name};
use crate::page;
use crate::results::{self, OK, append};
use crate::run::Runner;
use crate::stats::median;
use anyhow::{Result, bail};
use borescope_e2e::programs::Program;
use borescope_e2e::workloads::MEASURED;
use borescope_profile::Profile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// So many sequences are compared.
const HOTTEST: usize = 100;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// JDK
    #[arg(long, default_value_t = 25)]
    jdk: u32,
    /// Programs [default: all]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Lengths of sequences
    #[arg(long, value_delimiter = ',', default_values_t = [4, 16])]
    k: Vec<u32>,
    /// Counter memory of the bounded run in bytes, instead of the agent's default
    #[arg(long)]
    memory: Option<u64>,
    /// Rows of the bounded run for each method and thread, instead of the agent's default
    #[arg(long)]
    rows: Option<u32>,
    /// Seconds of CPU after which a run is given up
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Where results and page go
    #[arg(long, default_value = "docs/evaluation")]
    out: PathBuf,
}

/// One line of `bounded.csv`: a comparison.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Bounded {
    /// Checksum of the agent's library.
    pub agent: String,
    /// Major version of the JDK.
    pub jdk: u32,
    /// Program.
    pub program: String,
    /// k.
    pub k: u32,
    /// Limits of the bounded run that are not the agent's default.
    pub limits: String,
    /// [`OK`], or why there are no figures.
    pub status: String,
    /// Disk space of the spool of the run without limits.
    pub whole_bytes: u64,
    /// And with them.
    pub bounded_bytes: u64,
    /// Hottest sequences of the run without limits: 100, or all.
    pub hottest: usize,
    /// How many of them are among the hottest of the bounded run.
    pub recall: usize,
    /// By which share of the true counts of the hottest their lower bounds are too low, median.
    pub low_median: Option<f64>,
    /// The worst.
    pub low_worst: Option<f64>,
    /// All sequences of k paths of the run without limits.
    pub compared: usize,
    /// How many of their counts are outside their bounds.
    pub outside: usize,
}

/// Compares, line by line into `bounded.csv`, and makes the page again.
pub fn run(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.out)?;
    let runner = Runner::new(args.limit)?;
    let mut limits = String::new();
    if let Some(memory) = args.memory {
        limits += &format!(",memory={memory}");
    }
    if let Some(rows) = args.rows {
        limits += &format!(",rows={rows}");
    }
    let agent = agent_version()?;
    for program in chosen(&args.programs)? {
        for &k in &args.k {
            let made = one(&runner, program, args.jdk, k, &limits);
            if runner.stopped() {
                bail!("interrupted; what was measured is kept");
            }
            let row = made.unwrap_or_else(|error| Bounded {
                status: format!("{error:#}"),
                ..Bounded::default()
            });
            eprintln!(
                "{}, k = {k}: {}, {} of {}",
                program.name, row.status, row.recall, row.hottest
            );
            let row = Bounded {
                agent: agent.clone(),
                jdk: args.jdk,
                program: program.name.to_owned(),
                k,
                limits: limits.trim_start_matches(',').to_owned(),
                ..row
            };
            append(&args.out.join("bounded.csv"), &row)?;
        }
    }
    page::remake(&args.out)
}

/// The newest line of each program and k, with the agent and limits of the last line.
fn newest(rows: &[Bounded]) -> BTreeMap<(&str, u32), &Bounded> {
    let Some(last) = rows.last() else {
        return BTreeMap::new();
    };
    rows.iter()
        .filter(|r| (&r.agent, r.jdk, &r.limits) == (&last.agent, last.jdk, &last.limits))
        .map(|r| ((r.program.as_str(), r.k), r))
        .collect()
}

/// The page's section, if there are figures.
pub fn section(dir: &Path, text: &mut String) -> Result<()> {
    let rows: Vec<Bounded> = results::rows(&dir.join("bounded.csv"))?;
    let newest = newest(&rows);
    let Some(last) = rows.last() else {
        return Ok(());
    };
    let limits = match last.limits.as_str() {
        "" => "the default limits",
        limits => limits,
    };
    writeln!(
        text,
        "\n## Limits on memory and rows\n\n`bench -- bounded`, [bounded.csv](bounded.csv), agent {}, JDK {}: the {HOTTEST} hottest sequences of k paths of a run \
         without limits, in a run with {limits}. One run each.\n\n\
         - Recall: how many of them are among the {HOTTEST} hottest there (by lower bounds).\n\
         - Too low: by how much of the true count the lower bound is, median and worst.\n\
         - Outside: true counts that are not within their bounds, of all sequences of k paths of the first run. Only a program that does \
         not do the same twice has any.\n\n\
         | program | k | counters, MB: no limit / limits | recall | too low | outside |\n|---|---|---|---|---|---|",
        last.agent, last.jdk
    )?;
    for program in MEASURED {
        for (_, row) in newest.iter().filter(|(key, _)| key.0 == program.name) {
            write!(text, "| {} | {} |", row.program, row.k)?;
            if row.status != OK {
                writeln!(
                    text,
                    " {} | | | |",
                    row.status.replace('|', "\\|").replace('\n', " ")
                )?;
                continue;
            }
            let percent = |share: Option<f64>| match share {
                None => "–".to_owned(),
                Some(share) => format!("{:.1} %", 100.0 * share),
            };
            writeln!(
                text,
                " {:.1} / {:.1} | {} of {} | {}, {} | {} of {} |",
                row.whole_bytes as f64 / 1e6,
                row.bounded_bytes as f64 / 1e6,
                row.recall,
                row.hottest,
                percent(row.low_median),
                percent(row.low_worst),
                row.outside,
                row.compared
            )?;
        }
    }
    Ok(())
}

fn one(runner: &Runner, program: &Program, jdk: u32, k: u32, limits: &str) -> Result<Bounded> {
    let of = |limits: &str| runner.profile(program, jdk, &format!("k={k}{limits}"));
    let (whole, bounded) = (of(",memory=34359738368,rows=4294967295")?, of(limits)?);
    Ok(Bounded {
        status: OK.to_owned(),
        whole_bytes: whole.counter_bytes,
        bounded_bytes: bounded.counter_bytes,
        ..compare(&whole.profile, &bounded.profile, k)?
    })
}

fn compare(whole: &Profile, bounded: &Profile, k: u32) -> Result<Bounded> {
    let truth = counts(whole, k..=k)?;
    let hottest = top(&truth);
    let mut lower = HashMap::new();
    let mut outside = 0;
    let mut by_method: BTreeMap<&str, Vec<(&Gram, u64)>> = BTreeMap::new();
    for (gram, count) in &truth {
        by_method.entry(&gram.0).or_default().push((gram, *count));
    }
    for method in bounded.methods() {
        let kipf = bounded.detail(method.index)?.kipf;
        let name = name(method);
        for (gram, count) in by_method.remove(name.as_str()).unwrap_or_default() {
            let (lo, hi) = (kipf.count(&gram.1), kipf.upper_of(&gram.1));
            outside += usize::from(count < lo || count > hi);
            lower.insert(gram, lo);
        }
    }
    outside += by_method.values().map(Vec::len).sum::<usize>();
    let there: HashMap<Gram, u64> = top(&counts(bounded, k..=k)?).into_iter().collect();
    // Where the last of the hottest are equally hot, one is as good as another.
    let least = hottest.last().map_or(0, |last| last.1);
    let again = there
        .keys()
        .filter(|gram| truth.get(*gram).is_some_and(|count| *count >= least))
        .count();
    let low: Vec<f64> = hottest
        .iter()
        .map(|(gram, count)| 1.0 - lower.get(gram).copied().unwrap_or(0) as f64 / *count as f64)
        .collect();
    Ok(Bounded {
        hottest: hottest.len(),
        recall: again,
        low_median: median(&low),
        low_worst: low.iter().copied().reduce(f64::max),
        compared: truth.len(),
        outside,
        ..Bounded::default()
    })
}

/// The hottest, by count, then by name.
fn top(grams: &HashMap<Gram, u64>) -> Vec<(Gram, u64)> {
    let mut all: Vec<(Gram, u64)> = grams
        .iter()
        .map(|(gram, count)| (gram.clone(), *count))
        .collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.truncate(HOTTEST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_come_first_and_are_few() {
        let grams: HashMap<Gram, u64> = (0..150u32)
            .map(|i| (("m".to_owned(), vec![i]), u64::from(i)))
            .collect();
        let top = top(&grams);
        assert_eq!((top.len(), top[0].1, top[99].1), (HOTTEST, 149, 50));
    }

    #[test]
    fn a_line_of_another_agent_or_with_other_limits_is_not_shown() {
        let row = |agent: &str, limits: &str, k, recall| Bounded {
            agent: agent.into(),
            limits: limits.into(),
            program: "lu".into(),
            k,
            recall,
            ..Bounded::default()
        };
        let rows = [
            row("1", "", 4, 1),
            row("2", "rows=9", 4, 2),
            row("2", "", 4, 3),
            row("2", "", 16, 4),
            row("2", "", 4, 5),
        ];
        let shown: Vec<usize> = newest(&rows).values().map(|r| r.recall).collect();
        assert_eq!(shown, [5, 4]);
        assert!(newest(&[]).is_empty());
    }
}
