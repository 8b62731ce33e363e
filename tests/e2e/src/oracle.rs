//! What the report must say, derived from what the witness saw, without borescope's numbering: the definitions of ARCHITECTURE.md
//! ("From bytecode to a path ID") applied to single instructions instead of numbered blocks.
//!
//! A path starts at the entry, after a back edge and at a handler; it ends at a back edge, a return or an athrow; one that an exception
//! interrupts anywhere else is unfinished. Back edges are found by dominators, where borescope searches depth first: for reducible
//! code that is the same set. For irreducible loops, and for methods with so many paths that edges are cut, the definitions leave a choice;
//! there the oracle takes the choice from the report (an edge that no reported path crosses was cut) and still checks every count, and
//! that no path runs through an instruction twice.

use crate::code::{Code, Kind};
use crate::report::{Ranges, push_range};
use crate::witness::{End, Run};
use std::collections::{BTreeMap, HashMap, HashSet};

/// More acyclic paths than this, and edges may be cut.
const MOST_PATHS: f64 = (1u64 << 30) as f64;

/// An edge between instructions, by bytecode index.
type Edge = (u16, u16);

/// The back edges of a method.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Edges whose target dominates their source: certainly back edges.
    pub back: HashSet<Edge>,
    /// Edges that end a path if the numbering chose to: in irreducible loops, or cut.
    pub open: HashSet<Edge>,
    /// Acyclic paths over all path starts, if no edge is open.
    pub num_paths: Option<f64>,
}

/// Counts of one method, by path (its executed ranges) and by sequence of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often the method was entered.
    pub activations: u64,
    /// Paths that an exception, or the JVM's end, interrupted.
    pub unfinished: u64,
    /// Paths that end with a return or an athrow: activations of which a path was finished, except where the method caught what it threw.
    pub ended: u64,
    /// Sequences of 1..=k paths that followed one another in an activation.
    pub grams: BTreeMap<Vec<u32>, u64>,
}

/// Numbers for paths, in order of appearance; nothing but a short name for [`Ranges`].
#[derive(Clone, Debug, Default)]
pub struct Interner {
    numbers: HashMap<Ranges, u32>,
    /// The paths by number.
    pub paths: Vec<Ranges>,
}

impl Shape {
    /// Whether the method has a single path and no loop.
    pub fn is_straight(&self) -> bool {
        self.back.is_empty() && self.num_paths == Some(1.0)
    }
}

impl Interner {
    /// The number of a path.
    pub fn number(&mut self, ranges: Ranges) -> u32 {
        let next = self.paths.len() as u32;
        *self.numbers.entry(ranges).or_insert_with_key(|key| {
            self.paths.push(key.clone());
            next
        })
    }
}

/// Instructions reachable from `roots`, in reverse postorder of a depth-first search that does not follow `without`.
pub(crate) fn reverse_postorder(
    code: &Code,
    roots: &[u16],
    without: impl Fn(Edge) -> bool,
) -> Vec<u16> {
    let mut seen = HashSet::new();
    let mut order = Vec::new();
    for &root in roots {
        let mut stack = Vec::new();
        if seen.insert(root) {
            stack.push((root, 0));
        }
        while let Some((at, child)) = stack.pop() {
            let Some(&next) = code.insns[&at].next.get(child) else {
                order.push(at);
                continue;
            };
            stack.push((at, child + 1));
            if !without((at, next)) && seen.insert(next) {
                stack.push((next, 0));
            }
        }
    }
    order.reverse();
    order
}

/// Handlers whose range covers an instruction that can be reached, and everything reachable through them.
pub(crate) fn reachable_handlers(code: &Code) -> Vec<u16> {
    let mut handlers: Vec<u16> = Vec::new();
    loop {
        let mut roots = vec![0];
        roots.extend(&handlers);
        let reached = reverse_postorder(code, &roots, |_| false);
        let before = handlers.len();
        for h in &code.handlers {
            if !handlers.contains(&h.target)
                && reached.iter().any(|bci| (h.start..h.end).contains(bci))
            {
                handlers.push(h.target);
            }
        }
        if handlers.len() == before {
            handlers.sort_unstable();
            return handlers;
        }
    }
}

