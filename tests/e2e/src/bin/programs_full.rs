//! Every program in every JDK, collector, engine and k (hours): `programs_full [PROGRAM...]`. The covering set is in `tests/programs.rs`.

use borescope_e2e::programs::{ALL, Counts, Program, counts_difference, product};
use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|w| ALL.iter().all(|p| p.name != w.as_str()))
    {
        eprintln!("no program {unknown}");
        return ExitCode::from(1);
    }
    let chosen = ALL
        .iter()
        .filter(|p| wanted.is_empty() || wanted.iter().any(|w| w == p.name));
    let (mut runs, mut failures) = (0, 0);
    for program in chosen {
        let (r, f) = all_variants(program);
        runs += r;
        failures += f;
    }
    println!("{} passed, {failures} failed", runs - failures);
    ExitCode::from(u8::from(failures > 0))
}

/// Runs and failures of one program.
fn all_variants(program: &Program) -> (usize, usize) {
    let mut plain = BTreeMap::new();
    let mut first: Option<Counts> = None;
    let (mut runs, mut failures) = (0, 0);
    for variant in product(program) {
        runs += 1;
        let result = program.check(&variant, &mut plain).and_then(|counts| {
            match first
                .as_ref()
                .and_then(|first| counts_difference(first, &counts))
            {
                Some(difference) => Err(format!(
                    "counts differ from those of the first run:\n{difference}"
                )),
                None => {
                    first.get_or_insert(counts);
                    Ok(())
                }
            }
        });
        match result {
            Ok(()) => println!("ok      {} {variant}", program.name),
            Err(error) => {
                failures += 1;
                println!("FAILED  {} {variant}: {error}", program.name);
            }
        }
    }
    (runs, failures)
}
