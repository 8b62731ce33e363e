//! The k-slab forest (k-SF) of the seed, figures 6 and 7: the paper's streaming engine, kept as published.
//!
//! The stream of an activation is cut into slabs of k-1 IDs. `tau` walks the upper part of a tree (levels 0..=k-2) with the IDs of the
//! current slab, `beta` the lower part (levels k-1..=2k-3) of the tree of the slab before. Only the start of a slab needs the hash
//! table R of roots: `1 + N/(k-1)` look-ups for an activation of N IDs. All other items search a list of children.

use crate::{Engine, Error, FastState, KIpf, Stats, check_k};
use std::collections::HashMap;

const NIL: u32 = u32::MAX;

/// A node of the forest.
#[derive(Clone, Copy, Debug)]
struct Node {
    id: u32,
    parent: u32,
    first: u32,
    sibling: u32,
    count: u64,
}

/// The k-SF of one method.
#[derive(Clone, Debug)]
pub struct Ksf {
    k: u32,
    move_to_front: bool,
    nodes: Vec<Node>,
    roots: HashMap<u32, u32, FastState>,
    stats: Stats,
    scans: u64,
}

/// The variables of figure 6 that belong to an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// IDs since the last `*`, modulo k-1.
    n: u32,
    tau: u32,
    beta: u32,
}

impl Ksf {
    /// An empty forest. k = 1 is the plain Ball-Larus profile: roots only.
    pub fn new(k: u32) -> Result<Ksf, Error> {
        Ok(Ksf {
            k: check_k(k)?,
            move_to_front: false,
            nodes: Vec::new(),
            roots: HashMap::default(),
            stats: Stats::default(),
            scans: 0,
        })
    }

    /// As [`Ksf::new`], and a child that is found is moved to the front of its list (what the seed's evaluation suggests for methods
    /// such as those of eclipse, where many siblings are scanned). The counts are the same.
    pub fn with_move_to_front(k: u32) -> Result<Ksf, Error> {
        Ok(Ksf {
            move_to_front: true,
            ..Ksf::new(k)?
        })
    }

    /// Nodes looked at in child lists so far (the paper's "node scans").
    #[must_use]
    pub fn scans(&self) -> u64 {
        self.scans
    }

    /// All nodes as (path of IDs from the root, count), parents first.
    pub fn nodes(&self) -> impl Iterator<Item = (Vec<u32>, u64)> + '_ {
        (0..self.nodes.len() as u32).map(|v| (self.path(v), self.nodes[v as usize].count))
    }

    fn path(&self, mut v: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while v != NIL {
            path.push(self.nodes[v as usize].id);
            v = self.nodes[v as usize].parent;
        }
        path.reverse();
        path
    }

    fn make(&mut self, id: u32, parent: u32, sibling: u32) -> u32 {
        // NIL is never an index: 2^32 - 1 nodes are more than 96 GB.
        let v = u32::try_from(self.nodes.len()).expect("a k-SF has less than 2^32 nodes");
        self.nodes.push(Node {
            id,
            parent,
            first: NIL,
            sibling,
            count: 0,
        });
        self.stats.counters += 1;
        v
    }

    /// The root labelled `id`, made with count 0 if absent (figure 6, lines 8-11).
    fn root(&mut self, id: u32) -> u32 {
        self.stats.hash_lookups += 1;
        if let Some(&v) = self.roots.get(&id) {
            return v;
        }
        let v = self.make(id, NIL, NIL);
        self.stats.hash_inserts += 1;
        self.roots.insert(id, v);
        v
    }

    /// The child of `parent` labelled `id`, made with count 0 if absent (figure 6, lines 13-17 and 21-25).
    #[inline]
    fn child(&mut self, parent: u32, id: u32) -> u32 {
        let first = self.nodes[parent as usize].first;
        let (mut before, mut v) = (NIL, first);
        while v != NIL {
            self.scans += 1;
            let node = self.nodes[v as usize];
            if node.id == id {
                if self.move_to_front && before != NIL {
                    self.nodes[before as usize].sibling = node.sibling;
                    self.nodes[v as usize].sibling = first;
                    self.nodes[parent as usize].first = v;
                }
                return v;
            }
            before = v;
            v = node.sibling;
        }
        let v = self.make(id, parent, first);
        self.nodes[parent as usize].first = v;
        v
    }

    fn children(&self, v: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |v: u32| (v != NIL).then_some(v);
        std::iter::successors(some(self.nodes[v as usize].first), move |&c| {
            some(self.nodes[c as usize].sibling)
        })
    }

    /// The node that counts the item that led to `state`: its path ends in the last IDs of the activation, at least k of them
    /// or all.
    #[must_use]
    pub fn counted_path(&self, state: State) -> Vec<u32> {
        self.path(if state.beta == NIL {
            state.tau
        } else {
            state.beta
        })
    }
}

impl Engine for Ksf {
    type State = State;

    #[inline]
    fn enter(&mut self) -> State {
        // The first ID sets beta to tau, which is null: no slab hangs below another activation's.
        State {
            n: 0,
            tau: NIL,
            beta: NIL,
        }
    }

    #[inline]
    fn hit(
        &mut self,
        State {
            mut n,
            mut tau,
            mut beta,
        }: State,
        id: u32,
    ) -> State {
        if n == 0 {
            // For k = 1 there is no lower part and every item is a root.
            beta = if self.k == 1 { NIL } else { tau };
            tau = self.root(id);
        } else {
            tau = self.child(tau, id);
        }
        if beta == NIL {
            self.nodes[tau as usize].count += 1;
        } else {
            beta = self.child(beta, id);
            self.nodes[beta as usize].count += 1;
        }
        n += 1;
        if n + 1 >= self.k {
            n = 0;
        }
        State { n, tau, beta }
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    /// `make_k_ipf` (figure 7): for every ID r, all subtrees of depth below k that hang from a node labelled r are joined, label by
    /// label, with their counts summed.
    fn k_ipf(&self) -> KIpf {
        let mut forest = KIpf::new(self.k).expect("k was checked");
        let mut todo = Vec::new();
        for rho in 0..self.nodes.len() as u32 {
            todo.push((rho, forest.virtual_root(), 1));
            while let Some((v, above, depth)) = todo.pop() {
                let node = self.nodes[v as usize];
                let joined = forest.add_child(above, node.id, node.count);
                if depth < self.k {
                    todo.extend(self.children(v).map(|c| (c, joined, depth + 1)));
                }
            }
        }
        forest
    }
}
