//! Run loops: innermost loops with a single way round, whose probes need nothing but a counter on the back edge.
//!
//! Any memory operation on a loop's way round costs up to 9 times in loops that C2 vectorizes; an increment of a local costs nothing. Each
//! whole turn is the same path, so the number of turns, told when the loop is left, says as much as one probe a turn.

use crate::Constants;
use crate::Turns;
use crate::flow::{Edge, EdgeKind, Merged, StartKind};
use crate::graph::{Exit, Graph, NONE};
use crate::loops::Loops;
use crate::number::Numbers;
use crate::reset;
use borescope_classfile::insn::*;
use std::ops::Range;

/// A run loop.
#[derive(Debug)]
pub(crate) struct RunLoop {
    pub(crate) head: u32,
    /// Its blocks and the arms of its merged branches, in [`Runs::blocks`].
    blocks: Range<usize>,
}

/// The run loops of a method; buffers are kept from method to method.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) loops: Vec<RunLoop>,
    blocks: Vec<u32>,
    /// By block: its run loop's head; NONE = it is in none. Arms are in none: no edge leads there.
    head_of: Vec<u32>,
    /// By block: back edges that lead there.
    backs: Vec<u32>,
    /// By block: an edge that leads there.
    into: Vec<u32>,
    /// By block: the first one up the only ways into blocks, where these are forward edges of value 0.
    top: Vec<u32>,
    /// By bci: how many bcis before it an exception range covers. Empty = not counted yet.
    covered: Vec<u32>,
    /// Instructions of a block.
    insns: Vec<(usize, u8)>,
    /// Whether each run loop makes less than 2^32 turns.
    bounded: bool,
}

impl Runs {
    /// Forgets the method before.
    pub(crate) fn clear(&mut self) {
        self.loops.clear();
    }

    /// Finds the run loops of a numbered graph.
    pub(crate) fn find(
        &mut self,
        code: &[u8],
        graph: &Graph,
        loops: &Loops,
        numbers: &Numbers,
        merged: &[Merged],
        constants: &dyn Constants,
    ) {
        self.clear();
        if !loops.head.contains(&true) {
            return;
        }
        let blocks = graph.blocks.len();
        self.blocks.clear();
        self.covered.clear();
        self.bounded = true;
        reset(&mut self.head_of, blocks, NONE);
        reset(&mut self.backs, blocks, 0);
        reset(&mut self.into, blocks, NONE);
        for (i, edge) in graph.edges.iter().enumerate().filter(|e| e.1.to != NONE) {
            self.into[edge.to as usize] = i as u32;
            self.backs[edge.to as usize] += u32::from(edge.kind == EdgeKind::Back);
        }
        self.find_tops(graph, loops);
        for back in graph.edges.iter().filter(|e| e.kind == EdgeKind::Back) {
            let first = self.blocks.len();
            let found = self.backs[back.to as usize] == 1
                && self.top[back.from as usize] == back.to
                && back.value == 0
                && is_head_only(numbers, back.to)
                && self.walk(graph, back, merged)
                && self.is_quiet(code, graph, first, constants);
            if !found {
                self.blocks.truncate(first);
                continue;
            }
            for &block in &self.blocks[first..] {
                if !graph.range(block).is_empty() {
                    self.head_of[block as usize] = back.to;
                }
            }
            self.loops.push(RunLoop {
                head: back.to,
                blocks: first..self.blocks.len(),
            });
            self.bounded &= self.is_bounded(code, graph, first);
        }
        self.loops.sort_unstable_by_key(|run| run.head);
    }

    /// Follows the only ways into blocks upwards.
    fn find_tops(&mut self, graph: &Graph, loops: &Loops) {
        reset(&mut self.top, graph.blocks.len(), NONE);
        // A block before all that it leads to.
        for &block in loops.postorder.iter().rev() {
            let mut top = block;
            // The entry has one more way in than in-edges, a handler has no in-edges.
            if block != 0 && graph.in_degree[block as usize] == 1 {
                let edge = &graph.edges[self.into[block as usize] as usize];
                if edge.kind == EdgeKind::Forward && edge.value == 0 {
                    top = self.top[edge.from as usize];
                }
            }
            self.top[block as usize] = top;
        }
    }

