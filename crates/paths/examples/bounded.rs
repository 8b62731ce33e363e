//! What a limit on memory costs: of the 100 sequences of k IDs that occur most often, how many the bounded automaton still ranks so
//! high, and how far its bounds are from the counts.
//!
//! `cargo run --release -p borescope-paths --example bounded [thousands of items, default 500; an eighth for noise]`

mod streams;

use borescope_paths::automaton::Automaton;
use borescope_paths::bounded::{Bounded, Growth};
use borescope_paths::{Engine, Error, KIpf};
use streams::{Stream, stream, streams};

/// Loops that begin when noise has used the memory up.
fn late(items: usize) -> Stream {
    let mut rounds = 0;
    stream("noise, then nested loops", 8, items, move |random, ids| {
        rounds += 1;
        if rounds < items / 4 {
            ids.push(random.below(8) as u32);
        } else {
            ids.push(3);
            ids.extend(std::iter::repeat_n(5, random.below(8) as usize));
            ids.push(6);
        }
    })
}

/// When rows are folded, and how many are kept then.
#[derive(Clone, Copy)]
enum Policy {
    /// Never.
    Cap,
    /// As soon as there is no room; so much of the limit is kept.
    Full(f64),
    /// So many times in all, where there is no room; half of the limit is kept.
    Times(usize),
}

fn run(
    stream: &Stream,
    k: u32,
    limit: usize,
    (growth, policy): (Growth, Policy),
) -> Result<Bounded, Error> {
    let mut engine = Bounded::new(k, limit, growth)?;
    let items: usize = stream.activations.iter().map(Vec::len).sum();
    let (period, keep) = match policy {
        Policy::Cap => (usize::MAX, 0.0),
        Policy::Full(keep) => (1, keep),
        Policy::Times(times) => (items / times, 0.5),
    };
    let keep = (limit as f64 * keep) as usize;
    let mut wait = period;
    for activation in &stream.activations {
        let mut state = engine.enter();
        for &id in activation {
            wait -= 1;
            if wait == 0 {
                wait = period;
                if engine.is_full() {
                    engine.sweep(keep, &[state]);
                }
            }
            state = engine.hit(state, id);
        }
    }
    Ok(engine)
}

/// Share of the most frequent that are found, error and width of the bounds (all over the counts of the true ones).
fn quality(truth: &KIpf, bounded: &KIpf) -> (f64, f64, f64) {
    let top = truth.top(truth.k(), 100);
    let Some(least) = top.last().map(|t| t.1) else {
        return (1.0, 0.0, 0.0);
    };
    // Where several occur as often as the hundredth, any of them will do.
    let found = bounded.top(truth.k(), top.len());
    let found = found.iter().filter(|(ids, _)| truth.count(ids) >= least);
    let (mut all, mut error, mut width) = (0, 0, 0);
    for (ids, count) in &top {
        let (lower, upper) = (bounded.count(ids), bounded.upper_of(ids));
        assert!(
            lower <= *count && *count <= upper,
            "{ids:?}: {lower} <= {count} <= {upper}"
        );
        all += count;
        error += count - lower;
        width += upper - lower;
    }
    let share = |n: u64| n as f64 / all as f64;
    (
        found.count() as f64 / top.len() as f64,
        share(error),
        share(width),
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let thousands: usize = std::env::args().nth(1).map_or(Ok(500), |n| n.parse())?;
    let earned = |rising| Growth::Earned { price: 2, rising };
    let policies = [
        ("cap", (Growth::Whole, Policy::Cap)),
        ("cap, earned", (earned(true), Policy::Cap)),
        ("fold", (Growth::Whole, Policy::Full(0.75))),
        ("fold, earned", (earned(false), Policy::Full(0.75))),
        ("fold 8 times", (Growth::Whole, Policy::Times(8))),
        ("fold 8 times, earned", (earned(false), Policy::Times(8))),
    ];
    let mut all = streams(thousands * 1000);
    all.push(late(thousands * 1000 / 4));
    for stream in &all {
        let items: usize = stream.activations.iter().map(Vec::len).sum();
        for k in [4, 8, 16] {
            let mut exact = Automaton::new(k, stream.num_paths)?;
            exact.feed(&stream.activations);
            let truth = exact.k_ipf();
            let edges = exact.stats().counters;
            println!(
                "{}, k = {k}: {items} items, {} rows, {edges} edges, {:.1} % slow",
                stream.name,
                exact.rows(),
                edges as f64 * 100.0 / items as f64
            );
            if exact.rows() < 1000 {
                println!("  (a quarter of these would not be a limit that anybody sets)");
                continue;
            }
            for part in [4, 16] {
                let limit = exact.rows() / part;
                for (name, policy) in policies {
                    let engine = run(stream, k, limit, policy)?;
                    let (recall, error, width) = quality(&truth, &engine.k_ipf());
                    println!(
                        "  1/{part:<2} {name:<25} recall {:5.1} %  lower bound {:6.2} % low  bounds {:7.2} % apart  {:5.1} % slow  {:5} sweeps  {} edges",
                        recall * 100.0,
                        error * 100.0,
                        width * 100.0,
                        engine.slow() as f64 * 100.0 / items as f64,
                        engine.sweeps(),
                        engine.stats().counters,
                    );
                }
            }
        }
    }
    Ok(())
}
