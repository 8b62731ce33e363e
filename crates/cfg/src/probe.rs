//! Where probes go and what they do, in terms of the path register `r` and the engine's state `s`.
//!
//! An edge of value 0 that does not end a path has no probe. A block with one way out has its probe before its last instruction
//! (which is a jump, xreturn or athrow, so it has not done anything yet). The probe of an edge to a block that nothing else leads
//! to stands at the start of that block, or is added to the ID at its end if the block only goes to a path's end. Only what is left
//! needs code on the edge itself.

use crate::flow::{Edge, EdgeKind};
use crate::graph::{Exit, Graph, NONE};
use crate::number::Numbers;
use crate::runs::Runs;
use borescope_classfile::{At, insn};

/// A piece of code to insert. Probes at one place run in the order in which they are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// At [`At::Entry`]: `s = enter(); r = value; n = 0`. Always the first probe.
    Enter {
        /// The entry's start value.
        value: u32,
        /// Whether the method has run loops, and so the local `n`.
        turns: Option<Turns>,
    },
    /// `r += value`.
    Add {
        /// Where.
        at: At,
        /// Never 0.
        value: u32,
    },
    /// A path ends: emit the ID `r + add`.
    Emit {
        /// Where.
        at: At,
        /// Value of the path's last edge.
        add: u32,
        /// What happens after.
        then: Then,
    },
    /// On the back edge of a *run loop* (an innermost loop with a single way round, [`crate::Settings::runs`]): `n += 1`. Nothing is
    /// emitted there; `r` stays what it was when the loop was entered, as all edges inside have value 0.
    Turn {
        /// Where.
        at: At,
    },
    /// On each edge that leaves a run loop, before anything else on that edge. If `n > 0`: emits `r` once, then `id` n - 1 times;
    /// then `r = id; n = 0`. (`id` is the loop head's start value.)
    Run {
        /// Where.
        at: At,
        /// The ID of one whole turn.
        id: u32,
    },
    /// An exception leaves a run loop: a handler for everything thrown in `ranges`, after all others, that emits as [`Probe::Run`]
    /// does and throws on. Comes last in the list. No handler of the method's own covers a run loop.
    Unwind {
        /// Half-open ranges of bytecode indices, ascending, not adjacent.
        ranges: Vec<(u16, u16)>,
        /// The ID of one whole turn.
        id: u32,
    },
    /// At the start of an exception handler, which nothing but exceptions leads to: `caught(s); r = value`.
    Caught {
        /// First instruction of the handler; behind `monitorexit` in a handler that covers itself.
        bci: u16,
        /// The handler's start value.
        value: u32,
    },
}

/// What happens after an ID is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// `s = hit(s, id); r = value`: the next path starts.
    Restart(u32),
    /// `exit(s, id)`: xreturn, or athrow that no handler of this method covers.
    Leave,
    /// `s = hit(s, id)`: athrow that a handler of this method covers. Either its probe starts the next path, or the activation
    /// ends.
    Continue,
}

/// Type of the local `n` that counts the turns of run loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// int, unsigned: each loop ends by a condition on an int that each turn changes by a constant, such that it provably makes less
    /// than 2^32 turns.
    Int,
    /// long.
    Long,
}

impl Probe {
    /// Where the code goes; `None` = behind the method's code.
    pub fn at(&self) -> Option<At> {
        Some(match *self {
            Self::Enter { .. } => At::Entry,
            Self::Add { at, .. } | Self::Emit { at, .. } => at,
            Self::Turn { at } | Self::Run { at, .. } => at,
            Self::Caught { bci, .. } => At::Before(bci),
            Self::Unwind { .. } => return None,
        })
    }
}

/// Buffers of [`place`].
#[derive(Debug, Default)]
pub(crate) struct Placing {
    /// By block: the edge whose probe goes at the block's start.
    at_start: Vec<u32>,
    /// By block: where its `Caught` goes; NONE = it is no handler.
    caught_at: Vec<u32>,
}

impl Placing {
    /// Lists the probes of a numbered graph, by the bytecode index of the instruction before or after which they go.
    pub(crate) fn place(
        &mut self,
        code: &[u8],
        graph: &Graph,
        numbers: &Numbers,
        runs: &Runs,
    ) -> Vec<Probe> {
        let blocks = graph.blocks.len();
        crate::reset(&mut self.at_start, blocks, NONE);
        crate::reset(&mut self.caught_at, blocks, NONE);
        for &handler in &graph.handlers {
            self.caught_at[handler as usize] = u32::from(graph.blocks[handler as usize].start);
        }
        self.leave_self_cover(code, graph);
        for (i, edge) in graph.edges.iter().enumerate() {
            // The entry has one more way in than in-edges. (Handlers have no in-edges at all.)
            if edge.to != NONE && edge.to != 0 && graph.in_degree[edge.to as usize] == 1 {
                self.at_start[edge.to as usize] = i as u32;
            }
        }
        let mut probes = Vec::with_capacity(1 + graph.edges.len());
        probes.push(Probe::Enter {
            value: numbers.start_value(0),
            turns: runs.turns(),
        });
        for block in 0..blocks as u32 {
            if graph.range(block).is_empty() {
                continue; // An arm of a merged branch.
            }
            let start = graph.blocks[block as usize].start;
            let mut carried = 0;
            if self.at_start[block as usize] != NONE {
                let into = graph.edges[self.at_start[block as usize] as usize];
                let out = &graph.edges[graph.range(block)];
                if !branches(graph, into.from) {
                    // Its probe stands in the block it comes from.
                } else if into.kind == EdgeKind::Forward
                    && out[0].kind != EdgeKind::Forward
                    && out.len() == 1
                {
                    carried = into.value;
                    probes.extend(leave_run(&into, At::Before(start), numbers, runs));
                } else {
                    let context = (numbers, runs);
                    act(
                        &into,
                        0,
                        At::Before(start),
                        Then::Leave,
                        context,
                        &mut probes,
                    );
                }
            }
            let caught_at = self.caught_at[block as usize];
            if caught_at != NONE {
                probes.push(Probe::Caught {
                    bci: caught_at as u16,
                    value: numbers.start_value(block),
                });
            }
            self.place_out(graph, (numbers, runs), block, carried, &mut probes);
        }
        probes.extend(runs.loops.iter().map(|run| Probe::Unwind {
            ranges: runs.ranges(graph, run),
            id: numbers.start_value(run.head),
        }));
        probes
    }

