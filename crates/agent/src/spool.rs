//! The spool directory: made for this JVM alone, mode 0700, never through a symbolic link.

use borescope_spool::meta::Record;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Makes `OUT/.spool/<pid>` (or `<pid>-2`, ... where the process id was used before).
pub fn create(out: &Path) -> io::Result<PathBuf> {
    let parent = out.join(".spool");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&parent)?;
    let pid = std::process::id();
    for n in 1..10_000 {
        let dir = parent.join(if n == 1 {
            pid.to_string()
        } else {
            format!("{pid}-{n}")
        });
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| dir),
        }
    }
    Err(io::Error::other("too many old spools; seal or remove them"))
}

/// Makes a new file in the spool; never opens one that is there, nor follows a link.
pub fn create_file(dir: &Path, name: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(dir.join(name))
}

/// `meta.log`, appended one whole record at a time.
pub struct MetaLog {
    state: Mutex<State>,
}

struct State {
    /// `None`: closed.
    file: Option<File>,
    length: u64,
    failed: bool,
}

impl MetaLog {
    /// A log on an empty file.
    pub fn new(file: File) -> Self {
        Self {
            state: Mutex::new(State {
                file: Some(file),
                length: 0,
                failed: false,
            }),
        }
    }

    /// Appends a record; false = it could not be written (full disk) and the log ends before it.
    pub fn append(&self, record: &Record) -> bool {
        let bytes = record.encode();
        let mut s = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (failed, length) = (s.failed, s.length);
        let Some(file) = s.file.as_mut().filter(|_| !failed) else {
            return false;
        };
        match file.write_all(&bytes) {
            Ok(()) => s.length += bytes.len() as u64,
            Err(_) => {
                // What comes later could not be found behind a torn record: cut it off, write no more.
                let _ = file.set_len(length);
                s.failed = true;
            }
        }
        !s.failed
    }

    /// Ends the log: to who looks from outside, nobody writes it any more.
    pub fn close(&self) {
        let mut s = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        s.file = None;
    }
}
