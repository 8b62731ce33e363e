//! `borescope sites`: run, seal, say where the result is and how it begins; or run and make a trace of it.

use crate::args::SitesArgs;
use crate::failure::Result;
use crate::output::Output;
use crate::{agent, session};
use std::process::ExitCode;

/// Runs it; the exit code is the program's once that has started.
pub fn run(args: &SitesArgs) -> Result<ExitCode> {
    args.program.check("sites")?;
    args.sites.check()?;
    if let Some(file) = &args.trace {
        return super::trace::run(args, file);
    }
    let output = Output::prepare(args.output.as_deref())?;
    let options = agent::sites(&output.dir, &args.sites);
    session::transparent(&args.program, &output, &options, &args.ending)
}
