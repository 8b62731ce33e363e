//! Bounds of the counts of a profile whose memory was bounded.
//!
//! A *truncated* edge (window w, ID c) counts items of which only the last IDs, w.c, are known: what came before them was dropped.
//! Such an item may end any longer n-gram that ends in w.c. With t(x) = the items that truncated edges count at n-gram x, an n-gram g
//! occurs at least `lo(g)` times, the sum of all edges that end in g, and at most `lo(g)` plus the sum of t(x) over the proper
//! suffixes x of g. Level 1 has no proper suffixes, so it is exact. Relations that hold for the true counts c narrow both bounds
//! (x, y: IDs; g: an n-gram of one ID or more):
//!
//! - `c(g) >= sum over x of c(gx)`; the same on the left, besides the items at the start of an activation;
//! - `c(gx) <= c(g) - sum over the other y of c(gy)`, `c(xg) <= c(g)`;
//! - `c(xgy) >= c(xg) + c(gy) - c(g)`.

use super::{Builder, Entry, KIpf, Node, ROOT, Slot};
use crate::Error;

/// What is known of an n-gram besides its count, the lower bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The n-gram occurs at most so often.
    pub upper: u64,
    /// Items of truncated edges that end in this n-gram and of which no more is known. They are part of the count. 0 for n-grams of k IDs.
    pub truncated: u64,
    /// So much below the count lies the lower end: 0 unless the count is an estimate ([`crate::estimate`]). Then `upper` and this make its
    /// 95 % interval, and relations between counts of several n-grams hold for them but roughly.
    pub below: u64,
}

impl Builder {
    /// Adds a truncated edge: what came before the window is not known. With a window of k-1 IDs or more that is an ordinary edge.
    pub fn truncated_edge(&mut self, window: &[u32], id: u32, count: u64) {
        if count == 0 {
            return;
        }
        let node = self.at(window);
        let Node(v) = self.forest.add_child(node, id, count);
        if self.forest.slots[v as usize].depth < self.forest.k {
            self.truncated.resize(self.forest.slots.len(), 0);
            let sum = &mut self.truncated[v as usize];
            *sum = sum.saturating_add(count);
        }
    }

    /// The forest's bounds, when `own` (each node's own edges) has been summed into the suffixes.
    pub(super) fn bound(mut forest: KIpf, mut truncated: Vec<u64>, own: &[u64]) -> KIpf {
        truncated.resize(forest.slots.len(), 0);
        // What is known to be at an activation's start: no left extension has it.
        let starts: Vec<u64> = own
            .iter()
            .zip(&truncated)
            .map(|(own, t)| own.saturating_sub(*t))
            .collect();
        // The sum of t over the proper suffixes. A link comes before its node.
        let mut beyond = vec![0u64; forest.slots.len()];
        for v in 1..forest.slots.len() {
            let link = forest.slots[v].link as usize;
            beyond[v] = beyond[link].saturating_add(truncated[link]);
        }
        let all = forest.slots.iter().zip(beyond).zip(truncated);
        forest.bounds = all
            .map(|((slot, beyond), truncated)| Bounds {
                upper: slot.count.saturating_add(beyond),
                truncated,
                below: 0,
            })
            .collect();
        forest.narrow(&starts);
        forest
    }
}

impl KIpf {
    /// The forest of a listing as [`KIpf::bounded_nodes`] gives it: parent's position, ID, count, bounds; parents first.
    pub fn from_bounded_nodes(
        k: u32,
        nodes: impl IntoIterator<Item = (Option<u32>, u32, u64, Bounds)>,
    ) -> Result<KIpf, Error> {
        let mut given = Vec::new();
        let nodes = nodes.into_iter().map(|(parent, id, count, bounds)| {
            given.push(bounds);
            (parent, id, count)
        });
        let (mut forest, made) = KIpf::listed(k, nodes)?;
        forest.bounds = forest.slots.iter().map(Bounds::of_exact).collect();
        for (node, bounds) in made.into_iter().zip(given) {
            forest.bounds[node as usize] = bounds;
        }
        forest.settle();
        Ok(forest)
    }

