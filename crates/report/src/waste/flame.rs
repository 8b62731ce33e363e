//! The flame graph of second contexts: who called where the second access was made, the callers with most samples.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use borescope_waste::Frame;
use borescope_waste::analysis::contexts::Contexts;
use borescope_waste::rank::LeafPair;

/// Frames of a graph, besides the root.
pub(super) const FRAMES: usize = 2_000;

/// A frame below its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The caller's place in the list; `None` = the root.
    pub(super) parent: Option<u32>,
    /// What ran; of the root it means nothing.
    pub(super) frame: Frame,
    /// Samples in it and in what it called.
    pub(super) count: u64,
}

/// A graph. Each node stands after its caller; the first is the root, of all samples.
#[derive(Debug)]
pub(super) struct Flame {
    pub(super) nodes: Vec<Node>,
    /// Frames that found no room: their samples are those of their callers.
    pub(super) folded: u64,
    /// None of them has more samples.
    pub(super) most_folded: u64,
}

impl Flame {
    /// Of all contexts of some pairs.
    pub(super) fn of<'a>(
        tree: &Contexts,
        pairs: impl Iterator<Item = &'a LeafPair>,
        most: usize,
    ) -> Flame {
        let mut counts = vec![0u64; tree.len()];
        let mut all = 0u64;
        for one in pairs.flat_map(|pair| &pair.contexts) {
            all = all.saturating_add(one.count);
            if let Some(count) = counts.get_mut(one.second as usize) {
                *count = count.saturating_add(one.count);
            }
        }
        // A caller's number is below its callee's: backwards, a node is whole before it is added to its caller.
        let mut callees: Vec<Vec<u32>> = vec![Vec::new(); tree.len()];
        for number in (1..tree.len()).rev() {
            let count = counts[number];
            let caller = tree.node(number as u32).map(|(caller, _)| caller as usize);
            if let Some(caller) = caller.filter(|_| count > 0) {
                counts[caller] = counts[caller].saturating_add(count);
                callees[caller].push(number as u32);
            }
        }
        let mut nodes = vec![Node {
            parent: None,
            frame: Frame::UNKNOWN,
            count: all,
        }];
        // Most samples first, of equals the one that was found first. A callee never has more than its caller.
        let mut queue = BinaryHeap::new();
        let push = |queue: &mut BinaryHeap<_>, node: u32, place: u32| {
            for &callee in callees[node as usize].iter().rev() {
                queue.push((counts[callee as usize], Reverse(callee), place));
            }
        };
        push(&mut queue, 0, 0);
        let mut most_folded = 0;
        while let Some((count, Reverse(node), parent)) = queue.pop() {
            if nodes.len() > most {
                most_folded = count;
                break;
            }
            let place = nodes.len() as u32;
            nodes.push(Node {
                parent: Some(parent),
                frame: tree.leaf(node).unwrap_or(Frame::UNKNOWN),
                count,
            });
            push(&mut queue, node, place);
        }
        let there = counts.iter().skip(1).filter(|count| **count > 0).count();
        Flame {
            folded: (there + 1 - nodes.len()) as u64,
            most_folded,
            nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use borescope_waste::handler::code::Bytes;
    use borescope_waste::handler::table::Capacity;
    use borescope_waste::rank::rank;
    use borescope_waste::{Source, Waste};

    fn frame(method: u64) -> Frame {
        Frame {
            method: Frame::FIRST_METHOD + method,
            bci: 1,
        }
    }

    #[test]
    fn callers_have_what_their_callees_have() {
        use borescope_spool::testing::waste::{Sample, Samples};
        let mut samples = Samples::new(Capacity::new(64, 64).unwrap(), Source::Software);
        let mut add = |times: usize, second: &[u64]| {
            let second = second.iter().map(|&method| frame(method)).collect();
            let sample = Sample::new(Waste::DeadStore, vec![frame(9)], second);
            (0..times).for_each(|_| samples.add(&sample));
        };
        add(5, &[0, 1, 2]);
        add(3, &[0, 1]);
        add(2, &[0, 3]);
        add(1, &[4]);
        let words = samples.words();
        let profile = borescope_waste::Profile::read(&words).unwrap();
        let ranking = rank(&profile);
        assert_eq!(
            ranking.pairs[0].instructions[0],
            Bytes::new(&[0x89, 0x48, 0x0C]).unwrap()
        );
        let flame = |most| Flame::of(&profile.contexts, ranking.pairs.iter(), most);
        let rows = |flame: &Flame| -> Vec<(Option<u32>, Frame, u64)> {
            let nodes = flame.nodes.iter().skip(1);
            nodes
                .map(|node| (node.parent, node.frame, node.count))
                .collect()
        };
        let all = flame(FRAMES);
        assert_eq!(
            (all.nodes[0].count, all.folded, all.most_folded),
            (11, 0, 0)
        );
        let want = [
            (Some(0), frame(0), 10),
            (Some(1), frame(1), 8),
            (Some(2), frame(2), 5),
            (Some(1), frame(3), 2),
            (Some(0), frame(4), 1),
        ];
        assert_eq!(rows(&all), want);
        let some = flame(3);
        assert_eq!(rows(&some), want[..3]);
        assert_eq!(
            (some.nodes[0].count, some.folded, some.most_folded),
            (11, 2, 2)
        );
        let none = Flame::of(&profile.contexts, [].into_iter(), 3);
        assert_eq!((none.nodes.len(), none.folded), (1, 0));
    }
}
