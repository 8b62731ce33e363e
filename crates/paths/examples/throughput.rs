//! Compares the engines on synthetic streams: items a second of CPU time, hash look-ups an item, counters in use; then what the
//! k-IPF and its chains cost.
//!
//! `cargo run --release -p borescope-paths --example throughput [millions of items, default 4; an eighth for the two large streams]`

mod streams;

use borescope_paths::automaton::Automaton;
use borescope_paths::blpp::{BlppDense, BlppHash};
use borescope_paths::chains::{Options, chains};
use borescope_paths::ksf::Ksf;
use borescope_paths::{Engine, Error};
use std::hash::RandomState;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use streams::{Stream, streams};

/// CPU time of this thread (Linux counts it in nanoseconds), so that other load disturbs less; else wall-clock time.
fn now() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let wall = BEGIN.elapsed();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let cpu = stat.and_then(|s| s.split(' ').next()?.parse().ok());
    cpu.map_or(wall, Duration::from_nanos)
}

/// Does something again and again for 0.1 s or more (the clock may tick at 4 ms): its result and the time of one go.
fn timed<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let (begin, mut times) = (now(), 0);
    loop {
        let result = work();
        times += 1;
        let gone = now() - begin;
        if gone > Duration::from_millis(100) {
            return (result, gone / times);
        }
    }
}

fn measure<E: Engine + Clone>(
    name: &str,
    stream: &Stream,
    engine: Result<E, Error>,
) -> Result<E, Error> {
    let empty = engine?;
    let items: usize = stream.activations.iter().map(Vec::len).sum();
    let (engine, time) = timed(|| {
        let mut engine = empty.clone();
        engine.feed(&stream.activations);
        engine
    });
    let stats = engine.stats();
    println!(
        "  {name:<24} {:>7.1} M items/s {:>8.4} hash look-ups/item {:>9} counters",
        items as f64 / time.as_secs_f64() / 1e6,
        stats.hash_lookups as f64 / items as f64,
        stats.counters,
    );
    Ok(engine)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: usize = std::env::args().nth(1).map_or(Ok(4), |n| n.parse())?;
    for stream in streams(millions * 1_000_000) {
        println!("{}", stream.name);
        measure(
            "blpp-hash (SipHash)",
            &stream,
            Ok(BlppHash::<RandomState>::new()),
        )?;
        measure("blpp-hash (fast hash)", &stream, Ok(<BlppHash>::new()))?;
        measure("blpp-dense", &stream, Ok(BlppDense::new(stream.num_paths)))?;
        for k in [2, 4, 8, 16] {
            measure(&format!("k-SF, k = {k}"), &stream, Ksf::new(k))?;
            measure("  with move to front", &stream, Ksf::with_move_to_front(k))?;
            let automaton = measure(
                &format!("automaton, k = {k}"),
                &stream,
                Automaton::new(k, stream.num_paths),
            )?;
            let (forest, made) = timed(|| automaton.k_ipf());
            let (found, chosen) =
                timed(|| chains(&forest, forest.total(), |_| true, &Options::default()));
            println!(
                "    its k-IPF: {} nodes in {:.1?}; {} chains in {:.1?}, first {:?}",
                forest.len(),
                made,
                found.len(),
                chosen,
                found.first().map(|c| (&c.ids, (c.share * 100.0).round())),
            );
        }
    }
    Ok(())
}
