//! `borescope completions` and `borescope man`: what shells and man know of the command line, from the table that parses it.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Result, cannot, usage};
use crate::say;
use clap::CommandFactory as _;
use std::process::ExitCode;

/// The script of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "borescope", &mut script);
    printed(&script)
}

/// The page of borescope or of one of its commands.
pub fn page(args: &ManArgs) -> Result<ExitCode> {
    let mut all = Cli::command();
    all.build();
    let command = match &args.command {
        None => Some(all),
        Some(name) => all.find_subcommand(name).cloned(),
    };
    let Some(command) = command else {
        let name = args.command.as_deref().unwrap_or_default();
        return Err(usage!("no command {name:?}: `borescope --help` lists them"));
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|e| cannot!("cannot make the page: {e}"))?;
    printed(&page)
}

fn printed(text: &[u8]) -> Result<ExitCode> {
    say::result(String::from_utf8_lossy(text))?;
    Ok(ExitCode::SUCCESS)
}
