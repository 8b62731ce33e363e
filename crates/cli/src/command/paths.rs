//! `borescope paths`: run, seal, say where the result is and how it begins.

use crate::args::{Branches, Color, Engine, PathsArgs};
use crate::failure::{Result, usage};
use crate::output::Output;
use crate::session::{self, Plan};
use crate::{say, show};
use std::process::ExitCode;

/// Lines of the report that are shown after the run.
const EXCERPT: usize = 15;

/// Runs it; the exit code is the program's once that has started.
pub fn run(args: &PathsArgs) -> Result<ExitCode> {
    if args.command.is_empty() {
        return Err(usage!(
            "no command: put it after `--`, as in `borescope paths -- java -jar app.jar`"
        ));
    }
    if args.burst.is_some() && args.engine != Engine::Automaton {
        return Err(usage!(
            "--burst needs the automaton engine, not {}",
            args.engine.name()
        ));
    }
    let plan = Plan {
        k: sequence_length(args)?,
        engine: args.engine,
        include: &args.include,
        exclude: &args.exclude,
        split: args.branches == Branches::Split,
        straight_line: args.straight_line,
        memory: args.memory,
        rows: args.rows,
        one_in: args.burst,
    };
    let output = Output::prepare(args.output.as_deref())?;
    let code = session::run(&args.command, &output, &plan)?;
    // The program is done and its exit code is what counts: from here on we only talk.
    if let Err(failure) = conclude(&output, args.quiet) {
        say::note(&failure);
    }
    Ok(ExitCode::from(code))
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

fn conclude(output: &Output, quiet: bool) -> Result<()> {
    let profiles = session::seal(output)?;
    let shown = output.dir.display();
    match profiles.as_slice() {
        [] => return Ok(()),
        [_] => say::note(format_args!(
            "profile in {shown}; `borescope report {shown}` shows all of it"
        )),
        many => say::note(format_args!(
            "{} profiles (one a JVM) in {shown}; `borescope report {shown}` lists them",
            many.len()
        )),
    }
    if let [dir] = profiles.as_slice() {
        let profile = show::open(dir)?;
        show::not_empty(&profile)?;
        if quiet {
            return Ok(());
        }
        let mut text = Vec::new();
        show::text(
            &profile,
            &show::options(&std::io::stderr(), Color::Auto),
            &mut text,
        )?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(EXCERPT) {
            say::raw(line);
        }
        if lines.len() > EXCERPT {
            say::raw(format_args!("... {} more lines", lines.len() - EXCERPT));
        }
    }
    Ok(())
}