    /// Appends the blocks from the back edge's source up to its target, and the arms between. `false` = nothing but an exception
    /// leaves the loop: its turns would never be told if the JVM is killed.
    fn walk(&mut self, graph: &Graph, back: &Edge, merged: &[Merged]) -> bool {
        let (mut block, mut leaves) = (back.from, false);
        loop {
            self.blocks.push(block);
            leaves |= graph.range(block).len() > 1;
            if let Ok(i) = merged.binary_search_by_key(&block, |m| m.head) {
                self.blocks.extend(&merged[i].arms);
            }
            if block == back.to {
                return leaves;
            }
            block = graph.edges[self.into[block as usize] as usize].from;
        }
    }

    /// Whether no exception range covers any of the blocks from `first` on, and nothing in them calls (but Math) or locks.
    fn is_quiet(
        &mut self,
        code: &[u8],
        graph: &Graph,
        first: usize,
        constants: &dyn Constants,
    ) -> bool {
        if self.covered.is_empty() && !graph.guards.is_empty() {
            self.count_covered(graph, code.len());
        }
        self.blocks[first..].iter().all(|&block| {
            let block = graph.blocks[block as usize];
            let (start, end) = (usize::from(block.start), usize::from(block.end));
            let mut bci = start;
            while bci < end {
                let Ok(len) = insn_len(code, bci) else {
                    return false;
                };
                let quiet = match code[bci] {
                    INVOKESTATIC => {
                        let index = u16::from_be_bytes([code[bci + 1], code[bci + 2]]);
                        let class = constants.member_class(index);
                        matches!(class, Some(b"java/lang/Math" | b"java/lang/StrictMath"))
                    }
                    INVOKEVIRTUAL..=INVOKEDYNAMIC | MONITORENTER | MONITOREXIT => false,
                    _ => true,
                };
                if !quiet {
                    return false;
                }
                bci += len;
            }
            self.covered.is_empty() || self.covered[start] == self.covered[end]
        })
    }

    fn count_covered(&mut self, graph: &Graph, len: usize) {
        // Ranges that begin minus those that end, wrapping: each sum up to a bci is the number of ranges that cover it.
        reset(&mut self.covered, len + 1, 0);
        for guard in &graph.guards {
            let (start, end) = (usize::from(guard.start), usize::from(guard.end));
            self.covered[start] = self.covered[start].wrapping_add(1);
            self.covered[end] = self.covered[end].wrapping_sub(1);
        }
        let (mut ranges, mut count) = (0u32, 0);
        for here in &mut self.covered {
            ranges = ranges.wrapping_add(*here);
            *here = count;
            count += u32::from(ranges > 0);
        }
    }

    /// Type of the turn counter of all run loops together; `None` = there are none.
    pub(crate) fn turns(&self) -> Option<Turns> {
        let turns = if self.bounded {
            Turns::Int
        } else {
            Turns::Long
        };
        (!self.loops.is_empty()).then_some(turns)
    }

    /// The head of the run loop that an edge leaves.
    pub(crate) fn left_by(&self, edge: &Edge) -> Option<u32> {
        let head = self.head_of(edge.from)?;
        (edge.to == NONE || self.head_of(edge.to) != Some(head)).then_some(head)
    }

    /// Whether an edge is the back edge of a run loop.
    pub(crate) fn is_turn(&self, edge: &Edge) -> bool {
        edge.kind == EdgeKind::Back && self.head_of(edge.from) == Some(edge.to)
    }

    fn head_of(&self, block: u32) -> Option<u32> {
        // Without run loops `head_of` may be that of an earlier method.
        let head = *self.head_of.get(block as usize)?;
        (head != NONE && !self.loops.is_empty()).then_some(head)
    }

