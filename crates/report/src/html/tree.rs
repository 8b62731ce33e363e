//! What follows what, as the seed's figure 4 draws it: the sequences that begin with a path, the hottest ones, for the browser to prune further.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use borescope_paths::KIpf;
use borescope_paths::kipf::Node;
use borescope_profile::{Manifest, Method};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

/// Paths that a tree is made of.
const ROOTS: usize = 8;
/// Nodes of a tree.
const NODES: usize = 250;
/// A sequence that occurs less than once in so many occurrences of its first path is left out.
const SHARE: u64 = 100;

/// The sequences that begin with a path.
#[derive(Debug, Serialize)]
pub(super) struct Tree {
    /// Each after its parent; the first is the root.
    pub(super) nodes: Vec<Sequence>,
    /// All sequences that occur more often than this are there.
    pub(super) floor: u64,
}

/// A sequence, as `[parent, id, count]`, or `[parent, id, count, lo, hi]` where the count is not exact. The root's parent is -1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) parent: Option<u32>,
    pub(super) id: u32,
    pub(super) count: u64,
    /// Bounds, or the 95 % interval of an estimate; the upper one may be unknown.
    pub(super) bounds: Option<(u64, Option<u64>)>,
}

impl Serialize for Sequence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        seq.serialize_element(&self.parent.map_or(-1, i64::from))?;
        seq.serialize_element(&self.id)?;
        seq.serialize_element(&self.count)?;
        if let Some((lo, hi)) = self.bounds {
            seq.serialize_element(&lo)?;
            seq.serialize_element(&hi)?;
        }
        seq.end()
    }
}

/// The trees of those roots that something follows.
pub(super) fn trees(manifest: &Manifest, method: &Method, kipf: &KIpf, roots: &[u32]) -> Vec<Tree> {
    let all = roots.iter().filter_map(|&id| kipf.find(&[id]));
    all.map(|root| tree(manifest, method, kipf, root))
        .filter(|tree| tree.nodes.len() > 1)
        .take(ROOTS)
        .collect()
}

fn tree(manifest: &Manifest, method: &Method, kipf: &KIpf, root: Node) -> Tree {
    let all = kipf.node_count(root);
    let mut nodes: Vec<Sequence> = Vec::new();
    // Found so far, with the parent's place in `nodes`.
    let mut found: Vec<(Node, Option<u32>)> = vec![(root, None)];
    // The most frequent sequence next; of equals the one that was found first. A child is never more frequent than its parent.
    let mut queue = BinaryHeap::from([(all, Reverse(0))]);
    let mut floor = 0;
    while let Some((count, Reverse(at))) = queue.pop() {
        if count == 0 {
            break;
        }
        if nodes.len() >= NODES || u128::from(count) * u128::from(SHARE) < u128::from(all) {
            floor = count;
            break;
        }
        let (node, parent) = found[at];
        let own = nodes.len() as u32;
        let bounds = kipf.bounds(node);
        nodes.push(Sequence {
            parent,
            id: kipf.id(node),
            count,
            bounds: (!method.exact).then(|| {
                let hi = manifest.upper(method, bounds.upper);
                (count.saturating_sub(bounds.below), hi)
            }),
        });
        for child in kipf.children(node) {
            queue.push((kipf.node_count(child), Reverse(found.len())));
            found.push((child, Some(own)));
        }
    }
    Tree { nodes, floor }
}
