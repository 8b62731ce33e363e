//! Profiles in the formats of other tools: which lens a format is made of, and which snapshot.

use crate::args::{ReportArgs, View};
use crate::failure::{Result, cannot, usage};
use crate::{say, show};
use borescope_profile::{Opened, Profile, sites, waste};
use borescope_report::export::lcov::{self, LcovError};
use borescope_report::export::{ExportOptions, collapsed, csv, pprof, sarif};
use borescope_report::sites::At;
use std::io::Write;

/// Writes the profile as `args` ask for.
pub fn write(
    profile: &Opened,
    args: &ReportArgs,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    match profile {
        Opened::Paths(profile) => of_paths(profile, args, options, out),
        Opened::Sites(profile) => of_sites(profile, args, options, out),
        Opened::Waste(profile) => of_waste(profile, args, options, out),
    }
}

fn of_paths(
    profile: &Profile,
    args: &ReportArgs,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    no_snapshots(args, "paths")?;
    match args.format {
        View::Pprof => pprof::paths(profile, options, out),
        View::Collapsed => collapsed::paths(profile, options, out),
        View::Csv => csv::paths(profile, options, out),
        View::Sarif => sarif::paths(profile, options, out),
        View::Lcov => return coverage(profile, options, out),
        other => return Err(not_of(args, other, "paths")),
    }
    .map_err(show::failure)
}

fn coverage(profile: &Profile, options: &ExportOptions, out: &mut dyn Write) -> Result<()> {
    match lcov::paths(profile, options, out) {
        Ok(covered) => {
            if covered.methods == 0 {
                say::note(format_args!(
                    "the coverage is empty: of {} methods none has source lines; compile with -g:lines,source",
                    covered.without_lines
                ));
            }
            Ok(())
        }
        Err(LcovError::Burst) => Err(usage!(
            "{}; profile without --burst for --format lcov",
            LcovError::Burst
        )),
        Err(LcovError::Earlier) => Err(cannot!(
            "{}: profile again, or seal its spool again (`borescope seal`)",
            LcovError::Earlier
        )),
        Err(LcovError::Other(error)) => Err(show::failure(error)),
    }
}

fn of_sites(
    profile: &sites::Profile,
    args: &ReportArgs,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let at = match args.snapshot {
        Some(number) => show::chosen(profile, &args.dir, number)?,
        None => At::last(profile).ok_or_else(|| show::no_snapshot(&args.dir))?,
    };
    match args.format {
        View::Pprof => pprof::sites(at, options, out),
        View::Collapsed => collapsed::sites(at, options, out),
        View::Csv => csv::sites(profile, args.snapshot, options, out),
        View::Sarif => sarif::sites(profile, options, out),
        other => return Err(not_of(args, other, "sites")),
    }
    .map_err(show::failure)
}

fn of_waste(
    profile: &waste::Profile,
    args: &ReportArgs,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    no_snapshots(args, "waste")?;
    match args.format {
        View::Collapsed => {
            borescope_report::waste::collapsed(profile, options.method.as_ref(), out)
                .map_err(show::failure)
        }
        other => Err(not_of(args, other, "waste")),
    }
}

fn no_snapshots(args: &ReportArgs, lens: &str) -> Result<()> {
    match args.snapshot {
        None => Ok(()),
        Some(_) => Err(usage!(
            "{} is a profile of {lens}: only profiles of sites have snapshots",
            args.dir.display()
        )),
    }
}

/// A lens that the format is not made of.
fn not_of(args: &ReportArgs, format: View, lens: &str) -> crate::failure::Failure {
    usage!(
        "{} is a profile of {lens}, which --format {} is not made of: {}",
        args.dir.display(),
        format.name(),
        match (lens, format) {
            ("waste", _) => "text, json and collapsed are",
            (_, View::Lcov) =>
                "pprof, collapsed, csv and sarif are; coverage is of `borescope paths`",
            _ => "pprof, collapsed, csv and sarif are",
        }
    )
}
