//! `borescope`: what a person types. This room is thin: it parses the command line, starts programs with the agent in them, and hands
//! directories to the crates that seal and report. In: arguments and environment. Out: text for people, JSON for tools, and exit
//! codes that scripts can rely on (see [`failure`]). What must never happen here: a change in what the profiled program does,
//! a directory of someone else overwritten, a panic.

mod agent;
mod args;
mod command;
mod control;
mod export;
mod failure;
mod found;
mod jdk;
mod launch;
mod output;
mod page;
mod say;
mod sealing;
mod session;
mod show;

use args::{Cli, Command};
use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return not_parsed(&e),
    };
    let result = match cli.command {
        Command::Paths(args) => command::paths::run(&args),
        Command::Sites(args) => command::sites::run(&args),
        Command::Waste(args) => command::waste::run(&args),
        Command::Snapshot(args) => command::snapshot::run(&args),
        Command::Attach(args) => command::attach::run(&args),
        Command::Detach(args) => command::detach::run(&args),
        Command::Diff(args) => command::diff::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::Top(args) => command::top::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Seal(args) => command::seal::run(&args),
        Command::Simulate(args) => command::simulate::run(&args),
        Command::Completions(args) => command::manual::completions(&args),
        Command::Man(args) => command::manual::page(&args),
    };
    result.unwrap_or_else(|failure| {
        say::note(&failure);
        failure.code()
    })
}

/// Help and version go to standard output; errors become one line and exit code 1 (clap's own is 2, which here means something else).
fn not_parsed(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        || error.kind() == ErrorKind::MissingSubcommand
    {
        say::note(format_args!(
            "no command given: `borescope demo` shows what it does, `borescope --help` explains"
        ));
        return ExitCode::from(1);
    }
    let beyond = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if !word.starts_with('-'));
    let hint = if error.kind() == ErrorKind::UnknownArgument && beyond {
        "; the program to profile goes after `--`"
    } else {
        ""
    };
    say::note(format_args!("{}{hint}", one_line(&error.to_string())));
    ExitCode::from(1)
}

/// The first paragraph of clap's message and its tips, on one line.
fn one_line(text: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for paragraph in text.split("\n\n") {
        let joined = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(what) = joined.strip_prefix("error: ") {
            parts.push(what.to_owned());
        } else if let Some(tip) = joined.strip_prefix("tip: ") {
            parts.push(tip.to_owned());
        } else if let Some(how) = joined.strip_prefix("For more information, try ") {
            parts.push(format!("see {}", how.trim_end_matches('.')));
        }
    }
    parts.join("; ")
}
