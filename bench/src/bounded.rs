//! What limits on rows and memory cost: the hottest 100 sequences of a run with the default limits against a run without, for every program.

use crate::evaluation::chosen;
use crate::run::{self, Runner};
use crate::stats::median;
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::programs::Program;
use borescope_profile::{Existing, Profile, seal};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

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
}

/// A sequence: its method and path IDs.
type Gram = (String, Vec<u32>);

/// Prints a table.
pub fn run(args: &Args) -> Result<()> {
    let runner = Runner::new(args.limit)?;
    let mut bounds = String::new();
    if let Some(memory) = args.memory {
        bounds += &format!(",memory={memory}");
    }
    if let Some(rows) = args.rows {
        bounds += &format!(",rows={rows}");
    }
    println!(
        "JDK {}; the {HOTTEST} hottest sequences of k paths of a run without limits, in a run with{}. Recall: how many of them are among the {HOTTEST} \
         hottest there (by lower bounds). Too low: by how much of the true count the lower bound is, median and worst. Outside: true counts \
         that are not within their bounds, of all sequences of k paths of the first run (only a program that does not do the same twice has any).\n",
        args.jdk,
        if bounds.is_empty() {
            " the default limits"
        } else {
            &bounds
        },
    );
    println!(
        "| program | k | counters, MB: no limit / limits | recall | too low | outside |\n|---|---|---|---|---|---|"
    );
    for program in chosen(&args.programs)? {
        for &k in &args.k {
            eprintln!("{}, k = {k}", program.name);
            let dir = tempfile::tempdir()?;
            let whole = profile(
                &runner,
                program,
                args.jdk,
                k,
                ",memory=34359738368,rows=4294967295",
                &dir.path().join("whole"),
            )?;
            let bounded = profile(
                &runner,
                program,
                args.jdk,
                k,
                &bounds,
                &dir.path().join("bounded"),
            )?;
            let megabytes = |p: &(Profile, u64)| format!("{:.1}", p.1 as f64 / 1e6);
            let found = compare(&whole.0, &bounded.0, k)?;
            println!(
                "| {} | {k} | {} / {} | {} | {} | {} of {} |",
                program.name,
                megabytes(&whole),
                megabytes(&bounded),
                found.recall,
                found.low,
                found.outside,
                found.compared,
            );
        }
    }
    Ok(())
}

/// Runs a program and seals what it counted; also the bytes of counters.
fn profile(
    runner: &Runner,
    program: &Program,
    jdk: u32,
    k: u32,
    limits: &str,
    out: &Path,
) -> Result<(Profile, u64)> {
    let options = format!("lens=paths,k={k},out={}{limits}", out.display());
    let ran = runner.program(program, jdk, Some(&options))?;
    ensure!(
        ran.code == Ok(program.exit),
        "{}: {:?} {}",
        program.name,
        ran.code,
        ran.stderr
    );
    let spool = run::spool(out).context("no spool")?;
    let bytes = run::allocated(&spool)?;
    let sealed = out.join("sealed");
    seal(&spool, &sealed, Existing::Refuse, &mut |_| ())?;
    Ok((Profile::open(&sealed)?, bytes))
}

struct Found {
    recall: String,
    low: String,
    outside: usize,
    compared: usize,
}

fn compare(whole: &Profile, bounded: &Profile, k: u32) -> Result<Found> {
    let truth = grams(whole, k)?;
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
    let there: HashMap<Gram, u64> = top(&grams(bounded, k)?).into_iter().collect();
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
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    Ok(Found {
        recall: format!("{again} of {}", hottest.len()),
        low: match median(&low) {
            None => "–".to_owned(),
            Some(middle) => format!(
                "{}, {}",
                percent(middle),
                percent(low.iter().copied().fold(f64::MIN, f64::max))
            ),
        },
        outside,
        compared: truth.len(),
    })
}

fn name(method: &borescope_profile::Method) -> String {
    format!(
        "{}.{}{} {:x}",
        method.class, method.method, method.descriptor, method.class_hash
    )
}

/// All sequences of k paths.
fn grams(profile: &Profile, k: u32) -> Result<HashMap<Gram, u64>> {
    let mut all = HashMap::new();
    for method in profile.methods().iter().filter(|m| m.ids > 0) {
        let kipf = profile.detail(method.index)?.kipf;
        let name = name(method);
        for (ids, count) in kipf.level(k) {
            *all.entry((name.clone(), ids)).or_default() += count;
        }
    }
    Ok(all)
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
}
