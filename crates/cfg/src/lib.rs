//! The control-flow graph of a method, its loops, its Ball-Larus numbering and where the probes go.
//!
//! Comes in: the code and the exception table of one method ([`Builder`]). Goes out: a [`flow::Flow`], which is stored and with
//! which every decoder turns path IDs back into blocks, bytecode ranges and lines; and the list of [`Probe`]s that make the method
//! emit these IDs. Must never happen here: knowing how a probe is encoded or what an engine does with an ID; a panic on hostile
//! code or a hostile flow. docs/control-flow.md teaches the rules with a drawing for each case.

mod decimal;
pub mod flow;
mod graph;
mod loops;
mod merge;
mod number;
mod probe;
mod runs;
mod validate;

use flow::Flow;
pub use number::MAX_PATHS;
pub use probe::{Probe, Then, Turns};
pub use validate::Invalid;

/// Why a method gets no probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Skip {
    /// jsr or ret can be reached (class files before version 51).
    #[error("uses jsr/ret subroutines")]
    JsrRet,
    /// A handler can be reached by a branch or from the instruction before it too, so that code at its start cannot tell whether an
    /// exception was caught.
    #[error("an exception handler is also reached without an exception")]
    HandlerByFlow,
    /// The exception table is such that finding the reachable handlers would take too long. No compiler makes one.
    #[error("too many exception handlers that only other handlers lead to")]
    TooManyHandlers,
    /// The code is not what a JVM's verifier accepts.
    #[error("malformed code: {0}")]
    Malformed(&'static str),
}

/// What [`Builder`] may do besides plain Ball-Larus numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// Short branches that a compiler turns into conditional moves are not told apart ([`flow::Flow::merged`]).
    pub merge: bool,
    /// Innermost loops with a single way round and no calls (but of java.lang.Math and StrictMath) get run probes
    /// ([`Probe::Turn`]). Not for `<init>`: no handler that a class file may have covers the code before the call of another one.
    pub runs: bool,
}

/// What the builder asks about a constant pool.
pub trait Constants {
    /// Tag of the constant at an index (JVMS table 4.4-A).
    fn tag(&self, index: u16) -> Option<u8>;
    /// Internal name of the class of the method or field at an index.
    fn member_class(&self, index: u16) -> Option<&[u8]>;
    /// First byte of the descriptor of the method or field at an index.
    fn member_type(&self, index: u16) -> Option<u8>;
}

impl Constants for borescope_classfile::ClassFile<'_> {
    fn tag(&self, index: u16) -> Option<u8> {
        self.constant_tag(index)
    }

    fn member_class(&self, index: u16) -> Option<&[u8]> {
        self.member_class_bytes(index)
    }

    fn member_type(&self, index: u16) -> Option<u8> {
        self.member_descriptor_bytes(index)?.first().copied()
    }
}

/// Builds flows and probe lists; keeps its buffers from method to method.
#[derive(Debug, Default)]
pub struct Builder {
    graph: graph::Graph,
    merging: merge::Merging,
    loops: loops::Loops,
    numbers: number::Numbers,
    runs: runs::Runs,
    placing: probe::Placing,
}

impl Builder {
    /// With empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Numbers the paths of a method of `class` and places the probes.
    pub fn build(
        &mut self,
        class: &borescope_classfile::ClassFile<'_>,
        code: &borescope_classfile::Code<'_>,
        settings: Settings,
    ) -> Result<(Flow, Vec<Probe>), Skip> {
        let handlers = code.exceptions().map(|e| (e.start, e.end, e.handler));
        self.build_parts(code.code, handlers, class, settings)
    }

    /// [`Builder::build`] from a bare `code` array and exception table entries (start, end, handler).
    pub fn build_parts(
        &mut self,
        code: &[u8],
        handlers: impl IntoIterator<Item = (u16, u16, u16)>,
        constants: &dyn Constants,
        settings: Settings,
    ) -> Result<(Flow, Vec<Probe>), Skip> {
        let guards = &mut self.graph.guards;
        guards.clear();
        guards.extend(
            handlers
                .into_iter()
                .map(|(start, end, handler)| graph::Guard {
                    start,
                    end,
                    handler,
                }),
        );
        self.graph.build(code)?;
        let merged = if settings.merge {
            self.merging.run(code, &mut self.graph, constants)
        } else {
            Vec::new()
        };
        self.loops.find(&mut self.graph);
        let (num_paths, uncut_paths) = self.numbers.run(&mut self.graph, &self.loops);
        self.runs.clear();
        if settings.runs {
            let (graph, loops, numbers) = (&self.graph, &self.loops, &self.numbers);
            self.runs
                .find(code, graph, loops, numbers, &merged, constants);
        }
        let probes = self
            .placing
            .place(code, &self.graph, &self.numbers, &self.runs);
        let flow = Flow {
            blocks: self.graph.blocks.clone(),
            starts: self.numbers.starts.clone(),
            edges: self.graph.edges.clone(),
            merged,
            num_paths,
            uncut_paths,
        };
        Ok((flow, probes))
    }
}

/// Makes `vec` hold `len` times `value`.
fn reset<T: Copy>(vec: &mut Vec<T>, len: usize, value: T) {
    vec.clear();
    vec.resize(len, value);
}
