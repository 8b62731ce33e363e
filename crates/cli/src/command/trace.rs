//! `borescope sites --trace FILE`: runs a program whose agent records in FILE.recording, and makes FILE of that.
//!
//! FILE has its name only when it is whole. What is left of a recording that could not be made into one can be read by `borescope simulate`.

use crate::args::SitesArgs;
use crate::failure::{Result, cannot, usage};
use crate::output::{self, Output};
use crate::{agent, say, sealing, session};
use borescope_profile::trace::{self, Summary};
use borescope_report::thousands;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs it; the exit code is the program's once that has started.
pub fn run(args: &SitesArgs, file: &Path) -> Result<ExitCode> {
    let shown = file.display();
    // Also with a slash at its end.
    if file.file_name().is_none() || file.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(usage!(
            "--trace takes the name of a new file, not `{shown}`"
        ));
    }
    if file.symlink_metadata().is_ok() {
        return Err(cannot!("{shown} is there already: name a new file"));
    }
    // The recording is large: it belongs where the trace does, and where it is seen if it stays.
    let recording = with(file, ".recording");
    let made = fs::create_dir(&recording);
    made.map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => cannot!(
            "{} is there already, from another run: name a new file, or remove it",
            recording.display()
        ),
        _ => cannot!("cannot make {}: {e}", recording.display()),
    })?;
    let started = Output::prepare(Some(&recording)).and_then(|output| {
        let options = agent::sites(&output.dir, &args.sites) + ",trace=1";
        Ok((
            session::run(&args.program.command, &output, &options)?,
            output,
        ))
    });
    let (code, output) = started.inspect_err(|_| drop(fs::remove_dir_all(&recording)))?;
    // The program is done and its exit code is what counts: from here on we only talk.
    match conclude(&output.dir, file, args.ending.quiet) {
        Ok(true) => drop(fs::remove_dir_all(&recording)),
        Ok(false) => {}
        Err(failure) => say::note(&failure),
    }
    Ok(ExitCode::from(code))
}

/// One file a JVM: FILE, FILE.2 and so on. False: something is left that has no file.
fn conclude(dir: &Path, file: &Path, quiet: bool) -> Result<bool> {
    let (mut made, mut left) = (0, 0);
    for spool in output::spools(dir)? {
        let kept = spool.display();
        if output::still_running(&spool) {
            left += 1;
            say::note(format_args!(
                "JVM {} still runs: `borescope simulate {kept}` shows what it has recorded so far",
                output::name(&spool)
            ));
        } else if trace::is_recorded(&spool) {
            // Else its agent has said why.
            made += 1;
            let file = match made {
                1 => file.to_owned(),
                n => with(file, &format!(".{n}")),
            };
            match convert(&spool, &file) {
                Ok(summary) => {
                    let _ = fs::remove_dir_all(&spool);
                    if !quiet {
                        report(&file, &summary);
                    }
                }
                Err(failure) => {
                    left += 1;
                    say::note(format_args!(
                        "{failure}; what was recorded is kept: `borescope simulate {kept}` reads it"
                    ));
                }
            }
        }
    }
    if (made, left) == (0, 0) {
        say::note(
            "nothing was recorded: the program started no JVM that could load the agent (`borescope doctor` checks the JDKs here)",
        );
    }
    Ok(left == 0)
}

fn with(file: &Path, more: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(more);
    name.into()
}

/// Under its name only when it is whole.
fn convert(spool: &Path, file: &Path) -> Result<Summary> {
    let io = |e: std::io::Error| cannot!("cannot write {}: {e}", file.display());
    let part = spool.join("trace");
    let mut out = BufWriter::new(File::create(&part).map_err(io)?);
    let done = trace::write(spool, &mut out).map_err(sealing::failure);
    let done = done.and_then(|summary| out.flush().map_err(io).map(|()| summary));
    // What takes up a full disk is of no use to anybody.
    let summary = done.inspect_err(|_| drop(fs::remove_file(&part)))?;
    match file.symlink_metadata().is_ok() {
        true => Err(cannot!("{} is there already", file.display())),
        false => fs::rename(&part, file).map_err(io).map(|()| summary),
    }
}

fn report(file: &Path, s: &Summary) {
    let shown = file.display();
    let [objects, sites, hashed, unmarked, locked, lost] =
        [s.objects, s.sites, s.hashed, s.unmarked, s.locked, s.lost].map(thousands);
    say::note(format_args!(
        "trace in {shown}: {objects} objects of {sites} sites, the identity hash of {hashed} was asked for; `borescope simulate {shown}` shows the figures"
    ));
    if s.unmarked + s.locked > 0 {
        say::note(format_args!(
            "not in it: identity hashes asked {unmarked} times of objects that the VM made or that were hashed before, {locked} times of locked objects"
        ));
    }
    if s.lost > 0 {
        say::note(format_args!(
            "it ends early: there was no room for {lost} events more"
        ));
    }
}