/// Adds the back and open edges among the instructions of one region: those reachable from `roots` and not in `other`.
fn find_loops(code: &Code, roots: &[u16], other: &HashSet<u16>, shape: &mut Shape) -> HashSet<u16> {
    let order = reverse_postorder(code, roots, |(_, to)| other.contains(&to));
    let place: HashMap<u16, usize> = order
        .iter()
        .enumerate()
        .map(|(i, bci)| (*bci, i + 1))
        .collect();
    // Dominators as in Cooper, Harvey, Kennedy: place 0 is a virtual root before all roots.
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); order.len() + 1];
    for root in roots {
        before[place[root]].push(0);
    }
    for bci in &order {
        for to in code.insns[bci].next.iter().filter_map(|to| place.get(to)) {
            before[*to].push(place[bci]);
        }
    }
    let mut dominator: Vec<Option<usize>> = vec![None; order.len() + 1];
    dominator[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for at in 1..before.len() {
            let mut new: Option<usize> = None;
            for &from in before[at].iter().filter(|from| dominator[**from].is_some()) {
                new = Some(match new {
                    None => from,
                    Some(mut a) => {
                        let mut b = from;
                        while a != b {
                            if a > b {
                                a = dominator[a].expect("known");
                            } else {
                                b = dominator[b].expect("known");
                            }
                        }
                        a
                    }
                });
            }
            if dominator[at] != new {
                dominator[at] = new;
                changed = true;
            }
        }
    }
    let dominates = |a: usize, mut b: usize| {
        while b > a {
            b = dominator[b].expect("reachable");
        }
        a == b
    };
    let inside = |(from, to): Edge| place.contains_key(&from) && place.contains_key(&to);
    for from in &order {
        for to in &code.insns[from].next {
            if inside((*from, *to)) && dominates(place[to], place[from]) {
                shape.back.insert((*from, *to));
            }
        }
    }
    // What cycles are left are irreducible loops. An edge is in one if its target reaches its source.
    let forward = |edge: Edge| inside(edge) && !shape.back.contains(&edge);
    let again = reverse_postorder(code, &order, |edge| !forward(edge));
    let rank: HashMap<u16, usize> = again.iter().enumerate().map(|(i, bci)| (*bci, i)).collect();
    for from in &order {
        for to in &code.insns[from].next {
            if forward((*from, *to)) && rank[to] <= rank[from] {
                let cycle: HashSet<u16> = reverse_postorder(code, &[*to], |edge| !forward(edge))
                    .into_iter()
                    .collect();
                for a in &order {
                    for b in &code.insns[a].next {
                        let comes_back =
                            || reverse_postorder(code, &[*b], |edge| !forward(edge)).contains(a);
                        if cycle.contains(a)
                            && cycle.contains(b)
                            && forward((*a, *b))
                            && comes_back()
                        {
                            shape.open.insert((*a, *b));
                        }
                    }
                }
            }
        }
    }
    order.into_iter().collect()
}

/// Finds the back edges of a method and counts its acyclic paths.
pub fn shape(code: &Code) -> Shape {
    let mut shape = Shape::default();
    let handlers = reachable_handlers(code);
    // First what the entry reaches: handlers are searched after it, so an edge from a handler's code into it is never a back edge.
    let main = find_loops(code, &[0], &HashSet::new(), &mut shape);
    let rest: Vec<u16> = handlers
        .iter()
        .copied()
        .filter(|h| !main.contains(h))
        .collect();
    find_loops(code, &rest, &main, &mut shape);
    if !shape.open.is_empty() {
        return shape;
    }
    let mut roots = vec![0];
    roots.extend(&handlers);
    let order = reverse_postorder(code, &roots, |edge| shape.back.contains(&edge));
    let mut paths: HashMap<u16, f64> = HashMap::new();
    for bci in order.iter().rev() {
        let insn = &code.insns[bci];
        let leaves = if insn.kind == Kind::Plain { 0.0 } else { 1.0 };
        let through = |to: &u16| {
            if shape.back.contains(&(*bci, *to)) {
                1.0
            } else {
                paths[to]
            }
        };
        let count = leaves + insn.next.iter().map(through).sum::<f64>();
        paths.insert(*bci, count);
    }
    let mut starts: HashSet<u16> = shape.back.iter().map(|edge| edge.1).collect();
    starts.extend(roots);
    let sum = starts
        .iter()
        .map(|start| paths.get(start).copied().unwrap_or(0.0))
        .sum();
    shape.num_paths = Some(sum);
    if sum > MOST_PATHS {
        for bci in order {
            shape
                .open
                .extend(code.insns[&bci].next.iter().map(|to| (bci, *to)));
        }
        shape.open.retain(|edge| !shape.back.contains(edge));
    }
    shape
}

