//! The k-Iterations Path Forest (k-IPF) of the seed: one node for each distinct sequence of up to k path IDs that occurs inside an
//! activation, with the number of its occurrences.
//!
//! Besides its parent, each node has a *link*: the node of the same n-gram without its first ID. An edge (window w, ID c) of the
//! automaton counts for every suffix of w.c, so [`Builder`] adds it at the node of w.c only and sums along the links once, at the
//! end. A node is made after its parent and after its link; one backward pass over the nodes therefore does.
//!
//! A profile whose memory was bounded has *truncated* edges too ([`Builder::truncated_edge`]). Then a node's count is a lower bound, and
//! [`KIpf::upper`] and [`KIpf::upper_of`] give the upper one; level 1 stays exact.

mod bounds;

pub use bounds::Bounds;

use crate::hash::mix;
use crate::{Error, check_k};

/// The node of an n-gram: valid for the forest it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(u32);

/// The virtual root: the empty n-gram.
const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;
/// A free place in the index.
const FREE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    count: u64,
    id: u32,
    parent: u32,
    link: u32,
    first: u32,
    sibling: u32,
    depth: u32,
}

/// A node as [`KIpf::nodes`] lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Position of the parent in the same listing; None for roots.
    pub parent: Option<u32>,
    /// Length of the n-gram, from 1.
    pub depth: u32,
    /// Last path ID of the n-gram.
    pub id: u32,
    /// Occurrences of the n-gram; at least so many where the forest is not exact.
    pub count: u64,
}

/// The k-IPF of one method.
#[derive(Clone, Debug)]
pub struct KIpf {
    k: u32,
    slots: Vec<Slot>,
    /// Open-addressing table from (parent, ID) to the child: upper half of the hash, then the node. The hash half spares most looks
    /// at nodes that are not the one sought, each a cache miss in a large forest.
    index: Vec<u64>,
    /// Of each slot; empty where all counts are exact.
    bounds: Vec<Bounds>,
}

impl KIpf {
    /// An empty forest, for k in 1..=[`crate::MAX_K`].
    pub fn new(k: u32) -> Result<KIpf, Error> {
        check_k(k).map(KIpf::empty)
    }

    fn empty(k: u32) -> KIpf {
        let root = Slot {
            count: 0,
            id: NONE,
            parent: NONE,
            link: ROOT,
            first: NONE,
            sibling: NONE,
            depth: 0,
        };
        KIpf {
            k,
            slots: vec![root],
            index: vec![FREE; 16],
            bounds: Vec::new(),
        }
    }

    /// The forest of an automaton's edges: (window, ID, count), in any order. Only the last k-1 IDs of a window matter. Edges of one
    /// window, or of windows that begin alike, are best given one after another; [`Builder::step`] is faster still.
    pub fn from_edges<W: AsRef<[u32]>>(
        k: u32,
        edges: impl IntoIterator<Item = (W, u32, u64)>,
    ) -> Result<KIpf, Error> {
        let mut builder = Builder::new(k)?;
        for (window, id, count) in edges {
            builder.edge(window.as_ref(), id, count);
        }
        Ok(builder.finish())
    }

    /// The forest of a listing of nodes (parent's position, ID, count), parents first: what [`KIpf::nodes`] gives.
    pub fn from_nodes(
        k: u32,
        nodes: impl IntoIterator<Item = (Option<u32>, u32, u64)>,
    ) -> Result<KIpf, Error> {
        Ok(KIpf::listed(k, nodes)?.0)
    }

