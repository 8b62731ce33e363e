//! The engines of `crates/paths` by themselves, on streams of path IDs like those of the programs: how many nodes the k-SF scans, and what
//! moving hot children to the front (proposed at the end of the seed's discussion of figure 8) changes, without a JVM around.
//!
//! A profile holds no stream, but says how often each ID followed each window of IDs. A stream is a walk over the windows that chooses
//! each ID as often as the program did; it begins as the activations did and ends at a return.

use crate::results::Replay;
use crate::stats::cpu;
use anyhow::Result;
use borescope_paths::automaton::Automaton;
use borescope_paths::blpp::BlppHash;
use borescope_paths::ksf::Ksf;
use borescope_paths::{Engine, KIpf, Stats};
use borescope_profile::{EdgeKind, Profile};
use nix::sys::resource::UsageWho;
use std::collections::{HashMap, HashSet};
use std::hint::black_box;

/// IDs of all streams of a program together.
const ITEMS: u64 = 2_000_000;
/// Methods with the most IDs.
const METHODS: usize = 64;
/// Passes; the fastest counts.
const PASSES: usize = 3;

/// The stream of one method.
pub struct Stream {
    /// The method's paths.
    pub num_paths: u32,
    /// IDs by activation.
    pub activations: Vec<Vec<u32>>,
}

/// All engines on the streams of a profile, with each k up to the profile's.
pub fn run(profile: &Profile, ks: &[u32]) -> Result<Vec<Replay>> {
    let streams = streams(profile, ITEMS)?;
    let mut all = vec![measure(
        "blpp-hash",
        1,
        &streams,
        |_| <BlppHash>::new(),
        |_| None,
    )?];
    for &k in ks.iter().filter(|k| **k > 1 && **k <= profile.manifest().k) {
        let scans = |ksf: &Ksf| Some(ksf.scans());
        // k was checked by the profile.
        let automaton = |n| Automaton::new(k, n).expect("a valid k");
        let ksf = |_| Ksf::new(k).expect("a valid k");
        let front = |_| Ksf::with_move_to_front(k).expect("a valid k");
        all.push(measure("automaton", k, &streams, automaton, |_| None)?);
        all.push(measure("ksf", k, &streams, ksf, scans)?);
        all.push(measure("ksf-mtf", k, &streams, front, scans)?);
    }
    Ok(all)
}

fn measure<E: Engine>(
    engine: &str,
    k: u32,
    streams: &[Stream],
    make: impl Fn(u32) -> E,
    scans: impl Fn(&E) -> Option<u64>,
) -> Result<Replay> {
    let items: usize = streams
        .iter()
        .flat_map(|s| &s.activations)
        .map(Vec::len)
        .sum();
    let mut fastest = f64::INFINITY;
    let mut engines = Vec::new();
    for _ in 0..PASSES {
        let begun = cpu(UsageWho::RUSAGE_THREAD)?;
        engines.clear();
        for stream in streams {
            let mut engine = make(stream.num_paths);
            engine.feed(black_box(&stream.activations));
            engines.push(engine);
        }
        black_box(&engines);
        fastest = fastest.min((cpu(UsageWho::RUSAGE_THREAD)? - begun).as_secs_f64());
    }
    let sum = |of: &dyn Fn(&Stats) -> u64| engines.iter().map(|e| of(&e.stats())).sum::<u64>();
    let scanned: Option<u64> = engines.iter().map(scans).sum();
    let per_item = |n: u64| n as f64 / items as f64;
    Ok(Replay {
        engine: engine.to_owned(),
        k,
        items: items as u64,
        ns_per_item: fastest * 1e9 / items as f64,
        scans_per_item: scanned.map(per_item),
        hash_operations_per_item: per_item(sum(&|s| s.hash_lookups)),
        counters: sum(&|s| s.counters),
        ..Replay::default()
    })
}

/// Streams like those of a program, of so many IDs together.
pub fn streams(profile: &Profile, items: u64) -> Result<Vec<Stream>> {
    let mut methods: Vec<_> = profile.methods().iter().filter(|m| m.ids > 0).collect();
    methods.sort_by_key(|m| std::cmp::Reverse(m.ids));
    methods.truncate(METHODS);
    let total: u64 = methods.iter().map(|m| m.ids).sum();
    let mut random = Random(0x5EED);
    let mut out = Vec::new();
    for method in methods {
        let share = (u128::from(items) * u128::from(method.ids) / u128::from(total)) as usize;
        let detail = profile.detail(method.index)?;
        let leaves =
            |p: &&borescope_profile::PathRow| matches!(p.ends, EdgeKind::Return | EdgeKind::Throw);
        let ends = detail.paths.iter().filter(leaves).map(|p| p.id).collect();
        out.push(Stream {
            num_paths: method.numbered_paths,
            activations: walk(&detail.kipf, &ends, share.max(1), &mut random),
        });
    }
    Ok(out)
}

/// Activations with `items` IDs together. `ends` are the IDs after which an activation ends.
fn walk(kipf: &KIpf, ends: &HashSet<u32>, items: usize, random: &mut Random) -> Vec<Vec<u32>> {
    let mut edges: HashMap<Vec<u32>, Vec<(u32, u64)>> = HashMap::new();
    for (mut gram, count) in kipf.edges() {
        if let Some(id) = gram.pop() {
            edges.entry(gram).or_default().push((id, count));
        }
    }
    // The order must not depend on the forest's.
    edges.values_mut().for_each(|of| of.sort_unstable());
    let limit = kipf.k() as usize - 1;
    let mut activations = Vec::new();
    let mut left = items;
    while left > 0 {
        let mut ids: Vec<u32> = Vec::new();
        while left > 0 {
            let window = &ids[ids.len().saturating_sub(limit)..];
            // None: the activation was left by an exception, or the program ended.
            let Some(id) = edges.get(window).and_then(|of| random.choose(of)) else {
                break;
            };
            ids.push(id);
            left -= 1;
            if ends.contains(&id) {
                break;
            }
        }
        if ids.is_empty() {
            break;
        }
        activations.push(ids);
    }
    activations
}

/// SplitMix64: the streams are the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// An ID, each as often as it counts.
    fn choose(&mut self, of: &[(u32, u64)]) -> Option<u32> {
        let total: u64 = of.iter().map(|e| e.1).sum();
        let mut at = ((u128::from(self.next()) * u128::from(total)) >> 64) as u64;
        for &(id, count) in of {
            if at < count {
                return Some(id);
            }
            at -= count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_made_of_what_occurred() {
        // 0 twice or three times, then 1, which returns.
        let seen: Vec<Vec<u32>> = (0..300)
            .map(|i| {
                if i % 3 == 0 {
                    vec![0, 0, 1]
                } else {
                    vec![0, 0, 0, 1]
                }
            })
            .collect();
        let mut ksf = Ksf::new(4).unwrap();
        ksf.feed(&seen);
        let walked = walk(&ksf.k_ipf(), &HashSet::from([1]), 4000, &mut Random(1));
        let (last, whole) = walked.split_last().unwrap();
        assert!(whole.iter().all(|a| seen.contains(a)), "{whole:?}");
        assert!(last.len() <= 4 && walked.iter().map(Vec::len).sum::<usize>() == 4000);
        let short = whole.iter().filter(|a| a.len() == 3).count() as f64 / whole.len() as f64;
        assert!((0.28..0.39).contains(&short), "{short}");
    }
}
