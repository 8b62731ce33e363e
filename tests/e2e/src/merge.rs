//! Short branches whose ways are not told apart (`--branches merge`): which a compiler could turn into a conditional move, and what a method is
//! without them. Judged on single instructions (JVMS 6.5), without looking at how borescope chooses.
//!
//! A report may merge any branch that is *legal* here, and has to say which: the oracle takes the list from it, checks each entry, removes the arms
//! from the code and from the record, and then every count must be exact again.

use crate::code::{Code, Insn, Kind};
use crate::oracle::{reachable_handlers, reverse_postorder};
use crate::report::Merged;
use crate::witness::{Run, Step};
use std::collections::{HashMap, HashSet};

/// No arm that is worth a conditional move is longer (HotSpot's limit on their cost is 3).
const LONGEST_ARM: usize = 12;

const NOP: u8 = 0;

/// A method without the arms of merged branches.
#[derive(Clone, Debug)]
pub struct Contracted {
    /// Each merged branch goes straight to where its ways meet.
    pub code: Code,
    /// Instructions of the arms.
    gone: HashSet<u16>,
}

/// Whether an instruction only computes: it touches the operand stack and local variables and cannot throw.
fn only_computes(op: u8) -> bool {
    match op {
        // nop, constants; ldc of a class or a dynamic constant may throw, which the record would show.
        0..=20 => true,
        // loads and stores of local variables
        21..=45 | 54..=78 => true,
        // pop, dup, swap
        87..=95 => true,
        // Division and remainder of integers may throw.
        108 | 109 | 112 | 113 => false,
        // arithmetic, shifts, logic, iinc, conversions, comparisons
        96..=152 => true,
        // goto, goto_w
        167 | 200 => true,
        _ => false,
    }
}

/// Whether the last instruction of `done` loads from memory or divides, and the block of the branch has done the same before, with the same
/// instructions right before it, and nothing since could change what comes out.
fn is_repeated(head: &[&Insn], done: &[&Insn]) -> bool {
    let operands = match done.last().map(|insn| insn.op) {
        // getstatic
        Some(178) => 0,
        // getfield, arraylength
        Some(180 | 190) => 1,
        // array loads, divisions and remainders
        Some(46..=53 | 108 | 109 | 112 | 113) => 2,
        _ => return false,
    };
    let Some(from) = done.len().checked_sub(operands + 1) else {
        return false;
    };
    let changes = |insn: &&Insn| matches!(insn.op, 54..=86 | 132 | 179 | 181..=186 | 194 | 195);
    let same = |window: &[&Insn]| {
        window
            .iter()
            .zip(&done[from..])
            .all(|(a, b)| a.bytes == b.bytes)
    };
    let at = head.windows(operands + 1).rposition(same);
    at.is_some_and(|at| !head[at..].iter().any(changes) && !done.iter().any(changes))
}

fn is_conditional(op: u8) -> bool {
    matches!(op, 153..=166 | 198 | 199)
}

/// Where reachable instructions can be reached from without an exception.
fn predecessors(code: &Code) -> HashMap<u16, Vec<u16>> {
    let mut roots = vec![0];
    roots.extend(reachable_handlers(code));
    let mut before: HashMap<u16, Vec<u16>> = HashMap::new();
    for bci in reverse_postorder(code, &roots, |_| false) {
        for to in &code.insns[&bci].next {
            before.entry(*to).or_default().push(bci);
        }
    }
    before
}

/// Whether control comes to an instruction other than from another one.
fn is_root(code: &Code, bci: u16) -> bool {
    bci == 0 || code.handlers.iter().any(|h| h.target == bci)
}

/// The instruction that ends a block.
fn last_of(code: &Code, block: (u16, u32)) -> Option<u16> {
    let (bci, insn) = code
        .insns
        .range(block.0..)
        .take_while(|(bci, _)| u32::from(**bci) < block.1)
        .last()?;
    (u32::from(*bci) + u32::from(insn.len) == block.1).then_some(*bci)
}

