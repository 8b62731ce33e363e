//! Bytecode to blocks and edges: what is reachable, where blocks begin, which block can follow which.
//!
//! Blocks are maximal straight-line ranges of reachable instructions. Calls and other instructions that may throw do not end a
//! block. A handler is reachable if its range covers a reachable instruction (JVMS 2.10, 4.7.3). Everything is kept in flat
//! vectors that the next method reuses.

use crate::Skip;
use crate::flow::{Block, Edge, EdgeKind};
use crate::reset;
use borescope_classfile::insn::{self, Flow as Control};

/// No block: the target of an edge that leaves the method.
pub(crate) const NONE: u32 = u32::MAX;

/// A reachable instruction starts at this bci.
const REACHED: u8 = 1;
/// A block starts at this bci.
const LEADER: u8 = 2;
/// The instruction at this bci is the last of its block, whatever follows.
const LAST: u8 = 4;
/// A reachable exception handler starts at this bci.
const HANDLER: u8 = 8;

/// How many unreachable bytes may be looked at in search of reachable handlers before the method is given up. Tables of real
/// classes need two rounds; this bounds made-up ones, where each round finds one handler.
const HANDLER_BUDGET: usize = 1 << 24;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Runs into the next block.
    Fall,
    /// Conditional branch.
    Branch,
    /// goto.
    Goto,
    /// tableswitch or lookupswitch.
    Switch,
    /// xreturn.
    Return,
    /// athrow.
    Throw,
}

/// An entry of the exception table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) start: u16,
    pub(crate) end: u16,
    pub(crate) handler: u16,
}

/// The control-flow graph of one method; buffers are kept from method to method.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Marks by bci.
    marks: Vec<u8>,
    /// Block by the bci of its first instruction; other places hold what earlier methods left.
    block_of: Vec<u32>,
    /// Where control may go and has not been followed yet.
    work: Vec<u16>,
    /// Exception table entries whose handler is not known to be reachable.
    waiting: Vec<Guard>,
    /// By target block: the source block (plus one) whose edge to it was made last.
    pub(crate) seen: Vec<u32>,
    /// The exception table.
    pub(crate) guards: Vec<Guard>,
    /// Reachable blocks, by bci.
    pub(crate) blocks: Vec<Block>,
    /// How each block ends.
    pub(crate) exits: Vec<Exit>,
    /// The bci of each block's last instruction.
    pub(crate) lasts: Vec<u16>,
    /// Edges by source block. Kinds are Forward, Return or Throw so far: back edges are told apart by the depth-first search.
    pub(crate) edges: Vec<Edge>,
    /// Where each block's edges begin in `edges`; one more at the end.
    pub(crate) edges_at: Vec<u32>,
    /// Edges into each block.
    pub(crate) in_degree: Vec<u32>,
    /// By bci: exception ranges that begin there minus those that end there.
    covers: Vec<i32>,
    /// By block: whether it ends in an athrow that a handler of the method covers.
    pub(crate) throw_caught: Vec<bool>,
    /// Bcis of the reachable handlers, in the order in which they were found to be reachable; then their blocks.
    pub(crate) handlers: Vec<u32>,
}

impl Graph {
    /// Edges of a block, as a range of `edges`.
    #[inline]
    pub(crate) fn range(&self, block: u32) -> std::ops::Range<usize> {
        let block = block as usize;
        self.edges_at[block] as usize..self.edges_at[block + 1] as usize
    }

    /// Builds the graph of `code`; `guards` holds the exception table.
    pub(crate) fn build(&mut self, code: &[u8]) -> Result<(), Skip> {
        if code.is_empty() || code.len() > usize::from(u16::MAX) {
            return Err(Skip::Malformed("the code has no or too many bytes"));
        }
        self.marks.clear();
        self.marks.resize(code.len() + 1, 0);
        self.handlers.clear();
        self.waiting.clear();
        self.waiting.extend(&self.guards);
        for guard in &self.guards {
            if guard.start >= guard.end
                || usize::from(guard.end) > code.len()
                || usize::from(guard.handler) >= code.len()
            {
                return Err(Skip::Malformed("an exception range leaves the code"));
            }
        }
        self.marks[0] = LEADER;
        self.work.push(0);
        self.reach(code)?;
        self.reach_handlers(code)?;
        self.cut_into_blocks(code)?;
        self.find_caught_throws();
        self.connect(code)
    }

