//! `borescope report`: seal what is not sealed yet, then print.

use crate::args::{Format, ReportArgs};
use crate::failure::Result;
use crate::found::Found;
use crate::{say, show};
use borescope_profile::Opened;
use borescope_report::{JsonOptions, MethodGlob};
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the report.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let dir = args.dir.as_path();
    let found = Found::in_directory(dir)?;
    let top = args.top.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let method = args.method.as_deref().map(MethodGlob::new);
    let mut out = std::io::stdout().lock();
    match (found.profiles.as_slice(), args.format) {
        ([one], Format::Text) => {
            let mut options = show::options(&out, args.color);
            options.top = top.unwrap_or(options.top);
            options.method = method;
            options.source.clone_from(&args.source);
            options.skipped = args.skipped;
            let profile = show::open(one)?;
            show::text(&profile, &options, &mut out)?;
            show::not_empty(&profile)?;
        }
        ([one], Format::Json) => {
            let profile = show::open(one)?;
            show::json(&profile, &JsonOptions { top, method }, &mut out)?;
            show::not_empty(&profile)?;
        }
        (many, Format::Text) => say::result(list(many)?)?,
        (_, Format::Json) => found.one(dir).map(drop)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One line a JVM.
fn list(profiles: &[PathBuf]) -> Result<String> {
    let mut text = format!(
        "{} profiles, one a JVM; `borescope report DIR` shows one:\n",
        profiles.len()
    );
    for dir in profiles {
        let profile = show::open(dir)?;
        let (target, what) = match &profile {
            Opened::Paths(profile) => {
                let totals = &profile.manifest().totals;
                let what = format!(
                    "{} methods ran, {} paths counted",
                    totals.methods_executed, totals.ids
                );
                (&profile.manifest().target, what)
            }
            Opened::Sites(profile) => {
                let snapshots = &profile.manifest().snapshots;
                let objects = snapshots.last().map_or(0, |last| last.live.objects);
                let what = format!(
                    "{} snapshots, {objects} objects in the last",
                    snapshots.len()
                );
                (&profile.manifest().target, what)
            }
        };
        text += &format!(
            "  {}  {what}: {}\n",
            dir.display(),
            target
                .command
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .take(100)
                .collect::<String>()
        );
    }
    Ok(text)
}
