//! `borescope diff`: two snapshots of sites, of one profile or of two; or two profiles of waste.

use crate::args::{DiffArgs, Format};
use crate::failure::{Failure, Result, usage};
use crate::found::Found;
use crate::show;
use borescope_profile::sites::Profile;
use borescope_profile::{Opened, waste};
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
    match (&old, &new) {
        (Opened::Sites(old), None) => snapshots(args, old, old),
        (Opened::Sites(old), Some(Opened::Sites(new))) => snapshots(args, old, new),
        (Opened::Waste(old), Some(Opened::Waste(new))) => pairs(args, old, new),
        (Opened::Waste(_), None) => Err(usage!(
            "{} is a profile of waste: give a second one to compare it with, such as one of the program after a fix",
            args.before.display()
        )),
        (Opened::Paths(_), _) => Err(of_paths(&args.before)),
        (_, Some(Opened::Paths(_))) => Err(of_paths(args.after.as_ref().unwrap_or(&args.before))),
        (_, Some(_)) => Err(usage!(
            "{} and {} are profiles of different lenses: `diff` compares two of one",
            args.before.display(),
            args.after.as_ref().unwrap_or(&args.before).display()
        )),
    }
}

fn of_paths(dir: &Path) -> Failure {
    usage!(
        "{} is a profile of paths: `diff` compares snapshots of `borescope sites`, or two profiles of `borescope waste`",
        dir.display()
    )
}

/// Two profiles of waste.
fn pairs(args: &DiffArgs, old: &waste::Profile, new: &waste::Profile) -> Result<ExitCode> {
    if args.from.is_some() || args.to.is_some() {
        return Err(usage!(
            "--from and --to are numbers of snapshots, which profiles of waste do not have"
        ));
    }
    let top = args.top.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let method = args.method.as_deref().map(MethodGlob::new);
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Text => {
            let mut options = show::options(&out, args.color);
            options.top = top.unwrap_or(options.top);
            options.method = method;
            borescope_report::waste::diff_text(old, new, &options, &mut out)
        }
        Format::Json => {
            let options = JsonOptions { top, method };
            borescope_report::waste::diff_json(old, new, &options, &mut out)
        }
    }
    .map_err(show::failure)?;
    Ok(ExitCode::SUCCESS)
}

/// Two snapshots of sites.
fn snapshots(args: &DiffArgs, old: &Profile, new: &Profile) -> Result<ExitCode> {
    let dir_after = args.after.as_deref().unwrap_or(&args.before);
    let after = match args.to {
        Some(number) => show::chosen(new, dir_after, number)?,
        None => At::last(new).ok_or_else(|| show::no_snapshot(dir_after))?,
    };
    let before = match (args.from, &args.after) {
        (Some(number), _) => show::chosen(old, &args.before, number)?,
        (None, Some(_)) => At::last(old).ok_or_else(|| show::no_snapshot(&args.before))?,
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
            options.source = show::sources(&args.source)?;
            diff_text(before, after, &options, &mut out)
        }
        Format::Json => diff_json(before, after, &JsonOptions { top, method }, &mut out),
    }
    .map_err(show::failure)?;
    Ok(ExitCode::SUCCESS)
}

fn open(dir: &Path) -> Result<(Found, Opened)> {
    let found = Found::in_directory(dir)?;
    let profile = show::open(found.one(dir)?)?;
    Ok((found, profile))
}