    /// Moves the `Caught` of javac's monitor handlers (`astore; aload; monitorexit` covered by themselves) behind the range: C1 does not
    /// compile a method in which a handler that covers itself makes a call ("exception handler covers itself"). What is
    /// passed over can throw only by a monitorexit without its monitor.
    fn leave_self_cover(&mut self, code: &[u8], graph: &Graph) {
        for guard in &graph.guards {
            if !(guard.start..guard.end).contains(&guard.handler) {
                continue;
            }
            let Ok(block) = graph
                .blocks
                .binary_search_by_key(&guard.handler, |b| b.start)
            else {
                continue;
            };
            let quiet = |op: u8| {
                (insn::ILOAD..=insn::ALOAD_3).contains(&op)
                    || (insn::ISTORE..=insn::ASTORE_3).contains(&op)
                    || op == insn::MONITOREXIT
            };
            let mut bci = guard.handler;
            while bci < guard.end && bci < graph.blocks[block].end {
                match (
                    insn::opcode(code, bci.into()),
                    insn::insn_len(code, bci.into()),
                ) {
                    (Ok(op), Ok(len)) if quiet(op) => bci += len as u16,
                    _ => break,
                }
            }
            let at = &mut self.caught_at[block];
            if bci == guard.end && bci < graph.blocks[block].end && *at != NONE {
                *at = (*at).max(bci.into());
            }
        }
    }

    /// The probes at the end of a block; `carried` = what its only way in has left to be added.
    fn place_out(
        &self,
        graph: &Graph,
        context: Context,
        block: u32,
        carried: u32,
        probes: &mut Vec<Probe>,
    ) {
        let last = graph.lasts[block as usize];
        let end = graph.blocks[block as usize].end;
        let range = graph.range(block);
        if !branches(graph, block) {
            let edge = &graph.edges[range.start];
            let at = match graph.exits[block as usize] {
                // The last instruction may throw: the path has not ended before it is done.
                Exit::Fall => At::FallThrough(end),
                // A branch that was merged throws no more than the others do, and all its ways lead on alike.
                _ => At::Before(last),
            };
            let then = if graph.throw_caught[block as usize] {
                Then::Continue
            } else {
                Then::Leave
            };
            act(edge, carried, at, then, context, probes);
            return;
        }
        let is_switch = graph.exits[block as usize] == Exit::Switch;
        // The fall-through's code comes first in the method.
        for fall_through in [true, false] {
            for i in range.clone() {
                let edge = &graph.edges[i];
                if self.at_start[edge.to as usize] == i as u32 {
                    continue;
                }
                let target = graph.blocks[edge.to as usize].start;
                let falls = !is_switch && target == end;
                if falls != fall_through {
                    continue;
                }
                let at = if falls {
                    At::FallThrough(end)
                } else {
                    At::Taken { from: last, target }
                };
                act(edge, 0, at, Then::Leave, context, probes);
            }
        }
    }
}

/// Whether a block has more than one way out.
fn branches(graph: &Graph, block: u32) -> bool {
    graph.range(block).len() > 1
}

/// What the probes of an edge depend on besides the graph.
type Context<'a> = (&'a Numbers, &'a Runs);

/// What an edge does, if anything, `carried` added; `leave` is what follows after a return or throw.
fn act(edge: &Edge, carried: u32, at: At, leave: Then, context: Context, probes: &mut Vec<Probe>) {
    let (numbers, runs) = context;
    if runs.is_turn(edge) {
        probes.push(Probe::Turn { at });
        return;
    }
    probes.extend(leave_run(edge, at, numbers, runs));
    let value = edge.value + carried;
    let then = match edge.kind {
        EdgeKind::Forward => {
            if value != 0 {
                probes.push(Probe::Add { at, value });
            }
            return;
        }
        EdgeKind::Back | EdgeKind::Cut => Then::Restart(numbers.start_value(edge.to)),
        EdgeKind::Return | EdgeKind::Throw => leave,
    };
    probes.push(Probe::Emit {
        at,
        add: value,
        then,
    });
}

/// What an edge does first if it leaves a run loop.
fn leave_run(edge: &Edge, at: At, numbers: &Numbers, runs: &Runs) -> Option<Probe> {
    runs.left_by(edge).map(|head| Probe::Run {
        at,
        id: numbers.start_value(head),
    })
}
