//! Burst mode, sealed: estimates and their intervals in the tables are those of the groups' counts by brute force.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use borescope_paths::estimate::estimate;
use borescope_profile::{EdgeKind, Interval};
use borescope_spool::layout::{Engine, GROUPS};
use borescope_spool::meta::{Counting, Record};
use borescope_spool::testing::{Builder, worked_example};
use common::{CASES, LEAF, WORKED, log, records};
use proptest::prelude::*;

const G: usize = GROUPS as usize;
/// The methods of [`common`] lie too close for groups: this one has the index of the second, moved.
const SECOND: u32 = CASES + 4 * GROUPS;
const ONE_IN: u32 = 8;

/// The log of [`common`] in burst mode: the worked example and the cases count in groups.
fn burst_log() -> Vec<u8> {
    let mut records = records();
    for record in &mut records {
        match record {
            Record::Target(target) => target.one_in = ONE_IN,
            Record::Class(class) => {
                for method in &mut class.methods {
                    method.counting = match method.index {
                        WORKED | CASES => Counting::Groups,
                        _ => method.counting,
                    };
                    if method.index == CASES {
                        method.index = SECOND;
                    } else if method.index > CASES {
                        method.index += 100;
                    }
                }
            }
            _ => {}
        }
    }
    records.iter().flat_map(Record::encode).collect()
}

/// Which method, which group, which path IDs.
type Activation = (bool, usize, Vec<u32>);

fn activations() -> impl Strategy<Value = Vec<Activation>> {
    let ids = prop::collection::vec(prop_oneof![3 => 0..3u32, 1 => 0..8u32], 0..12);
    prop::collection::vec((any::<bool>(), 0..G, ids), 0..60)
}

