//! `borescope snapshot`: asks the agent in a running JVM for a snapshot, over the socket in its spool.
//!
//! The spool is found by what the process has open, its log, so that only its process id is needed; a JVM in a container is reached through
//! `/proc/PID/root`. The agent answers its own user and root only.

use crate::args::SnapshotArgs;
use crate::failure::{Failure, Result, cannot};
use crate::output::{LOG, SPOOLS, open_files};
use crate::say;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The socket's name in the spool.
const SOCKET: &str = "control";
/// Longest answer.
const MOST_BYTES: u64 = 4096;

/// Asks, and waits until the snapshot is written.
pub fn run(args: &SnapshotArgs) -> Result<ExitCode> {
    let pid = args.pid;
    let spool = spool(pid)?;
    let answer = ask(pid, &spool)?;
    let number = answer.strip_prefix("ok snapshot-").ok_or_else(|| {
        let why = answer.strip_prefix("error ").unwrap_or(&answer);
        match why.is_empty() {
            true => cannot!("JVM {pid} ended before the snapshot was whole"),
            false => cannot!("JVM {pid} takes no snapshot: {why}"),
        }
    })?;
    // OUT/.spool/PID: a report is about OUT.
    let out = spool.ancestors().nth(2).unwrap_or(&spool).display();
    say::result(format_args!(
        "snapshot {number} of JVM {pid} taken; `borescope report {out}` shows it\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The spool of a JVM, as the JVM names it.
fn spool(pid: u32) -> Result<PathBuf> {
    let files = open_files(pid).map_err(|e| unreadable(pid, &e))?;
    let of_agent = files.iter().filter_map(|file| {
        let spool = file.parent()?;
        let named = file.file_name()? == LOG && spool.parent()?.file_name()? == SPOOLS;
        named.then(|| spool.to_owned())
    });
    let spools: Vec<PathBuf> = of_agent.collect();
    let with_socket = spools.iter().find(|spool| {
        let inside = inside(pid, spool);
        inside.join(SOCKET).exists() || spool.join(SOCKET).exists()
    });
    match (with_socket, spools.first()) {
        (Some(spool), _) => Ok(spool.clone()),
        (None, Some(_)) => Err(cannot!(
            "JVM {pid} takes no snapshots now: it is being profiled by `borescope paths`, or starts or ends"
        )),
        (None, None) if is_jvm(pid) => Err(cannot!(
            "JVM {pid} does not run under `borescope sites`: start it with `borescope sites -- java ...`"
        )),
        (None, None) => Err(cannot!(
            "process {pid} is no JVM: give the id of the java process itself (`jps` lists them)"
        )),
    }
}

fn unreadable(pid: u32, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => cannot!("no process {pid}"),
        ErrorKind::PermissionDenied => {
            cannot!("process {pid} is another user's: ask as that user, or as root")
        }
        _ => cannot!("cannot look into process {pid}: {error}"),
    }
}

fn is_jvm(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps"))
        .is_ok_and(|maps| maps.lines().any(|line| line.ends_with("/libjvm.so")))
}

/// A path of the process as seen from here.
fn inside(pid: u32, path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    Path::new(&format!("/proc/{pid}/root")).join(path)
}

fn ask(pid: u32, spool: &Path) -> Result<String> {
    let broken = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            cannot!("JVM {pid} ended, or no longer takes snapshots")
        }
        ErrorKind::PermissionDenied => unreadable(pid, &e),
        _ => cannot!("JVM {pid} does not answer: {e}"),
    };
    // The path of a socket has at most 107 bytes (unix(7)); that of a file descriptor always fits.
    let handle = File::open(inside(pid, spool))
        .or_else(|_| File::open(spool))
        .map_err(broken)?;
    let socket = format!("/proc/self/fd/{}/{SOCKET}", handle.as_raw_fd());
    let mut stream = UnixStream::connect(socket).map_err(broken)?;
    stream.write_all(b"snapshot\n").map_err(broken)?;
    let mut answer = String::new();
    // However long the collection takes; Ctrl-C ends the waiting, not the snapshot.
    (&stream)
        .take(MOST_BYTES)
        .read_to_string(&mut answer)
        .map_err(broken)?;
    Ok(answer.trim_end().to_owned())
}
