//! A calling context tree: each context once, as a node below its caller's.

use crate::handler::table::Frame;
use std::collections::HashMap;

/// The tree. Node 0 is the root, the context of nothing; a node's number is above its caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contexts {
    /// Caller and frame; the root stands for itself.
    nodes: Vec<(u32, Frame)>,
    index: HashMap<(u32, Frame), u32>,
}

impl Default for Contexts {
    fn default() -> Self {
        Contexts {
            nodes: vec![(0, Frame::UNKNOWN)],
            index: HashMap::new(),
        }
    }
}

impl Contexts {
    /// Nodes, the root among them.
    #[allow(clippy::len_without_is_empty, reason = "the root is always there")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a frame below a node. `parent` must be in the tree; else it is taken for the root.
    pub fn intern(&mut self, parent: u32, frame: Frame) -> u32 {
        let parent = if (parent as usize) < self.nodes.len() {
            parent
        } else {
            0
        };
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let nodes = &mut self.nodes;
        *self.index.entry((parent, frame)).or_insert_with(|| {
            nodes.push((parent, frame));
            next
        })
    }

    /// The node of frames from the outermost to the innermost.
    pub fn path(&mut self, frames: impl IntoIterator<Item = Frame>) -> u32 {
        frames
            .into_iter()
            .fold(0, |node, frame| self.intern(node, frame))
    }

    /// A node's caller and frame; `None` for the root and what is not in the tree.
    pub fn node(&self, node: u32) -> Option<(u32, Frame)> {
        match node {
            0 => None,
            _ => self.nodes.get(node as usize).copied(),
        }
    }

    /// The innermost frame of a context.
    pub fn leaf(&self, node: u32) -> Option<Frame> {
        Some(self.node(node)?.1)
    }

    /// Its frames, the innermost first.
    pub fn frames(&self, node: u32) -> impl Iterator<Item = Frame> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            let (parent, frame) = self.node(at)?;
            at = parent;
            Some(frame)
        })
    }

    /// Frames of a context.
    pub fn depth(&self, node: u32) -> usize {
        self.frames(node).count()
    }

    /// The deepest context that both lie in: who calls both, and so where both could be changed at once. The root if there is none.
    pub fn meeting(&self, a: u32, b: u32) -> u32 {
        let (mut a, mut b) = (a, b);
        // A caller's number is below its callee's: the larger of the two cannot be above the other.
        while a != b {
            let larger = if a > b { &mut a } else { &mut b };
            *larger = self.node(*larger).map_or(0, |(parent, _)| parent);
        }
        a
    }

    /// Adds another tree's contexts; for each of its nodes, this tree's.
    pub fn merge(&mut self, other: &Contexts) -> Vec<u32> {
        let mut mine = vec![0; other.nodes.len()];
        for (node, &(parent, frame)) in other.nodes.iter().enumerate().skip(1) {
            mine[node] = self.intern(mine[parent as usize], frame);
        }
        mine
    }
}
