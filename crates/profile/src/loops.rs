//! Loops of a method and how many turns they took: none, one, or more, each time they were entered.
//!
//! In: a method's control flow and its k-IPF. Out: a [`Loop`] for each target of a back edge. An entry whose turns no sequence of up to k paths
//! shows is counted as `unsure`; it is never guessed.

use std::collections::BTreeMap;

use borescope_cfg::flow::{Block, EdgeKind, Flow, PathBlocks};
use borescope_paths::KIpf;
use borescope_paths::kipf::Node;

use crate::model::Loop;

/// Nodes that are looked at for a loop; what is beyond is unsure.
const STEPS: usize = 1 << 16;

/// What a method did, as far as loops need it.
pub(crate) struct Counts<'a> {
    pub(crate) kipf: &'a KIpf,
    pub(crate) activations: u64,
    /// Counts of sequences are the true ones: what is not in a longer sequence has ended.
    pub(crate) exact: bool,
}

/// The loops of a method, by bytecode index of their heads. `line` gives the source line of a block.
pub(crate) fn loops(flow: &Flow, counts: &Counts, line: impl Fn(u32) -> Option<u16>) -> Vec<Loop> {
    let mut heads: Vec<u32> = flow
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeKind::Back)
        .map(|edge| edge.to)
        .collect();
    heads.sort_unstable();
    heads.dedup();
    let ids = counts.kipf.roots().into_iter();
    let ids = ids.map(|root| counts.kipf.id(root));
    let decoded: BTreeMap<u32, PathBlocks> =
        ids.filter_map(|id| Some((id, flow.decode(id)?))).collect();
    let found = heads.into_iter().filter_map(|head| {
        let &Block { start, end } = flow.blocks.get(head as usize)?;
        let mut turns = Turns {
            counts,
            head,
            inside: body(flow, head),
            catches: false,
            decoded: &decoded,
            steps: STEPS,
            found: Loop {
                head: (start.into(), end.into()),
                line: line(head).unwrap_or(0),
                ..Loop::default()
            },
        };
        turns.catches = flow
            .starts
            .iter()
            .any(|start| start.kind.handler && turns.is_inside(start.block));
        turns.count();
        Some(turns.found)
    });
    found.collect()
}

/// The blocks of a loop: its head, and those from which a back edge to it is reached without passing it.
fn body(flow: &Flow, head: u32) -> Vec<bool> {
    let mut inside = vec![false; flow.blocks.len()];
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); flow.blocks.len()];
    let mut todo = Vec::new();
    for edge in &flow.edges {
        if let Some(into) = into.get_mut(edge.to as usize) {
            into.push(edge.from);
        }
        if edge.kind == EdgeKind::Back && edge.to == head {
            todo.push(edge.from);
        }
    }
    if let Some(head) = inside.get_mut(head as usize) {
        *head = true;
    }
    while let Some(block) = todo.pop() {
        let Some(seen) = inside.get_mut(block as usize) else {
            continue;
        };
        if !std::mem::replace(seen, true) {
            todo.extend(into.get(block as usize).into_iter().flatten());
        }
    }
    inside
}

/// How an entry stands at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Out again.
    Left,
    /// More than one turn.
    Many,
    /// Still in, at a known block after so many turns (0 or 1).
    In(u8),
    /// An exception was thrown that a handler in the loop may catch.
    Thrown(u8),
}

struct Turns<'a> {
    counts: &'a Counts<'a>,
    head: u32,
    inside: Vec<bool>,
    /// A handler is in the loop.
    catches: bool,
    decoded: &'a BTreeMap<u32, PathBlocks>,
    steps: usize,
    found: Loop,
}

