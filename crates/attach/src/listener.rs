//! The conversation with a JVM: wake its attach listener if it sleeps, send one request, read the answer.

use crate::target::{Directory, Target};
use crate::{Error, LONGEST_ARGUMENT, Patience, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The version that every JDK understands (2, from JDK 24 on, only lifts the limits on lengths).
const VERSION: &str = "1";
/// The status of an answer to a request of a version that the JVM does not know.
const BAD_VERSION: i32 = 101;
/// Between two looks.
const STEP: Duration = Duration::from_millis(10);
/// More than any JVM answers to `load`.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What the JVM said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    status: i32,
    text: String,
}

/// The request to load the library at an absolute path.
pub(crate) fn load_request(path: &Path, options: &str) -> Result<Vec<u8>> {
    let arguments = [
        ("the path of the agent library", path.as_os_str().as_bytes()),
        ("whether the path is absolute", b"true"),
        ("the agent's options", options.as_bytes()),
    ];
    let mut request = Vec::new();
    for word in [VERSION, "load"] {
        request.extend(word.as_bytes());
        request.push(0);
    }
    for (what, bytes) in arguments {
        if bytes.len() > LONGEST_ARGUMENT || bytes.contains(&0) {
            return Err(Error::Argument { what });
        }
        request.extend(bytes);
        request.push(0);
    }
    Ok(request)
}

/// Sends a request, and returns the answer to it.
pub(crate) fn execute(target: &Target, request: &[u8], patience: Patience) -> Result<Answer> {
    let deadline = Instant::now() + patience.answer;
    let tmp = target.tmp()?;
    let name = format!(".java_pid{}", target.own_pid);
    let there = || rustix::fs::statat(&tmp.handle, &*name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if !there() {
        wake(target, &there, deadline, patience.answer)?;
    }
    let shown = tmp.shown(&name);
    let mut stream = connect(target, &tmp.file(&name), &shown, deadline, patience.answer)?;
    let deadline = Instant::now() + patience.load;
    let mut bytes = Vec::new();
    let talked = talk(&mut stream, request, deadline, &mut bytes);
    if let Err(error) = talked {
        return Err(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                Error::NotLoaded(target.pid, patience.load.as_secs_f32())
            }
            _ if target.status()?.is_none() => Error::Ended(target.pid),
            _ => Error::Socket { path: shown, error },
        });
    }
    answer(&bytes).ok_or_else(|| match target.status() {
        Ok(None) => Error::Ended(target.pid),
        // What HotSpot does with clients whose user or group it does not like.
        _ if bytes.is_empty() => Error::Failed {
            pid: target.pid,
            said:
                "it closed the connection without a word; run borescope as the JVM's user and group"
                    .into(),
        },
        _ => Error::Failed {
            pid: target.pid,
            said: one_line(&String::from_utf8_lossy(&bytes)),
        },
    })
}

/// Makes the JVM listen.
fn wake(
    target: &Target,
    there: &dyn Fn() -> bool,
    deadline: Instant,
    patience: Duration,
) -> Result<()> {
    // Before its handler is in place SIGQUIT would kill it. With -Xrs it has none and listens from its start.
    while !target.alive()?.catches_quit {
        if there() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Error::Starting(target.pid, patience.as_secs_f32()));
        }
        sleep(STEP);
    }
    let trigger = Trigger::set(target)?;
    // Another client's file: its signal is on its way, and a second one, once the JVM listens, would be a request for a thread dump.
    let others_turn = match trigger.found {
        true => Instant::now() + target.others_turn,
        false => Instant::now(),
    };
    while Instant::now() < others_turn.min(deadline) && !there() {
        sleep(STEP);
    }
    if there() {
        return Ok(());
    }
    let status = target.alive()?;
    if status.stopped {
        return Err(Error::Stopped(target.pid));
    }
    if !status.quit_pending {
        (target.quit)().map_err(|error| target.no_signal(error))?;
    }
    // One signal, never a second: see above.
    while !there() {
        target.alive()?;
        if Instant::now() >= deadline {
            let left = trigger.leave();
            return Err(Error::NoAnswer {
                pid: target.pid,
                seconds: patience.as_secs_f32(),
                left: format!(
                    "; {} stays, else its late answer would be a thread dump",
                    left.display()
                ),
            });
        }
        sleep(STEP);
    }
    Ok(())
}

impl Target {
    fn alive(&self) -> Result<crate::target::Status> {
        self.status()?.ok_or(Error::Ended(self.pid))
    }

    /// Why SIGQUIT could not be sent: it has ended, or we may not (root without CAP_KILL).
    fn no_signal(&self, error: io::Error) -> Error {
        if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) {
            return Error::Ended(self.pid);
        }
        Error::NoAccess {
            pid: self.pid,
            path: self.dir.clone(),
            error,
        }
    }
}

/// The file `.attach_pid` that makes SIGQUIT a request to listen; removed when done with.
pub(crate) struct Trigger {
    directory: Directory,
    name: String,
    /// Another client has made it, or an earlier one has left it.
    found: bool,
    stays: bool,
}