    /// Follows control from everything in `work`.
    fn reach(&mut self, code: &[u8]) -> Result<(), Skip> {
        while let Some(bci) = self.work.pop() {
            if let Err(skip) = self.run(code, usize::from(bci)) {
                self.work.clear();
                return Err(skip);
            }
        }
        Ok(())
    }

    /// Marks the instructions from `bci` on, up to one that is marked already or never goes on to the next.
    fn run(&mut self, code: &[u8], mut bci: usize) -> Result<(), Skip> {
        loop {
            // One mark more than there are bytes: falling off the end is caught by `insn_len`.
            if self.marks[bci] & REACHED != 0 {
                return Ok(());
            }
            let len = insn::insn_len(code, bci).map_err(malformed)?;
            self.marks[bci] |= REACHED;
            if is_plain(code[bci]) {
                bci += len;
                continue;
            }
            match insn::flow(code, bci).map_err(malformed)? {
                Control::Next => {
                    bci += len;
                    continue;
                }
                Control::Branch(target) => {
                    self.marks[bci] |= LAST;
                    self.lead(target);
                    bci += len;
                    self.marks[bci] |= LEADER;
                    continue;
                }
                Control::Goto(target) => self.lead(target),
                Control::Switch { default, targets } => {
                    self.lead(default);
                    targets.for_each(|target| self.lead(target));
                }
                Control::Return | Control::Throw => {}
                Control::Jsr(_) | Control::Ret => return Err(Skip::JsrRet),
            }
            self.marks[bci] |= LAST;
            return Ok(());
        }
    }

    /// A block starts at `target`, which can be reached.
    #[inline]
    fn lead(&mut self, target: u16) {
        let mark = &mut self.marks[usize::from(target)];
        if *mark & LEADER == 0 {
            *mark |= LEADER;
            if *mark & REACHED == 0 {
                self.work.push(target);
            }
        }
    }

    /// Follows control from the handlers whose range covers a reachable instruction, until no more are found.
    fn reach_handlers(&mut self, code: &[u8]) -> Result<(), Skip> {
        let mut spent = 0;
        loop {
            let (mut kept, before) = (0, self.waiting.len());
            for i in 0..before {
                let guard = self.waiting[i];
                let handler = usize::from(guard.handler);
                if self.marks[handler] & HANDLER != 0 {
                    continue;
                }
                let covered = &self.marks[usize::from(guard.start)..usize::from(guard.end)];
                if !covered.iter().any(|mark| mark & REACHED != 0) {
                    spent += covered.len();
                    if spent > HANDLER_BUDGET {
                        return Err(Skip::TooManyHandlers);
                    }
                    self.waiting[kept] = guard;
                    kept += 1;
                    continue;
                }
                if handler == 0 {
                    // The method's entry leads there.
                    return Err(Skip::HandlerByFlow);
                }
                self.marks[handler] |= HANDLER | LEADER;
                self.handlers.push(u32::from(guard.handler));
                self.work.push(guard.handler);
                self.reach(code)?;
            }
            self.waiting.truncate(kept);
            if kept == before || kept == 0 {
                return Ok(());
            }
        }
    }

    /// Finds the blocks whose last instruction is an athrow that a handler covers.
    fn find_caught_throws(&mut self) {
        reset(&mut self.throw_caught, self.blocks.len(), false);
        if self.guards.is_empty() || !self.exits.contains(&Exit::Throw) {
            return;
        }
        // How many ranges cover a bci: the sum of what begins and ends up to there.
        reset(&mut self.covers, self.marks.len(), 0);
        for guard in &self.guards {
            self.covers[usize::from(guard.start)] += 1;
            self.covers[usize::from(guard.end)] -= 1;
        }
        let (mut covers, mut at) = (0, 0);
        for (block, &last) in self.lasts.iter().enumerate() {
            let next = usize::from(last) + 1;
            covers += self.covers[at..next].iter().sum::<i32>();
            at = next;
            self.throw_caught[block] = self.exits[block] == Exit::Throw && covers > 0;
        }
    }

