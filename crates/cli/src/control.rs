//! The agent in a running JVM, which takes requests over the socket in its spool.
//!
//! The spool is found by what the process has open, its log, so that only its process id is needed; a JVM in a container is reached through
//! `/proc/PID/root`. The agent answers its own user and root only.

use crate::failure::{Failure, Result, cannot};
use crate::output::{LOG, SPOOLS, open_files};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The socket's name in the spool.
const SOCKET: &str = "control";
/// Longest answer.
const MOST_BYTES: u64 = 4096;

/// A JVM with the lens sites in it.
pub struct Jvm {
    pid: u32,
    /// As the JVM names it.
    spool: PathBuf,
}

impl Jvm {
    /// Takes a snapshot, and waits until it is written; gives its number.
    pub fn snapshot(&self) -> Result<u32> {
        let pid = self.pid;
        let answer = self.ask("snapshot")?;
        let number = answer
            .strip_prefix("snapshot-")
            .and_then(|n| n.parse().ok());
        number.ok_or_else(|| cannot!("JVM {pid} answers in a way that is not known: {answer}"))
    }

    /// Takes a last snapshot and makes the agent leave.
    pub fn finish(&self) -> Result<()> {
        self.snapshot()?;
        self.ask("stop").map(drop)
    }

    /// The output directory, as the JVM names it.
    pub fn output(&self) -> &Path {
        self.spool.ancestors().nth(2).unwrap_or(&self.spool) // OUT/.spool/PID
    }

    /// What comes behind `ok`.
    fn ask(&self, request: &str) -> Result<String> {
        let pid = self.pid;
        let broken = |e: std::io::Error| match e.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                cannot!("JVM {pid} ended, or no longer takes snapshots")
            }
            ErrorKind::PermissionDenied => unreadable(pid, &e),
            _ => cannot!("JVM {pid} does not answer: {e}"),
        };
        // The path of a socket has at most 107 bytes (unix(7)); that of a file descriptor always fits.
        let handle = File::open(inside(pid, &self.spool))
            .or_else(|_| File::open(&self.spool))
            .map_err(broken)?;
        let socket = format!("/proc/self/fd/{}/{SOCKET}", handle.as_raw_fd());
        let mut stream = UnixStream::connect(socket).map_err(broken)?;
        stream
            .write_all(format!("{request}\n").as_bytes())
            .map_err(broken)?;
        let mut answer = String::new();
        // However long the collection takes; Ctrl-C ends the waiting, not the snapshot.
        (&stream)
            .take(MOST_BYTES)
            .read_to_string(&mut answer)
            .map_err(broken)?;
        let answer = answer.trim_end();
        match answer.strip_prefix("ok ") {
            Some(done) => Ok(done.to_owned()),
            None if answer.is_empty() => {
                Err(cannot!("JVM {pid} ended before the {request} was whole"))
            }
            None => {
                let why = answer.strip_prefix("error ").unwrap_or(answer);
                Err(match request {
                    "snapshot" => cannot!("JVM {pid} takes no snapshot: {why}"),
                    _ => cannot!("JVM {pid} keeps the agent: {why}"),
                })
            }
        }
    }
}

/// The output directory of the agent in a JVM, of any lens, as it is seen from here.
pub fn output_of(pid: u32) -> Result<PathBuf> {
    match spools(pid)?.first() {
        Some(spool) => {
            let output = spool.ancestors().nth(2).unwrap_or(spool); // OUT/.spool/PID
            let reached = inside(pid, output);
            Ok(if reached.is_dir() {
                reached
            } else {
                output.to_owned()
            })
        }
        None => Err(none(pid)),
    }
}

/// The spools that a process has open, as it names them.
fn spools(pid: u32) -> Result<Vec<PathBuf>> {
    let files = open_files(pid).map_err(|e| unreadable(pid, &e))?;
    let of_agent = files.iter().filter_map(|file| {
        let spool = file.parent()?;
        let named = file.file_name()? == LOG && spool.parent()?.file_name()? == SPOOLS;
        named.then(|| spool.to_owned())
    });
    Ok(of_agent.collect())
}

/// There is no agent in a process.
fn none(pid: u32) -> Failure {
    match is_jvm(pid) {
        true => cannot!(
            "JVM {pid} does not run under `borescope sites`: `borescope attach {pid}` goes into it"
        ),
        false => cannot!(
            "process {pid} is no JVM: give the id of the java process itself (`jps` lists them)"
        ),
    }
}

/// Looks for the spool of a JVM that takes requests.
pub fn find(pid: u32) -> Result<Jvm> {
    let spools = spools(pid)?;
    let with_socket = spools.iter().find(|spool| {
        let inside = inside(pid, spool);
        inside.join(SOCKET).exists() || spool.join(SOCKET).exists()
    });
    match (with_socket, spools.first()) {
        (Some(spool), _) => Ok(Jvm {
            pid,
            spool: spool.clone(),
        }),
        (None, Some(_)) => Err(cannot!(
            "JVM {pid} takes no snapshots now: it is being profiled by `borescope paths`, or starts or ends"
        )),
        (None, None) => Err(none(pid)),
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
