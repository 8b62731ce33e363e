//! Output to people. Unlike `println!` nothing here panics when a stream is closed or full: the exit code must not depend on it.

use crate::failure::{Result, cannot};
use std::fmt::Display;
use std::io::{ErrorKind, Write as _};

/// A message of borescope itself, on standard error.
pub fn note(message: impl Display) {
    raw(format_args!("borescope: {message}"));
}

/// A line on standard error.
pub fn raw(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A result, on standard output; a closed pipe (`| head`) is no error.
pub fn result(text: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(cannot!("cannot write to standard output: {e}"))
        }
        _ => Ok(()),
    }
}
