//! The process to attach to: what `/proc` says of it, and its directories as seen through `/proc/PID/root`.
//!
//! Nothing here touches the process. A JVM in a container may have another process id, another `/tmp` and another root than it has for us: its
//! own id is the last one of `NSpid`, and `/proc/PID/root` leads to its files (proc(5)).

use crate::{Error, Result, perf};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More performance data than any JVM has (`-XX:PerfDataMemorySize`, 32 KB unless asked for more).
const MOST_PERF_DATA: u64 = 32 << 20;
/// See [`Target::others_turn`]; a JVM that is well answers in a few milliseconds.
const OTHERS_TURN: Duration = Duration::from_secs(1);

/// Where processes are looked up; another place than `/proc` is for tests.
#[derive(Clone, Debug)]
pub struct Proc(pub PathBuf);

impl Default for Proc {
    fn default() -> Self {
        Self("/proc".into())
    }
}

/// A running HotSpot JVM that we may attach to.
pub struct Target {
    /// Its process id here.
    pub pid: u32,
    /// Its process id as it sees it: in a container another one.
    pub own_pid: u32,
    /// Its effective user.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
    /// `/proc/PID`.
    pub(crate) dir: PathBuf,
    /// Sends SIGQUIT.
    pub(crate) quit: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
    /// How long a client that has asked the JVM before us has until we ask too.
    pub(crate) others_turn: Duration,
}

impl Target {
    /// Looks at process `pid`; an error unless it is a HotSpot JVM that can be attached to.
    pub fn find(proc: &Proc, pid: u32) -> Result<Self> {
        let id = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(Error::NoProcess(pid))?;
        // Opened before anything is read: a signal sent through it reaches this process or none, whoever gets the id next.
        let handle = match rustix::process::pidfd_open(id, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(rustix::io::Errno::SRCH) => return Err(Error::NoProcess(pid)),
            Err(_) => None, // Kernels before 5.3, and sandboxes that know no better.
        };
        let dir = proc.0.join(pid.to_string());
        let status = Status::read(&dir, pid)?.ok_or(Error::NoProcess(pid))?;
        if status.process != pid {
            return Err(Error::NoProcess(pid)); // A thread's id.
        }
        let (user, group) = (status.user, status.group);
        let root = rustix::process::geteuid().is_root();
        let ours = rustix::process::geteuid().as_raw();
        if !root && user != ours {
            return Err(Error::OtherUser { pid, user, ours });
        }
        let target = Self {
            pid,
            own_pid: status.own_pid,
            user,
            group,
            dir,
            quit: Box::new(move || quit(id, handle.as_ref())),
            others_turn: OTHERS_TURN,
        };
        let ours = rustix::process::getegid().as_raw();
        if !root && group != ours {
            return Err(Error::OtherGroup { pid, group, ours });
        }
        let perf_file = target.mapped()?;
        if status.stopped {
            return Err(Error::Stopped(pid));
        }
        if target.refuses_attaching(perf_file.as_deref()) {
            return Err(Error::Disabled(pid));
        }
        Ok(target)
    }

    /// Checks that HotSpot is mapped, and returns the file of its performance data if that is.
    fn mapped(&self) -> Result<Option<PathBuf>> {
        let path = self.dir.join("maps");
        let maps = fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Ended(self.pid),
            _ => Error::NoAccess {
                pid: self.pid,
                path,
                error,
            },
        })?;
        let maps = String::from_utf8_lossy(&maps);
        // Lines are `range rights offset device inode   path`; a file that is gone (a JDK updated meanwhile) has ` (deleted)` behind it.
        let files = || {
            maps.lines()
                .filter_map(|line| Some(&line[line.find('/')?..]))
                .map(|file| file.strip_suffix(" (deleted)").unwrap_or(file))
        };
        if files().any(|file| name(file).starts_with("libj9vm")) {
            return Err(Error::NotHotSpot(self.pid));
        }
        if !files().any(|file| name(file) == "libjvm.so") {
            return Err(Error::NotJava(self.pid));
        }
        let own_pid = self.own_pid.to_string();
        Ok(files()
            .find(|file| file.contains("/hsperfdata_") && name(file) == own_pid)
            .map(PathBuf::from))
    }

    /// Whether `-XX:+DisableAttachMechanism` is on, as far as can be known: such a JVM answers SIGQUIT with a thread dump.
    fn refuses_attaching(&self, perf_file: Option<&Path>) -> bool {
        let known = perf_file.and_then(|file| {
            let mut data = Vec::new();
            let root = self.open("root").ok()?;
            let file = within(&root, file, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
            File::from(file)
                .take(MOST_PERF_DATA)
                .read_to_end(&mut data)
                .ok()?;
            perf::attachable(&data)
        });
        if let Some(attachable) = known {
            return !attachable;
        }
        // Without performance data (-XX:-UsePerfData): the command and the variables that add to it. The last word counts.
        let words =
            ["environ", "cmdline"].map(|file| fs::read(self.dir.join(file)).unwrap_or_default());
        let mut disabled = false;
        for word in words
            .concat()
            .split(|b| *b == 0 || b.is_ascii_whitespace() || b"=\"'".contains(b))
        {
            match word {
                b"-XX:+DisableAttachMechanism" => disabled = true,
                b"-XX:-DisableAttachMechanism" => disabled = false,
                _ => {}
            }
        }
        disabled
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        matches!(self.status(), Ok(Some(_)))
    }

    /// What it is doing now; `None`: it has ended.
    pub(crate) fn status(&self) -> Result<Option<Status>> {
        Status::read(&self.dir, self.pid)
    }

    /// Its `/tmp`. HotSpot takes that one whatever TMPDIR or java.io.tmpdir say (`os::get_temp_directory`).
    pub(crate) fn tmp(&self) -> Result<Directory> {
        let path = self.dir.join("root/tmp");
        let no_access = |error: io::Error| Error::NoAccess {
            pid: self.pid,
            path: path.clone(),
            error,
        };
        let root = self.open("root").map_err(no_access)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let handle = within(&root, Path::new("/tmp"), flags).map_err(no_access)?;
        Ok(Directory {
            handle,
            shown: path,
        })
    }

    /// Its working directory.
    pub(crate) fn cwd(&self) -> Result<Directory> {
        let handle = self.open("cwd").map_err(|error| Error::NoAccess {
            pid: self.pid,
            path: self.dir.join("cwd"),
            error,
        })?;
        Ok(Directory {
            handle,
            shown: self.dir.join("cwd"),
        })
    }

    fn open(&self, link: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(self.dir.join(link), flags, Mode::empty())?)
    }

    /// Whether an absolute path leads it to the same file or directory as us: false in a container with a file system of its own.
    pub fn sees(&self, path: &Path) -> bool {
        let theirs = self
            .open("root")
            .and_then(|root| within(&root, path, OFlags::PATH))
            .and_then(|file| Ok(rustix::fs::fstat(file)?));
        match (theirs, fs::metadata(path)) {
            (Ok(theirs), Ok(ours)) => (theirs.st_dev, theirs.st_ino) == (ours.dev(), ours.ino()),
            _ => false,
        }
    }

    /// A path of its own, as we reach it.
    pub fn reach(&self, path: &Path) -> PathBuf {
        let relative = path.strip_prefix("/").unwrap_or(path);
        self.dir.join("root").join(relative)
    }

    /// Its words, the first of them only by its name, for people.
    pub fn command(&self) -> String {
        let words = fs::read(self.dir.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let mut words = words.split('\0').filter(|word| !word.is_empty());
        let first = words.next().map(name).unwrap_or_default();
        std::iter::once(first)
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.pid)
    }
}