/// The open edges that the reported paths cross.
fn crossed<'a>(code: &Code, reported: impl Iterator<Item = &'a Ranges>) -> HashSet<Edge> {
    let mut crossed = HashSet::new();
    for ranges in reported {
        let mut last = None;
        for &(start, end) in ranges {
            for (bci, _) in code
                .insns
                .range(start..)
                .take_while(|(bci, _)| u32::from(**bci) < end)
            {
                crossed.extend(last.map(|from| (from, *bci)));
                last = Some(*bci);
            }
        }
    }
    crossed
}

/// Derives the counts of a method from its activations. `reported` are the paths the report has, looked at only where the definitions
/// leave a choice. An error means that the record contradicts the class file, or that a chosen path is not acyclic.
pub fn derive<'a>(
    code: &Code,
    shape: &Shape,
    runs: &[Run],
    k: usize,
    reported: impl Iterator<Item = &'a Ranges>,
    interner: &mut Interner,
) -> Result<Counts, String> {
    let ends: HashSet<Edge> = if shape.open.is_empty() {
        shape.back.clone()
    } else {
        let kept = crossed(code, reported);
        shape
            .back
            .iter()
            .chain(shape.open.iter().filter(|edge| !kept.contains(edge)))
            .copied()
            .collect()
    };
    let mut counts = Counts::default();
    for run in runs {
        counts.activations += run.count;
        let Walk {
            ids,
            unfinished,
            ended,
        } = paths_of(code, &ends, run, interner)?;
        counts.unfinished += unfinished * run.count;
        counts.ended += ended * run.count;
        for end in 1..=ids.len() {
            for length in 1..=k.min(end) {
                let gram = &ids[end - length..end];
                match counts.grams.get_mut(gram) {
                    Some(count) => *count += run.count,
                    None => _ = counts.grams.insert(gram.to_owned(), run.count),
                }
            }
        }
    }
    Ok(counts)
}

/// The paths of one activation.
#[derive(Debug, Default)]
struct Walk {
    /// The finished ones, in order.
    ids: Vec<u32>,
    unfinished: u64,
    /// How many of `ids` end with a return or an athrow.
    ended: u64,
}

