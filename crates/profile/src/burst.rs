//! Burst mode: from what the chosen activations of each group counted to estimates with intervals (`borescope_paths::estimate`).

use borescope_paths::estimate::estimate;
use borescope_paths::kipf::{Bounds, Node};
use borescope_paths::{Error, KIpf};
use borescope_spool::layout::GROUPS;

use crate::model::{Burst, Interval, MethodEstimate, Totals};

/// A count of the chosen activations, by group.
pub(crate) type Groups = [u64; GROUPS as usize];

/// What the chosen activations of a method, or of all, counted by group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) activations: Groups,
    pub(crate) unfinished: Groups,
    pub(crate) ids: Groups,
}

/// How counts are estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimator {
    pub(crate) one_in: u32,
    /// Occurrences that may be missing from each estimate; `None` = unknown.
    pub(crate) missing: Option<u64>,
}

impl Chosen {
    pub(crate) fn add(&mut self, other: &Chosen) {
        for (sums, more) in [
            (&mut self.activations, &other.activations),
            (&mut self.unfinished, &other.unfinished),
            (&mut self.ids, &other.ids),
        ] {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum = sum.saturating_add(*more);
            }
        }
    }

    /// How many activations were chosen.
    fn count(&self) -> u64 {
        self.activations
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }
}

impl Estimator {
    /// The estimate of a count, and its interval.
    fn of(&self, groups: &Groups, chosen: u64) -> (u64, Interval) {
        let e = estimate(self.one_in, groups, chosen);
        let hi = self.missing.map(|missing| e.hi.saturating_add(missing));
        (e.count, Interval { lo: e.lo, hi })
    }

    /// Estimates of activations, unfinished paths and path IDs, and their intervals.
    pub(crate) fn method(&self, chosen: &Chosen) -> ([u64; 3], MethodEstimate) {
        let n = chosen.count();
        let [activations, unfinished, ids] =
            [chosen.activations, chosen.unfinished, chosen.ids].map(|of| self.of(&of, n));
        let intervals = MethodEstimate {
            chosen: n,
            activations: activations.1,
            unfinished: unfinished.1,
            ids: ids.1,
        };
        ([activations.0, unfinished.0, ids.0], intervals)
    }

    /// What the manifest says, given the sums over all methods, exactly counted ones included.
    pub(crate) fn manifest(&self, chosen: &Chosen, totals: &Totals) -> Burst {
        let (counts, of) = self.method(chosen);
        let shifted = |total: u64, estimated: u64, interval: Interval| {
            let exact = total.saturating_sub(estimated);
            Interval {
                lo: exact.saturating_add(interval.lo),
                hi: interval.hi.map(|hi| exact.saturating_add(hi)),
            }
        };
        Burst {
            one_in: self.one_in,
            groups: GROUPS,
            activations: shifted(totals.activations, counts[0], of.activations),
            ids: shifted(totals.ids, counts[2], of.ids),
            unfinished: shifted(totals.unfinished, counts[1], of.unfinished),
        }
    }

    /// The k-IPF of all activations from those of the groups. Where these have bounds, an interval goes from the lower end of the lower
    /// bounds' to the upper end of the upper bounds'. What is missing is left aside, as in any k-IPF.
    pub(crate) fn forest(&self, k: u32, groups: &[KIpf], chosen: &Chosen) -> Result<KIpf, Error> {
        let n = chosen.count();
        let mut all = KIpf::new(k)?;
        for group in groups {
            all.merge(group)?;
        }
        let mut ids: Vec<u32> = Vec::new();
        // Of the n-gram and each of its prefixes: its node in each group.
        let mut at: Vec<Vec<Option<Node>>> = Vec::new();
        let nodes: Vec<_> = all
            .bounded_nodes()
            .map(|(entry, bounds)| {
                let above = (entry.depth as usize).saturating_sub(1);
                ids.truncate(above);
                at.truncate(above);
                ids.push(entry.id);
                let here: Vec<Option<Node>> = (groups.iter().enumerate())
                    .map(|(g, group)| match at.last() {
                        None => group.child_of(None, entry.id),
                        Some(before) => group.child_of(Some(before[g]?), entry.id),
                    })
                    .collect();
                let (mut low, mut high) = (Groups::default(), Groups::default());
                for (g, group) in groups.iter().enumerate() {
                    low[g] = here[g].map_or(0, |node| group.node_count(node));
                    high[g] = match group.is_exact() {
                        true => low[g],
                        false => group.upper_of(&ids),
                    };
                }
                at.push(here);
                let e = estimate(self.one_in, &low, n);
                let hi = if low == high {
                    e.hi
                } else {
                    estimate(self.one_in, &high, n).hi
                };
                let bounds = Bounds {
                    upper: hi.max(e.count),
                    truncated: bounds.truncated.saturating_mul(self.one_in.into()),
                    below: e.count.saturating_sub(e.lo),
                };
                (entry.parent, entry.id, e.count, bounds)
            })
            .collect();
        KIpf::from_bounded_nodes(k, nodes)
    }
}
