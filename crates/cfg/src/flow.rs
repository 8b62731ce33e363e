//! The numbered control flow of one method: what the agent stores and what every decoder of path IDs reads.

/// A basic block: the half-open range of bytecode indices `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// First bytecode index.
    pub start: u16,
    /// Bytecode index after the last instruction (code_length for the last block: up to 65535).
    pub end: u16,
}

/// Why a path may start at a block. A block can be a start for several reasons at once, under one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct StartKind {
    /// The method's entry.
    pub entry: bool,
    /// Target of a back edge.
    pub loop_head: bool,
    /// First block of an exception handler.
    pub handler: bool,
    /// Target of an edge cut to keep the number of paths small.
    pub cut: bool,
}

/// A path start: paths that begin at `block` have the IDs `value .. value + paths`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// Index into [`Flow::blocks`].
    pub block: u32,
    /// The path register's value when a path starts here.
    pub value: u32,
    /// How many paths start here.
    pub paths: u32,
    /// Why.
    pub kind: StartKind,
}

/// What an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EdgeKind {
    /// To the next block, or to a branch or switch target: the path goes on.
    Forward = 0,
    /// A retreating edge: the path ends and the next one starts at `to`.
    Back = 1,
    /// A forward edge cut to keep the number of paths small: the path ends and the next one starts at `to`.
    Cut = 2,
    /// Leaves by xreturn.
    Return = 3,
    /// athrow: the path ends; if a handler of this method catches, the next path starts there.
    Throw = 4,
}

/// An edge of the control-flow graph with its Ball-Larus value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Index of the source block.
    pub from: u32,
    /// Index of the target block; `u32::MAX` for Return and Throw.
    pub to: u32,
    /// What kind of edge.
    pub kind: EdgeKind,
    /// Added to the path register when the edge is taken (before the ID is emitted, on edges that end a path).
    pub value: u32,
}

/// A short diamond or triangle whose ways are not told apart: a branch, one or two arms, and the block where they meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Merged {
    /// The block that ends in the branch. Its only edge is Forward (or Cut) to `join`.
    pub head: u32,
    /// The blocks between, one or two, by bytecode index. No edge leads to them or from them, no path names them.
    pub arms: Vec<u32>,
    /// The block where the ways meet.
    pub join: u32,
}

/// The numbered control flow of one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Reachable blocks, by bytecode index.
    pub blocks: Vec<Block>,
    /// Path starts, by value; the entry is always the first and has value 0.
    pub starts: Vec<Start>,
    /// Edges, by source block, then by value.
    pub edges: Vec<Edge>,
    /// Branches whose ways are not told apart, by head.
    pub merged: Vec<Merged>,
    /// Number of path IDs: all IDs are below it. At most 2^30.
    pub num_paths: u32,
    /// Number of paths had no edge been cut, in decimal (may exceed 2^127).
    pub uncut_paths: String,
}

/// One acyclic path, decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathBlocks {
    /// Why a path may start at the first block.
    pub start: StartKind,
    /// The blocks in order of execution, as indices into [`Flow::blocks`]; never empty.
    pub blocks: Vec<u32>,
    /// How the path ends: never [`EdgeKind::Forward`].
    pub end: EdgeKind,
    /// The block where the next path starts: the target of a back or cut edge. `None` after a return, and after an athrow (if
    /// the exception is caught in this method, the next path's start names the handler).
    pub next: Option<u32>,
}

impl Flow {
    /// The edges that leave `block`, by value. Empty if there is no such block.
    pub fn edges_of(&self, block: u32) -> &[Edge] {
        let from = self.edges.partition_point(|e| e.from < block);
        let tail = self.edges.get(from..).unwrap_or_default();
        tail.get(..tail.partition_point(|e| e.from == block))
            .unwrap_or_default()
    }

    /// The start whose paths begin at `block`.
    pub fn start_at(&self, block: u32) -> Option<&Start> {
        self.starts.iter().find(|s| s.block == block)
    }

    /// The path with this ID: Ball-Larus decoding, at each block the last edge whose value still fits. `None` if no path has it.
    /// Safe on a flow that [`Flow::validate`] has not seen or has refused: the walk ends after as many steps as there are blocks.
    pub fn decode(&self, id: u32) -> Option<PathBlocks> {
        let at = self.starts.partition_point(|s| s.value <= id);
        let start = self.starts.get(at.checked_sub(1)?)?;
        let mut rest = id - start.value;
        let mut block = start.block;
        if rest >= start.paths {
            return None;
        }
        let mut blocks = Vec::new();
        while blocks.len() < self.blocks.len() {
            blocks.push(block);
            let edges = self.edges_of(block);
            let at = edges.partition_point(|e| e.value <= rest);
            let edge = edges.get(at.checked_sub(1)?)?;
            rest -= edge.value;
            if edge.kind == EdgeKind::Forward {
                block = edge.to;
                continue;
            }
            return (rest == 0).then_some(PathBlocks {
                start: start.kind,
                blocks,
                end: edge.kind,
                next: matches!(edge.kind, EdgeKind::Back | EdgeKind::Cut).then_some(edge.to),
            });
        }
        None
    }

    /// The ID of a path: the inverse of [`Flow::decode`]. `None` if it is not a path of this method.
    pub fn encode(&self, blocks: &[u32], end: EdgeKind, next: Option<u32>) -> Option<u32> {
        let mut id = self.start_at(*blocks.first()?)?.value;
        for (i, &block) in blocks.iter().enumerate() {
            let (to, kind) = match blocks.get(i + 1) {
                Some(&to) => (to, EdgeKind::Forward),
                None => (next.unwrap_or(u32::MAX), end),
            };
            let edge = self
                .edges_of(block)
                .iter()
                .find(|e| e.to == to && e.kind == kind)?;
            id = id.checked_add(edge.value)?;
        }
        Some(id)
    }

    /// The bytecode ranges that a path runs through, half-open, in order of execution; a block that follows its predecessor in
    /// the code joins its range.
    pub fn path_bcis(&self, blocks: &[u32]) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for block in blocks.iter().filter_map(|&b| self.blocks.get(b as usize)) {
            match ranges.last_mut() {
                Some(last) if last.1 == block.start => last.1 = block.end,
                _ => ranges.push((block.start, block.end)),
            }
        }
        ranges
    }

    /// The source lines that a path runs through, in order of execution, without repeats in a row. `lines` are (first bytecode
    /// index, line) by bytecode index, as in the LineNumberTable; each line goes up to the next entry. A path that starts in the
    /// middle of a line has that line.
    pub fn path_lines(&self, blocks: &[u32], lines: &[(u16, u16)]) -> Vec<u16> {
        let mut out: Vec<u16> = Vec::new();
        for block in blocks.iter().filter_map(|&b| self.blocks.get(b as usize)) {
            let next = lines.partition_point(|l| l.0 <= block.start);
            let mut inside = lines
                .iter()
                .skip(next.saturating_sub(1))
                .take_while(|l| l.0 < block.end)
                .peekable();
            while let Some(&(bci, line)) = inside.next() {
                let empty = inside.peek().is_some_and(|l| l.0 == bci);
                if !empty && out.last() != Some(&line) {
                    out.push(line);
                }
            }
        }
        out
    }
}
