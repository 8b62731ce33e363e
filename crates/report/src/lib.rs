//! Reports of a profile, one file an exporter: [`text()`] and [`html()`] for people, [`json()`] for tools; [`sites`] has those of the sites lens, [`waste`] those of the waste
//! lens, [`mod@export`] the formats of other tools.
//!
//! In: a [`Profile`](borescope_profile::Profile). Out: bytes on a writer, and nothing else: no file is written, no terminal asked; [`Sources`] alone are read from files that the user names. Details are read one method at a
//! time, so that a profile of millions of n-grams needs no more memory than its largest method. What must never happen here: a
//! figure that claims more than the profile knows, a panic on a strange profile or a narrow terminal, control characters of the
//! profiled program on the reader's terminal.

mod about;
mod advice;
mod chain;
mod contrast;
mod detail;
pub mod export;
mod filter;
mod first;
mod html;
mod json;
mod names;
mod page;
pub mod sites;
mod skipped;
mod source;
mod text;
pub mod waste;
mod words;

use std::io::{self, BufWriter, Write};

pub use filter::MethodGlob;
pub use html::{HtmlOptions, MOST_BYTES, html};
pub use json::{JsonOptions, json};
pub use source::{NoSources, Sources};
pub use text::{TextOptions, text};
pub use words::{size, thousands};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output did not take it (a closed pipe is not an error: the reader has seen enough).
    #[error("cannot write the report: {0}")]
    Write(#[from] io::Error),
    /// The profile could not be read.
    #[error(transparent)]
    Profile(#[from] borescope_profile::Error),
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Write(error.into())
    }
}

/// Runs an exporter on a buffered `out`; a reader that closed the pipe (`| head`) ends the report quietly.
fn buffered(
    out: &mut dyn Write,
    export: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut out = BufWriter::new(out);
    let done = export(&mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Err(Error::Write(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
            // Else dropping the buffer would try the closed pipe once more.
            drop(out.into_parts());
            Ok(())
        }
        done => done,
    }
}
