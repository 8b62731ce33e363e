//! One run of a program under the agent, from the output directory to the profiles in it.

use crate::args::{Color, Ending, Program};
use crate::failure::{Result, cannot, damaged};
use crate::output::Output;
use crate::{agent, launch, page, say, sealing, show};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

/// Lines of the report that are shown after the run.
const EXCERPT: usize = 15;

/// Runs the command to its end as if we were not there, seals, says where the result is and how it begins. The exit code is the program's once that
/// has started.
pub fn transparent(
    program: &Program,
    output: &Output,
    options: &str,
    ending: &Ending,
) -> Result<ExitCode> {
    if program.print_agent {
        return print_agent(output, options);
    }
    let code = run(&program.command, output, options)?;
    // The program is done and its exit code is what counts: from here on we only talk.
    say_how_it_ended(output, ending);
    Ok(ExitCode::from(code))
}

/// Seals what the agents of the run left, says where the result is and how it begins, or what is amiss.
pub fn say_how_it_ended(output: &Output, ending: &Ending) {
    if let Err(failure) = conclude(output, ending) {
        say::note(&failure);
    }
}

/// Prints the option of the JVM that loads the agent with these options.
pub fn print_agent(output: &Output, options: &str) -> Result<ExitCode> {
    let library = agent::library().inspect_err(|_| output.discard_if_empty())?;
    let argument = agent::argument(&library, options);
    let text = argument
        .to_str()
        .ok_or_else(|| cannot!("{} is not UTF-8: move it", library.display()))?;
    say::result(format_args!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the command to its end under an agent with these options; returns its exit code. An error means that it was not started; then nothing is
/// left behind.
pub fn run(words: &[OsString], output: &Output, options: &str) -> Result<u8> {
    let started = prepared(words, options).and_then(launch::run);
    started.inspect_err(|_| output.discard_if_empty())
}

/// As [`run`], but for the program's standard streams, which `talk` has. An error may come from that, too; the program has ended all the same.
pub fn converse(
    words: &[OsString],
    output: &Output,
    options: &str,
    talk: impl FnOnce(&mut Child) -> Result<()>,
) -> Result<u8> {
    let mut talked = Ok(());
    let ran = prepared(words, options).and_then(|mut command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        launch::run_meanwhile(command, |program| talked = talk(program))
    });
    ran.and_then(|code| talked.map(|()| code))
        .inspect_err(|_| output.discard_if_empty())
}

/// The command with the agent in it.
fn prepared(words: &[OsString], options: &str) -> Result<Command> {
    let library = agent::library()?;
    launch::command(words, &agent::argument(&library, options))
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

fn conclude(output: &Output, ending: &Ending) -> Result<()> {
    let profiles = seal(output)?;
    let shown = output.dir.display();
    match profiles.as_slice() {
        [] => return Ok(()),
        [_] => say::note(format_args!(
            "profile in {shown}; `borescope report {shown}` shows all of it"
        )),
        many => {
            say::note(format_args!(
                "{} profiles (one a JVM) in {shown}; `borescope report {shown}` lists them",
                many.len()
            ));
            if ending.open {
                say::note(
                    "a page is made of one profile: `borescope report PROFILE --format html --out FILE --open`",
                );
            }
        }
    }
    if let [dir] = profiles.as_slice() {
        let profile = show::open(dir)?;
        show::not_empty(&profile)?;
        if ending.open {
            page::open(dir, &profile)?;
        }
        if ending.quiet {
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
