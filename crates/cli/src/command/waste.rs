//! `borescope waste`: run, seal, say where the result is and how it begins.

use crate::args::WasteArgs;
use crate::failure::Result;
use crate::output::Output;
use crate::{agent, session};
use std::process::ExitCode;

/// What the exit code is where the lens cannot work and the program's own is 0.
const NOT_HERE: u8 = 2;

/// Runs it; the exit code is the program's once that has started, but for a program that ended well without having been measured.
pub fn run(args: &WasteArgs) -> Result<ExitCode> {
    args.program.check("waste")?;
    let output = Output::prepare(args.output.as_deref())?;
    let options = agent::waste(&output.dir, &args.waste);
    if args.program.print_agent {
        return session::print_agent(&output, &options);
    }
    let code = session::run(&args.program.command, &output, &options)?;
    session::say_how_it_ended(&output, &args.ending);
    // An agent that cannot work leaves nothing, and has said why in a line of its own.
    let measured = output.holds_something();
    Ok(ExitCode::from(match code {
        0 if !measured => NOT_HERE,
        code => code,
    }))
}
