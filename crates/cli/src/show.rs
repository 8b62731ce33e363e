//! Profiles as text or JSON: from a directory to what is printed, and how wide and colourful a terminal is.

use crate::args::Color;
use crate::failure::{Failure, Result};
use crate::sealing;
use borescope_profile::Profile;
use borescope_report::{JsonOptions, TextOptions};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Columns when nothing says how many there are; also the most that text is set in.
const WIDTH: usize = 100;

/// Opens a profile.
pub fn open(dir: &Path) -> Result<Profile> {
    Profile::open(dir).map_err(sealing::failure)
}

/// The text report.
pub fn text(dir: &Path, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    borescope_report::text(&open(dir)?, options, out).map_err(failure)
}

/// The JSON report.
pub fn json(dir: &Path, options: &JsonOptions, out: &mut dyn Write) -> Result<()> {
    borescope_report::json(&open(dir)?, options, out).map_err(failure)
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

fn failure(error: borescope_report::Error) -> Failure {
    match error {
        borescope_report::Error::Write(_) => Failure::Cannot(error.to_string()),
        borescope_report::Error::Profile(e) => sealing::failure(e),
    }
}
