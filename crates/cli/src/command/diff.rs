//! `borescope diff`: two snapshots, of one profile or of two.

use crate::args::{DiffArgs, Format};
use crate::failure::{Result, usage};
use crate::found::Found;
use crate::show;
use borescope_profile::Opened;
use borescope_profile::sites::Profile;
use borescope_report::sites::{At, diff_json, diff_text};
use borescope_report::{JsonOptions, MethodGlob};
use std::path::Path;
use std::process::ExitCode;

/// Compares and prints.
pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (_kept, old) = open(&args.before)?;
    let (_kept_too, new) = match &args.after {
        Some(after) => {
            let (found, profile) = open(after)?;
            (Some(found), Some(profile))
        }
        None => (None, None),
    };
    let dir_after = args.after.as_deref().unwrap_or(&args.before);
    let new = new.as_ref().unwrap_or(&old);
    let after = match args.to {
        Some(number) => show::chosen(new, dir_after, number)?,
        None => At::last(new).ok_or_else(|| show::no_snapshot(dir_after))?,
    };
    let before = match (args.from, &args.after) {
        (Some(number), _) => show::chosen(&old, &args.before, number)?,
        (None, Some(_)) => At::last(&old).ok_or_else(|| show::no_snapshot(&args.before))?,
        (None, None) => after.first().ok_or_else(|| {
            usage!(
                "{} has no snapshot before number {}: give two profiles, or take more snapshots (`borescope snapshot PID`, --every TIME)",
                args.before.display(),
                after.snapshot.number
            )
        })?,
    };
    let top = args.top.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let method = args.method.as_deref().map(MethodGlob::new);
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Text => {
            let mut options = show::options(&out, args.color);
            options.top = top.unwrap_or(options.top);
            options.method = method;
            options.source.clone_from(&args.source);
            diff_text(before, after, &options, &mut out)
        }
        Format::Json => diff_json(before, after, &JsonOptions { top, method }, &mut out),
    }
    .map_err(show::failure)?;
    Ok(ExitCode::SUCCESS)
}

fn open(dir: &Path) -> Result<(Found, Profile)> {
    let found = Found::in_directory(dir)?;
    match show::open(found.one(dir)?)? {
        Opened::Sites(profile) => Ok((found, profile)),
        Opened::Paths(_) => Err(usage!(
            "{} is a profile of paths: `diff` compares snapshots, which `borescope sites` takes",
            dir.display()
        )),
    }
}
