//! Checking a flow that comes from a file: all that decoding relies on.

use crate::flow::{EdgeKind, Flow};
use crate::number::MAX_PATHS;

/// What is wrong with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("not a numbered control flow: {0}")]
pub struct Invalid(&'static str);

impl Flow {
    /// Checks a flow from an untrusted source: blocks in order and disjoint, all indices inside, no cycle of forward edges, every
    /// next path's start present, arms of merged branches outside of all paths, and values exactly as Ball and Larus number them, so that each ID below `num_paths` has one path.
    pub fn validate(&self) -> Result<(), Invalid> {
        let check = |ok, what| if ok { Ok(()) } else { Err(Invalid(what)) };
        let blocks = self.blocks.len();
        check(
            blocks > 0 && blocks <= usize::from(u16::MAX),
            "number of blocks",
        )?;
        check(self.blocks.iter().all(|b| b.start < b.end), "empty block")?;
        check(
            self.blocks.windows(2).all(|w| w[0].end <= w[1].start),
            "blocks out of order",
        )?;
        check(
            self.edges.iter().all(|e| {
                let leaves = matches!(e.kind, EdgeKind::Return | EdgeKind::Throw);
                (e.from as usize) < blocks
                    && if leaves {
                        e.to == u32::MAX
                    } else {
                        (e.to as usize) < blocks
                    }
            }),
            "edge to or from no block",
        )?;
        check(
            self.edges.windows(2).all(|w| w[0].from <= w[1].from),
            "edges out of order",
        )?;
        // By target (the last is none): the block, plus one, with an edge there.
        let mut met = vec![0; blocks + 1];
        check(
            self.edges.iter().all(|e| {
                let to = &mut met[(e.to as usize).min(blocks)];
                std::mem::replace(to, e.from + 1) != e.from + 1
            }),
            "two edges from one block to another",
        )?;
        check(
            self.starts.iter().all(|s| (s.block as usize) < blocks),
            "start at no block",
        )?;
        let mut is_start = vec![false; blocks];
        for start in &self.starts {
            check(!is_start[start.block as usize], "two starts at one block")?;
            is_start[start.block as usize] = true;
        }
        check(
            self.edges.iter().all(|e| {
                !matches!(e.kind, EdgeKind::Back | EdgeKind::Cut) || is_start[e.to as usize]
            }),
            "no start where a path ends",
        )?;

        let is_arm = self.arms().ok_or(Invalid("merged branches"))?;
        let paths = self.count_paths(&is_arm)?;
        let mut total: u32 = 0;
        for (i, start) in self.starts.iter().enumerate() {
            check(start.kind.entry == (i == 0), "entry not first")?;
            check(start.value == total, "start values")?;
            check(start.paths == paths[start.block as usize], "start's paths")?;
            total = total.saturating_add(start.paths);
        }
        check(
            total > 0 && total == self.num_paths && total <= MAX_PATHS,
            "number of paths",
        )?;
        check(
            !self.uncut_paths.is_empty() && self.uncut_paths.bytes().all(|b| b.is_ascii_digit()),
            "number of paths without cuts",
        )
    }

    /// By block, whether it is an arm of a merged branch. `None` if such a branch is not as [`Merged`](crate::flow::Merged) says. Indices of edges
    /// and starts are checked.
    fn arms(&self) -> Option<Vec<bool>> {
        let mut is_arm = vec![false; self.blocks.len()];
        for merged in &self.merged {
            let in_order = merged.arms.windows(2).all(|w| w[0] < w[1]);
            if !matches!(merged.arms.len(), 1 | 2) || !in_order {
                return None;
            }
            for &arm in &merged.arms {
                let arm = is_arm.get_mut(arm as usize)?;
                if std::mem::replace(arm, true) {
                    return None;
                }
            }
            // The join of cut paths is a path start.
            let only = self.edges_of(merged.head);
            let leads = matches!(only, [e] if e.to == merged.join && matches!(e.kind, EdgeKind::Forward | EdgeKind::Cut));
            if !leads {
                return None;
            }
        }
        let ascending = self.merged.windows(2).all(|w| w[0].head < w[1].head);
        let outside = |block: u32| is_arm.get(block as usize) != Some(&true);
        let starts = self.starts.iter().all(|s| outside(s.block));
        let edges = self.edges.iter().all(|e| outside(e.from) && outside(e.to));
        (ascending && starts && edges).then_some(is_arm)
    }

    /// Paths from each block that is no arm, at most u32::MAX; checks that each block's edge values are the sums before them. Indices are checked.
    fn count_paths(&self, is_arm: &[bool]) -> Result<Vec<u32>, Invalid> {
        let blocks = self.blocks.len();
        let mut first = vec![0; blocks + 1];
        for edge in &self.edges {
            first[edge.from as usize + 1] += 1;
        }
        for block in 0..blocks {
            first[block + 1] += first[block];
        }
        // Depth-first: a block is open from when it is met until all it leads to is counted.
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; blocks];
        let mut paths: Vec<u32> = vec![0; blocks];
        let mut stack = Vec::new();
        for root in 0..blocks {
            if state[root] != NEW || is_arm[root] {
                continue;
            }
            state[root] = OPEN;
            stack.push((root, first[root]));
            while let Some(top) = stack.last_mut() {
                let (block, next) = *top;
                if next == first[block + 1] {
                    if first[block] == next {
                        return Err(Invalid("block without a way out"));
                    }
                    state[block] = DONE;
                    stack.pop();
                    continue;
                }
                let edge = &self.edges[next];
                let to = edge.to as usize;
                let count = match edge.kind {
                    EdgeKind::Forward if state[to] == NEW => {
                        state[to] = OPEN;
                        stack.push((to, first[to]));
                        continue;
                    }
                    EdgeKind::Forward if state[to] == OPEN => {
                        return Err(Invalid("cycle of forward edges"));
                    }
                    EdgeKind::Forward => paths[to],
                    _ => 1,
                };
                top.1 += 1;
                if edge.value != paths[block] {
                    return Err(Invalid("edge values"));
                }
                paths[block] = paths[block].saturating_add(count);
            }
        }
        Ok(paths)
    }
}