    /// The forest of a listing, and the node of each of its entries.
    fn listed(
        k: u32,
        nodes: impl IntoIterator<Item = (Option<u32>, u32, u64)>,
    ) -> Result<(KIpf, Vec<u32>), Error> {
        let mut forest = KIpf::new(k)?;
        let mut made: Vec<u32> = Vec::new();
        for (at, (parent, id, count)) in nodes.into_iter().enumerate() {
            let above = match parent {
                None => ROOT,
                Some(p) => *made.get(p as usize).ok_or(Error::Parent(at, p))?,
            };
            let depth = forest.slots[above as usize].depth;
            if depth >= k {
                return Err(Error::Length(depth as usize + 1, k));
            }
            made.push(forest.add_child(Node(above), id, count).0);
        }
        // What is listed, and what it ends with: that is made with it.
        let never = |v: &u32| {
            let mut ends =
                std::iter::successors(Some(*v), |&v| Some(forest.slots[v as usize].link))
                    .take_while(|&v| v != ROOT)
                    .map(|v| &forest.slots[v as usize]);
            ends.any(|slot| slot.count == 0 && slot.first == NONE)
        };
        match made.iter().position(never) {
            Some(at) => Err(Error::Never(at)),
            None => Ok((forest, made)),
        }
    }

    /// k: the length of the longest n-grams.
    #[must_use]
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - 1
    }

    /// Whether there is no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of path IDs emitted: the sum of level 1.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.kids(ROOT)
            .fold(0, |sum, v| sum.saturating_add(self.slots[v as usize].count))
    }

    /// Adds an automaton's edge: `count` for every suffix of `window` and `id`. For many edges see [`KIpf::from_edges`].
    pub fn add_edge(&mut self, window: &[u32], id: u32, count: u64) {
        if count == 0 {
            return;
        }
        if !self.is_exact() {
            let mut one = Builder {
                forest: KIpf::empty(self.k),
                window: Vec::new(),
                truncated: Vec::new(),
            };
            one.edge(window, id, count);
            return self.merge_bounded(&one.finish());
        }
        let window = &window[window.len().saturating_sub(self.k as usize - 1)..];
        let above = window.iter().fold(ROOT, |v, &id| self.child_or_make(v, id));
        let mut v = self.child_or_make(above, id);
        while v != ROOT {
            let slot = &mut self.slots[v as usize];
            slot.count = slot.count.saturating_add(count);
            v = slot.link;
        }
    }

    /// Adds `count` to one n-gram only. Its prefixes and suffixes are made but not counted: they are n-grams of their own.
    pub fn add_ngram(&mut self, ids: &[u32], count: u64) -> Result<(), Error> {
        match ids.split_last() {
            Some((&last, front)) if ids.len() <= self.k as usize => {
                if !self.is_exact() {
                    let mut one = KIpf::empty(self.k);
                    one.add_ngram(ids, count)?;
                    self.merge_bounded(&one);
                    return Ok(());
                }
                let above = front.iter().fold(ROOT, |v, &id| self.child_or_make(v, id));
                self.add_child(Node(above), last, count);
                Ok(())
            }
            _ => Err(Error::Length(ids.len(), self.k)),
        }
    }

    /// Adds another forest of the same k.
    pub fn merge(&mut self, other: &KIpf) -> Result<(), Error> {
        if self.k != other.k {
            return Err(Error::Merge(self.k, other.k));
        }
        if self.is_exact() && other.is_exact() {
            self.add_counts(other);
        } else {
            self.merge_bounded(other);
        }
        Ok(())
    }

    /// Adds the counts of another forest, with no regard to bounds.
    fn add_counts(&mut self, other: &KIpf) {
        let mut here = vec![ROOT];
        for slot in &other.slots[1..] {
            let node = self.add_child(Node(here[slot.parent as usize]), slot.id, slot.count);
            here.push(node.0);
        }
    }

    /// The forest for a smaller k: the levels 1..=k of this one.
    pub fn truncated(&self, k: u32) -> Result<KIpf, Error> {
        let k = k.min(self.k);
        KIpf::from_bounded_nodes(
            k,
            self.entries(k)
                .map(|(node, e)| (e.parent, e.id, e.count, self.bounds(node))),
        )
    }

    /// Occurrences of an n-gram; 0 if it is longer than k. Where the forest is not exact, at least so many.
    #[must_use]
    pub fn count(&self, ids: &[u32]) -> u64 {
        match self.find(ids) {
            Some(Node(v)) if v != ROOT => self.slots[v as usize].count,
            _ => 0,
        }
    }

    /// The node of an n-gram.
    #[must_use]
    pub fn find(&self, ids: &[u32]) -> Option<Node> {
        ids.iter()
            .try_fold(ROOT, |v, &id| self.child(v, id))
            .map(Node)
    }

    /// The child of a node by its ID; `None` = the n-gram to begin with.
    #[must_use]
    pub fn child_of(&self, node: Option<Node>, id: u32) -> Option<Node> {
        self.child(node.map_or(ROOT, |node| node.0), id).map(Node)
    }

    /// The roots (n-grams of one ID), by falling count, then by ID.
    #[must_use]
    pub fn roots(&self) -> Vec<Node> {
        self.children(Node(ROOT))
    }

    /// The children of a node, by falling count, then by ID.
    #[must_use]
    pub fn children(&self, node: Node) -> Vec<Node> {
        let mut kids: Vec<Node> = self.kids(node.0).map(Node).collect();
        kids.sort_unstable_by_key(|&v| std::cmp::Reverse((self.node_count(v), !self.id(v))));
        kids
    }

    /// Last path ID of a node's n-gram.
    #[must_use]
    pub fn id(&self, node: Node) -> u32 {
        self.slots[node.0 as usize].id
    }

    /// Occurrences of a node's n-gram.
    #[must_use]
    pub fn node_count(&self, node: Node) -> u64 {
        self.slots[node.0 as usize].count
    }

    /// A node's n-gram.
    #[must_use]
    pub fn ids(&self, node: Node) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut v = node.0;
        while v != ROOT {
            ids.push(self.slots[v as usize].id);
            v = self.slots[v as usize].parent;
        }
        ids.reverse();
        ids
    }

    /// All nodes, depth first, siblings by falling count, then by ID: the same for equal forests however they were made. (Leaves of
    /// count 0, windows that no item followed, are left out.)
    pub fn nodes(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries(self.k).map(|(_, entry)| entry)
    }

    fn entries(&self, k: u32) -> impl Iterator<Item = (Node, Entry)> + '_ {
        let mut todo: Vec<(Node, Option<u32>)> =
            self.roots().into_iter().rev().map(|v| (v, None)).collect();
        let mut at = 0;
        std::iter::from_fn(move || {
            let (node, parent, slot) = loop {
                let (node, parent) = todo.pop()?;
                let slot = &self.slots[node.0 as usize];
                if slot.count != 0 || slot.first != NONE {
                    break (node, parent, slot);
                }
            };
            if slot.depth < k {
                todo.extend(self.children(node).into_iter().rev().map(|v| (v, Some(at))));
            }
            at += 1;
            let entry = Entry {
                parent,
                depth: slot.depth,
                id: slot.id,
                count: slot.count,
            };
            Some((node, entry))
        })
    }

    /// All n-grams of length n with their counts, in no particular order (see [`KIpf::top`]).
    pub fn level(&self, n: u32) -> impl Iterator<Item = (Vec<u32>, u64)> + '_ {
        let nodes = (1..).zip(&self.slots[1..]);
        nodes
            .filter(move |(_, s)| s.depth == n && s.count != 0)
            .map(|(v, s)| (self.ids(Node(v)), s.count))
    }

    /// The n-grams of length n that occur most often, by falling count, then by IDs; at most `limit`.
    #[must_use]
    pub fn top(&self, n: u32, limit: usize) -> Vec<(Vec<u32>, u64)> {
        let mut counts: Vec<u64> = self
            .slots
            .iter()
            .filter(|s| s.depth == n && s.count != 0)
            .map(|s| s.count)
            .collect();
        let least = match counts.len().checked_sub(limit) {
            _ if limit == 0 => return Vec::new(),
            Some(cut) if cut > 0 => *counts.select_nth_unstable(cut).1,
            _ => 0,
        };
        let mut top: Vec<_> = (1..)
            .zip(&self.slots[1..])
            .filter(|(_, s)| s.depth == n && s.count != 0 && s.count >= least)
            .map(|(v, s)| (self.ids(Node(v)), s.count))
            .collect();
        top.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        top.truncate(limit);
        top
    }

    /// The automaton's edges that give this forest, as (window . ID, count): the way back from [`KIpf::from_edges`]. The edge to n-gram
    /// g counts the items that no longer n-gram ends at: all of them for a g of length k, else `c(g) - sum over x of c(x.g)`. (Of a
    /// forest that is not exact: edges that give its lower bounds.)
    pub fn edges(&self) -> impl Iterator<Item = (Vec<u32>, u64)> + '_ {
        let mut own: Vec<u64> = self.slots.iter().map(|s| s.count).collect();
        for slot in &self.slots[1..] {
            own[slot.link as usize] = own[slot.link as usize].saturating_sub(slot.count);
        }
        own.into_iter()
            .enumerate()
            .skip(1)
            .filter(|e| e.1 != 0)
            .map(|(v, n)| (self.ids(Node(v as u32)), n))
    }

    /// Checks what holds for every forest of a real stream: a node occurs at least as often as its children together (seed,
    /// property 1), and at least as often as its extensions to the left.
    pub fn check(&self) -> Result<(), Error> {
        let mut right = vec![0u64; self.slots.len()];
        let mut left = right.clone();
        for slot in &self.slots[1..] {
            let (up, link) = (&mut right[slot.parent as usize], slot.link as usize);
            *up = up.saturating_add(slot.count);
            left[link] = left[link].saturating_add(slot.count);
        }
        for (v, slot) in self.slots.iter().enumerate().skip(1) {
            for (sum, side) in [(right[v], "children"), (left[v], "left extensions")] {
                if sum > slot.count {
                    return Err(Error::Invariant {
                        gram: self.ids(Node(v as u32)),
                        count: slot.count,
                        sum,
                        side,
                    });
                }
            }
        }
        Ok(())
    }

    /// The node above the roots.
    pub(crate) fn virtual_root(&self) -> Node {
        Node(ROOT)
    }

    /// Adds `count` to the child of `parent` labelled `id`, made if absent. The caller sees to the depth.
    pub(crate) fn add_child(&mut self, parent: Node, id: u32, count: u64) -> Node {
        let v = self.child_or_make(parent.0, id);
        let slot = &mut self.slots[v as usize];
        slot.count = slot.count.saturating_add(count);
        Node(v)
    }

    fn kids(&self, v: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |v: u32| (v != NONE).then_some(v);
        std::iter::successors(some(self.slots[v as usize].first), move |&c| {
            some(self.slots[c as usize].sibling)
        })
    }

    /// The child of a node labelled `id`.
    #[inline]
    fn child(&self, parent: u32, id: u32) -> Option<u32> {
        let hash = hash(parent, id);
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        while self.index[at] != FREE {
            if self.index[at] >> 32 == hash >> 32 {
                let v = self.index[at] as u32;
                let slot = &self.slots[v as usize];
                if slot.id == id && slot.parent == parent {
                    return Some(v);
                }
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn child_or_make(&mut self, parent: u32, id: u32) -> u32 {
        self.child(parent, id)
            .unwrap_or_else(|| self.make(parent, id))
    }

    /// Makes an absent node, its link first: at most k deep.
    #[cold]
    fn make(&mut self, parent: u32, id: u32) -> u32 {
        let Slot { link, depth, .. } = self.slots[parent as usize];
        let link = if parent == ROOT {
            ROOT
        } else {
            self.child_or_make(link, id)
        };
        if self.slots.len() * 4 > self.index.len() * 3 {
            self.index = vec![FREE; self.index.len() * 2];
            for v in 1..self.slots.len() {
                self.enlist(v as u32);
            }
        }
        // NONE is never an index: 2^32 - 1 nodes are 160 GB.
        let v = u32::try_from(self.slots.len()).expect("a k-IPF has less than 2^32 nodes");
        let up = &mut self.slots[parent as usize];
        let sibling = std::mem::replace(&mut up.first, v);
        self.slots.push(Slot {
            count: 0,
            id,
            parent,
            link,
            first: NONE,
            sibling,
            depth: depth + 1,
        });
        self.enlist(v);
        v
    }

    fn enlist(&mut self, v: u32) {
        let Slot { parent, id, .. } = self.slots[v as usize];
        let hash = hash(parent, id);
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        while self.index[at] != FREE {
            at = (at + 1) & mask;
        }
        self.index[at] = hash & !u64::from(NONE) | u64::from(v);
    }
}

#[inline]
fn hash(parent: u32, id: u32) -> u64 {
    mix(u64::from(parent) << 32 | u64::from(id))
}

/// Equal if they have the same k, n-grams, counts and bounds.
impl PartialEq for KIpf {
    fn eq(&self, other: &KIpf) -> bool {
        self.k == other.k && self.bounded_nodes().eq(other.bounded_nodes())
    }
}

impl Eq for KIpf {}

/// Makes the k-IPF of an automaton's edges, each in constant time, with one pass at the end.
#[derive(Clone, Debug)]
pub struct Builder {
    forest: KIpf,
    /// The last window given, and the nodes of its prefixes.
    window: Vec<(u32, u32)>,
    /// Counts of truncated edges at the node they were added to; may be shorter than the forest.
    truncated: Vec<u64>,
}

impl Builder {
    /// No edges.
    pub fn new(k: u32) -> Result<Builder, Error> {
        Ok(Builder {
            forest: KIpf::new(k)?,
            window: Vec::new(),
            truncated: Vec::new(),
        })
    }

    /// Adds an edge; only the last k-1 IDs of the window matter.
    pub fn edge(&mut self, window: &[u32], id: u32, count: u64) {
        if count == 0 {
            return;
        }
        let node = self.at(window);
        self.forest.add_child(node, id, count);
    }

    /// The node of the last k-1 IDs of a window.
    fn at(&mut self, window: &[u32]) -> Node {
        let window = &window[window.len().saturating_sub(self.forest.k as usize - 1)..];
        let same = self
            .window
            .iter()
            .zip(window)
            .take_while(|(a, b)| a.0 == **b)
            .count();
        self.window.truncate(same);
        for &id in &window[same..] {
            let above = self.window.last().map_or(ROOT, |w| w.1);
            let v = self.forest.child_or_make(above, id);
            self.window.push((id, v));
        }
        Node(self.window.last().map_or(ROOT, |w| w.1))
    }

    /// The empty window: where an activation starts.
    #[must_use]
    pub fn start(&self) -> Node {
        Node(ROOT)
    }

    /// Adds an edge at a window's node and gives the node of the next window (the last k-1 IDs of window and `id`). A reader of rows that
    /// visits parents first can so keep a node a row and never look at a window's IDs. A count of 0 only makes the window.
    pub fn step(&mut self, window: Node, id: u32, count: u64) -> Node {
        let node = self.forest.add_child(window, id, count);
        let slot = &self.forest.slots[node.0 as usize];
        if slot.depth == self.forest.k {
            Node(slot.link)
        } else {
            node
        }
    }

    /// The forest: each edge's count summed into all suffixes.
    #[must_use]
    pub fn finish(mut self) -> KIpf {
        let slots = &mut self.forest.slots;
        let bounded = !self.truncated.is_empty();
        let own: Vec<u64> = slots.iter().map(|s| s.count).filter(|_| bounded).collect();
        for v in (1..slots.len()).rev() {
            let Slot { count, link, .. } = slots[v];
            if link != ROOT {
                let count = slots[link as usize].count.saturating_add(count);
                slots[link as usize].count = count;
            }
        }
        if bounded {
            Builder::bound(self.forest, self.truncated, &own)
        } else {
            self.forest
        }
    }
}
