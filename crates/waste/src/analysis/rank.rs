//! What a person should look at first: leaf pairs by what could be saved, and under each its full contexts.
//!
//! Full contexts scatter (761 distinct pairs in 922 samples of ecj), so pairs are first put together by their two lines. Pairs that initialise new
//! objects stand in a list of their own.

use super::hint::{Facts, Hint};
use super::interval::{Share, share};
use super::profile::Profile;
use crate::handler::code::Bytes;
use crate::handler::table::Frame;
use crate::handler::watch::Waste;
use crate::handler::watches::{Pair, Shape};
use std::collections::{BTreeMap, HashMap};

/// Totals of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Which.
    pub waste: Waste,
    /// Questions answered.
    pub completed: u64,
    /// Those that were waste.
    pub wasteful: u64,
    /// wasteful / completed.
    pub fraction: Share,
}

/// One pair of full contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contexts {
    /// Nodes of [`Profile::contexts`].
    pub first: u32,
    /// See there.
    pub second: u32,
    /// Who calls both.
    pub meeting: u32,
    /// Samples.
    pub count: u64,
}

/// All pairs of two lines.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafPair {
    /// The kind.
    pub waste: Waste,
    /// The first access's line.
    pub first: Frame,
    /// The second's.
    pub second: Frame,
    /// Samples.
    pub count: u64,
    /// Of all completed ones of the kind: an estimate.
    pub share: Share,
    /// Of those that began at the first line: `count` of so many, as far as the table had room.
    pub of_first: u64,
    /// What it means.
    pub hint: Hint,
    /// count x [`Hint::weight`]: the order of the list.
    pub saving: f64,
    /// The instructions in most of the samples.
    pub instructions: [Bytes; 2],
    /// How they access.
    pub shapes: [Shape; 2],
    /// Samples whose two accesses were not of the same bytes.
    pub partial: u64,
    /// Samples of which callers found no room in the table.
    pub cut: u64,
    /// Objects touched (the caller's numbers; 0: not known), most samples first.
    pub objects: Vec<(u64, u64)>,
    /// Full contexts, most samples first.
    pub contexts: Vec<Contexts>,
}

/// The ranking of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Totals of the three kinds.
    pub kinds: [Kind; 3],
    /// What could be saved, most of it first.
    pub pairs: Vec<LeafPair>,
    /// Pairs that initialise new objects, most samples first.
    pub initialising: Vec<LeafPair>,
}

/// What makes pairs one.
type Key = (bool, Waste, Frame, Frame);

/// Ranks the pairs of a profile. The order is the same whatever order they were counted in.
pub fn rank(profile: &Profile) -> Ranking {
    let kinds = Waste::ALL.map(|waste| {
        let completed = profile.accounts.completed(waste);
        let wasteful = profile
            .accounts
            .get(crate::handler::tally::Counter::Wasteful(waste));
        Kind {
            waste,
            completed,
            wasteful,
            fraction: share(wasteful, completed),
        }
    });
    let mut groups: BTreeMap<Key, Vec<(&Pair, u64)>> = BTreeMap::new();
    let mut of_first: HashMap<(Waste, Frame), u64> = HashMap::new();
    for (pair, &count) in &profile.pairs {
        let leaf = |node| profile.contexts.leaf(node).unwrap_or(Frame::UNKNOWN);
        let began = of_first.entry((pair.waste, leaf(pair.first))).or_insert(0);
        *began = began.saturating_add(count);
        if pair.wasteful {
            let key = (
                pair.detail.initialising,
                pair.waste,
                leaf(pair.first),
                leaf(pair.second),
            );
            groups.entry(key).or_default().push((pair, count));
        }
    }
    let mut ranking = Ranking {
        kinds,
        pairs: Vec::new(),
        initialising: Vec::new(),
    };
    for (key, pairs) in groups {
        let completed = kinds[key.1 as usize].completed;
        let began = of_first.get(&(key.1, key.2)).copied().unwrap_or(0);
        let leaf = leaf_pair(profile, key, &pairs, completed, began);
        match key.0 {
            true => ranking.initialising.push(leaf),
            false => ranking.pairs.push(leaf),
        }
    }
    for list in [&mut ranking.pairs, &mut ranking.initialising] {
        // Stable: equals stay in the order of their keys.
        list.sort_by(|a, b| b.saving.total_cmp(&a.saving).then(b.count.cmp(&a.count)));
    }
    ranking
}

fn leaf_pair(
    profile: &Profile,
    (initialising, waste, first, second): Key,
    pairs: &[(&Pair, u64)],
    completed: u64,
    of_first: u64,
) -> LeafPair {
    let tree = &profile.contexts;
    let count = sum(pairs, |_| true);
    let with = |is: &dyn Fn(&Pair) -> bool| sum(pairs, is);
    let most = |is: &dyn Fn(&Pair) -> bool| with(is) > count / 2;
    let caller = |node| tree.node(node).map(|(parent, _)| parent);
    let is_cut = |node| caller(node).and_then(|p| tree.leaf(p)) == Some(Frame::CUT);
    let hint = Hint::of(&Facts {
        waste,
        same_instruction: first == second && most(&|p| p.first_instruction == p.second_instruction),
        same_method: first.method == second.method,
        same_callers: most(&|p| caller(p.first) == caller(p.second) && !is_cut(p.first)),
        stores_between: waste == Waste::SilentLoad && most(&|p| p.detail.stores_between),
        others_between: most(&|p| p.detail.others_between),
        initialising,
    });
    // What stands in most of the samples: the instructions and shapes of one pair, so that they belong together.
    let by_machine = tally(pairs, |p| {
        (
            [p.first_instruction, p.second_instruction],
            [p.detail.first, p.detail.second],
        )
    });
    let ((instructions, shapes), _) = by_machine[0];
    let contexts = tally(pairs, |p| (p.first, p.second));
    LeafPair {
        waste,
        first,
        second,
        count,
        share: share(count, completed.max(count)),
        of_first,
        hint,
        saving: count as f64 * hint.weight(),
        instructions,
        shapes,
        partial: with(&|p| !p.detail.whole),
        cut: with(&|p| is_cut(p.first) || is_cut(p.second)),
        objects: tally(pairs, |p| p.object),
        contexts: contexts
            .into_iter()
            .map(|((first, second), count)| Contexts {
                first,
                second,
                meeting: tree.meeting(first, second),
                count,
            })
            .collect(),
    }
}

/// Samples of the pairs that are so. What was read may be damaged: counts may be anything.
fn sum(pairs: &[(&Pair, u64)], is: impl Fn(&Pair) -> bool) -> u64 {
    let those = pairs.iter().filter(|(pair, _)| is(pair));
    those.fold(0, |sum: u64, (_, n)| sum.saturating_add(*n))
}

/// Samples by a key, most first.
fn tally<K: Ord + Copy>(pairs: &[(&Pair, u64)], key: impl Fn(&Pair) -> K) -> Vec<(K, u64)> {
    let mut counts: BTreeMap<K, u64> = BTreeMap::new();
    for (pair, count) in pairs {
        let sum = counts.entry(key(pair)).or_insert(0);
        *sum = sum.saturating_add(*count);
    }
    let mut counts: Vec<(K, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
