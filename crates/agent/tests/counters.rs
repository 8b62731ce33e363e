//! The counters' slow paths against brute force: any streams, any engine, any k, several threads, private and shared arenas; read
//! back from the file as the sealer does.

use borescope::memory::{Counters, Setup};
use borescope_paths::{kipf::KIpf, stream};
use borescope_spool::counters::{Counters as Reader, Damage};
use borescope_spool::layout::Engine;
use proptest::prelude::*;
use std::collections::HashMap;

/// One activation: (thread, method, path IDs).
type Activation = (u64, usize, Vec<u32>);

/// Numbers of paths: dense and hashed under the automaton.
const PATHS: [u32; 3] = [3, 40, 1 << 29];

/// As in a real numbering, an ID either ends an activation or never does: here the highest one does.
fn activation() -> impl Strategy<Value = Activation> {
    // Thread 0 stands for a virtual thread: a shared arena.
    (0..4u64, 0..PATHS.len(), any::<bool>()).prop_flat_map(|(thread, method, returns)| {
        let last = PATHS[method] - 1;
        let id = prop_oneof![3 => 0..last.min(4), 1 => 0..last];
        let ids = prop::collection::vec(id, 0..40).prop_map(move |mut ids| {
            ids.extend(returns.then_some(last));
            ids
        });
        (Just(thread), Just(method), ids)
    })
}

fn engine() -> impl Strategy<Value = Engine> {
    prop_oneof![
        Just(Engine::Automaton),
        Just(Engine::Ksf),
        Just(Engine::BlppHash),
        Just(Engine::BlppDense)
    ]
}

/// Counters on an empty file, for methods of these numbers of paths.
fn counters(file: &tempfile::NamedTempFile, setup: Setup, paths: &[u32]) -> Counters {
    let c = Counters::new(file.reopen().unwrap(), &setup).unwrap();
    assert_eq!(c.reserve_methods(paths.len() as u32), Some(0));
    for (m, p) in paths.iter().enumerate() {
        c.set_paths(m as u32, *p);
    }
    c
}

/// Runs the activations, thread by thread interleaved as they come, and returns the file's bytes.
fn run(engine: Engine, k: u32, activations: &[Activation]) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let c = counters(
        &file,
        Setup {
            engine,
            k,
            memory: 64 << 20,
        },
        &PATHS,
    );
    let mut blocks = HashMap::new();
    for (n, (thread, method, ids)) in activations.iter().enumerate() {
        let block = *blocks.entry(*thread).or_insert_with(|| match thread {
            0 => c.threads.shared_block(0),
            t => c.threads.lease(*t),
        });
        let mut s = c.new_root(block, *method as u32);
        if engine == Engine::Ksf {
            s = (s - c.base()) >> 4;
        }
        for &id in ids {
            s = if engine == Engine::Ksf {
                c.miss_ksf(s, id)
            } else {
                c.miss(s, id, id == PATHS[*method] - 1)
            };
        }
        if n % 5 == 4 && *thread != 0 {
            // The thread dies; another takes over its arena.
            c.threads.release(*thread);
            blocks.remove(thread);
        }
    }
    c.end(1);
    std::fs::read(file.path()).unwrap()
}

fn forests(bytes: &[u8], k: u32, engine: Engine) -> (Vec<KIpf>, Vec<u64>) {
    let reader = Reader::new(bytes).unwrap();
    let mut forests: Vec<KIpf> = PATHS.iter().map(|_| KIpf::new(k).unwrap()).collect();
    let mut enters = vec![0; PATHS.len()];
    let mut damage = Damage::default();
    let mut nodes: Vec<Vec<(Vec<u32>, u64)>> = vec![Vec::new(); PATHS.len()];
    for row in reader.rows() {
        let m = row.method as usize;
        enters[m] += row.enters;
        if engine == Engine::Ksf {
            reader.ksf(&row, &mut damage, |ids, count| {
                nodes[m].push((ids.to_vec(), count))
            });
            continue;
        }
        let window = reader.window(&row);
        assert!(window.whole);
        for edge in reader.edges(&row).unwrap() {
            forests[m].add_edge(&window.ids, edge.id, edge.count);
        }
    }
    assert_eq!(damage, Damage::default());
    // make_k_ipf: a node counts for every suffix of its path, up to k long.
    for (m, nodes) in nodes.into_iter().enumerate() {
        for (path, count) in nodes {
            let (id, above) = path.split_last().unwrap();
            forests[m].add_edge(
                &above[above.len().saturating_sub(k as usize - 1)..],
                *id,
                count,
            );
        }
    }
    (forests, enters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn counts_equal_brute_force(engine in engine(), k in 1..=16u32, activations in prop::collection::vec(activation(), 0..60)) {
        let k = if matches!(engine, Engine::BlppHash | Engine::BlppDense) { 1 } else { k };
        let bytes = run(engine, k, &activations);
        let (forests, enters) = forests(&bytes, k, engine);
        for m in 0..PATHS.len() {
            let ids: Vec<Vec<u32>> = activations.iter().filter(|a| a.1 == m).map(|a| a.2.clone()).collect();
            prop_assert_eq!(enters[m], ids.len() as u64);
            let expected = stream::brute_force(&ids, k);
            let got: HashMap<Vec<u32>, u64> = (1..=k).flat_map(|n| forests[m].level(n).collect::<Vec<_>>()).collect();
            prop_assert_eq!(got, expected);
        }
    }
}

#[test]
fn memory_limit_stops_counting_and_says_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let c = counters(
        &file,
        Setup {
            engine: Engine::Automaton,
            k: 16,
            memory: 1 << 20,
        },
        &[16],
    );
    let block = c.threads.lease(7);
    let mut x = 1u32;
    for _ in 0..200 {
        let mut s = c.new_root(block, 0);
        for _ in 0..200 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            s = c.miss(s, x >> 28, false);
        }
    }
    let bytes = std::fs::read(file.path()).unwrap();
    let reader = Reader::new(&bytes[..]).unwrap();
    assert!(bytes.len() <= 1 << 20);
    let counted: u64 = reader
        .rows()
        .map(|r| reader.edges(&r).unwrap().map(|e| e.count).sum::<u64>())
        .sum();
    assert!(reader.header().lost > 0);
    assert_eq!(
        counted + reader.header().lost,
        200 * 200,
        "each item is counted or known to be lost"
    );
}