    /// All nodes in the order of [`KIpf::nodes`], with their bounds.
    pub fn bounded_nodes(&self) -> impl Iterator<Item = (Entry, Bounds)> + '_ {
        self.entries(self.k)
            .map(|(node, entry)| (entry, self.bounds(node)))
    }

    /// Whether all counts are exact, and n-grams that have no node never occurred.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.bounds.is_empty()
    }

    /// The bounds of a node.
    #[must_use]
    pub fn bounds(&self, node: Node) -> Bounds {
        let exact = || Bounds::of_exact(&self.slots[node.0 as usize]);
        self.bounds
            .get(node.0 as usize)
            .copied()
            .unwrap_or_else(exact)
    }

    /// A node's n-gram occurred at least so often: its count, but for estimates.
    #[must_use]
    pub fn lower(&self, node: Node) -> u64 {
        self.node_count(node)
            .saturating_sub(self.bounds(node).below)
    }

    /// A node's n-gram occurred at most so often.
    #[must_use]
    pub fn upper(&self, node: Node) -> u64 {
        self.bounds(node).upper
    }

    /// An n-gram of any length, in the forest or not, occurred at most so often.
    #[must_use]
    pub fn upper_of(&self, ids: &[u32]) -> u64 {
        if self.is_exact() && ids.len() <= self.k as usize {
            return self.count(ids);
        }
        // Of all n-grams that end at one ID, shortest first: node, upper bound, items beyond the node; then the same one ID further.
        let mut ending: Vec<(Option<u32>, u64, u64)> = Vec::new();
        for (end, &id) in ids.iter().enumerate() {
            let mut here = Vec::with_capacity(end + 1);
            let (mut shorter, mut beyond) = (u64::MAX, 0u64);
            for length in 1..=end + 1 {
                let (above, left) = match length {
                    1 => (Some(ROOT), u64::MAX),
                    _ => (ending[length - 2].0, ending[length - 2].1),
                };
                let node = above.and_then(|above| self.child(above, id));
                let upper = match (node, above) {
                    (Some(v), _) => self.upper(Node(v)),
                    _ if length == 1 => 0,
                    _ if length > self.k as usize => left.min(shorter),
                    (None, Some(above)) => {
                        let others = self.kids(above).map(|v| self.slots[v as usize].count);
                        let others = others.fold(0, u64::saturating_add);
                        beyond.min(shorter).min(left.saturating_sub(others))
                    }
                    (None, None) => beyond.min(shorter).min(left),
                };
                here.push((node, upper, beyond));
                shorter = upper;
                beyond = beyond.saturating_add(node.map_or(0, |v| self.bounds(Node(v)).truncated));
            }
            ending = here;
        }
        ending.last().map_or(0, |whole| whole.1)
    }

    /// Adds a forest of the same k where this one or the other is not exact.
    pub(super) fn merge_bounded(&mut self, other: &KIpf) {
        let mut sum = self.clone();
        sum.add_counts(other);
        let known = |forest: &KIpf, ids: &[u32]| {
            let node = forest.find(ids);
            node.map_or((0, 0), |node| {
                let bounds = forest.bounds(node);
                (bounds.truncated, bounds.below)
            })
        };
        sum.bounds = (0..sum.slots.len())
            .map(|v| {
                let ids = sum.ids(Node(v as u32));
                let (a, b) = (known(self, &ids), known(other, &ids));
                Bounds {
                    upper: self.upper_of(&ids).saturating_add(other.upper_of(&ids)),
                    truncated: a.0.saturating_add(b.0),
                    below: a.1.saturating_add(b.1),
                }
            })
            .collect();
        sum.narrow(&vec![0; sum.slots.len()]);
        *self = sum;
    }

    /// Narrows the bounds by the relations of the module. `starts`: of each node, items that are at an activation's start for certain.
    fn narrow(&mut self, starts: &[u64]) {
        let right = self.raise(starts);
        for v in 1..self.slots.len() {
            let slot = self.slots[v];
            if slot.parent == ROOT {
                continue;
            }
            let (parent, link) = (slot.parent as usize, slot.link as usize);
            let others = right[parent].saturating_sub(slot.count);
            let upper = self.bounds[v].upper.min(self.bounds[link].upper);
            self.bounds[v].upper = upper.min(self.bounds[parent].upper.saturating_sub(others));
            let middle = self.slots[parent].link;
            if middle != ROOT {
                let both = self.slots[parent]
                    .count
                    .saturating_add(self.slots[link].count);
                let surely = both.saturating_sub(self.bounds[middle as usize].upper);
                self.slots[v].count = slot.count.max(surely);
            }
        }
        self.raise(starts);
        self.settle();
    }

    /// Raises the counts to the sums of their children and of their left extensions; gives the sums of the children. A node comes
    /// after its parent and its link, so one backward pass does.
    fn raise(&mut self, starts: &[u64]) -> Vec<u64> {
        let mut left = starts.to_vec();
        let mut right = vec![0u64; self.slots.len()];
        for v in (1..self.slots.len()).rev() {
            let slot = &mut self.slots[v];
            slot.count = slot.count.max(left[v]).max(right[v]);
            for sum in [
                &mut left[slot.link as usize],
                &mut right[slot.parent as usize],
            ] {
                *sum = sum.saturating_add(slot.count);
            }
        }
        right
    }

    /// Drops bounds that say nothing; sees to lower <= upper where the input was no real profile.
    fn settle(&mut self) {
        let mut exact = true;
        for (slot, bounds) in self.slots.iter().zip(&mut self.bounds).skip(1) {
            bounds.upper = bounds.upper.max(slot.count);
            if slot.depth >= self.k {
                bounds.truncated = 0;
            }
            exact &= *bounds == Bounds::of_exact(slot);
        }
        if exact {
            self.bounds = Vec::new();
        }
    }
}

impl Bounds {
    fn of_exact(slot: &Slot) -> Bounds {
        Bounds {
            upper: slot.count,
            truncated: 0,
            below: 0,
        }
    }
}
