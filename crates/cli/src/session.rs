//! One run of a program under the agent, from the output directory to the profiles in it.

use crate::agent;
use crate::args::Engine;
use crate::failure::{Result, damaged};
use crate::launch;
use crate::output::Output;
use crate::{say, sealing};
use std::ffi::OsString;
use std::path::PathBuf;

/// What to count.
pub struct Plan<'a> {
    /// Length of the longest sequence of paths.
    pub k: u8,
    /// Engine.
    pub engine: Engine,
    /// Globs of classes to profile; empty: all but the JDK.
    pub include: &'a [String],
    /// Globs of classes to leave alone.
    pub exclude: &'a [String],
    /// All branches are told apart, also short ones.
    pub split: bool,
    /// Methods with a single path and no loop are counted too.
    pub straight_line: bool,
    /// Limit on counter memory in bytes.
    pub memory: Option<u64>,
    /// Limit on rows for each method and thread.
    pub rows: Option<u32>,
    /// Burst mode: one in so many activations counts.
    pub one_in: Option<u32>,
}

/// Runs the command to its end; returns its exit code. An error means that it was not started; then nothing is left behind.
pub fn run(words: &[OsString], output: &Output, plan: &Plan) -> Result<u8> {
    let options = agent::Options {
        k: plan.k,
        engine: plan.engine.name(),
        out: &output.dir,
        include: plan.include,
        exclude: plan.exclude,
        split: plan.split,
        straight_line: plan.straight_line,
        memory: plan.memory,
        rows: plan.rows,
        one_in: plan.one_in,
    };
    let started = agent::library()
        .and_then(|library| launch::command(words, &agent::argument(&library, &options)))
        .and_then(launch::run);
    started.inspect_err(|_| output.discard_if_empty())
}

/// Turns what the agents of the run left into profiles, and says on standard error what is amiss. No profile, no error: every JVM of
/// the run still runs.
pub fn seal(output: &Output) -> Result<Vec<PathBuf>> {
    let sealed = sealing::seal_all(&output.dir)?;
    for spool in &sealed.running {
        let (pid, dir) = (crate::output::name(spool), output.dir.display());
        say::note(format_args!(
            "JVM {pid} still runs: `borescope report {dir}` shows what it has counted so far"
        ));
    }
    for failure in &sealed.failures {
        say::note(failure);
    }
    if sealed.profiles.is_empty() && sealed.running.is_empty() && sealed.failures.is_empty() {
        output.discard_if_empty();
        return Err(damaged!(
            "nothing was profiled: the program started no JVM that could load the agent (`borescope doctor` checks the JDKs here)"
        ));
    }
    Ok(sealed.profiles)
}
