//! What keeps us from attaching; each message is one line: what, where, how to mend it.

use std::io;
use std::path::PathBuf;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an agent could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no process of this id.
    #[error("no process {0}: `jps` or `pgrep java` lists the JVMs that run here")]
    NoProcess(u32),
    /// The process ended while we were at it.
    #[error("process {0} has ended meanwhile")]
    Ended(u32),
    /// No libjvm.so is mapped: SIGQUIT would kill it.
    #[error(
        "process {0} is not a Java process (no libjvm.so is mapped in it; native images cannot be attached to)"
    )]
    NotJava(u32),
    /// Another virtual machine than HotSpot.
    #[error(
        "process {0} runs OpenJ9, not HotSpot: run the program on an OpenJDK build such as Temurin"
    )]
    NotHotSpot(u32),
    /// Neither root nor of the same user.
    #[error(
        "process {pid} belongs to user {user}, and this is user {ours}: run borescope as that user, or as root"
    )]
    OtherUser {
        /// The process.
        pid: u32,
        /// Its effective user.
        user: u32,
        /// Ours.
        ours: u32,
    },
    /// HotSpot compares the group as well.
    #[error(
        "process {pid} runs with group {group}, and this is group {ours}, which its JVM refuses: run borescope with that group, as in `sg`, or as root"
    )]
    OtherGroup {
        /// The process.
        pid: u32,
        /// Its effective group.
        group: u32,
        /// Ours.
        ours: u32,
    },
    /// /proc/PID does not let us look.
    #[error(
        "cannot look into process {pid} ({path}: {error}): it has more privileges than borescope; run borescope as root"
    )]
    NoAccess {
        /// The process.
        pid: u32,
        /// What could not be read.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// `-XX:+DisableAttachMechanism`.
    #[error(
        "the JVM of process {0} does not let anyone attach (-XX:+DisableAttachMechanism): start it without that option, or with the agent in its command"
    )]
    Disabled(u32),
    /// Stopped by a signal or a debugger.
    #[error(
        "process {0} is stopped: let it run (`kill -CONT {0}`, or the debugger that holds it), then attach"
    )]
    Stopped(u32),
    /// No handler of SIGQUIT yet.
    #[error(
        "the JVM of process {0} is not ready to be attached to (still starting after {1} s; or its signals are switched off, -Xrs): try again later"
    )]
    Starting(u32, f32),
    /// It was asked and did not answer.
    #[error(
        "the JVM of process {pid} does not answer within {seconds} s (a long pause, or too little CPU): try again, or give it longer{left}"
    )]
    NoAnswer {
        /// The process.
        pid: u32,
        /// How long we waited.
        seconds: f32,
        /// Empty, or which file stays behind and why.
        left: String,
    },
    /// The agent took too long to start.
    #[error(
        "the JVM of process {0} took the request, but the agent has not started within {1} s; it may still do so"
    )]
    NotLoaded(u32, f32),
    /// `.attach_pid` cannot be made where the JVM looks for it.
    #[error(
        "cannot make {path} with the JVM's user as its owner ({error}), which is how a JVM is asked to listen: make room in /tmp, or mount it writable"
    )]
    Trigger {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The socket is not the JVM's.
    #[error(
        "{path} is not the socket of process {pid}'s JVM, but of process {peer} of user {user}: remove it"
    )]
    Impostor {
        /// The socket.
        path: PathBuf,
        /// The process that we want.
        pid: u32,
        /// Who listens.
        peer: i32,
        /// As which user.
        user: u32,
    },
    /// Something between the socket and us.
    #[error("{path}: {error}; if it is left over from another JVM, remove it")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// `-XX:-EnableDynamicAgentLoading`.
    #[error(
        "the JVM of process {0} does not let agents be loaded while it runs (-XX:-EnableDynamicAgentLoading): start it without that option, or with the agent in its command"
    )]
    NoDynamicAgents(u32),
    /// The agent's `Agent_OnAttach` returned a code.
    #[error("the agent refused to start in process {pid} (code {code})")]
    Refused {
        /// The process.
        pid: u32,
        /// The code.
        code: i32,
    },
    /// Anything else that the JVM said.
    #[error("the JVM of process {pid} cannot load the agent: {said}")]
    Failed {
        /// The process.
        pid: u32,
        /// Its words, on one line.
        said: String,
    },
    /// Too long for the protocol, or with a NUL.
    #[error(
        "{what} cannot be sent to a JVM: at most {} bytes, none of them 0",
        crate::LONGEST_ARGUMENT
    )]
    Argument {
        /// Which argument.
        what: &'static str,
    },
    /// The library cannot be brought to where the JVM sees it.
    #[error(
        "cannot put a copy of the agent into the container of process {pid} ({path}: {error}): its /tmp must be writable"
    )]
    Place {
        /// The process.
        pid: u32,
        /// The copy.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}