/// Checks one merged branch; gives the instruction that branches and those of the arms.
fn legal(
    code: &Code,
    before: &HashMap<u16, Vec<u16>>,
    merged: &Merged,
) -> Result<(u16, Vec<u16>), String> {
    let fail = |why: &str| Err(format!("{merged:?} is no short branch: {why}"));
    let Some(branch) = last_of(code, merged.head) else {
        return fail("its head is no block");
    };
    let head: Vec<&Insn> = code
        .insns
        .range(merged.head.0..branch)
        .map(|(_, insn)| insn)
        .collect();
    let join = merged.join.0;
    let ways = &code.insns[&branch].next;
    if !is_conditional(code.insns[&branch].op) || ways.len() != 2 {
        return fail("its head does not end in a branch");
    }
    if merged.arms.is_empty() || merged.arms.len() > 2 {
        return fail("one or two arms are expected");
    }
    let from = |bci: u16| before.get(&bci).map_or(&[][..], Vec::as_slice);
    let (mut gone, mut meets) = (Vec::new(), HashSet::new());
    for arm in &merged.arms {
        if !ways.contains(&arm.0) {
            return fail("its head does not lead to its arm");
        }
        let Some(last) = last_of(code, *arm) else {
            return fail("its arm is no block");
        };
        meets.insert(last);
        let mut previous = branch;
        let mut done: Vec<&Insn> = Vec::new();
        for (bci, insn) in code.insns.range(arm.0..=last) {
            let goes_on = if *bci == last {
                insn.next == [join]
            } else {
                insn.next == [*bci + insn.len]
            };
            if !goes_on || insn.kind != Kind::Plain {
                return fail("its arm does not go straight to where the ways meet");
            }
            done.push(insn);
            if !only_computes(insn.op) && !is_repeated(&head, &done) {
                return fail("its arm does more than compute");
            }
            if from(*bci) != [previous] || is_root(code, *bci) {
                return fail("its arm is reached another way");
            }
            previous = *bci;
            gone.push(*bci);
        }
        if done.iter().filter(|insn| insn.op != NOP).count() > LONGEST_ARM {
            return fail("its arms are long");
        }
    }
    if merged.arms.len() == 1 {
        if !ways.contains(&join) {
            return fail("only one of its two arms is listed");
        }
        meets.insert(branch);
    }
    let ways_in: HashSet<u16> = from(join).iter().copied().collect();
    if ways_in != meets || is_root(code, join) {
        return fail("where the ways meet is reached another way");
    }
    Ok((branch, gone))
}

impl Contracted {
    fn new(code: &Code) -> Contracted {
        Contracted {
            code: code.clone(),
            gone: HashSet::new(),
        }
    }

    /// Removes the arms of a branch if that is legal.
    fn remove(&mut self, merged: &Merged) -> Result<(), String> {
        let (branch, arms) = legal(&self.code, &predecessors(&self.code), merged)?;
        for bci in &arms {
            self.code.insns.remove(bci);
        }
        self.gone.extend(arms);
        if let Some(insn) = self.code.insns.get_mut(&branch) {
            insn.next = vec![merged.join.0];
        }
        Ok(())
    }

    /// What the method is when these branches are not told apart; an error is one that may not be merged.
    pub fn by(code: &Code, merged: &[Merged]) -> Result<Contracted, String> {
        let mut contracted = Contracted::new(code);
        let mut left: Vec<&Merged> = merged.iter().collect();
        // One branch may be legal only after another.
        while !left.is_empty() {
            let (mut refused, mut errors) = (Vec::new(), Vec::new());
            for entry in &left {
                if let Err(error) = contracted.remove(entry) {
                    refused.push(*entry);
                    errors.push(error);
                }
            }
            if refused.len() == left.len() {
                return Err(errors.join("; "));
            }
            left = refused;
        }
        Ok(contracted)
    }

    /// What the method is when every branch is merged that legally can be.
    pub fn most(code: &Code) -> Contracted {
        let mut contracted = Contracted::new(code);
        while let Some(merged) = contracted.find() {
            if contracted.remove(&merged).is_err() {
                break;
            }
        }
        contracted
    }

    /// A branch that can be merged.
    fn find(&self) -> Option<Merged> {
        let before = predecessors(&self.code);
        // Goes straight on from a branch to the first instruction that is reached another way too.
        let way = |start: u16| {
            let (mut at, mut end) = (start, u32::from(start));
            while before.get(&at).is_some_and(|from| from.len() == 1) && !is_root(&self.code, at) {
                let insn = &self.code.insns[&at];
                let &[next] = &insn.next[..] else { break };
                // An arm is one piece: it may jump only at its end.
                end = u32::from(at) + u32::from(insn.len);
                at = next;
                if u32::from(next) != end {
                    break;
                }
            }
            ((start, end), at)
        };
        let branches = self.code.insns.iter().filter(|(bci, insn)| {
            is_conditional(insn.op) && (before.contains_key(bci) || is_root(&self.code, **bci))
        });
        for (bci, insn) in branches {
            let &[a, b] = &insn.next[..] else { continue };
            let ((arm_a, end_a), (arm_b, end_b)) = (way(a), way(b));
            let mut arms = vec![arm_a, arm_b];
            arms.retain(|arm| u32::from(arm.0) < arm.1);
            let mut start = *bci;
            while let Some(&[from]) = before.get(&start).map(Vec::as_slice)
                && from < start
                && self.code.insns[&from].next.len() == 1
                && !is_root(&self.code, start)
            {
                start = from;
            }
            let merged = Merged {
                head: (start, u32::from(*bci) + u32::from(insn.len)),
                arms,
                join: (end_a, u32::from(end_a)),
            };
            if end_a == end_b && legal(&self.code, &before, &merged).is_ok() {
                return Some(merged);
            }
        }
        None
    }

