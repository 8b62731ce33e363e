//! Profiles as text, JSON or a page: from a directory to what is printed, and how wide and colourful a terminal is.

use crate::args::Color;
use crate::failure::{Failure, Result, damaged, usage};
use crate::sealing;
use borescope_profile::{Manifest, Opened, sites, waste};
use borescope_report::sites::At;
use borescope_report::{HtmlOptions, JsonOptions, Sources, TextOptions};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Columns when nothing says how many there are; also the most that text is set in.
const WIDTH: usize = 100;

/// Opens a profile.
pub fn open(dir: &Path) -> Result<Opened> {
    Opened::open(dir).map_err(sealing::failure)
}

/// The text report.
pub fn text(profile: &Opened, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    match profile {
        Opened::Paths(profile) => borescope_report::text(profile, options, out),
        Opened::Sites(profile) => borescope_report::sites::text(profile, options, out),
        Opened::Waste(profile) => borescope_report::waste::text(profile, options, out),
    }
    .map_err(failure)
}

/// The JSON report.
pub fn json(profile: &Opened, options: &JsonOptions, out: &mut dyn Write) -> Result<()> {
    match profile {
        Opened::Paths(profile) => borescope_report::json(profile, options, out),
        Opened::Sites(profile) => borescope_report::sites::json(profile, options, out),
        Opened::Waste(profile) => borescope_report::waste::json(profile, options, out),
    }
    .map_err(failure)
}

/// The page for a browser.
pub fn html(profile: &Opened, options: &HtmlOptions, out: &mut dyn Write) -> Result<()> {
    match profile {
        Opened::Paths(profile) => borescope_report::html(profile, options, out),
        Opened::Sites(profile) => borescope_report::sites::html(profile, options, out),
        Opened::Waste(profile) => borescope_report::waste::html(profile, options, out),
    }
    .map_err(failure)
}

/// An error if there is nothing in the profile, with the most likely reason.
pub fn not_empty(profile: &Opened) -> Result<()> {
    match profile {
        Opened::Paths(profile) => has_methods(profile.manifest()),
        Opened::Sites(profile) => has_snapshots(profile.manifest()),
        Opened::Waste(profile) => has_answers(profile.manifest()),
    }
}

fn has_answers(manifest: &waste::Manifest) -> Result<()> {
    match manifest
        .kinds
        .values()
        .any(|kind| kind.wasteful > 0 || kind.useful > 0)
    {
        true => Ok(()),
        false => Err(damaged!(
            "the profile is empty: no pair of accesses was completed in {} ticks; run the program longer, or raise --rate",
            manifest.samples.get("ticks").copied().unwrap_or(0)
        )),
    }
}

fn has_snapshots(manifest: &sites::Manifest) -> Result<()> {
    match (manifest.snapshots.as_slice(), &manifest.snapshots_torn) {
        ([_, ..], _) => Ok(()),
        ([], None) => Err(damaged!(
            "the profile is empty: no snapshot was taken; --every TIME or `borescope snapshot PID` takes some"
        )),
        ([], Some(why)) => Err(damaged!(
            "the profile is empty: no snapshot could be read: {why}"
        )),
    }
}

fn has_methods(manifest: &Manifest) -> Result<()> {
    let include: Vec<String> = manifest
        .target
        .include
        .iter()
        .map(|glob| format!("--include '{glob}'"))
        .collect();
    match (
        manifest.totals.methods,
        manifest.totals.skipped,
        include.as_slice(),
    ) {
        (1.., _, _) => Ok(()),
        (0, 1.., _) => Err(damaged!(
            "the profile is empty: nothing could be instrumented; `borescope report DIR --skipped` gives the reasons"
        )),
        (0, 0, []) => Err(damaged!(
            "the profile is empty: the program loaded no class but those of the JDK; --include 'java.util.*' asks for such"
        )),
        (0, 0, globs) => Err(damaged!(
            "the profile is empty: no class that was loaded matches {}",
            globs.join(" or ")
        )),
    }
}

/// The snapshot of this number.
pub fn chosen<'a>(profile: &'a sites::Profile, dir: &Path, number: u32) -> Result<At<'a>> {
    At::number(profile, number).ok_or_else(|| {
        let snapshots = profile.manifest().snapshots.iter();
        let all: Vec<String> = snapshots.map(|one| one.number.to_string()).collect();
        match all.is_empty() {
            true => no_snapshot(dir),
            false => usage!(
                "no snapshot {number} in {}: it has {}",
                dir.display(),
                all.join(", ")
            ),
        }
    })
}

/// There is none in the profile.
pub fn no_snapshot(dir: &Path) -> Failure {
    damaged!("no snapshot in {}", dir.display())
}

/// Where the source is, as `--source` says.
pub fn sources(paths: &[PathBuf]) -> Result<Sources> {
    Sources::open(paths).map_err(|e| usage!("--source {e}"))
}

/// Options of a text report to this stream: as wide as its terminal, coloured as asked (`NO_COLOR`: <https://no-color.org>).
pub fn options(stream: &(impl AsFd + IsTerminal), color: Color) -> TextOptions {
    let no_color = || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    TextOptions {
        width: if columns == 0 {
            WIDTH
        } else {
            columns.min(WIDTH)
        },
        color: match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stream.is_terminal() && !no_color(),
        },
        ..TextOptions::default()
    }
}

/// The kind of an error of the report crate.
pub fn failure(error: borescope_report::Error) -> Failure {
    match error {
        borescope_report::Error::Write(_) => Failure::Cannot(error.to_string()),
        borescope_report::Error::Profile(e) => sealing::failure(e),
    }
}
