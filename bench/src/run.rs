//! One run of a program: its JVM with or without the agent, how it ended, and what it took.

use crate::stats::cpu;
use anyhow::{Context as _, Result, ensure};
use borescope_e2e::programs::Program;
use borescope_e2e::{agent, java};
use borescope_profile::{Existing, Profile, seal};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::resource::UsageWho;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a run took and gave.
pub struct Ran {
    /// User and system time of the process with all its threads, in seconds.
    pub cpu: f64,
    /// Seconds from start to end.
    pub wall: f64,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it and the agent said.
    pub stderr: String,
    /// The exit code; `Err` = why there is none.
    pub code: Result<i32, String>,
}

/// Runs JVMs, one at a time.
pub struct Runner {
    /// Seconds of CPU after which a run is given up; ten times as many seconds may pass.
    limit: u64,
    /// Held while a program runs.
    lock: Option<PathBuf>,
    stop: Arc<AtomicBool>,
}

impl Runner {
    /// From here on SIGINT and SIGTERM end the run in progress, and this process only when it has seen [`Runner::stopped`]. Other work on the machine
    /// keeps out of the way of runs by taking the lock (flock) on the file that `BORESCOPE_BENCH_LOCK` names.
    pub fn new(limit: u64) -> Result<Runner> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let lock = std::env::var_os("BORESCOPE_BENCH_LOCK").map(PathBuf::from);
        Ok(Runner { limit, lock, stop })
    }

    /// A signal asked for the end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs `program` on a JDK with the agent's options, or without the agent.
    pub fn program(&self, program: &Program, jdk: u32, agent: Option<&str>) -> Result<Ran> {
        let files = tempfile::tempdir()?;
        let arguments = program.arguments(files.path());
        self.java(jdk, agent, arguments.into_iter().map(Into::into))
    }

    /// Runs `java ARGUMENTS`. Children are measured by difference, so there must be no other meanwhile: nothing here runs in parallel.
    pub fn java(
        &self,
        jdk: u32,
        options: Option<&str>,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Ran> {
        let mut command = self.limited(&java(jdk));
        if let Some(options) = options {
            command.arg(format!("-agentpath:{}={options}", agent().display()));
        }
        command.args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let _alone = self.alone()?;
        let before = cpu(UsageWho::RUSAGE_CHILDREN)?;
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        let watch = self.watch(child.id(), started)?;
        let output = child.wait_with_output();
        let wall = started.elapsed().as_secs_f64();
        let hung = watch.ended();
        let output = output.with_context(|| format!("{command:?}"))?;
        let cpu = (cpu(UsageWho::RUSAGE_CHILDREN)? - before).as_secs_f64();
        let code = self.code(output.status, hung, cpu);
        Ok(Ran {
            cpu,
            wall,
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code,
        })
    }
}

/// A thread that ends a process which takes too long.
pub struct Watch {
    done: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watch {
    /// The process has ended; whether it had to be.
    pub fn ended(self) -> bool {
        drop(self.done);
        self.thread.join().unwrap_or(false)
    }
}

impl Runner {
    /// A command that becomes `program`, under a limit that the kernel watches.
    pub fn limited(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let limit = self.limit.to_string();
        command.args(["-c", "ulimit -t \"$0\" && exec \"$@\"", &limit]);
        command.arg(program);
        command
    }

    /// Waits until nothing else runs, and keeps it so.
    pub fn alone(&self) -> Result<Option<Flock<File>>> {
        self.lock.as_deref().map(alone).transpose()
    }

    /// Has an eye on a child.
    pub fn watch(&self, child: u32, started: Instant) -> Result<Watch> {
        let pid = Pid::from_raw(i32::try_from(child)?);
        let (done, waits) = channel::<()>();
        let stop = Arc::clone(&self.stop);
        let limit = Duration::from_secs(10 * self.limit);
        let thread = std::thread::spawn(move || {
            let moment = Duration::from_millis(200);
            while waits.recv_timeout(moment) == Err(RecvTimeoutError::Timeout) {
                let hung = started.elapsed() > limit;
                if hung || stop.load(Ordering::Relaxed) {
                    // Waited for a moment ago at most: the number is not anybody else's yet.
                    let _ = kill(pid, Signal::SIGKILL);
                    return hung;
                }
            }
            false
        });
        Ok(Watch { done, thread })
    }

    /// The exit code, or why there is none.
    pub fn code(&self, status: ExitStatus, hung: bool, cpu: f64) -> Result<i32, String> {
        let limit = self.limit;
        match (status.code(), status.signal()) {
            (Some(code), _) => Ok(code),
            (None, _) if hung => Err(format!("over {} s", 10 * limit)),
            (None, _) if cpu >= limit as f64 - 1.0 => Err(format!("over {limit} s of CPU")),
            (None, signal) => Err(format!("ended by signal {}", signal.unwrap_or(0))),
        }
    }
}

/// A run that went well, and what it counted.
pub struct Profiled {
    /// User and system time of the process with all its threads, in seconds.
    pub cpu: f64,
    /// Bytes of counters on disk.
    pub counter_bytes: u64,
    /// What it counted.
    pub profile: Profile,
    /// Where the profile lies.
    _files: TempDir,
}

impl Ran {
    /// The CPU time, if it ended as it must.
    pub fn well(&self, program: &Program) -> Result<f64> {
        ensure!(
            self.code == Ok(program.exit),
            "{}: {:?} {}",
            program.name,
            self.code,
            self.stderr
        );
        Ok(self.cpu)
    }
}

impl Runner {
    /// Runs `program` with the agent and seals what it counted. `options`: the agent's, but for lens and directory.
    pub fn profile(&self, program: &Program, jdk: u32, options: &str) -> Result<Profiled> {
        let files = tempfile::tempdir()?;
        let out = files.path().join("out");
        let options = format!("lens=paths,out={},{options}", out.display());
        let cpu = self.program(program, jdk, Some(&options))?.well(program)?;
        let spool = spool(&out).context("no spool")?;
        let counter_bytes = allocated(&spool)?;
        let sealed = out.join("sealed");
        seal(&spool, &sealed, Existing::Refuse, &mut |_| ())?;
        Ok(Profiled {
            cpu,
            counter_bytes,
            profile: Profile::open(&sealed)?,
            _files: files,
        })
    }
}

/// The lock on `file`, once nobody else has it.
fn alone(file: &Path) -> Result<Flock<File>> {
    // Whatever it holds stays.
    let open = File::options()
        .append(true)
        .create(true)
        .open(file)
        .with_context(|| file.display().to_string())?;
    Flock::lock(open, FlockArg::LockExclusive)
        .map_err(|(_, errno)| errno)
        .with_context(|| file.display().to_string())
}

/// The spool that an agent with `out=DIR` made; `None` = it made none.
pub fn spool(out: &Path) -> Option<PathBuf> {
    let mut all = std::fs::read_dir(out.join(".spool")).ok()?;
    Some(all.next()?.ok()?.path())
}

/// Bytes that the files below a directory take on disk: the counter file is sparse.
pub fn allocated(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() {
            allocated(&entry.path())?
        } else {
            meta.blocks() * 512
        };
    }
    Ok(sum)
}