/// A directory of the target.
pub(crate) struct Directory {
    pub(crate) handle: OwnedFd,
    shown: PathBuf,
}

impl Directory {
    /// A file in it for system calls that take paths: whatever links a container has put in the way, we look where we looked before.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.handle.as_raw_fd()))
    }

    /// A file in it for people.
    pub(crate) fn shown(&self, name: &str) -> PathBuf {
        self.shown.join(name)
    }
}

/// Opens a path below a root as a process would whose root it is: links, absolute ones too, lead nowhere else (openat2(2)).
fn within(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let in_root = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), in_root) {
        // Kernels before 5.6 and some sandboxes have no openat2: a link as the last part is refused there.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            let relative = path.strip_prefix("/").unwrap_or(path);
            let flags = flags | OFlags::NOFOLLOW;
            Ok(rustix::fs::openat(
                root.as_fd(),
                relative,
                flags,
                Mode::empty(),
            )?)
        }
        other => Ok(other?),
    }
}

fn quit(id: Pid, handle: Option<&OwnedFd>) -> io::Result<()> {
    let sent = match handle {
        Some(handle) => rustix::process::pidfd_send_signal(handle, Signal::QUIT),
        None => rustix::process::kill_process(id, Signal::QUIT),
    };
    Ok(sent?)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What `/proc/PID/status` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    process: u32,
    own_pid: u32,
    user: u32,
    group: u32,
    /// By a signal or a debugger.
    pub(crate) stopped: bool,
    /// A handler for SIGQUIT is in place.
    pub(crate) catches_quit: bool,
    /// A SIGQUIT is on its way to it.
    pub(crate) quit_pending: bool,
}

impl Status {
    /// Reads it; `None`: the process has ended.
    fn read(dir: &Path, pid: u32) -> Result<Option<Self>> {
        let path = dir.join("status");
        let no_access = |path: PathBuf, error| Error::NoAccess { pid, path, error };
        match fs::read(&path) {
            Ok(text) => match Self::parse(&String::from_utf8_lossy(&text), pid) {
                Some(status) => Ok(status),
                None => Err(no_access(path, ErrorKind::InvalidData.into())),
            },
            // ESRCH: it ended between open and read.
            Err(e) if e.kind() == ErrorKind::NotFound || e.raw_os_error() == Some(3) => Ok(None),
            Err(error) => Err(no_access(path, error)),
        }
    }

    /// The outer `None`: not such a file; the inner: of a process that has ended.
    #[allow(clippy::option_option)]
    fn parse(text: &str, pid: u32) -> Option<Option<Self>> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        let effective = |name: &str| field(name)?.split_whitespace().nth(1)?.parse().ok();
        // Bit 2 of the masks is signal 3.
        let quit = |name: &str| Some(u64::from_str_radix(field(name)?, 16).ok()? & 1 << 2 != 0);
        let state = field("State")?.chars().next()?;
        if matches!(state, 'Z' | 'X') {
            return Some(None);
        }
        Some(Some(Self {
            process: field("Tgid")?.parse().ok()?,
            // Kernels before 4.1 do not say.
            own_pid: match field("NSpid") {
                Some(ids) => ids.split_whitespace().last()?.parse().ok()?,
                None => pid,
            },
            user: effective("Uid")?,
            group: effective("Gid")?,
            stopped: matches!(state, 'T' | 't'),
            catches_quit: quit("SigCgt")? && !quit("SigIgn")?,
            quit_pending: quit("ShdPnd")? || quit("SigPnd")?,
        }))
    }
}