impl Turns<'_> {
    fn is_inside(&self, block: u32) -> bool {
        self.inside.get(block as usize).copied().unwrap_or(false)
    }

    fn count(&mut self) {
        let (kipf, decoded) = (self.counts.kipf, self.decoded);
        // Activations that begin in the loop, if nothing more is known of them.
        let mut begun = 0;
        for root in kipf.roots() {
            let Some(path) = decoded.get(&kipf.id(root)) else {
                continue;
            };
            let mut blocks = path.blocks.windows(2).enumerate();
            let enters =
                blocks.find(|(_, pair)| !self.is_inside(pair[0]) && self.is_inside(pair[1]));
            if let Some((at, _)) = enters {
                let stands = self.go(path, at + 1, 0);
                self.settle(root, stands, false);
            } else if let (Some(&last), Some(next)) = (path.blocks.last(), path.next) {
                // The edge that ends the path leads in.
                if !self.is_inside(last) && self.is_inside(next) {
                    self.settle(root, Stands::In(0), false);
                }
            }
            let first = path.blocks.first().copied().unwrap_or(0);
            if path.start.entry && self.is_inside(first) {
                if kipf.k() < 2 || !self.counts.exact {
                    begun = self.counts.activations;
                } else {
                    let stands = self.go(path, 0, 0);
                    self.settle(root, stands, true);
                }
            }
        }
        self.add(None, begun);
    }

    /// Follows a path from one of its blocks on, which is inside.
    fn go(&self, path: &PathBlocks, from: usize, turns: u8) -> Stands {
        let blocks = path.blocks.get(from..).unwrap_or_default();
        if blocks.iter().any(|&block| !self.is_inside(block)) {
            return match path.end == EdgeKind::Throw && self.catches {
                true => Stands::Thrown(turns),
                false => Stands::Left,
            };
        }
        match path.next {
            Some(next) if next == self.head && turns > 0 => Stands::Many,
            Some(next) if next == self.head => Stands::In(turns + 1),
            Some(next) if self.is_inside(next) => Stands::In(turns),
            _ => Stands::Left,
        }
    }

    /// Counts the occurrences of a sequence in which the loop was entered. `begins`: by the activation, so only those count that begin one.
    fn settle(&mut self, node: Node, stands: Stands, begins: bool) {
        let (kipf, decoded) = (self.counts.kipf, self.decoded);
        // Node, how often, turns before its last path, and how the entry stands after it.
        let mut todo: Vec<(Node, u64, u8, Stands)> = Vec::new();
        match self.occurrences(node, begins) {
            Some(count) => todo.push((node, count, 0, stands)),
            None => self.add(None, kipf.node_count(node)),
        }
        while let Some((node, count, before, stands)) = todo.pop() {
            let turns = match stands {
                Stands::Left => {
                    self.add(Some(before), count);
                    continue;
                }
                Stands::Many => {
                    self.add(Some(2), count);
                    continue;
                }
                Stands::In(turns) | Stands::Thrown(turns) => turns,
            };
            let children = kipf.children(node);
            self.steps = self.steps.saturating_sub(1 + children.len());
            if self.steps == 0 || kipf.ids(node).len() >= kipf.k() as usize {
                self.add(None, count);
                continue;
            }
            let mut rest = count;
            let mut known = self.counts.exact;
            for child in children {
                let next = decoded.get(&kipf.id(child));
                let (Some(next), Some(more)) = (next, self.occurrences(child, begins)) else {
                    known = false;
                    continue;
                };
                rest = rest.saturating_sub(more);
                // After an exception a handler comes next, in the loop or not.
                let first = next.blocks.first().copied();
                let goes_on = first.is_some_and(|first| self.is_inside(first))
                    && (stands != Stands::Thrown(turns) || next.start.handler);
                let stands = match goes_on {
                    true => self.go(next, 0, turns),
                    false => Stands::Left,
                };
                todo.push((child, more, turns, stands));
            }
            // No path came after: an exception left the method, after as many turns.
            self.add(known.then_some(turns), rest);
        }
    }

    /// How often the sequence of a node occurred, or began an activation; `None` = not known.
    fn occurrences(&mut self, node: Node, begins: bool) -> Option<u64> {
        let kipf = self.counts.kipf;
        let count = kipf.node_count(node);
        if !begins {
            return Some(count);
        }
        let ids = kipf.ids(node);
        if ids.len() >= kipf.k() as usize || !self.counts.exact {
            return None;
        }
        let mut longer = vec![0];
        longer.extend(ids);
        let mut after = 0u64;
        let roots = kipf.roots();
        self.steps = self.steps.saturating_sub(roots.len());
        for root in roots {
            longer[0] = kipf.id(root);
            after = after.saturating_add(kipf.count(&longer));
        }
        Some(count.saturating_sub(after))
    }

    fn add(&mut self, turns: Option<u8>, count: u64) {
        let to = match turns {
            Some(0) => &mut self.found.zero,
            Some(1) => &mut self.found.one,
            Some(_) => &mut self.found.many,
            None => &mut self.found.unsure,
        };
        *to = to.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use borescope_cfg::flow::{Edge, Start, StartKind};
    use borescope_spool::testing::{switch_loop, worked_example};
    use proptest::prelude::*;

    /// The k-IPF of activations, and the loops as (zero, one, many, unsure).
    fn turns(flow: &Flow, k: u32, activations: &[Vec<u32>], exact: bool) -> Vec<[u64; 4]> {
        let mut kipf = KIpf::new(k).unwrap();
        for ids in activations {
            for n in 1..=k as usize {
                for gram in ids.windows(n) {
                    kipf.add_ngram(gram, 1).unwrap();
                }
            }
        }
        let counts = Counts {
            kipf: &kipf,
            activations: activations.len() as u64,
            exact,
        };
        let found = loops(flow, &counts, |block| u16::try_from(block).ok());
        let of = |one: &Loop| [one.zero, one.one, one.many, one.unsure];
        found.iter().map(of).collect()
    }

    /// A loop (head 1) around another (head 2). Paths from the entry: 0 into the inner loop and around it, 1 through it and around the outer one, 2
    /// out; from head 1: 3, 4, 5 alike; from head 2: 6 around it, 7 around the outer one.
    fn nested() -> Flow {
        let edge = |from, to, kind, value| Edge {
            from,
            to,
            kind,
            value,
        };
        let (forward, back) = (EdgeKind::Forward, EdgeKind::Back);
        let start = |block, value, paths, entry| Start {
            block,
            value,
            paths,
            kind: StartKind {
                entry,
                loop_head: !entry,
                ..StartKind::default()
            },
        };
        Flow {
            blocks: (0..6)
                .map(|at| Block {
                    start: at * 3,
                    end: at * 3 + 3,
                })
                .collect(),
            starts: vec![
                start(0, 0, 3, true),
                start(1, 3, 3, false),
                start(2, 6, 2, false),
            ],
            edges: vec![
                edge(0, 1, forward, 0),
                edge(1, 2, forward, 0),
                edge(1, 5, forward, 2),
                edge(2, 3, forward, 0),
                edge(2, 4, forward, 1),
                edge(3, 2, back, 0),
                edge(4, 1, back, 0),
                edge(5, u32::MAX, EdgeKind::Return, 0),
            ],
            merged: vec![],
            num_paths: 8,
            uncut_paths: "8".into(),
        }
    }

    #[test]
    fn turns_of_one_loop() {
        let flow = worked_example();
        let all = [
            vec![0, 4, 6, 5],
            vec![0, 5],
            vec![1],
            vec![1],
            vec![0],
            vec![0, 4],
        ];
        // What an exception ends after a turn took one, after two more.
        assert_eq!(turns(&flow, 2, &all, true), [[2, 2, 2, 0]]);
        assert_eq!(turns(&flow, 64, &all, true), [[2, 2, 2, 0]]);
        assert_eq!(turns(&flow, 1, &all, true), [[2, 0, 0, 4]]);
        // Of what is not exact, no end of a sequence is certain.
        assert_eq!(turns(&flow, 2, &all, false), [[2, 1, 2, 1]]);
        assert_eq!(turns(&flow, 2, &[], true), [[0; 4]]);
    }

    #[test]
    fn turns_of_a_loop_that_begins_at_the_entry() {
        // 0 and 1 go back, 2 throws, 3 returns.
        let flow = switch_loop(4);
        let all = [
            vec![3],
            vec![0, 3],
            vec![1, 2],
            vec![0, 1, 0, 3],
            vec![0, 0],
            vec![2],
        ];
        for k in [4, 9] {
            assert_eq!(turns(&flow, k, &all, true), [[2, 2, 2, 0]], "{k}");
        }
        assert_eq!(turns(&flow, 1, &all, true), [[0, 0, 0, 6]]);
        let some = turns(&flow, 2, &all, true)[0];
        assert_eq!((some[0], some.iter().sum::<u64>()), (2, 6));
    }

    proptest! {
        /// Turns of the inner loop at each turn of the outer one, in each activation.
        #[test]
        fn turns_of_nested_loops(
            activations in prop::collection::vec(prop::collection::vec(0u64..5, 0..5), 1..8),
            k in 1u32..12,
        ) {
            let (mut ids, mut outer, mut inner) = (Vec::new(), [0; 3], [0; 3]);
            for turns in &activations {
                let mut all = Vec::new();
                let mut at = 0;
                for &turns in turns {
                    inner[turns.min(2) as usize] += 1;
                    match turns {
                        0 => all.push(at + 1),
                        _ => {
                            all.push(at);
                            all.extend(vec![6; turns as usize - 1]);
                            all.push(7);
                        }
                    }
                    at = 3;
                }
                all.push(at + 2);
                outer[turns.len().min(2)] += 1;
                ids.push(all);
            }
            let found = turns(&nested(), k, &ids, true);
            for (found, want) in found.iter().zip([outer, inner]) {
                prop_assert_eq!(found.iter().sum::<u64>(), want.iter().sum::<u64>());
                for (found, want) in found.iter().zip(want) {
                    prop_assert!(*found <= want);
                }
            }
            // Two paths show the turns of a loop with none inside.
            if k >= 2 {
                prop_assert_eq!(found[1][3], 0);
            }
            let longest = ids.iter().map(Vec::len).max().unwrap_or(0);
            if k as usize > longest {
                prop_assert_eq!(found[0][3], 0);
            }
        }
    }
}
