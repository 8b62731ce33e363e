//! `borescope paths`: run, seal, say where the result is and how it begins.

use crate::args::{Branches, Engine, PathsArgs};
use crate::failure::{Result, usage};
use crate::output::Output;
use crate::{agent, session};
use std::process::ExitCode;

/// Runs it; the exit code is the program's once that has started.
pub fn run(args: &PathsArgs) -> Result<ExitCode> {
    args.program.check("paths")?;
    if args.burst.is_some() && args.engine != Engine::Automaton {
        return Err(usage!(
            "--burst needs the automaton engine, not {}",
            args.engine.name()
        ));
    }
    let k = sequence_length(args)?;
    let output = Output::prepare(args.output.as_deref())?;
    let options = agent::Paths {
        k,
        engine: args.engine.name(),
        out: &output.dir,
        include: &args.include,
        exclude: &args.exclude,
        split: args.branches == Branches::Split,
        straight_line: args.straight_line,
        memory: args.memory,
        rows: args.rows,
        one_in: args.burst,
    };
    session::transparent(&args.program, &output, &options.encode(), &args.ending)
}

fn sequence_length(args: &PathsArgs) -> Result<u8> {
    match args.k {
        Some(k) if k > 1 && args.engine.single_paths() => Err(usage!(
            "--engine {} counts single paths: use -k 1, or the engine automaton, ksf or ksf-mtf",
            args.engine.name()
        )),
        Some(k) => Ok(k),
        None if args.engine.single_paths() => Ok(1),
        None => Ok(4),
    }
}
