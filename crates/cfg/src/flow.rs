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

/// The numbered control flow of one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Reachable blocks, by bytecode index.
    pub blocks: Vec<Block>,
    /// Path starts, by value; the entry is always the first and has value 0.
    pub starts: Vec<Start>,
    /// Edges, by source block, then by value.
    pub edges: Vec<Edge>,
    /// Number of path IDs: all IDs are below it. At most 2^30.
    pub num_paths: u32,
    /// Number of paths had no edge been cut, in decimal (may exceed 2^127).
    pub uncut_paths: String,
}