    /// Cuts the reachable code into blocks.
    fn cut_into_blocks(&mut self, code: &[u8]) -> Result<(), Skip> {
        self.blocks.clear();
        self.lasts.clear();
        self.exits.clear();
        if self.block_of.len() < code.len() {
            self.block_of.resize(code.len(), 0);
        }
        let mut bci = 0;
        while bci < code.len() {
            let mark = self.marks[bci];
            if mark & REACHED == 0 {
                bci += 1;
                continue;
            }
            if mark & LEADER == 0 {
                // Only an instruction that overlaps another one can be reached without a leader before it.
                return Err(OVERLAP);
            }
            let index = self.blocks.len() as u32;
            self.block_of[bci] = index;
            let start = bci as u16;
            let (exit, last, end) = self.end_of_block(code, bci)?;
            self.blocks.push(Block {
                start,
                end: end as u16,
            });
            self.lasts.push(last as u16);
            self.exits.push(exit);
            bci = end;
        }
        Ok(())
    }

    /// The end of the block that starts at `bci`: how it ends, its last instruction, the bci after it.
    fn end_of_block(&self, code: &[u8], mut bci: usize) -> Result<(Exit, usize, usize), Skip> {
        loop {
            let end = bci + insn::insn_len(code, bci).map_err(malformed)?;
            if self.marks[bci + 1..end]
                .iter()
                .any(|mark| mark & (REACHED | HANDLER) != 0)
            {
                return Err(OVERLAP);
            }
            if self.marks[bci] & LAST != 0 {
                let exit = match code[bci] {
                    insn::GOTO | insn::GOTO_W => Exit::Goto,
                    insn::TABLESWITCH | insn::LOOKUPSWITCH => Exit::Switch,
                    insn::IRETURN..=insn::RETURN => Exit::Return,
                    insn::ATHROW => Exit::Throw,
                    _ => Exit::Branch,
                };
                return Ok((exit, bci, end));
            }
            if self.marks[end] & LEADER != 0 {
                return Ok((Exit::Fall, bci, end));
            }
            bci = end;
        }
    }

    /// Makes the edges, several from one block to one target as one. Order: the next block, then targets as in the code.
    fn connect(&mut self, code: &[u8]) -> Result<(), Skip> {
        self.edges.clear();
        self.edges_at.clear();
        self.seen.clear();
        self.seen.resize(self.blocks.len(), 0);
        reset(&mut self.in_degree, self.blocks.len(), 0);
        for block in 0..self.blocks.len() as u32 {
            self.edges_at.push(self.edges.len() as u32);
            let end = self.blocks[block as usize].end;
            let last = usize::from(self.lasts[block as usize]);
            match self.exits[block as usize] {
                Exit::Fall => self.edge(block, end)?,
                Exit::Return => self.leave(block, EdgeKind::Return),
                Exit::Throw => self.leave(block, EdgeKind::Throw),
                Exit::Branch | Exit::Goto | Exit::Switch => {
                    match insn::flow(code, last).map_err(malformed)? {
                        Control::Branch(target) => {
                            self.edge(block, end)?;
                            self.edge(block, target)?;
                        }
                        Control::Goto(target) => self.edge(block, target)?,
                        Control::Switch { default, targets } => {
                            for target in targets {
                                self.edge(block, target)?;
                            }
                            self.edge(block, default)?;
                        }
                        _ => return Err(OVERLAP),
                    }
                }
            }
        }
        self.edges_at.push(self.edges.len() as u32);
        for handler in &mut self.handlers {
            *handler = self.block_of[*handler as usize];
        }
        Ok(())
    }

    #[inline]
    fn edge(&mut self, from: u32, target: u16) -> Result<(), Skip> {
        let bci = usize::from(target);
        if self.marks[bci] & REACHED == 0 {
            return Err(OVERLAP);
        }
        if self.marks[bci] & HANDLER != 0 {
            return Err(Skip::HandlerByFlow);
        }
        let to = self.block_of[bci];
        if self.seen[to as usize] != from + 1 {
            self.seen[to as usize] = from + 1;
            self.in_degree[to as usize] += 1;
            self.edges.push(Edge {
                from,
                to,
                kind: EdgeKind::Forward,
                value: 0,
            });
        }
        Ok(())
    }

    fn leave(&mut self, from: u32, kind: EdgeKind) {
        self.edges.push(Edge {
            from,
            to: NONE,
            kind,
            value: 0,
        });
    }
}

const OVERLAP: Skip = Skip::Malformed("instructions overlap");

fn malformed(_: borescope_classfile::Error) -> Skip {
    Skip::Malformed("an instruction cannot be read")
}

/// Whether an instruction of this opcode always has only the next one as its successor (leaving exceptions aside).
#[inline]
fn is_plain(opcode: u8) -> bool {
    opcode < insn::IFEQ || (opcode > insn::RETURN && opcode < insn::ATHROW)
}
