//! `borescope sites --trace FILE`: runs a program whose agent records a trace beside FILE, and makes FILE of that.

use crate::args::SitesArgs;
use crate::failure::{Failure, Result, cannot};
use crate::output::{self, Output};
use crate::{agent, say, sealing, session};
use borescope_profile::trace::{self, Summary};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Whether the agent can do it: not before its helper class is compiled and tests/e2e/tests/trace.rs has run.
const RECORDS: bool = false;

/// Runs it; the exit code is the program's once that has started.
pub fn run(args: &SitesArgs, file: &Path) -> Result<ExitCode> {
    if !RECORDS {
        return Err(cannot!("traces are not recorded by this version"));
    }
    let shown = file.display();
    if file.exists() {
        return Err(cannot!("{shown} is there already: name a new file"));
    }
    // The recording is large: it belongs where the trace does.
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let scratch = tempfile::Builder::new()
        .prefix(".borescope-trace-")
        .tempdir_in(folder)
        .map_err(|e| cannot!("cannot write to {}: {e}", folder.display()))?;
    let output = Output::prepare(Some(&scratch.path().join("run")))?;
    let options = agent::sites(&output.dir, &args.sites) + ",trace=1";
    let code = session::run(&args.command, &output, &options)?;
    // The program is done and its exit code is what counts: from here on we only talk.
    if let Err(failure) = conclude(&output.dir, file, args.quiet) {
        say::note(&failure);
        let kept = scratch.keep();
        say::note(format_args!(
            "what was recorded is kept in {}",
            kept.display()
        ));
    }
    Ok(ExitCode::from(code))
}

/// One file a JVM: FILE, FILE.2 and so on.
fn conclude(dir: &Path, file: &Path, quiet: bool) -> Result<()> {
    let spools = output::spools(dir)?;
    let mut made = 0;
    let mut failed: Option<Failure> = None;
    for spool in &spools {
        if output::still_running(spool) {
            failed = Some(cannot!("JVM {} still runs", output::name(spool)));
            continue;
        }
        if !trace::is_recorded(spool) {
            continue; // Its agent has said why.
        }
        made += 1;
        match convert(spool, &numbered(file, made)) {
            Ok(summary) if !quiet => report(&numbered(file, made), &summary),
            Ok(_) => {}
            Err(failure) => failed = Some(failure),
        }
    }
    match (failed, made) {
        (Some(failure), _) => Err(failure),
        (None, 0) => {
            say::note(
                "nothing was recorded: the program started no JVM that could load the agent (`borescope doctor` checks the JDKs here)",
            );
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

fn numbered(file: &Path, nth: u32) -> PathBuf {
    let mut name = OsString::from(file);
    if nth > 1 {
        name.push(format!(".{nth}"));
    }
    name.into()
}

/// Under its name only when it is whole.
fn convert(spool: &Path, file: &Path) -> Result<Summary> {
    let io = |e: std::io::Error| cannot!("cannot write {}: {e}", file.display());
    let part = spool.join("trace");
    let mut out = BufWriter::new(File::create(&part).map_err(io)?);
    let summary = trace::write(spool, &mut out).map_err(sealing::failure)?;
    out.flush().map_err(io)?;
    match file.exists() {
        true => Err(cannot!("{} is there already", file.display())),
        false => fs::rename(&part, file).map_err(io).map(|()| summary),
    }
}

fn report(file: &Path, s: &Summary) {
    let shown = file.display();
    say::note(format_args!(
        "trace in {shown}: {} objects of {} sites, the identity hash of {} was asked for; `borescope simulate {shown}` shows the figures",
        s.objects, s.sites, s.hashed
    ));
    if s.unmarked + s.locked > 0 {
        say::note(format_args!(
            "not in it: identity hashes asked {} times of objects that the VM made or that were hashed before, {} times of locked objects",
            s.unmarked, s.locked
        ));
    }
    if s.lost > 0 {
        say::note(format_args!(
            "it ends early: there was no room for {} events more",
            s.lost
        ));
    }
}