impl Trigger {
    /// Makes it in `/tmp`, else in the working directory. HotSpot looks into the working directory first, takes what it finds there, and wants
    /// it to be owned by its user or root (`AttachListener::is_init_trigger`); a file system may give it another owner.
    pub(crate) fn set(target: &Target) -> Result<Self> {
        let name = format!(".attach_pid{}", target.own_pid);
        let owned = |directory: &Directory| {
            let file = rustix::fs::statat(&directory.handle, &*name, AtFlags::SYMLINK_NOFOLLOW);
            file.map(|file| {
                FileType::from_raw_mode(file.st_mode).is_file()
                    && [0, target.user].contains(&file.st_uid)
            })
        };
        let cwd = target.cwd()?;
        let mut error = None;
        let places = match owned(&cwd) {
            Ok(_) => vec![cwd],
            Err(_) => vec![target.tmp()?, cwd],
        };
        for directory in places {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let made = rustix::fs::openat(&directory.handle, &*name, flags, mode);
            let path = directory.shown(&name);
            let found = match made {
                Ok(_) => false,
                Err(rustix::io::Errno::EXIST) => true,
                Err(e) => {
                    error = Some((path, e.into()));
                    continue;
                }
            };
            let ours = owned(&directory);
            let mut trigger = Self {
                directory,
                name: name.clone(),
                found,
                stays: found,
            };
            if ours == Ok(true) {
                trigger.stays = false;
                return Ok(trigger);
            }
            error = Some((
                path,
                io::Error::other("it is there, of another kind or owner"),
            ));
        }
        let (path, error) = error.expect("there is at least one place");
        Err(Error::Trigger { path, error })
    }

    /// Lets it stay; says where.
    fn leave(mut self) -> PathBuf {
        self.stays = true;
        self.directory.shown(&self.name)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if !self.stays {
            let _ = rustix::fs::unlinkat(&self.directory.handle, &*self.name, AtFlags::empty());
        }
    }
}

/// Connects, and makes sure who listens.
fn connect(
    target: &Target,
    path: &Path,
    shown: &Path,
    deadline: Instant,
    patience: Duration,
) -> Result<UnixStream> {
    let failed = |e: rustix::io::Errno| Error::Socket {
        path: shown.to_owned(),
        error: e.into(),
    };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    // Not blocking: a JVM that takes no requests has a full queue (5), and a connect would wait for ever.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(rustix::io::Errno::AGAIN) if Instant::now() < deadline => sleep(STEP),
            Err(rustix::io::Errno::AGAIN) => {
                return Err(Error::NoAnswer {
                    pid: target.pid,
                    seconds: patience.as_secs_f32(),
                    left: String::new(),
                });
            }
            Err(_) if target.status()?.is_none() => return Err(Error::Ended(target.pid)),
            Err(e) => return Err(failed(e)),
        }
    }
    // /tmp is everyone's: the socket must be the JVM's (its credentials are those of the moment when it began to listen, unix(7)).
    let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(failed)?;
    if peer.uid.as_raw() != target.user || peer.pid.as_raw_nonzero().get() as u32 != target.pid {
        return Err(Error::Impostor {
            path: shown.to_owned(),
            pid: target.pid,
            peer: peer.pid.as_raw_nonzero().get(),
            user: peer.uid.as_raw(),
        });
    }
    let stream = UnixStream::from(socket);
    let blocking = stream.set_nonblocking(false);
    blocking.map(|()| stream).map_err(|error| Error::Socket {
        path: shown.to_owned(),
        error,
    })
}

/// Sends the request and reads until the JVM closes the connection.
fn talk(
    stream: &mut UnixStream,
    request: &[u8],
    deadline: Instant,
    answer: &mut Vec<u8>,
) -> io::Result<()> {
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(ErrorKind::TimedOut)),
        left => Ok(Some(left)),
    };
    // HotSpot hangs up on a client that it does not like without reading anything, and on others while parts of a request may still be unread
    // (`SocketChannel::close`). What it has said until then is its answer.
    let hung_up =
        |e: &io::Error| matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
    stream.set_write_timeout(left()?)?;
    match stream.write_all(request) {
        Err(e) if !hung_up(&e) => return Err(e),
        _ => {}
    }
    let mut buffer = [0; 4096];
    while (answer.len() as u64) < LONGEST_ANSWER {
        stream.set_read_timeout(left()?)?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => answer.extend(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if hung_up(&e) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// `status LF text`.
fn answer(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (status, text) = text.split_once('\n')?;
    Some(Answer {
        status: status.trim().parse().ok()?,
        text: text.to_owned(),
    })
}

/// What an answer to `load` means. The status is 0 once a library was looked for, whatever came of it; the text says what
/// (`JvmtiExport::load_agent_library`, since JDK 21 `JvmtiAgent::load`).
pub(crate) fn loaded(pid: u32, answer: &Answer) -> Result<()> {
    let code = answer
        .text
        .lines()
        .find_map(|line| line.trim().strip_prefix("return code: ")?.parse().ok());
    match (answer.status, code) {
        (0, Some(0)) => Ok(()),
        (_, Some(code)) => Err(Error::Refused { pid, code }),
        _ if answer.text.contains("Dynamic agent loading is not enabled") => {
            Err(Error::NoDynamicAgents(pid))
        }
        (BAD_VERSION, _) => Err(Error::Failed {
            pid,
            said: "it speaks another version of the attach protocol".into(),
        }),
        (status, None) => Err(Error::Failed {
            pid,
            said: match one_line(&answer.text) {
                text if text.is_empty() => format!("status {status}"),
                text => text,
            },
        }),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