    /// The bcis of a run loop, ascending; ranges that meet are one.
    pub(crate) fn ranges(&self, graph: &Graph, run: &RunLoop) -> Vec<(u16, u16)> {
        let mut blocks = self.blocks[run.blocks.clone()].to_vec();
        blocks.sort_unstable();
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for block in blocks {
            let block = graph.blocks[block as usize];
            match ranges.last_mut() {
                Some(last) if last.1 == block.start => last.1 = block.end,
                _ => ranges.push((block.start, block.end)),
            }
        }
        ranges
    }

    /// Whether the loop of the blocks from `first` on makes less than 2^32 turns, whatever else it does: in each turn one iinc,
    /// and nothing else, changes an int local, and an exit compares the local such that one of the values that it runs through leaves.
    fn is_bounded(&mut self, code: &[u8], graph: &Graph, first: usize) -> bool {
        // One exit or two decide in practice; a bound keeps made-up loops linear.
        (first..self.blocks.len()).take(64).any(|i| {
            let tested = self.tested(code, graph, self.blocks[i]).unwrap_or_default();
            tested.iter().flatten().any(|&(local, odd_only)| {
                self.step(code, graph, first, local)
                    .is_some_and(|step| step % 2 != 0 || (step != 0 && !odd_only))
            })
        })
    }

    /// The int locals, up to two, that the exit at the end of `block` compares, where their running through all ints (if `odd_only`, else
    /// through every 2^15th at least) ends the loop.
    fn tested(
        &mut self,
        code: &[u8],
        graph: &Graph,
        block: u32,
    ) -> Option<[Option<(u16, bool)>; 2]> {
        let edges = &graph.edges[graph.range(block)];
        if graph.exits[block as usize] != Exit::Branch || edges.len() != 2 {
            return None;
        }
        let stays = edges.iter().find(|e| self.left_by(e).is_none())?;
        let (block, last) = (graph.blocks[block as usize], graph.lasts[block as usize]);
        let falls = graph.blocks[stays.to as usize].start == block.end;
        let (start, last) = (usize::from(block.start), usize::from(last));
        // Without what changes no value on the stack.
        self.insns.clear();
        for item in insns(&code[start..last]) {
            let (at, op) = item.ok()?;
            let bci = start + usize::from(at);
            if op != IINC && !(op == WIDE && code[bci + 1] == IINC) {
                self.insns.push((bci, op));
            }
        }
        let insns = &self.insns[..];
        let load = |i: usize| insns.get(i).and_then(|&(bci, op)| int_load(code, bci, op));
        let is_constant = |i: usize| {
            insns.get(i).is_some_and(|&(_, op)| {
                (ICONST_M1..=ICONST_5).contains(&op) || op == BIPUSH || op == SIPUSH
            })
        };
        let branch = code[last];
        let right = insns.len().checked_sub(1)?;
        if (IFEQ..=IFLE).contains(&branch) {
            let odd_only = ends(branch - IFEQ, falls, true)?;
            return Some([load(right).map(|local| (local, odd_only)), None]);
        }
        if !(IF_ICMPEQ..=IF_ICMPLE).contains(&branch) {
            return None;
        }
        let by =
            |load: Option<u16>, constant| Some((load?, ends(branch - IF_ICMPEQ, falls, constant)?));
        let is_single = right > 0 && is_constant(right - 1);
        let as_right = by(load(right), is_single);
        let as_left = left_of(code, insns)
            .and_then(|left| by(load(left), left + 1 == right && is_constant(right)));
        Some([as_left, as_right])
    }

