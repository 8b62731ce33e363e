//! The one error type of this crate: each error names the file or directory it is about.

use std::io;
use std::path::{Path, PathBuf};

/// Why a spool could not be sealed or a profile not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused a file operation (no such file, permission, full disk).
    #[error("{}: {source}", path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what its name says, or contradicts itself.
    #[error("{}: damaged: {reason}", path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a version whose format this one does not know.
    #[error("{}: profile schema {found}, this borescope reads schema {}", path.display(), crate::SCHEMA)]
    Schema {
        /// The manifest.
        path: PathBuf,
        /// The schema it names.
        found: u32,
    },
    /// A profile of another lens than was asked for.
    #[error("{}: a profile of the lens {}", path.display(), if lens.is_empty() { "paths" } else { lens })]
    Lens {
        /// The manifest.
        path: PathBuf,
        /// Its lens; empty = paths.
        lens: String,
    },
    /// The directory is not a spool.
    #[error("{}: not a spool of borescope: {reason}", path.display())]
    NotASpool {
        /// File or directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The output exists and overwriting was not asked for.
    #[error("{}: already exists", path.display())]
    Exists {
        /// The output directory.
        path: PathBuf,
    },
    /// There is no method of this index.
    #[error("no method has index {0}")]
    NoMethod(u32),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Error {
        Error::Damaged {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
