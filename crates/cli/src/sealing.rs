//! Turns the spools in an output directory into profiles. One JVM: the directory itself becomes the profile. Several: each gets
//! `jvm-PID` in it. A spool goes only after its profile is complete; what fails leaves the spool where it is.

use crate::failure::{Failure, Result, cannot, damaged};
use crate::output::{self, MANIFEST, SPOOLS};
use borescope_profile::{Error, Existing};
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the files of a profile are made before they move into the output directory.
const STAGED: &str = ".sealing";

/// What became of the spools of an output directory.
#[derive(Debug, Default)]
pub struct Sealed {
    /// Profiles now in it, by process id; those of earlier seals included.
    pub profiles: Vec<PathBuf>,
    /// Spools whose JVM still runs: left alone.
    pub running: Vec<PathBuf>,
    /// Spools that could not be sealed: left alone.
    pub failures: Vec<Failure>,
}

/// Seals every spool in `dir` whose JVM has ended.
pub fn seal_all(dir: &Path) -> Result<Sealed> {
    let mut sealed = Sealed::default();
    let spools = output::spools(dir)?;
    let alone = spools.len() == 1 && nothing_else(dir)?;
    for spool in spools {
        if output::still_running(&spool) {
            sealed.running.push(spool);
            continue;
        }
        if borescope_profile::trace::is_recorded(&spool) {
            let shown = spool.display();
            sealed.failures.push(damaged!(
                "{shown} holds no profile, but the recording of a trace: `borescope simulate {shown}` reads it"
            ));
            continue;
        }
        let done = if alone {
            seal_in_place(&spool, dir)
        } else {
            seal(&spool, &dir.join(format!("jvm-{}", output::name(&spool))))
        };
        match done {
            Ok(()) => sealed.failures.extend(remove(&spool).err()),
            Err(failure) => sealed.failures.push(kept(failure, &spool, dir)),
        }
    }
    let _ = fs::remove_dir(dir.join(SPOOLS)); // Only if empty.
    if dir.join(MANIFEST).exists() {
        sealed.profiles.push(dir.to_owned());
    }
    sealed.profiles.extend(output::profiles(dir)?);
    Ok(sealed)
}

/// Whether the directory holds nothing but spools, or what an interrupted [`seal_in_place`] has left: it may then become a profile. An
/// agent without a command line may well have been told to use a directory with other things in it.
fn nothing_else(dir: &Path) -> Result<bool> {
    let unreadable = |e: std::io::Error| cannot!("cannot read {}: {e}", dir.display());
    let names: std::io::Result<Vec<_>> =
        fs::read_dir(dir).and_then(|all| all.map(|e| Ok(e?.file_name())).collect());
    let names = names.map_err(unreadable)?;
    let interrupted = names.iter().any(|name| name == STAGED) && !dir.join(MANIFEST).exists();
    Ok(interrupted || names == [SPOOLS])
}

/// Seals one spool into a directory that does not exist yet.
pub fn seal(spool: &Path, out: &Path) -> Result<()> {
    let patience = Instant::now() + Duration::from_secs(1);
    let mut shown = false;
    let done = borescope_profile::seal_any(spool, out, Existing::Refuse, &mut |at| {
        if std::io::stderr().is_terminal() && Instant::now() > patience {
            let _ = write!(
                std::io::stderr(),
                "\rborescope: completing the profile: method {} of {}",
                at.done,
                at.methods
            );
            shown = true;
        }
    });
    if shown {
        let _ = write!(std::io::stderr(), "\r{:70}\r", "");
    }
    done.map_err(failure)
}

/// Seals beside, then moves the files in, the manifest last: it is what makes the directory a profile.
fn seal_in_place(spool: &Path, dir: &Path) -> Result<()> {
    let staged = dir.join(STAGED);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |e: std::io::Error| cannot!("{}: {e}", path.display())
    };
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(io(&staged))?;
    }
    seal(spool, &staged).inspect_err(|_| drop(fs::remove_dir_all(&staged)))?;
    let mut names: Vec<_> = fs::read_dir(&staged)
        .and_then(|all| {
            all.map(|e| Ok(e?.file_name()))
                .collect::<std::io::Result<_>>()
        })
        .map_err(io(&staged))?;
    names.sort_by_key(|name| name == MANIFEST);
    for name in names {
        fs::rename(staged.join(&name), dir.join(&name)).map_err(io(dir))?;
    }
    fs::remove_dir(&staged).map_err(io(&staged))
}

fn remove(spool: &Path) -> Result<()> {
    fs::remove_dir_all(spool).map_err(|e| {
        cannot!(
            "the profile is complete, but {} cannot be removed: {e}",
            spool.display()
        )
    })
}

/// Says that nothing is lost.
fn kept(failure: Failure, spool: &Path, dir: &Path) -> Failure {
    let (spool, dir) = (spool.display(), dir.display());
    match failure {
        Failure::Cannot(what) => cannot!(
            "cannot complete the profile: {what}; the counts are kept in {spool}: mend that, then `borescope report {dir}`"
        ),
        Failure::Damaged(what) => {
            damaged!("cannot complete the profile: {what}; the spool is kept in {spool}")
        }
        usage => usage,
    }
}

/// The kind of an error of the profile crate.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Io { .. } | Error::Exists { .. } => Failure::Cannot(error.to_string()),
        _ => Failure::Damaged(error.to_string()),
    }
}
