//! `borescope report`: seal what is not sealed yet, then print.

use crate::args::{Format, ReportArgs};
use crate::failure::{Result, cannot, damaged, usage};
use crate::output::{self, MANIFEST};
use crate::sealing::{self, Sealed};
use crate::{say, show};
use borescope_report::{JsonOptions, MethodGlob};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the report.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let dir = args.dir.as_path();
    if !dir.is_dir() {
        return Err(usage!(
            "no directory {}: give the one that `borescope paths` named",
            dir.display()
        ));
    }
    let mut sealed = sealing::seal_all(dir)?;
    for failure in sealed.failures.iter().skip(1) {
        say::note(failure);
    }
    if !sealed.failures.is_empty() {
        return Err(sealed.failures.swap_remove(0));
    }
    let snapshots = tempfile::tempdir().map_err(|e| {
        cannot!("no temporary directory: {e}; set TMPDIR to one that can be written")
    })?;
    let profiles = with_running(sealed, snapshots.path())?;
    let top = args.top.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let method = args.method.as_deref().map(MethodGlob::new);
    let mut out = std::io::stdout().lock();
    match (profiles.as_slice(), args.format) {
        ([], _) => {
            return Err(damaged!(
                "no profile in {}: it holds neither {MANIFEST} nor a spool of an agent",
                dir.display()
            ));
        }
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
        (many @ [first, ..], Format::Json) => {
            return Err(usage!(
                "{} profiles in {}: name one, such as {}",
                many.len(),
                dir.display(),
                first.display()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The profiles, with a snapshot of each JVM that still runs.
fn with_running(sealed: Sealed, snapshots: &Path) -> Result<Vec<PathBuf>> {
    let mut profiles = sealed.profiles;
    for spool in sealed.running {
        let pid = output::name(&spool);
        say::note(format_args!(
            "JVM {pid} still runs: this is what it has counted so far"
        ));
        let snapshot = snapshots.join(format!("jvm-{pid}"));
        sealing::seal(&spool, &snapshot)?;
        profiles.push(snapshot);
    }
    Ok(profiles)
}

/// One line a JVM.
fn list(profiles: &[PathBuf]) -> Result<String> {
    let mut text = format!(
        "{} profiles, one a JVM; `borescope report DIR` shows one:\n",
        profiles.len()
    );
    for dir in profiles {
        let profile = show::open(dir)?;
        let manifest = profile.manifest();
        let (target, totals) = (&manifest.target, &manifest.totals);
        text += &format!(
            "  {}  {} methods ran, {} paths counted: {}\n",
            dir.display(),
            totals.methods_executed,
            totals.ids,
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
