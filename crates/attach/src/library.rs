//! Brings the agent library to where the JVM can load it.

use crate::target::{Directory, Target};
use crate::{Error, Result};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A library that the JVM can load; a copy made for it goes when this is dropped (what the JVM has mapped by then stays mapped).
pub struct Placed {
    /// Its path as the JVM sees it.
    pub path: PathBuf,
    copy: Option<(Directory, String)>,
}

impl Placed {
    /// Whether the JVM has a file system of its own and so got a copy.
    pub fn copied(&self) -> bool {
        self.copy.is_some()
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some((directory, name)) = &self.copy {
            let _ = rustix::fs::unlinkat(&directory.handle, &**name, AtFlags::empty());
        }
    }
}

/// Finds out whether the JVM sees the library at the same path (absolute, links followed); if not, copies it into the JVM's `/tmp`.
pub fn place(target: &Target, library: &Path) -> Result<Placed> {
    if target.sees(library) {
        return Ok(Placed {
            path: library.to_owned(),
            copy: None,
        });
    }
    let directory = target.tmp()?;
    let name = format!(".borescope-{}-{}.so", target.own_pid, std::process::id());
    let failed = |error: io::Error| Error::Place {
        pid: target.pid,
        path: directory.shown(&name),
        error,
    };
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    // Readable for the JVM's user when we are root; what is loaded into a JVM must not be writable for anyone else.
    let mode = Mode::from_raw_mode(0o644);
    let file =
        rustix::fs::openat(&directory.handle, &*name, flags, mode).map_err(|e| failed(e.into()))?;
    let mut file = File::from(file);
    let copied = File::open(library)
        .and_then(|mut library| io::copy(&mut library, &mut file))
        .map(drop)
        .and_then(|()| Ok(rustix::fs::fchmod(&file, mode)?)); // Whatever our umask is.
    let path = Path::new("/tmp").join(&name);
    match copied {
        Ok(()) => Ok(Placed {
            path,
            copy: Some((directory, name)),
        }),
        Err(error) => {
            let error = failed(error);
            let _ = rustix::fs::unlinkat(&directory.handle, &*name, AtFlags::empty());
            Err(error)
        }
    }
}
