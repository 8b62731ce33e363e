//! Short branches whose ways are not told apart: diamonds and triangles that HotSpot's C2 turns into conditional moves.
//!
//! A probe on one way of such a branch would stop C2 from doing so, and the branch is often one on data, mispredicted half of the
//! time (measured: 3 to 4 times slower). So the ways become one edge. What counts as short follows C2's `PhaseIdealLoop::conditional_move`
//! (loopopts.cpp): each int, long or reference that differs behind the branch costs 1, and so does each operation on a way; below
//! ConditionalMoveLimit = 3 on x86-64 the branch goes. A float or double that differs is never moved conditionally there.
//!
//! Only innermost branches are merged: a way that itself branches is never short, merged or not.

use crate::Constants;
use crate::flow::{Block, Edge, EdgeKind, Merged};
use crate::graph::{Exit, Graph};
use crate::reset;
use borescope_classfile::insn::*;

/// What C2 refuses to convert costs this much or more.
const LIMIT: usize = 3;

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

/// In the order of the opcodes.
const KINDS: [Kind; 5] = [Int, Long, Float, Double, Ref];

/// Buffers for reading ways.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// What the way read now has on the stack.
    stack: Vec<Kind>,
    /// What the first way has left on the stack.
    left: Vec<Kind>,
    /// Locals set.
    set: Vec<u16>,
    operations: usize,
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
                && !compares_floats(code, graph, head)
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
        self.operations = 0;
        self.left.clear();
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
            } else if self.stack != self.left {
                return false;
            }
        }
        if found.arms.len() == 1 && !self.left.is_empty() {
            return false; // No verifier accepts that.
        }
        let count = |kind| self.left.iter().filter(|&&k| k == kind).count();
        let values = count(Int) + count(Ref) + count(Long) / 2;
        count(Float) + count(Double) == 0 && self.operations + self.set.len() + values < LIMIT
    }

    /// Reads a way; `None` = something in it may throw, takes from the stack what was there before, is long, or sets a float.
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
            match op {
                NOP | GOTO | GOTO_W => {}
                ACONST_NULL => self.push(Ref),
                ICONST_M1..=ICONST_5 | BIPUSH | SIPUSH => self.push(Int),
                LCONST_0 | LCONST_1 => self.push(Long),
                FCONST_0..=FCONST_2 => self.push(Float),
                DCONST_0 | DCONST_1 => self.push(Double),
                LDC | LDC_W | LDC2_W => {
                    let index = if op == LDC { operand() } else { short(at) };
                    self.push(match constants.tag(index)? {
                        3 => Int,
                        4 => Float,
                        5 => Long,
                        6 => Double,
                        8 => Ref,
                        _ => return None,
                    });
                }
                ILOAD..=ALOAD => self.push(KINDS[usize::from(op - ILOAD)]),
                ILOAD_0..=ALOAD_3 => self.push(KINDS[usize::from(op - ILOAD_0) / 4]),
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
                // These divide ints by zero or call a function.
                IDIV | LDIV | IREM..=DREM => return None,
                IADD..=DDIV => {
                    let kind = KINDS[usize::from(op - IADD) % 4];
                    self.operate(&[kind, kind], kind)?;
                }
                INEG..=DNEG => {
                    let kind = KINDS[usize::from(op - INEG)];
                    self.operate(&[kind], kind)?;
                }
                ISHL..=LUSHR => {
                    let kind = KINDS[usize::from(op - ISHL) % 2];
                    self.operate(&[Int, kind], kind)?;
                }
                IAND..=LXOR => {
                    let kind = KINDS[usize::from(op - IAND) % 2];
                    self.operate(&[kind, kind], kind)?;
                }
                I2L..=D2F => {
                    // From each of the four kinds to the three others.
                    let (from, nth) = (usize::from(op - I2L) / 3, usize::from(op - I2L) % 3);
                    let to = nth + usize::from(nth >= from);
                    self.operate(&[KINDS[from]], KINDS[to])?;
                }
                I2B..=I2S => self.operate(&[Int], Int)?,
                LCMP => self.operate(&[Long, Long], Int)?,
                FCMPL | FCMPG => self.operate(&[Float, Float], Int)?,
                DCMPL | DCMPG => self.operate(&[Double, Double], Int)?,
                _ => return None,
            }
            bci += len;
        }
        Some(())
    }

    fn push(&mut self, kind: Kind) {
        self.stack.push(kind);
        if matches!(kind, Long | Double) {
            self.stack.push(kind);
        }
    }

    fn pop(&mut self, kind: Kind) -> Option<()> {
        let slots = if matches!(kind, Long | Double) { 2 } else { 1 };
        (0..slots).try_for_each(|_| self.stack.pop().filter(|&k| k == kind).map(drop))
    }

    fn operate(&mut self, takes: &[Kind], gives: Kind) -> Option<()> {
        takes.iter().try_for_each(|&kind| self.pop(kind))?;
        self.operations += 1;
        self.push(gives);
        Some(())
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
