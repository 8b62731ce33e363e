//! `borescope report`: seal what is not sealed yet, then show it.

use crate::args::{ReportArgs, View};
use crate::failure::{Result, cannot, usage};
use crate::found::Found;
use crate::{export, page, show};
use borescope_profile::Opened;
use borescope_report::export::ExportOptions;
use borescope_report::{HtmlOptions, JsonOptions, MethodGlob};
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Shows the report.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let mut screen = std::io::stdout().lock();
    let out = args.out.as_deref().filter(|path| *path != Path::new("-"));
    if out.is_none() && screen.is_terminal() {
        let what = match args.format {
            View::Html => Some("a page"),
            View::Pprof => Some("a binary format"),
            _ => None,
        };
        if let Some(what) = what {
            return Err(usage!(
                "{what} is nothing for a terminal: --out FILE names a file for it"
            ));
        }
    }
    sensible(args)?;
    let found = Found::in_directory(&args.dir)?;
    let shown = match out {
        None => show(args, &found, &mut screen)?,
        Some(path) => page::to_file(path, |file| show(args, &found, file))?,
    };
    shown.as_ref().map_or(Ok(()), show::not_empty)?;
    if let (Some(path), true) = (out, args.open) {
        page::launch(path);
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses options that the format would not heed.
fn sensible(args: &ReportArgs) -> Result<()> {
    let format = args.format.name();
    if args.format.is_export() {
        for (given, option) in [(args.top.is_some(), "--top"), (args.skipped, "--skipped")] {
            if given {
                return Err(usage!(
                    "{option} does nothing with --format {format}, which has all that was counted: leave it out"
                ));
            }
        }
    }
    let of_one = matches!(args.format, View::Pprof | View::Collapsed | View::Csv);
    if args.snapshot.is_some() && !of_one {
        return Err(usage!(
            "--snapshot goes with --format pprof, collapsed or csv, not with {format}; `borescope diff --to N` reports up to a snapshot"
        ));
    }
    Ok(())
}

/// The profile that was shown, if it was one.
fn show<W: Write + AsFd + IsTerminal>(
    args: &ReportArgs,
    found: &Found,
    out: &mut W,
) -> Result<Option<Opened>> {
    let top = args.top.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let method = args.method.as_deref().map(MethodGlob::new);
    let one = match (found.profiles.as_slice(), args.format) {
        ([one], _) => one,
        (many, View::Text) => {
            let written = out
                .write_all(list(many)?.as_bytes())
                .and_then(|()| out.flush());
            return match written {
                Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                    Err(cannot!("cannot write the report: {e}"))
                }
                _ => Ok(None),
            };
        }
        (_, _) => found.one(&args.dir)?,
    };
    let profile = show::open(one)?;
    match args.format {
        View::Text => {
            let mut options = show::options(&*out, args.color);
            options.top = top.unwrap_or(options.top);
            options.method = method;
            options.source = show::sources(&args.source)?;
            options.skipped = args.skipped;
            options.contexts = args.contexts;
            show::text(&profile, &options, out)?;
        }
        View::Json => show::json(&profile, &JsonOptions { top, method }, out)?,
        View::Html => {
            let source = show::sources(&args.source)?;
            let options = HtmlOptions {
                top,
                method,
                source,
            };
            show::html(&profile, &options, out)?;
        }
        View::Pprof | View::Collapsed | View::Csv | View::Lcov | View::Sarif => {
            // An empty export would pass for one of a program that did nothing.
            show::not_empty(&profile)?;
            let source = show::sources(&args.source)?;
            let options = ExportOptions { method, source };
            export::write(&profile, args, &options, out)?;
        }
    }
    Ok(Some(profile))
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
            Opened::Waste(profile) => {
                let manifest = profile.manifest();
                let answered = manifest.samples.get("recorded").copied().unwrap_or(0);
                let what = format!("{answered} pairs of accesses completed");
                (&manifest.target, what)
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