/// What each group counted of each sequence of up to k IDs.
fn brute(of: bool, k: usize, all: &[Activation]) -> BTreeMap<Vec<u32>, [u64; G]> {
    let mut counts: BTreeMap<Vec<u32>, [u64; G]> = BTreeMap::new();
    for (_, group, ids) in all.iter().filter(|a| a.0 == of) {
        for length in 1..=k {
            for gram in ids.windows(length) {
                counts.entry(gram.to_vec()).or_default()[*group] += 1;
            }
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn tables_hold_the_estimates(all in activations(), k in 1u32..=4, rows in prop_oneof![Just(usize::MAX), 1..4usize], leaf in 0..5usize) {
        let mut builder = Builder::new(Engine::Automaton, k);
        builder.row_limit(rows).slots(LEAF + 100);
        for (second, group, ids) in &all {
            let method = if *second { SECOND } else { WORKED } + *group as u32;
            builder.method(method, if *second { 40 } else { 8 });
            builder.run(0, method, std::slice::from_ref(ids));
        }
        builder.run(0, LEAF + 100, &vec![vec![3]; leaf]);
        let dir = tempfile::tempdir().unwrap();
        let (manifest, profile) = common::sealed(dir.path(), &builder.finish(Some(1)), &burst_log()).unwrap();
        let burst = manifest.burst.unwrap();
        prop_assert_eq!((burst.one_in, burst.groups), (ONE_IN, GROUPS));
        let mut sums = [0u64; G];
        let mut chosen_of_all = 0;
        for (of, index) in [(false, WORKED), (true, SECOND)] {
            let method = profile.methods().iter().find(|m| m.index == index).unwrap();
            let detail = profile.detail(index).unwrap();
            let e = method.estimate.unwrap();
            let chosen = all.iter().filter(|a| a.0 == of).count() as u64;
            chosen_of_all += chosen;
            prop_assert_eq!((e.chosen, method.activations), (chosen, chosen * u64::from(ONE_IN)));
            prop_assert!(!method.exact && !method.paths_exact);
            let truth = brute(of, k as usize, &all);
            let mut seen = BTreeSet::new();
            for (gram, groups) in &truth {
                let want = estimate(ONE_IN, groups, chosen);
                let node = detail.kipf.find(gram);
                if rows == usize::MAX || gram.len() == 1 {
                    let node = node.unwrap();
                    let found = (detail.kipf.node_count(node), detail.kipf.lower(node), detail.kipf.upper(node));
                    prop_assert_eq!(found, (want.count, want.lo, want.hi), "{:?}", gram);
                } else if let Some(node) = node {
                    // With truncated rows the interval is wider, on both sides.
                    prop_assert!(detail.kipf.lower(node) <= want.lo.max(detail.kipf.node_count(node)));
                    prop_assert!(detail.kipf.node_count(node) <= want.count && detail.kipf.upper(node) >= want.count);
                }
                if gram.len() == 1 {
                    seen.insert(gram[0]);
                    let row = detail.paths.iter().find(|p| p.id == gram[0]).unwrap();
                    let interval = Some(Interval { lo: want.lo, hi: Some(want.hi) });
                    prop_assert_eq!((row.count, row.interval), (want.count, interval));
                    sums.iter_mut().zip(groups).for_each(|(sum, x)| *sum += x);
                }
            }
            prop_assert_eq!(detail.paths.len(), seen.len());
            // Nothing is lost here: what did not end by a return or a throw is unfinished.
            let flow = worked_example();
            if !of {
                let left = |ids: &[u32]| ids.iter().filter(|&&id| matches!(flow.decode(id).unwrap().end, EdgeKind::Return | EdgeKind::Throw)).count() as u64;
                let mut groups = [[0u64; 2]; G];
                for (_, group, ids) in all.iter().filter(|a| !a.0) {
                    groups[*group][0] += 1;
                    groups[*group][1] += left(ids);
                }
                let unfinished: u64 = groups.iter().map(|[begun, left]| begun.saturating_sub(*left)).sum();
                prop_assert_eq!(method.unfinished, Some(unfinished * u64::from(ONE_IN)));
            }
        }
        let slots = profile.methods().iter().find(|m| m.index == LEAF + 100).unwrap();
        prop_assert!(slots.exact && slots.estimate.is_none() && slots.ids == leaf as u64);
        // Totals: estimates and exact counts together.
        let ids = estimate(ONE_IN, &sums, chosen_of_all);
        prop_assert_eq!(manifest.totals.ids, ids.count + leaf as u64);
        prop_assert_eq!(burst.ids, Interval { lo: ids.lo + leaf as u64, hi: Some(ids.hi + leaf as u64) });
    }
}

/// What is lost or damaged takes the upper ends away, or widens them.
#[test]
fn lost_and_torn() {
    let run = |lost: Option<u64>, cut: usize| {
        let mut builder = Builder::new(Engine::Automaton, 2);
        for group in 0..GROUPS {
            builder
                .method(WORKED + group, 8)
                .run(0, WORKED + group, &[vec![0, 4, 6, 5]]);
        }
        if let Some(lost) = lost {
            builder.stop(borescope_spool::layout::Stop::Memory, lost);
        }
        let mut bytes = builder.finish(Some(1));
        bytes.truncate(bytes.len() - cut);
        let dir = tempfile::tempdir().unwrap();
        common::sealed(dir.path(), &bytes, &burst_log()).unwrap()
    };
    let hi = |(manifest, profile): (borescope_profile::Manifest, borescope_profile::Profile)| {
        let detail = profile.detail(WORKED).unwrap();
        let node = detail.kipf.find(&[4, 6]).unwrap();
        let method = &profile.methods()[0];
        let upper = manifest.upper(method, detail.kipf.upper(node));
        (
            detail.paths[0].interval.unwrap().hi,
            upper,
            manifest.burst.unwrap().ids.hi,
        )
    };
    let whole = hi(run(None, 0));
    let lost = hi(run(Some(5), 0));
    let more = u64::from(5 * ONE_IN);
    assert_eq!(lost.0, whole.0.map(|hi| hi + more));
    assert_eq!(lost.1, whole.1.map(|hi| hi + more));
    assert_eq!(lost.2, whole.2.map(|hi| hi + more));
    assert_eq!(hi(run(None, 600)), (None, None, None));
}

/// Only a spool in burst mode has estimates.
#[test]
fn other_spools_have_none() {
    let dir = tempfile::tempdir().unwrap();
    let counters = common::counters(Engine::Automaton, 2, &[(0, WORKED, vec![vec![0, 5]])]);
    let (manifest, profile) =
        common::sealed(dir.path(), &counters.finish(Some(1)), &log()).unwrap();
    assert_eq!(manifest.burst, None);
    assert!(profile.methods().iter().all(|m| m.estimate.is_none()));
    assert!(
        profile
            .detail(WORKED)
            .unwrap()
            .paths
            .iter()
            .all(|p| p.interval.is_none())
    );
}
