//! `borescope sites`: run, seal, say where the result is and how it begins.

use crate::args::{SitesArgs, YesNo};
use crate::failure::{Result, usage};
use crate::output::Output;
use crate::{agent, session};
use std::process::ExitCode;

/// Runs it; the exit code is the program's once that has started.
pub fn run(args: &SitesArgs) -> Result<ExitCode> {
    if args.command.is_empty() {
        return Err(usage!(
            "no command: put it after `--`, as in `borescope sites -- java -jar app.jar`"
        ));
    }
    let output = Output::prepare(args.output.as_deref())?;
    let options = agent::Sites {
        out: &output.dir,
        include: &args.include,
        exclude: &args.exclude,
        jdk: args.jdk == YesNo::Yes,
        // Without the JDK's classes there is nothing to attribute: a site is the line.
        attribute: args.attribute == YesNo::Yes && args.jdk == YesNo::Yes,
        objects: args.objects,
        gc: !args.no_gc,
        every: args.every,
        mode: args.mode.name(),
    };
    session::transparent(&args.command, &output, &options.encode(), args.quiet)
}
