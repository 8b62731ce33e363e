//! `borescope detach`: the agent leaves a JVM that it was attached to.

use crate::args::DetachArgs;
use crate::failure::Result;
use crate::{control, say};
use std::process::ExitCode;

/// Takes a last snapshot, then leaves.
pub fn run(args: &DetachArgs) -> Result<ExitCode> {
    let jvm = control::find(args.pid)?;
    jvm.finish()?;
    say::result(format_args!(
        "detached from JVM {}; `borescope report {}` shows what was found\n",
        args.pid,
        jvm.output().display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
