//! Back edges and the loop-nesting forest, by one depth-first search.
//!
//! The search starts at the entry, then at each reachable handler that it has not met. A *back edge* is a retreating edge of this
//! search: its target is on the search's current path. In a reducible graph these are the natural loops' back edges whatever the
//! order; in an irreducible one the order chooses which entry of the loop counts as its head. Without the back edges the graph has
//! no cycle, which is all that the numbering needs.
//!
//! Loop membership follows T. Wei, J. Mao, W. Zou, Y. Chen, "A New Algorithm for Identifying Loops in Decompilation" (SAS 2007):
//! each block learns its innermost loop's head during the same search, irreducible loops included.

use crate::flow::EdgeKind;
use crate::graph::{Graph, NONE};
use crate::reset;

/// What the search found; buffers are kept from method to method.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// Innermost loop's head by block, the block itself left aside: the parent in the loop-nesting forest. NONE = in no loop.
    outer: Vec<u32>,
    /// Position on the search's current path plus one; 0 = not on it.
    position: Vec<u32>,
    met: Vec<bool>,
    /// Blocks on the current path with the next edge to follow.
    path: Vec<(u32, u32)>,
    /// Loop nesting depth by block: 0 = in no loop; a head belongs to its own loop.
    depth: Vec<u32>,
    /// Whether a block is the target of a back edge.
    pub(crate) head: Vec<bool>,
    /// All blocks, each after all that it leads to by edges that are not back edges.
    pub(crate) postorder: Vec<u32>,
}

impl Loops {
    /// Searches `graph` and marks its back edges.
    pub(crate) fn find(&mut self, graph: &mut Graph) {
        let blocks = graph.blocks.len();
        reset(&mut self.outer, blocks, NONE);
        reset(&mut self.position, blocks, 0);
        reset(&mut self.met, blocks, false);
        reset(&mut self.head, blocks, false);
        self.postorder.clear();
        self.path.clear();
        self.search(graph, 0);
        for i in 0..graph.handlers.len() {
            let root = graph.handlers[i];
            if !self.met[root as usize] {
                self.search(graph, root);
            }
        }
        self.measure_depth(blocks);
    }

    fn search(&mut self, graph: &mut Graph, root: u32) {
        self.enter(graph, root);
        while let Some(top) = self.path.last_mut() {
            let (block, next) = *top;
            if next == graph.edges_at[block as usize + 1] {
                self.path.pop();
                self.position[block as usize] = 0;
                self.postorder.push(block);
                if let Some(&(parent, _)) = self.path.last() {
                    self.tag(parent, self.outer[block as usize]);
                }
                continue;
            }
            top.1 += 1;
            let edge = &mut graph.edges[next as usize];
            if edge.to == NONE {
                continue;
            }
            let to = edge.to;
            if !self.met[to as usize] {
                self.enter(graph, to);
            } else if self.position[to as usize] > 0 {
                edge.kind = EdgeKind::Back;
                self.head[to as usize] = true;
                self.tag(block, to);
            } else {
                self.join(block, to);
            }
        }
    }

    fn enter(&mut self, graph: &Graph, block: u32) {
        self.met[block as usize] = true;
        self.path.push((block, graph.edges_at[block as usize]));
        self.position[block as usize] = self.path.len() as u32;
    }

    /// An edge from `block` to `to`, which the search has left: `block` is in those of `to`'s loops whose head is on the path; a
    /// loop of `to` whose head is not on the path is entered here past its head.
    fn join(&mut self, block: u32, to: u32) {
        let mut head = self.outer[to as usize];
        while head != NONE {
            if self.position[head as usize] > 0 {
                self.tag(block, head);
                return;
            }
            head = self.outer[head as usize];
        }
    }

    /// Puts `block` into the loop of `head`, keeping each block's heads ordered by nesting.
    fn tag(&mut self, block: u32, head: u32) {
        if head == NONE || block == head {
            return;
        }
        let (mut inner, mut outer) = (block, head);
        while self.outer[inner as usize] != NONE {
            let known = self.outer[inner as usize];
            if known == outer {
                return;
            }
            if self.position[known as usize] < self.position[outer as usize] {
                self.outer[inner as usize] = outer;
                inner = outer;
                outer = known;
            } else {
                inner = known;
            }
        }
        self.outer[inner as usize] = outer;
    }

    /// A head is met before the blocks of its loop, so it comes after them in postorder.
    fn measure_depth(&mut self, blocks: usize) {
        reset(&mut self.depth, blocks, 0);
        for &block in self.postorder.iter().rev() {
            let outer = self.outer[block as usize];
            let around = if outer == NONE {
                0
            } else {
                self.depth[outer as usize]
            };
            self.depth[block as usize] = around + u32::from(self.head[block as usize]);
        }
    }

    /// The head of the innermost loop that a block is in; NONE = it is in none.
    #[inline]
    fn innermost(&self, block: u32) -> u32 {
        if self.head[block as usize] {
            block
        } else {
            self.outer[block as usize]
        }
    }

    /// Whether the edge from `from` to `to` stays in the innermost loop of `from`. True where `from` is in no loop.
    #[inline]
    pub(crate) fn stays(&self, from: u32, to: u32) -> bool {
        let depth = self.depth[from as usize];
        if depth == 0 {
            return true;
        }
        let inside = self.innermost(from);
        let mut at = to;
        while at != NONE && self.depth[at as usize] >= depth {
            if at == inside {
                return true;
            }
            at = self.outer[at as usize];
        }
        false
    }
}
