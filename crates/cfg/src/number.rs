//! Ball-Larus numbering: edge values that make the sum along each path its ID, and cutting where there are too many paths.
//!
//! T. Ball, J. Larus, "Efficient path profiling" (MICRO 1996): let NP(block) be the number of paths from a block to an end, the sum
//! of NP over its successors, and let each edge's value be the sum of NP over the successors before it. The values along the paths
//! from one block then add up to 0..NP(block), each sum once. An edge that ends a path counts as one path.
//!
//! Where a method has more than 2^30 paths, blocks are chosen at which every path ends and a new one starts: each forward edge
//! to such a block is cut. See [`Numbers::run`] for which.

use crate::decimal::Decimal;
use crate::flow::{EdgeKind, Start, StartKind};
use crate::graph::{Exit, Graph, NONE};
use crate::loops::Loops;
use crate::reset;

/// Largest number of path IDs in a method.
pub const MAX_PATHS: u32 = 1 << 30;

/// The numbering of one method; buffers are kept from method to method.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Why paths start at a block.
    kinds: Vec<StartKind>,
    /// Paths from each block, at most u64::MAX.
    paths: Vec<u64>,
    /// Blocks whose forward in-edges are cut.
    cut: Vec<bool>,
    /// Path starts by value, the entry first.
    pub(crate) starts: Vec<Start>,
    /// Start by block; blocks that are none hold what earlier methods left.
    start_of: Vec<u32>,
}

impl Numbers {
    /// Numbers `graph`: orders each block's edges, sets values, marks cut edges. Returns the number of path IDs, and in decimal
    /// what it would be without cuts.
    ///
    /// Cutting: a block is cut if more than a threshold of paths start there and it is a join (two or more in-edges) or a path
    /// start anyway, where a cut costs no new IDs. So one cut undoes the whole multiplication up to there, where cutting at a
    /// branch would undo one factor. The threshold halves until the method fits. It always fits at a threshold of 1: joins
    /// and starts with more than one path then have no uncut in-edge, so a block with more than one path is reached from one start
    /// only, and the IDs are not more than blocks and edges together.
    pub(crate) fn run(&mut self, graph: &mut Graph, loops: &Loops) -> (u32, String) {
        Self::order(graph, loops);
        let blocks = graph.blocks.len();
        reset(&mut self.kinds, blocks, StartKind::default());
        for (kind, &loop_head) in self.kinds.iter_mut().zip(&loops.head) {
            kind.loop_head = loop_head;
        }
        self.kinds[0].entry = true;
        for &handler in &graph.handlers {
            self.kinds[handler as usize].handler = true;
        }
        reset(&mut self.paths, blocks, 0);
        reset(&mut self.cut, blocks, false);

        let mut total = self.count(graph, loops, u64::MAX);
        let uncut = if total == u64::MAX {
            self.count_exactly(graph, loops)
        } else {
            total.to_string()
        };
        let mut threshold = u64::from(MAX_PATHS);
        while total > u64::from(MAX_PATHS) && threshold > 1 {
            threshold /= 2;
            total = self.count(graph, loops, threshold);
        }
        debug_assert!(total <= u64::from(MAX_PATHS));
        self.finish(graph);
        (total as u32, uncut)
    }

    /// Orders each block's edges; the first gets value 0 and so needs no probe. First edges that stay in the block's loop, so that
    /// a loop's only way round has value 0. Then jumps of a conditional branch to a block with other in-edges, as a probe there
    /// needs a jump of its own. Then as in the code.
    fn order(graph: &mut Graph, loops: &Loops) {
        for block in 0..graph.blocks.len() as u32 {
            let range = graph.range(block);
            if range.len() < 2 {
                continue;
            }
            let branch = graph.exits[block as usize] == Exit::Branch;
            let (edges, in_degree) = (&mut graph.edges[range], &graph.in_degree);
            for (i, edge) in edges.iter_mut().enumerate() {
                let leaves = u32::from(!loops.stays(block, edge.to));
                let jump = branch && i == 1 && in_degree[edge.to as usize] > 1;
                edge.value = leaves << 31 | u32::from(!jump) << 30 | i as u32;
            }
            if let [first, second] = edges {
                if first.value > second.value {
                    std::mem::swap(first, second);
                }
            } else {
                edges.sort_unstable_by_key(|edge| edge.value);
            }
        }
    }

    /// Counts paths, cutting at blocks from which more than `threshold` start, and sets the edges' values. Returns the number of
    /// all path IDs.
    fn count(&mut self, graph: &mut Graph, loops: &Loops, threshold: u64) -> u64 {
        let mut total: u64 = 0;
        for &block in &loops.postorder {
            let mut paths: u64 = 0;
            for edge in &mut graph.edges[graph.edges_at[block as usize] as usize
                ..graph.edges_at[block as usize + 1] as usize]
            {
                // Wrong only where the total is too large anyway: then it is set again.
                edge.value = paths as u32;
                let goes_on = edge.kind == EdgeKind::Forward && !self.cut[edge.to as usize];
                paths = paths.saturating_add(if goes_on {
                    self.paths[edge.to as usize]
                } else {
                    1
                });
            }
            let block = block as usize;
            self.paths[block] = paths;
            let start = self.kinds[block] != StartKind::default();
            self.cut[block] = paths > threshold && (start || graph.in_degree[block] > 1);
            if start || self.cut[block] {
                total = total.saturating_add(paths);
            }
        }
        total
    }

    /// Number of all path IDs without cuts, where it is too large for machine integers.
    fn count_exactly(&self, graph: &Graph, loops: &Loops) -> String {
        let mut total = Decimal::default();
        let mut paths = vec![Decimal::default(); graph.blocks.len()];
        let mut in_edges = graph.in_degree.clone();
        for &block in &loops.postorder {
            let mut sum = Decimal::default();
            for edge in &graph.edges[graph.range(block)] {
                if edge.kind == EdgeKind::Forward {
                    sum.add(&paths[edge.to as usize]);
                } else {
                    sum.add(&Decimal::one());
                }
                // Thousands of digits a block add up: each number goes as soon as its last predecessor has it.
                if edge.to != NONE {
                    in_edges[edge.to as usize] -= 1;
                    if in_edges[edge.to as usize] == 0 && edge.kind == EdgeKind::Forward {
                        paths[edge.to as usize] = Decimal::default();
                    }
                }
            }
            if self.kinds[block as usize] != StartKind::default() {
                total.add(&sum);
            }
            paths[block as usize] = sum;
        }
        total.to_string()
    }

    /// Marks the cut edges and lists the starts.
    fn finish(&mut self, graph: &mut Graph) {
        for edge in &mut graph.edges {
            if edge.kind == EdgeKind::Forward && self.cut[edge.to as usize] {
                edge.kind = EdgeKind::Cut;
                self.kinds[edge.to as usize].cut = true;
            }
        }
        self.starts.clear();
        self.start_of.resize(graph.blocks.len(), 0);
        let mut value = 0;
        for (block, &kind) in self.kinds.iter().enumerate() {
            if kind != StartKind::default() {
                let paths = self.paths[block] as u32;
                self.start_of[block] = self.starts.len() as u32;
                self.starts.push(Start {
                    block: block as u32,
                    value,
                    paths,
                    kind,
                });
                value += paths;
            }
        }
    }

    /// The path start at `block`, which is one.
    pub(crate) fn start(&self, block: u32) -> &Start {
        &self.starts[self.start_of[block as usize] as usize]
    }

    /// The path register's value where a path starts at `block`, which is a start.
    pub(crate) fn start_value(&self, block: u32) -> u32 {
        self.start(block).value
    }
}