    /// What each turn adds to a local; `None` = nothing, not always the same, or it is set otherwise too.
    fn step(&self, code: &[u8], graph: &Graph, first: usize, local: u16) -> Option<i16> {
        let mut step = None;
        for &index in &self.blocks[first..] {
            let is_arm = graph.range(index).is_empty();
            let block = graph.blocks[index as usize];
            let mut bci = usize::from(block.start);
            while bci < usize::from(block.end) {
                let (op, target, by) = change(code, bci);
                let wide = matches!(op, LSTORE | DSTORE);
                if target == Some(local) || (wide && target.map(|t| t + 1) == Some(local)) {
                    if op != IINC || is_arm || step.is_some() {
                        return None;
                    }
                    step = Some(by);
                }
                bci += insn_len(code, bci).ok()?;
            }
        }
        step
    }
}

/// Whether a loop ends that stays while `a OP b` (`falls`: while not), where one of the two runs through the ints; `constant` = the other is
/// a constant of 16 bits. `None` = it may go on; `Some(true)` = it ends if the values are all ints, `Some(false)` = also
/// if they are every 2^15th or less.
///
/// The operators as opcodes number them: ==, !=, <, >=, >, <=. Against a variable only < and > end, by the largest or the smallest int.
fn ends(operator: u8, falls: bool, constant: bool) -> Option<bool> {
    // Pairs of opposites.
    let operator = operator ^ u8::from(falls);
    match (operator, constant) {
        (0 | 2..=5, true) => Some(false),
        (1, true) | (2 | 4, false) => Some(true),
        _ => None,
    }
}

/// The instruction in front of the int expression that ends `insns`.
fn left_of(code: &[u8], insns: &[(usize, u8)]) -> Option<usize> {
    let mut missing = 1;
    for (i, &(bci, op)) in insns.iter().enumerate().rev() {
        if missing == 0 {
            return Some(i);
        }
        let op = if op == WIDE { code[bci + 1] } else { op };
        missing = missing - 1
            + match op {
                ICONST_M1..=ICONST_5 | BIPUSH | SIPUSH | LDC | LDC_W | GETSTATIC => 0,
                ILOAD | ALOAD | ILOAD_0..=ILOAD_3 | ALOAD_0..=ALOAD_3 => 0,
                GETFIELD | ARRAYLENGTH | INEG | I2B..=I2S => 1,
                IADD | ISUB | IMUL | IDIV | IREM | ISHL | ISHR | IUSHR | IAND | IOR | IXOR => 2,
                IALOAD | AALOAD..=SALOAD => 2,
                _ => return None,
            };
    }
    None
}

/// The local that an iload pushes.
fn int_load(code: &[u8], bci: usize, op: u8) -> Option<u16> {
    match op {
        ILOAD => Some(code[bci + 1].into()),
        ILOAD_0..=ILOAD_3 => Some((op - ILOAD_0).into()),
        WIDE if code[bci + 1] == ILOAD => Some(u16::from_be_bytes([code[bci + 2], code[bci + 3]])),
        _ => None,
    }
}

/// The local that an instruction changes, with the plain opcode, and what iinc adds.
pub(crate) fn change(code: &[u8], bci: usize) -> (u8, Option<u16>, i16) {
    let byte = |i: usize| code[bci + i];
    let short = |i: usize| u16::from_be_bytes([byte(i), byte(i + 1)]);
    match byte(0) {
        IINC => (IINC, Some(byte(1).into()), (byte(2) as i8).into()),
        WIDE if byte(1) == IINC => (IINC, Some(short(2)), short(4) as i16),
        WIDE if byte(1) >= ISTORE => (byte(1), Some(short(2)), 0),
        op @ ISTORE..=ASTORE => (op, Some(byte(1).into()), 0),
        op @ ISTORE_0..=ASTORE_3 => {
            let nth = op - ISTORE_0;
            (ISTORE + nth / 4, Some((nth % 4).into()), 0)
        }
        op => (op, None, 0),
    }
}

/// Whether paths start at a block for no other reason than that it is a loop's head.
fn is_head_only(numbers: &Numbers, block: u32) -> bool {
    numbers.start(block).kind
        == StartKind {
            loop_head: true,
            ..StartKind::default()
        }
}