fn paths_of(
    code: &Code,
    ends: &HashSet<Edge>,
    run: &Run,
    interner: &mut Interner,
) -> Result<Walk, String> {
    let mut walk = Walk::default();
    // HotSpot hides the steps of what runs while a field or call is resolved: class initializers above all.
    if run.steps.is_empty() && run.end != End::Live {
        return Err("an activation has no steps".to_owned());
    }
    let mut ranges = Ranges::new();
    let mut seen = HashSet::new();
    for (i, step) in run.steps.iter().enumerate() {
        let insn = code
            .insns
            .get(&step.bci)
            .ok_or_else(|| format!("no instruction at {}", step.bci))?;
        if !seen.insert(step.bci) {
            return Err(format!("a path runs through {} twice", step.bci));
        }
        push_range(
            &mut ranges,
            step.bci,
            u32::from(step.bci) + u32::from(insn.len),
        );
        // Whether the path ends here, and whether by itself.
        let end = match run.steps.get(i + 1) {
            Some(next) if next.caught => {
                let covers = |h: &&crate::code::Handler| {
                    h.target == next.bci && (h.start..h.end).contains(&step.bci)
                };
                code.handlers
                    .iter()
                    .find(covers)
                    .ok_or_else(|| format!("no handler from {} to {}", step.bci, next.bci))?;
                Some(insn.kind != Kind::Plain)
            }
            Some(next) if !insn.next.contains(&next.bci) => {
                return Err(format!(
                    "{} follows {} without an exception",
                    next.bci, step.bci
                ));
            }
            Some(next) => ends.contains(&(step.bci, next.bci)).then_some(true),
            None if run.end == End::Return && insn.kind != Kind::Return => {
                return Err(format!("returned at {}", step.bci));
            }
            None => Some(run.end != End::Live && insn.kind != Kind::Plain),
        };
        if let Some(by_itself) = end {
            let path = std::mem::take(&mut ranges);
            seen.clear();
            if by_itself {
                walk.ids.push(interner.number(path));
                walk.ended += u64::from(insn.kind != Kind::Plain);
            } else {
                walk.unfinished += 1;
            }
        }
    }
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Handler, Insn};
    use crate::witness::Step;

    /// Instructions of one byte: (kind, successors), with the handlers given as (start, end, target).
    fn code(insns: &[(Kind, &[u16])], handlers: &[(u16, u16, u16)]) -> Code {
        let insn = |(kind, next): &(Kind, &[u16])| Insn {
            op: 0,
            bytes: vec![0],
            len: 1,
            kind: *kind,
            next: next.to_vec(),
        };
        Code {
            name: "m".into(),
            descriptor: "()V".into(),
            insns: (0..).zip(insns.iter().map(insn)).collect(),
            handlers: handlers
                .iter()
                .map(|&(start, end, target)| Handler { start, end, target })
                .collect(),
            lines: Vec::new(),
        }
    }

    fn counts(
        code: &Code,
        steps: &str,
        end: End,
        k: usize,
    ) -> Result<(Counts, Vec<Ranges>), String> {
        let step = |text: &str| Step {
            caught: text.starts_with('!'),
            bci: text.trim_start_matches('!').parse().expect("a number"),
        };
        let run = Run {
            count: 1,
            end,
            steps: steps.split(' ').map(step).collect(),
        };
        let mut interner = Interner::default();
        let counts = derive(
            code,
            &shape(code),
            &[run],
            k,
            std::iter::empty(),
            &mut interner,
        )?;
        Ok((counts, interner.paths))
    }

    /// 0: head, leaves to 3; 1: may throw; 2: back to 0; 3: return; 4: handler of 1, goes to 2.
    fn looping() -> Code {
        let plain = Kind::Plain;
        code(
            &[
                (plain, &[1, 3]),
                (plain, &[2]),
                (plain, &[0]),
                (Kind::Return, &[]),
                (plain, &[2]),
            ],
            &[(1, 2, 4)],
        )
    }

    #[test]
    fn back_edges_by_dominators() {
        let shape = shape(&looping());
        assert_eq!(shape.back, HashSet::from([(2, 0)]));
        assert!(shape.open.is_empty());
        // From 0: round, or out; from the handler: round.
        assert_eq!(shape.num_paths, Some(3.0));
    }

    #[test]
    fn two_entries_leave_a_choice() {
        let plain = Kind::Plain;
        let shape = shape(&code(
            &[
                (plain, &[1, 2]),
                (plain, &[2]),
                (plain, &[1, 3]),
                (Kind::Return, &[]),
            ],
            &[],
        ));
        assert!(shape.back.is_empty());
        assert_eq!(shape.open, HashSet::from([(1, 2), (2, 1)]));
    }

    #[test]
    fn sequences_go_on_across_a_handler() {
        let (counts, paths) =
            counts(&looping(), "0 1 2 0 1 !4 2 0 3", End::Return, 2).expect("a sound record");
        assert_eq!(
            paths,
            [vec![(0, 3)], vec![(4, 5), (2, 3)], vec![(0, 1), (3, 4)]]
        );
        assert_eq!(
            (counts.activations, counts.unfinished, counts.ended),
            (1, 1, 1)
        );
        let grams: BTreeMap<Vec<u32>, u64> = [vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2]]
            .map(|g| (g, 1))
            .into();
        assert_eq!(counts.grams, grams);
    }

    #[test]
    fn records_that_contradict_the_code_are_refused() {
        let wrong = [
            ("0 2", End::Live, "2 follows 0 without an exception"),
            ("0 !4", End::Live, "no handler from 0 to 4"),
            ("0 1", End::Return, "returned at 1"),
            ("9", End::Live, "no instruction at 9"),
        ];
        for (steps, end, message) in wrong {
            assert_eq!(
                counts(&looping(), steps, end, 1).err().as_deref(),
                Some(message)
            );
        }
        let live = counts(&looping(), "0 1 2 0 1", End::Live, 1)
            .expect("a sound record")
            .0;
        assert_eq!((live.unfinished, live.grams.len()), (1, 1));
    }
}
