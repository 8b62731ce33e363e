//! `borescope snapshot`: asks the agent in a running JVM for a snapshot.

use crate::args::SnapshotArgs;
use crate::failure::Result;
use crate::{control, say};
use std::process::ExitCode;

/// Asks, and waits until the snapshot is written.
pub fn run(args: &SnapshotArgs) -> Result<ExitCode> {
    let jvm = control::find(args.pid)?;
    let number = jvm.snapshot()?;
    say::result(format_args!(
        "snapshot {number} of JVM {} taken; `borescope report {}` shows it\n",
        args.pid,
        jvm.output().display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
