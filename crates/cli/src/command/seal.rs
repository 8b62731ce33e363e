//! `borescope seal`: one spool into one profile, for spools that lie elsewhere than in an output directory.

use crate::args::SealArgs;
use crate::failure::{Result, cannot};
use crate::output::Output;
use crate::{say, sealing};
use std::fs;
use std::process::ExitCode;

/// Seals; the spool stays.
pub fn run(args: &SealArgs) -> Result<ExitCode> {
    // The same rules as for a run; then the seal itself makes the directory, under its final name only when it is whole.
    let output = Output::prepare(Some(&args.output))?;
    fs::remove_dir(&output.dir).map_err(|e| cannot!("{}: {e}", output.dir.display()))?;
    sealing::seal(&args.spool, &output.dir)?;
    say::result(format_args!("{}\n", output.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
