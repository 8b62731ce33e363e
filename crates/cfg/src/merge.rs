//! Short branches whose ways are not told apart: diamonds and triangles that HotSpot's C2 turns into conditional moves.
//!
//! A probe on one way of such a branch would stop C2 from doing so, and the branch is often one on data, mispredicted half of the
//! time (measured: 3 to 4 times slower). So the ways become one edge. What counts as short follows C2's `PhaseIdealLoop::conditional_move`
//! (loopopts.cpp): each int, long or reference that differs behind the branch costs 1, and so does each operation on a way; below
//! ConditionalMoveLimit = 3 on x86-64 the branch goes. A float or double that differs is never moved conditionally there, and
//! behind a comparison of floats only a single value is. What the block of the branch has computed or loaded already is no
//! operation, as C2 computes it once: `if (a[i] > m) m = a[i]`. (Only exactly the same instructions are recognized.)
//!
//! Only innermost branches are merged: a way that itself branches is never short, merged or not.

use crate::Constants;
use crate::flow::{Block, Edge, EdgeKind, Merged};
use crate::graph::{Exit, Graph};
use crate::reset;
use crate::runs::change;
use borescope_classfile::insn::*;
use std::ops::Range;

/// What C2 refuses to convert costs this much or more.
const LIMIT: usize = 3;

/// Most times that the block of a branch is searched for what a way computes.
const SEARCHES: usize = 32;
/// Longest code, in bytes, of what it is searched for.
const LONGEST: usize = 64;

/// What a stack slot holds; a long or double fills two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Long,
    Float,
    Double,
    Ref,
}

use Kind::{Double, Float, Int, Long, Ref};

/// A stack slot of a way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    kind: Kind,
    /// Where its computation begins.
    start: usize,
    /// Operations on the ways before that.
    operations: usize,
}

/// In the order of the opcodes.
const KINDS: [Kind; 5] = [Int, Long, Float, Double, Ref];

/// Buffers for reading ways.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// What the way read now has on the stack.
    stack: Vec<Slot>,
    /// What the first way has left on the stack.
    left: Vec<Slot>,
    /// Locals set.
    set: Vec<u16>,
    operations: usize,
    /// Bcis of the instructions before the branch, in its block; and that of the branch.
    before: Vec<usize>,
    branch: usize,
    searches: usize,
}

impl Merging {
    /// Finds the short branches of `graph` and makes each a single edge.
    pub(crate) fn run(
        &mut self,
        code: &[u8],
        graph: &mut Graph,
        constants: &dyn Constants,
    ) -> Vec<Merged> {
        let mut merged = Vec::new();
        for head in 0..graph.blocks.len() as u32 {
            if let Some(found) = shape(graph, head)
                && self.is_short(code, graph, &found, constants)
            {
                merged.push(found);
            }
        }
        if !merged.is_empty() {
            contract(graph, &merged);
        }
        merged
    }

    /// Whether C2 converts a branch of the right shape.
    fn is_short(
        &mut self,
        code: &[u8],
        graph: &Graph,
        found: &Merged,
        constants: &dyn Constants,
    ) -> bool {
        self.set.clear();
        self.left.clear();
        (self.operations, self.searches) = (0, 0);
        let start = usize::from(graph.blocks[found.head as usize].start);
        self.branch = graph.lasts[found.head as usize].into();
        self.before.clear();
        for item in insns(&code[start..self.branch]) {
            self.before
                .extend(item.map(|(bci, _)| start + usize::from(bci)).ok());
        }
        for (i, &arm) in found.arms.iter().enumerate() {
            self.stack.clear();
            if self
                .read(code, graph.blocks[arm as usize], constants)
                .is_none()
            {
                return false;
            }
            if i == 0 {
                std::mem::swap(&mut self.stack, &mut self.left);
            } else if !self
                .stack
                .iter()
                .map(|s| s.kind)
                .eq(self.left.iter().map(|s| s.kind))
            {
                return false;
            }
        }
        if found.arms.len() == 1 && !self.left.is_empty() {
            return false; // No verifier accepts that.
        }
        let count = |kind| self.left.iter().filter(|s| s.kind == kind).count();
        let values = count(Int) + count(Ref) + count(Long) / 2;
        let differ = self.set.len() + values;
        // C2 does not compare floats once more for each further value.
        let compared = differ <= 1 || !compares_floats(code, graph, found.head);
        count(Float) + count(Double) == 0 && self.operations + differ < LIMIT && compared
    }

