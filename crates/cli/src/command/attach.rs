//! `borescope attach`: the agent goes into a JVM that runs already; with `--for` it leaves again, and the report is shown.
//!
//! A JVM in a container may have a file system of its own. The library is then copied there, and the spool is made there, in a directory of ours
//! that is held open: so it can be read even when the container is gone.

use crate::args::{AttachArgs, Color, Ending, Lens};
use crate::failure::{Failure, Result, cannot};
use crate::output::{self, Output, SPOOLS};
use crate::{agent, control, page, say, session, show};
use borescope_attach::{Error, LONGEST_ARGUMENT, Patience, Placed, Proc, Target};
use rustix::fs::{Mode, OFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where the agent says why it refuses.
const REFUSED: &str = ".refused";
/// Options that are too long for the attach protocol.
const OPTIONS: &str = ".options";
/// Until all loaded classes are changed, which is what an agent does before it answers.
const LOADING: Duration = Duration::from_secs(600);
/// Between two looks whether the time is over.
const STEP: Duration = Duration::from_millis(50);

/// Attaches; waits and detaches if asked to.
pub fn run(args: &AttachArgs) -> Result<ExitCode> {
    let pid = args.pid;
    if args.lens == Lens::Paths {
        return Err(cannot!(
            "the paths lens cannot be attached in this version: start the program with it, `borescope paths -- java ...`"
        ));
    }
    args.sites.check()?;
    let target = Target::find(&Proc::default(), pid).map_err(failure)?;
    if control::find(pid).is_ok() {
        return Err(cannot!(
            "borescope is at work in JVM {pid} already: `borescope snapshot {pid}` takes a snapshot, `borescope detach {pid}` ends it"
        ));
    }
    let library = agent::library()?;
    let library = library
        .canonicalize()
        .map_err(|e| cannot!("{}: {e}", library.display()))?;
    let output = Output::prepare(args.output.as_deref())?;
    let mut room = Room::new(&target, &output, args.time.is_some())
        .and_then(|room| start(args, &target, &room, &library).map(|()| room))
        .inspect_err(|_| output.discard_if_empty())?;
    let Some(time) = args.time else {
        say::note(format_args!(
            "attached to JVM {pid} ({}): what it allocates from now on is marked; `borescope snapshot {pid}` takes a snapshot, \
             `borescope detach {pid}` ends it, `borescope report {}` shows the result",
            target.command(),
            output.dir.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    say::note(format_args!(
        "attached to JVM {pid} ({}) for {} s: what it allocates from now on is marked",
        target.command(),
        time.as_secs()
    ));
    wait(&target, time)?;
    // A JVM that has ended meanwhile has taken its last snapshot by itself.
    if target.is_running()
        && let Err(failure) = control::find(pid).and_then(|jvm| jvm.finish())
    {
        say::note(failure);
    }
    room.bring_home(&output)?;
    report(&output, &args.ending)
}

/// The directory that the agent writes to.
struct Room {
    /// As the JVM names it.
    theirs: PathBuf,
    /// As we reach it.
    ours: PathBuf,
    /// In a container: keeps it reachable.
    inside: Option<Inside>,
}

struct Inside {
    _handle: OwnedFd,
    /// Its path through `/proc/PID/root`.
    path: PathBuf,
}

impl Room {
    /// The output directory if the JVM sees it, else one in the container's `/tmp`.
    fn new(target: &Target, output: &Output, comes_back: bool) -> Result<Self> {
        let pid = target.pid;
        let owner = rustix::process::geteuid()
            .is_root()
            .then_some((target.user, target.group));
        if target.sees(&output.dir) {
            if let Some((user, group)) = owner {
                output.give_to(user, group)?;
            }
            return Ok(Self {
                theirs: output.dir.clone(),
                ours: output.dir.clone(),
                inside: None,
            });
        }
        if !comes_back {
            return Err(cannot!(
                "JVM {pid} does not see {} (it is in a container): attach for a time, as in --for 10m, so that the profile can be brought here, \
                 or choose a directory that both see with -o",
                output.dir.display()
            ));
        }
        let theirs = PathBuf::from(format!("/tmp/.borescope-{}", std::process::id()));
        let path = target.reach(&theirs);
        let failed = |e: std::io::Error| {
            cannot!(
                "cannot make {} in the container of JVM {pid}: {e}",
                theirs.display()
            )
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
        let ours = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        if let Some((user, group)) = owner {
            std::os::unix::fs::chown(&ours, Some(user), Some(group)).map_err(failed)?;
        }
        Ok(Self {
            theirs,
            ours,
            inside: Some(Inside {
                _handle: handle,
                path,
            }),
        })
    }

    /// Copies the spool out of a container. What cannot be copied stays there.
    fn bring_home(&mut self, output: &Output) -> Result<()> {
        if self.inside.is_none() {
            return Ok(());
        }
        self.copy_to(output).map_err(|failure| {
            self.inside = None; // Dropped with it, the spool would be lost.
            cannot!(
                "{failure}; the spool is kept in {} of the container",
                self.theirs.display()
            )
        })
    }

    fn copy_to(&self, output: &Output) -> Result<()> {
        for spool in output::spools(&self.ours)? {
            let copy = output.dir.join(SPOOLS).join(output::name(&spool).as_ref());
            let failed =
                |e: std::io::Error| cannot!("cannot copy the spool to {}: {e}", copy.display());
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&copy)
                .map_err(failed)?;
            for entry in fs::read_dir(&spool).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                if entry.file_type().map_err(failed)?.is_file() {
                    fs::copy(entry.path(), copy.join(entry.file_name())).map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(inside) = &self.inside {
            let _ = fs::remove_dir_all(&inside.path);
        }
    }
}

/// Loads the agent; an error says what it says.
fn start(args: &AttachArgs, target: &Target, room: &Room, library: &Path) -> Result<()> {
    let mut options = agent::sites(&room.theirs, &args.sites);
    let file = room.ours.join(OPTIONS);
    if options.len() > LONGEST_ARGUMENT {
        let failed = |e: std::io::Error| cannot!("cannot write {}: {e}", file.display());
        let mut open = OpenOptions::new();
        let made = open.write(true).create_new(true).mode(0o644).open(&file);
        made.and_then(|mut f| f.write_all(options.as_bytes()))
            .map_err(failed)?;
        options = format!("@{}", room.theirs.join(OPTIONS).display());
    }
    let placed: Placed = borescope_attach::place(target, library).map_err(failure)?;
    if placed.copied() {
        say::note(format_args!(
            "JVM {} has a file system of its own: the agent is loaded from a copy, {} there",
            target.pid,
            placed.path.display()
        ));
    }
    let patience = Patience {
        answer: Duration::from_secs(args.timeout),
        load: LOADING,
    };
    let loaded = borescope_attach::load(target, &placed.path, &options, patience);
    let _ = fs::remove_file(&file);
    loaded.map_err(|error| refused(error, target.pid, room))
}

/// What the agent has to say itself, in place of its code.
fn refused(error: Error, pid: u32, room: &Room) -> Failure {
    let Error::Refused { .. } = error else {
        return failure(error);
    };
    let path = room.ours.join(REFUSED);
    let why = fs::read_to_string(&path);
    let _ = fs::remove_file(&path);
    match why {
        Ok(why) => cannot!("JVM {pid}: {}", why.trim_end()),
        Err(_) => cannot!(
            "{error}; it could not write into {}: choose a directory with -o that the JVM's user may write to",
            room.theirs.display()
        ),
    }
}

fn failure(error: Error) -> Failure {
    Failure::Cannot(error.to_string())
}

/// Until the time is over, the JVM has ended, or somebody presses Ctrl-C; a second one ends us.
fn wait(target: &Target, time: Duration) -> Result<()> {
    let enough = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&enough))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&enough)))
            .map_err(|e| cannot!("signal handling: {e}"))?;
    }
    let end = Instant::now() + time;
    while Instant::now() < end && !enough.load(Ordering::SeqCst) && target.is_running() {
        std::thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

/// Seals and shows.
fn report(output: &Output, ending: &Ending) -> Result<ExitCode> {
    let profiles = session::seal(output)?;
    for dir in &profiles {
        let profile = show::open(dir)?;
        if !ending.quiet {
            let mut out = std::io::stdout().lock();
            show::text(&profile, &show::options(&out, Color::Auto), &mut out)?;
        }
        say::note(format_args!("profile in {}", dir.display()));
        show::not_empty(&profile)?;
        if ending.open {
            page::open(dir, &profile)?;
        }
    }
    // Sealing has said what is amiss.
    Ok(match profiles.is_empty() {
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_that_cannot_be_brought_home_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("room");
        let spool = path.join(SPOOLS).join("7");
        fs::create_dir_all(&spool).unwrap();
        fs::write(spool.join("meta.log"), "counted").unwrap();
        let room = || Room {
            theirs: path.clone(),
            ours: path.clone(),
            inside: Some(Inside {
                _handle: fs::File::open(&path).unwrap().into(),
                path: path.clone(),
            }),
        };
        let home = dir.path().join("home");
        let output = Output::prepare(Some(&home)).unwrap();
        fs::write(home.join(SPOOLS), "in the way").unwrap();
        let failure = room().bring_home(&output).unwrap_err().to_string();
        assert!(failure.contains("the spool is kept in"), "{failure}");
        assert!(spool.join("meta.log").exists());

        fs::remove_file(home.join(SPOOLS)).unwrap();
        room().bring_home(&output).unwrap();
        let brought = fs::read(home.join(SPOOLS).join("7/meta.log")).unwrap();
        assert_eq!(brought, b"counted");
        assert!(!path.exists());
    }
}
