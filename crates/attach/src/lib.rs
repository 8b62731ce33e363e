//! Loads an agent into a running HotSpot JVM: our own client of its attach protocol, from the `/proc` file system and a Unix socket, without a
//! JDK at hand.
//!
//! Comes in: a process id, a library, an option string. Goes out: the library loaded and its `Agent_OnAttach` answered 0, or one [`Error`] that
//! says what, where and how to mend it. Must never happen here: a SIGQUIT to a process that would die of it or print a thread dump.
//!
//! The protocol, as in HotSpot (attachListener_linux.cpp up to JDK 21, attachListener_posix.cpp and attachListener.cpp later, os.cpp
//! `signal_thread_entry`) and in VirtualMachineImpl.java of jdk.attach:
//!
//! 1. The client makes an empty file `.attach_pid<pid>` in the JVM's `/tmp` or working directory and sends SIGQUIT. The file must belong to the JVM's
//!    user or root; without it, or with `-XX:+DisableAttachMechanism`, the JVM prints a thread dump.
//! 2. The JVM makes a socket `/tmp/.java_pid<pid>` (for good) and takes one request a connection, from its own user and group or root.
//! 3. The request is `version NUL command NUL argument NUL argument NUL argument NUL`; version 1 is understood by every JDK. A name has at
//!    most 16 bytes, an argument 1,024 ([`LONGEST_ARGUMENT`]). The answer is `status LF text`, then the end.
//!
//! In a container the JVM's own process id, `/tmp` and paths are its namespaces': see [`Target`].

mod error;
mod library;
mod listener;
mod perf;
mod target;
#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use library::{Placed, place};
pub use target::{Proc, Target};

use std::path::Path;
use std::time::Duration;

/// Longest argument of a request in bytes (`AttachOperation::arg_length_max`); the library's path and its options are one each.
pub const LONGEST_ARGUMENT: usize = 1024;

/// How long to wait for the JVM.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until it listens and takes the request.
    pub answer: Duration,
    /// Until the agent has started.
    pub load: Duration,
}

/// Loads the library at `path` (as the JVM sees it, absolute) and runs its `Agent_OnAttach` with `options`.
pub fn load(target: &Target, path: &Path, options: &str, patience: Patience) -> Result<()> {
    let request = listener::load_request(path, options)?;
    let answer = listener::execute(target, &request, patience)?;
    listener::loaded(target.pid, &answer)
}
