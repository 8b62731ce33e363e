//! The profiles in a directory that a user names: what is not sealed yet is sealed first, and of a JVM that still runs a profile is made of what there
//! is so far.

use crate::failure::{Result, cannot, damaged, usage};
use crate::output::{self, MANIFEST};
use crate::{say, sealing};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Profiles, at least one.
pub struct Found {
    /// Their directories.
    pub profiles: Vec<PathBuf>,
    /// Holds those of JVMs that still run.
    _running: TempDir,
}

impl Found {
    /// Looks into an output directory.
    pub fn in_directory(dir: &Path) -> Result<Found> {
        if !dir.is_dir() {
            return Err(usage!(
                "no directory {}: give the one that `borescope paths`, `sites` or `waste` named",
                dir.display()
            ));
        }
        let mut sealed = sealing::seal_all(dir)?;
        for failure in sealed.failures.iter().skip(1) {
            say::note(failure);
        }
        if !sealed.failures.is_empty() {
            return Err(sealed.failures.swap_remove(0));
        }
        let running = tempfile::tempdir().map_err(|e| {
            cannot!("no temporary directory: {e}; set TMPDIR to one that can be written")
        })?;
        let mut profiles = sealed.profiles;
        for spool in sealed.running {
            let pid = output::name(&spool);
            say::note(format_args!(
                "JVM {pid} still runs: this is what it has counted so far"
            ));
            let profile = running.path().join(format!("jvm-{pid}"));
            sealing::seal(&spool, &profile)?;
            profiles.push(profile);
        }
        if profiles.is_empty() {
            return Err(damaged!(
                "no profile in {}: it holds neither {MANIFEST} nor a spool of an agent",
                dir.display()
            ));
        }
        Ok(Found {
            profiles,
            _running: running,
        })
    }

    /// The only one in the directory.
    pub fn one(&self, dir: &Path) -> Result<&Path> {
        match self.profiles.as_slice() {
            [one] => Ok(one),
            many => Err(usage!(
                "{} profiles in {}: name one, such as {}",
                many.len(),
                dir.display(),
                many.first().unwrap_or(&PathBuf::new()).display()
            )),
        }
    }
}