    /// Reads a way; `None` = something in it may throw or is loaded anew, takes from the stack what was there before, or sets a float.
    fn read(&mut self, code: &[u8], block: Block, constants: &dyn Constants) -> Option<()> {
        let (mut bci, end) = (usize::from(block.start), usize::from(block.end));
        while bci < end {
            let (mut op, mut at) = (code[bci], bci + 1);
            let len = insn_len(code, bci).ok()?;
            let wide = op == WIDE;
            if wide {
                (op, at) = (code[at], at + 1);
            }
            let short = |at: usize| u16::from_be_bytes([code[at], code[at + 1]]);
            let operand = || match wide {
                true => short(at),
                false => u16::from(code[at]),
            };
            let from = bci;
            bci += len;
            let range = from..bci;
            match op {
                NOP | GOTO | GOTO_W => {}
                ACONST_NULL => self.push(Ref, from),
                ICONST_M1..=ICONST_5 | BIPUSH | SIPUSH => self.push(Int, from),
                LCONST_0 | LCONST_1 => self.push(Long, from),
                FCONST_0..=FCONST_2 => self.push(Float, from),
                DCONST_0 | DCONST_1 => self.push(Double, from),
                LDC | LDC_W | LDC2_W => {
                    let index = if op == LDC { operand() } else { short(at) };
                    let kind = match constants.tag(index)? {
                        3 => Int,
                        4 => Float,
                        5 => Long,
                        6 => Double,
                        8 => Ref,
                        _ => return None,
                    };
                    self.push(kind, from);
                }
                ILOAD..=ALOAD => self.push(KINDS[usize::from(op - ILOAD)], from),
                ILOAD_0..=ALOAD_3 => self.push(KINDS[usize::from(op - ILOAD_0) / 4], from),
                ISTORE..=ASTORE => self.set(KINDS[usize::from(op - ISTORE)], operand())?,
                ISTORE_0..=ASTORE_3 => {
                    let nth = op - ISTORE_0;
                    self.set(KINDS[usize::from(nth) / 4], u16::from(nth % 4))?;
                }
                IINC => {
                    self.operations += 1;
                    self.differs(operand());
                }
                POP | POP2 => {
                    let rest = self.stack.len().checked_sub(usize::from(op - POP + 1))?;
                    self.stack.truncate(rest);
                }
                DUP..=DUP2_X2 => {
                    // Copies of the top one or two slots go in below none, one or two more.
                    let nth = usize::from(op - DUP);
                    let (copied, below) = (nth / 3 + 1, nth % 3);
                    let to = self.stack.len().checked_sub(copied + below)?;
                    let from = self.stack.len() - copied;
                    for i in 0..copied {
                        // What went in has moved the slots copied.
                        self.stack.insert(to + i, self.stack[from + 2 * i]);
                    }
                }
                SWAP => {
                    let top = self.stack.len().checked_sub(2)?;
                    self.stack[top..].swap(0, 1);
                }
                // An integer division may throw, a remainder of floats is a call.
                IDIV | LDIV | IREM..=DREM => {
                    let kind = KINDS[usize::from(op - IADD) % 4];
                    self.repeat(code, range, &[kind, kind], kind)?;
                }
                IADD..=DDIV => {
                    let kind = KINDS[usize::from(op - IADD) % 4];
                    self.operate(code, range, &[kind, kind], kind)?;
                }
                INEG..=DNEG => {
                    let kind = KINDS[usize::from(op - INEG)];
                    self.operate(code, range, &[kind], kind)?;
                }
                ISHL..=LUSHR => {
                    let kind = KINDS[usize::from(op - ISHL) % 2];
                    self.operate(code, range, &[Int, kind], kind)?;
                }
                IAND..=LXOR => {
                    let kind = KINDS[usize::from(op - IAND) % 2];
                    self.operate(code, range, &[kind, kind], kind)?;
                }
                I2L..=D2F => {
                    // From each of the four kinds to the three others.
                    let (from, nth) = (usize::from(op - I2L) / 3, usize::from(op - I2L) % 3);
                    let to = nth + usize::from(nth >= from);
                    self.operate(code, range, &[KINDS[from]], KINDS[to])?;
                }
                I2B..=I2S => self.operate(code, range, &[Int], Int)?,
                LCMP => self.operate(code, range, &[Long, Long], Int)?,
                FCMPL | FCMPG => self.operate(code, range, &[Float, Float], Int)?,
                DCMPL | DCMPG => self.operate(code, range, &[Double, Double], Int)?,
                IALOAD..=SALOAD => {
                    // The kinds, then byte, char and short.
                    let kind = *KINDS.get(usize::from(op - IALOAD)).unwrap_or(&Int);
                    self.repeat(code, range, &[Int, Ref], kind)?;
                }
                ARRAYLENGTH => self.repeat(code, range, &[Ref], Int)?,
                GETFIELD | GETSTATIC => {
                    let kind = match constants.member_type(short(at))? {
                        b'Z' | b'B' | b'C' | b'S' | b'I' => Int,
                        b'J' => Long,
                        b'F' => Float,
                        b'D' => Double,
                        _ => Ref,
                    };
                    let takes: &[Kind] = if op == GETFIELD { &[Ref] } else { &[] };
                    self.repeat(code, range, takes, kind)?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let slot = Slot {
            kind,
            start,
            operations: self.operations,
        };
        self.push_slot(slot);
    }

    fn push_slot(&mut self, slot: Slot) {
        self.stack.push(slot);
        if matches!(slot.kind, Long | Double) {
            self.stack.push(slot);
        }
    }

    fn pop(&mut self, kind: Kind) -> Option<Slot> {
        if matches!(kind, Long | Double) {
            self.stack.pop().filter(|s| s.kind == kind)?;
        }
        self.stack.pop().filter(|s| s.kind == kind)
    }

    /// An instruction, at `range`, that computes something: an operation, unless it was done before.
    fn operate(
        &mut self,
        code: &[u8],
        range: Range<usize>,
        takes: &[Kind],
        gives: Kind,
    ) -> Option<()> {
        let done = self.compute(code, range, takes, gives)?;
        self.operations += usize::from(!done);
        Some(())
    }

    /// An instruction that loads or may throw: only where it was done before.
    fn repeat(
        &mut self,
        code: &[u8],
        range: Range<usize>,
        takes: &[Kind],
        gives: Kind,
    ) -> Option<()> {
        self.compute(code, range, takes, gives)?.then_some(())
    }

    /// Takes and gives; whether that was done before the branch. Then what it takes was no operation either.
    fn compute(
        &mut self,
        code: &[u8],
        range: Range<usize>,
        takes: &[Kind],
        gives: Kind,
    ) -> Option<bool> {
        let mut slot = Slot {
            kind: gives,
            start: range.start,
            operations: self.operations,
        };
        for &kind in takes {
            let taken = self.pop(kind)?;
            if taken.start < slot.start {
                (slot.start, slot.operations) = (taken.start, taken.operations);
            }
        }
        self.push_slot(slot);
        self.searches += 1;
        if self.searches > SEARCHES {
            return None;
        }
        let done = self.done_before(code, slot.start..range.end);
        if done {
            self.operations = slot.operations;
        }
        Some(done)
    }

    /// Whether the same instructions stand before the branch, and nothing from there on changes what they load.
    fn done_before(&self, code: &[u8], computation: Range<usize>) -> bool {
        let text = &code[computation];
        let here = |&bci: &usize| code[bci..self.branch].starts_with(text);
        if text.len() > LONGEST {
            return false;
        }
        let Some(found) = self.before.iter().rposition(here) else {
            return false;
        };
        let loads = |local: u16| {
            let starts = insns(text).filter_map(|item| Some(usize::from(item.ok()?.0)));
            starts
                .filter_map(|at| loaded(text, at))
                .any(|(first, last)| (first..=last).contains(&local))
        };
        let keeps = |&bci: &usize| {
            let (op, local, _) = change(code, bci);
            let second = u16::from(matches!(op, LSTORE | DSTORE));
            let elsewhere = matches!(op, IASTORE..=SASTORE | PUTSTATIC | PUTFIELD)
                || matches!(
                    op,
                    INVOKEVIRTUAL..=INVOKEDYNAMIC | MONITORENTER | MONITOREXIT
                );
            !elsewhere && local.is_none_or(|l| !loads(l) && !loads(l.saturating_add(second)))
        };
        self.before[found..].iter().all(keeps) && !self.set.iter().any(|&local| loads(local))
    }

    fn set(&mut self, kind: Kind, local: u16) -> Option<()> {
        self.pop(kind)?;
        self.differs(local);
        (!matches!(kind, Float | Double) && self.set.len() < LIMIT).then_some(())
    }

    fn differs(&mut self, local: u16) {
        if !self.set.contains(&local) && self.set.len() < LIMIT {
            self.set.push(local);
        }
    }
}

/// The first and the last local slot that an instruction loads.
fn loaded(code: &[u8], bci: usize) -> Option<(u16, u16)> {
    let (kind, first) = match code[bci] {
        op @ ILOAD..=ALOAD => (op - ILOAD, code[bci + 1].into()),
        op @ ILOAD_0..=ALOAD_3 => ((op - ILOAD_0) / 4, u16::from((op - ILOAD_0) % 4)),
        WIDE if (ILOAD..=ALOAD).contains(&code[bci + 1]) => {
            let local = u16::from_be_bytes([code[bci + 2], code[bci + 3]]);
            (code[bci + 1] - ILOAD, local)
        }
        _ => return None,
    };
    let second = u16::from(matches!(KINDS[usize::from(kind)], Long | Double));
    Some((first, first.saturating_add(second)))
}

/// The diamond or triangle that begins with the branch at the end of `head`. Ways and join have no predecessors but its own. So the branch
/// dominates the join, which is then no loop's head.
fn shape(graph: &Graph, head: u32) -> Option<Merged> {
    if graph.exits[head as usize] != Exit::Branch {
        return None;
    }
    let &[Edge { to: a, .. }, Edge { to: b, .. }] = &graph.edges[graph.range(head)] else {
        return None;
    };
    // Where a block goes that can be a way.
    let through = |arm: u32| {
        let simple = matches!(graph.exits[arm as usize], Exit::Fall | Exit::Goto);
        // The entry has one more way in than in-edges.
        (simple && arm != 0 && graph.in_degree[arm as usize] == 1)
            .then(|| graph.edges[graph.range(arm).start].to)
    };
    let (arms, join) = match (through(a), through(b)) {
        (Some(join), _) if join == b => (vec![a], b),
        (_, Some(join)) if join == a => (vec![b], a),
        (Some(join), Some(other)) if join == other => (vec![a.min(b), a.max(b)], join),
        _ => return None,
    };
    (join != 0 && graph.in_degree[join as usize] == 2).then_some(Merged { head, arms, join })
}

/// Whether the branch at the end of `head` tests what a comparison of floats or doubles has left.
fn compares_floats(code: &[u8], graph: &Graph, head: u32) -> bool {
    let Block { start, .. } = graph.blocks[head as usize];
    let (start, last) = (usize::from(start), usize::from(graph.lasts[head as usize]));
    let is_comparison = |op: u8| (FCMPL..=DCMPG).contains(&op);
    // The byte before the branch may belong to a longer instruction.
    last > start
        && is_comparison(code[last - 1])
        && insns(&code[start..last])
            .any(|item| item.is_ok_and(|(at, _)| start + usize::from(at) == last - 1))
}

/// Makes each head's edge lead to its join, and takes the other edges away.
fn contract(graph: &mut Graph, merged: &[Merged]) {
    reset(&mut graph.seen, graph.blocks.len(), 0);
    for &Merged { ref arms, join, .. } in merged {
        graph.in_degree[join as usize] = 1;
        for &arm in arms {
            graph.in_degree[arm as usize] = 0;
            graph.seen[arm as usize] = 1;
        }
    }
    let mut heads = merged.iter().peekable();
    let mut kept = 0;
    for block in 0..graph.blocks.len() as u32 {
        let range = graph.range(block);
        graph.edges_at[block as usize] = kept as u32;
        if let Some(found) = heads.next_if(|m| m.head == block) {
            graph.edges[kept] = Edge {
                from: block,
                to: found.join,
                kind: EdgeKind::Forward,
                value: 0,
            };
            kept += 1;
        } else if graph.seen[block as usize] == 0 {
            graph.edges.copy_within(range.clone(), kept);
            kept += range.len();
        }
    }
    graph.edges.truncate(kept);
    if let Some(end) = graph.edges_at.last_mut() {
        *end = kept as u32;
    }
}
