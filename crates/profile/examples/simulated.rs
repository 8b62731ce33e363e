//! Seals a simulated spool into the directory given: a profile to look at, or to try a reader of Parquet on, without a JVM.

#[path = "../tests/common/mod.rs"]
mod common;

use borescope_spool::layout::Engine;
use common::{CASES, LEAF, MERGED, WORKED, counters, log, sealed};

fn main() {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: simulated DIR   (makes DIR/spool and the profile DIR/p)");
        std::process::exit(1);
    };
    let worked = vec![vec![0, 4, 6, 6, 4, 4, 6, 6, 4, 4, 6, 6, 4, 5]];
    let cases = (0..400u32)
        .map(|at| (0..at % 37).map(|id| id * at % 40).collect())
        .collect();
    let runs = [
        (0, WORKED, worked),
        (0, CASES, cases),
        (1, CASES, vec![vec![1, 2, 3, 39]; 99]),
        (0, LEAF, (0..9).map(|id| vec![id]).collect()),
        (1, MERGED, vec![[vec![0], vec![2; 50], vec![3]].concat(); 9]),
    ];
    let image = counters(Engine::Automaton, 4, &runs).finish(Some(1_764_457_009_000));
    match sealed(dir.as_ref(), &image, &log()) {
        Ok((manifest, _)) => println!(
            "{} path IDs, {} k-IPF nodes",
            manifest.totals.ids, manifest.totals.kipf_nodes
        ),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
