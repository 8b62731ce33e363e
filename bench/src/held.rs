//! A program of `tests/sites/programs` that is held at its end (`AtEnd`), so that it can be looked at while all that it keeps is there; and what it took.

use crate::run::Runner;
use anyhow::{Context as _, Result, bail, ensure};
use borescope_e2e::sites::programs;
use borescope_e2e::{borescope, java};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

/// What a run took and gave.
pub struct Held {
    /// User and system time of the JVM with all its threads, in seconds.
    pub cpu: f64,
    /// That of the `borescope` which started it.
    pub beside: f64,
    /// Seconds from start to end.
    pub wall: f64,
    /// Bytes of heap in use after a full collection at the end.
    pub heap: u64,
    /// Most bytes of memory that the JVM had until then.
    pub resident: u64,
    /// What the program printed last.
    pub printed: String,
}

/// How it is run.
pub struct Start<'a> {
    /// Major version.
    pub jdk: u32,
    /// By `borescope sites`, into this directory.
    pub sites: Option<&'a Path>,
    /// Options of the JVM.
    pub options: &'a [String],
    /// Main class and arguments.
    pub program: &'a [String],
}

impl Runner {
    /// Runs a program; `look` is called with the number of its process when it is at its end, and does not count as its time.
    pub fn held(&self, start: &Start, look: impl FnOnce(u32) -> Result<()>) -> Result<Held> {
        let java = java(start.jdk);
        let mut command = match start.sites {
            Some(out) => {
                let mut command = self.limited(borescope());
                command.args(["sites", "--quiet", "-o"]).arg(out);
                command.arg("--").arg(java);
                command
            }
            None => self.limited(&java),
        };
        command.args(start.options).args(["-cp", programs()]);
        command.arg("AtEnd").args(start.program);
        // A pipe that nobody reads could fill up.
        let mut said = tempfile::tempfile()?;
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said.try_clone()?);
        let _alone = self.alone()?;
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let watch = self.watch(child.id(), started)?;
        let mut looking = 0.0;
        let met = meet(&mut child, |pid| {
            let begun = Instant::now();
            look(pid)?;
            looking = begun.elapsed().as_secs_f64();
            Ok(())
        });
        // Without its input it goes on to its end, whatever went wrong.
        drop(child.stdin.take());
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        let ended = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        let wall = started.elapsed().as_secs_f64() - looking;
        // It is there until it is waited for.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        let hung = watch.ended();
        let status = child.wait()?;
        ended?;
        let times = Times::read(&stat?).context("stat of the process")?;
        let code = self.code(status, hung, times.own.max(times.children));
        if self.stopped() {
            bail!("interrupted");
        }
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        ensure!(code == Ok(0), "{code:?} {text}");
        let met = met.context(text)?;
        let (cpu, beside) = match start.sites {
            Some(_) => (times.children, times.own),
            None => (times.own, 0.0),
        };
        Ok(Held {
            cpu,
            beside,
            wall,
            heap: met.heap,
            resident: met.resident,
            printed: met.printed,
        })
    }
}

struct Met {
    heap: u64,
    resident: u64,
    printed: String,
}

/// Gives it the line that it waits for on the way, and looks at it at its end.
fn meet(child: &mut Child, look: impl FnOnce(u32) -> Result<()>) -> Result<Met> {
    let stdin = child.stdin.as_mut().context("a pipe was asked for")?;
    let mut stdout = BufReader::new(child.stdout.take().context("a pipe was asked for")?);
    // It may have ended; then there is no end to be read.
    let _ = stdin.write_all(b"\n");
    let mut printed = String::new();
    loop {
        let mut line = String::new();
        ensure!(stdout.read_line(&mut line)? > 0, "it ended too early");
        let line = line.trim_end();
        if let Some(end) = line.strip_prefix("end ") {
            let (pid, heap) = end.split_once(' ').context("end")?;
            let pid: u32 = pid.parse()?;
            let resident = resident(pid)?;
            look(pid)?;
            stdin.write_all(b"\n")?;
            // What it may print behind its end must go somewhere.
            stdout.read_to_string(&mut String::new())?;
            return Ok(Met {
                heap: heap.parse()?,
                resident,
                printed,
            });
        }
        line.clone_into(&mut printed);
    }
}

/// Most memory that a process had, in bytes.
fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|p| p.trim().strip_suffix("kB"));
    Ok(1024 * kib.context("VmHWM")?.trim().parse::<u64>()?)
}

/// CPU time in seconds.
#[derive(Debug, PartialEq)]
struct Times {
    own: f64,
    /// Of children that it has waited for.
    children: f64,
}

impl Times {
    /// Out of `/proc/PID/stat` (proc(5)).
    fn read(stat: &str) -> Option<Times> {
        // The name before may hold anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |at: usize| words.get(at)?.parse::<u64>().ok();
        // The kernel's USER_HZ, the same on each x86-64.
        let seconds = |first: usize| Some((ticks(first)? + ticks(first + 1)?) as f64 / 100.0);
        Some(Times {
            own: seconds(11)?,
            children: seconds(13)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_process() {
        let stat =
            "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 1200 34 20 0 1 0 5 6 7 8 9 10 11";
        let times = Times {
            own: 1.75,
            children: 12.34,
        };
        assert_eq!(Times::read(stat), Some(times));
        assert_eq!(Times::read("7 (a) S 1"), None);
        assert!(resident(std::process::id()).unwrap() > 1 << 20);
    }
}
