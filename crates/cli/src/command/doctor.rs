//! `borescope doctor`: each thing that path profiling needs, tried for real, with the remedy where it fails; and whether the sites lens works.

use crate::agent;
use crate::args::{DoctorArgs, SiteOptions};
use crate::command::demo;
use crate::failure::{Result, cannot};
use crate::jdk::{self, Identity};
use crate::launch;
use crate::{output, say};
use borescope_profile::Opened;
use std::path::Path;
use std::process::{ExitCode, Stdio};

/// The JDKs that the tests run on.
const TESTED: [u32; 3] = [17, 21, 25];
/// Less free space than this is too little to begin with.
const LITTLE_SPACE: u64 = 64 << 20;

/// What a check found: what works, or what does not and the remedy.
type Finding = std::result::Result<String, String>;

/// Runs all checks.
pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let machine = tell(machine())?;
    let library = agent::library();
    let agent = tell(
        library
            .as_ref()
            .map(|path| format!("agent library: {}", path.display()))
            .map_err(ToString::to_string),
    )?;
    let place = tell(place(&args.output))?;
    let mut asked = true;
    for java in &args.java {
        asked &= tell(check(java, library.as_deref().ok()))?;
    }
    let mut found = jdk::all();
    found.retain(|java| !args.java.contains(java));
    let mut works = asked && !args.java.is_empty();
    for java in &found {
        works |= tell(check(java, library.as_deref().ok()))?;
    }
    if found.is_empty() && args.java.is_empty() {
        tell(Err(format!(
            "no JDK found in JAVA_HOME, on PATH or in /usr/lib/jvm: {}",
            jdk::INSTALL
        )))?;
    }
    if machine && agent && place && asked && works {
        say::result("Path profiling works here.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    say::result("Path profiling does not work here: see the lines marked !!\n")?;
    Ok(ExitCode::from(2))
}

/// Prints a finding; whether it is good.
fn tell(finding: Finding) -> Result<bool> {
    match &finding {
        Ok(text) => say::result(format_args!("ok  {text}\n"))?,
        Err(text) => say::result(format_args!("!!  {text}\n"))?,
    }
    Ok(finding.is_ok())
}

fn machine() -> Finding {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    match (os, arch) {
        ("linux", "x86_64") => Ok("machine: Linux on x86-64".into()),
        _ => Err(format!(
            "machine: {os} on {arch}: borescope works on Linux on x86-64 only"
        )),
    }
}

fn place(dir: &Path) -> Finding {
    let shown = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let shown = shown.display();
    output::writable(dir).map_err(|e| e.to_string())?;
    let stat = rustix::fs::statvfs(dir).map_err(|e| format!("{shown}: {e}"))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let mib = free >> 20;
    match free {
        0..LITTLE_SPACE => Err(format!(
            "output: only {mib} MiB free in {shown}: free some, or choose another directory with -o"
        )),
        _ => Ok(format!("output: can write in {shown}, {mib} MiB free")),
    }
}

/// Whether this Java can be profiled: asks it who it is, then profiles a short run of the demo.
fn check(java: &Path, library: Option<&Path>) -> Finding {
    let shown = java.display();
    let identity = Identity::of(java).map_err(|e| e.to_string())?;
    if let Some(why) = identity.unsupported() {
        return Err(format!("{shown}: {why}"));
    }
    let name = format!("JDK {}, {}: {shown}", identity.version, identity.vm);
    let Some(library) = library else {
        return Err(format!("{name}: not tried, for want of the agent library"));
    };
    let methods = trial(java, library).map_err(|e| format!("{name}: {e}"))?;
    // Path profiling is what doctor answers for; a JVM whose headers have no room for sites is no fault.
    let sites = match trial_of_sites(java, library) {
        Ok(known) => format!("found the lines of {known} live objects"),
        Err(e) => format!("the sites lens does not work ({e})"),
    };
    let untested = match identity.major() {
        Some(major) if TESTED.contains(&major) => "",
        _ => " (the tests of borescope run on 17, 21 and 25)",
    };
    Ok(format!(
        "{name}: profiled {methods} methods of a test program, {sites}{untested}"
    ))
}

/// Profiles a short run; returns how many methods ran.
fn trial(java: &Path, library: &Path) -> Result<u64> {
    let options = |out: &Path| agent::Paths::of(4, out).encode();
    let (profile, said) = profiled(java, library, options)?;
    match &profile {
        Opened::Paths(profile) if profile.manifest().totals.methods_executed > 0 => {
            Ok(profile.manifest().totals.methods_executed)
        }
        _ => Err(cannot!("the agent counted nothing: {said}")),
    }
}

/// Takes a snapshot of a short run; returns of how many objects the line is known.
fn trial_of_sites(java: &Path, library: &Path) -> Result<u64> {
    let options = |out: &Path| agent::sites(out, &SiteOptions::default());
    let (profile, said) = profiled(java, library, options)?;
    let snapshot = match &profile {
        Opened::Sites(profile) => profile.manifest().snapshots.last(),
        Opened::Paths(_) | Opened::Waste(_) => None,
    };
    match snapshot {
        Some(snapshot) if snapshot.with_site.objects > 0 => Ok(snapshot.with_site.objects),
        _ => Err(cannot!("the agent counted nothing: {said}")),
    }
}

/// The profile of a short run, and what was said meanwhile.
fn profiled(
    java: &Path,
    library: &Path,
    options: impl FnOnce(&Path) -> String,
) -> Result<(Opened, String)> {
    let program = demo::unpack()?;
    let out = program.path().join("out");
    std::fs::create_dir(&out).map_err(|e| cannot!("{}: {e}", out.display()))?;
    let words = demo::command(java, program.path(), demo::SETTINGS, &["20"]);
    let mut command = launch::command(&words, &agent::argument(library, &options(&out)))?;
    let run = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| cannot!("{e}"))?;
    // The JVM complains on standard output when it cannot load an agent.
    let said = [run.stderr, run.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let ours = said
        .lines()
        .find(|l| l.starts_with("borescope"))
        .map_or_else(
            || said.split_whitespace().collect::<Vec<_>>().join(" "),
            str::to_owned,
        );
    if !run.status.success() {
        return Err(cannot!("{}: {ours}", run.status));
    }
    let spools = output::spools(&out)?;
    let [spool] = spools.as_slice() else {
        return Err(cannot!("the agent counted nothing: {ours}"));
    };
    let profile = program.path().join("profile");
    crate::sealing::seal(spool, &profile)?;
    Ok((crate::show::open(&profile)?, ours))
}