    /// What an activation executed, without the arms.
    pub fn run(&self, run: &Run) -> Run {
        let kept = |step: &&Step| !self.gone.contains(&step.bci);
        Run {
            steps: run.steps.iter().filter(kept).copied().collect(),
            ..run.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::tests::body;
    use crate::oracle::shape;

    /// `x < 0 ? -x : x` and a return: iload_0 0, ifge 1 -> 9, iload_0 4, ineg 5, goto 6 -> 10, iload_0 9, ireturn 10.
    const ABS: [u8; 11] = [26, 156, 0, 8, 26, 116, 167, 0, 4, 26, 172];

    fn abs() -> Merged {
        Merged {
            head: (0, 4),
            arms: vec![(4, 9), (9, 10)],
            join: (10, 11),
        }
    }

    #[test]
    fn a_conditional_expression_is_merged() {
        let code = body(&ABS, &[]);
        let most = Contracted::most(&code);
        let by = Contracted::by(&code, &[abs()]).expect("legal");
        for contracted in [most, by] {
            assert_eq!(contracted.gone, HashSet::from([4, 5, 6, 9]));
            assert!(shape(&contracted.code).is_straight());
        }
        assert!(!shape(&code).is_straight());
    }

    #[test]
    fn what_the_head_has_loaded_may_be_loaded_again() {
        // aload_0 0, iload_1 1, iaload 2, iload_2 3, if_icmple 4 -> 11, aload_0 7, iload_1 8, iaload 9, istore_2 10, iload_2 11, ireturn 12
        let mut bytes = vec![42, 27, 46, 28, 164, 0, 7, 42, 27, 46, 61, 28, 172];
        let straight =
            |bytes: &[u8]| shape(&Contracted::most(&body(bytes, &[])).code).is_straight();
        assert!(straight(&bytes));
        // Another index; a store between.
        bytes[8] = 28;
        assert!(!straight(&bytes));
        bytes[8] = 27;
        bytes.splice(3..3, [132, 1, 1]);
        assert!(!straight(&bytes));
    }

    #[test]
    fn an_if_without_else_is_merged() {
        // iload_0 0, ifeq 1 -> 7, iinc 0 by 1 at 4, iload_0 7, ireturn 8
        let code = body(&[26, 153, 0, 6, 132, 0, 1, 26, 172], &[]);
        let merged = Merged {
            head: (0, 4),
            arms: vec![(4, 7)],
            join: (7, 9),
        };
        Contracted::by(&code, &[merged]).expect("legal");
        assert!(shape(&Contracted::most(&code).code).is_straight());
    }

    #[test]
    fn what_may_throw_or_is_reached_another_way_is_not() {
        let refused = |bytes: &[u8], handlers: &[(u16, u16, u16)], merged: Merged, why: &str| {
            let code = body(bytes, handlers);
            let error = Contracted::by(&code, &[merged]).expect_err(why);
            assert!(error.contains(why), "{error}");
            assert_eq!(Contracted::most(&code).gone, HashSet::new(), "{why}");
        };
        // The division of an arm.
        let mut divides = ABS;
        divides[5] = 108;
        refused(&divides, &[], abs(), "more than compute");
        // A load that the head has not done.
        let loads = [26, 155, 0, 8, 42, 190, 167, 0, 4, 26, 172];
        refused(&loads, &[], abs(), "more than compute");
        // The join, or an arm, is a handler.
        refused(&ABS, &[(0, 1, 10)], abs(), "meet is reached another way");
        refused(&ABS, &[(0, 1, 9)], abs(), "arm is reached another way");
        // A loop back to the join: iload_0, ifge -> 7, iinc, [7] iload_0, ifge -> 7, iload_0, ireturn.
        let head = [26, 156, 0, 6, 132, 0, 1, 26, 156, 255, 255, 26, 172];
        let merged = Merged {
            head: (0, 4),
            arms: vec![(4, 7)],
            join: (7, 11),
        };
        refused(&head, &[], merged, "meet is reached another way");
    }

    #[test]
    fn a_list_that_is_not_true_is_refused() {
        let code = body(&ABS, &[]);
        let with = |change: fn(&mut Merged)| {
            let mut merged = abs();
            change(&mut merged);
            Contracted::by(&code, &[merged]).expect_err("not legal")
        };
        assert!(with(|m| m.head.1 = 3).contains("no block"));
        assert!(with(|m| m.head = (4, 9)).contains("does not end in a branch"));
        assert!(with(|m| m.arms.clear()).contains("one or two"));
        assert!(with(|m| _ = m.arms.pop()).contains("only one of its two"));
        assert!(with(|m| m.arms[0].1 = 6).contains("straight to where"));
        assert!(with(|m| m.join.0 = 9).contains("straight to where"));
        assert!(Contracted::by(&code, &[abs(), abs()]).is_err());
    }
}
