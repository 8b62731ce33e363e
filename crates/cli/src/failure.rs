//! What goes wrong, in the three kinds that scripts tell apart by exit code. Each message is one line: what, where, how to fix it.

use std::process::ExitCode;

/// A failure of borescope itself (never of the profiled program, whose exit code passes through).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The command line asks for something that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// It makes sense, but not on this machine or not in this place.
    #[error("{0}")]
    Cannot(String),
    /// A profile or spool is damaged or empty.
    #[error("{0}")]
    Damaged(String),
}

impl Failure {
    /// The exit code that the documentation promises.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 1,
            Self::Cannot(_) => 2,
            Self::Damaged(_) => 3,
        })
    }
}

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Failure>;

/// A [`Failure::Usage`], formatted.
macro_rules! usage {
    ($($t:tt)*) => { $crate::failure::Failure::Usage(format!($($t)*)) };
}
/// A [`Failure::Cannot`], formatted.
macro_rules! cannot {
    ($($t:tt)*) => { $crate::failure::Failure::Cannot(format!($($t)*)) };
}
/// A [`Failure::Damaged`], formatted.
macro_rules! damaged {
    ($($t:tt)*) => { $crate::failure::Failure::Damaged(format!($($t)*)) };
}
pub(crate) use {cannot, damaged, usage};
