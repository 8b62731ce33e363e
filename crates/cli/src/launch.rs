//! Runs the program to be profiled as if borescope were not there: its streams are inherited, signals reach it, and its exit code
//! becomes ours.
//!
//! What the terminal sends (Ctrl-C, Ctrl-\, hang-up) reaches the program by itself, as it is in our process group; what a process
//! sends to us is handed on. A signal that was ignored when we started (`nohup`) stays
//! ignored here and there: a handler of ours would make exec reset it to the default.

use crate::failure::{Result, cannot};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Whether the agent goes in as an argument (`java ...`) or through JAVA_TOOL_OPTIONS (anything that starts JVMs).
pub fn is_java(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("java"))
}

/// The command with the agent in it.
pub fn command(words: &[OsString], agent: &OsStr) -> Result<Command> {
    let [program, arguments @ ..] = words else {
        return Err(cannot!("no command"));
    };
    let mut command = Command::new(program);
    if is_java(program) {
        command.arg(agent);
    } else {
        command.env(
            "JAVA_TOOL_OPTIONS",
            crate::agent::tool_options(std::env::var_os("JAVA_TOOL_OPTIONS"), agent)?,
        );
    }
    command.args(arguments);
    Ok(command)
}

/// Runs the command to its end; returns its exit code, 128 + n if signal n killed it.
pub fn run(command: Command) -> Result<u8> {
    run_meanwhile(command, |_| {})
}

/// As [`run`]; `meanwhile` has the program once it has started, and its standard input is closed afterwards.
pub fn run_meanwhile(mut command: Command, meanwhile: impl FnOnce(&mut Child)) -> Result<u8> {
    let ignored = ignored_signals();
    let handled: Vec<i32> = FORWARDED
        .into_iter()
        .filter(|s| ignored >> (s - 1) & 1 == 0)
        .collect();
    let broken = |e: std::io::Error| cannot!("signal handling: {e}");
    // While the program runs signals do nothing to us; once it has ended they act as usual, so a long seal can be interrupted.
    let ended = Arc::new(AtomicBool::new(false));
    for &signal in &handled {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&ended))
            .map_err(broken)?;
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(&handled).map_err(broken)?;
    let handle = signals.handle();

    let mut child = command.spawn().map_err(|e| spawn_failure(&command, &e))?;
    let pid = Pid::from_child(&child);
    let forwarder = std::thread::spawn(move || {
        for origin in &mut signals {
            let Some(_sender) = origin.process else {
                continue;
            }; // the kernel, for the terminal: the program has it too
            if let Some(signal) = Signal::from_named_raw(origin.signal) {
                // The program may be another user's by now (sudo): nothing we could do about a refusal.
                let _ = kill_process(pid, signal);
            }
        }
    });
    meanwhile(&mut child);
    drop(child.stdin.take());
    let status = wait(&mut child, || {
        handle.close();
        let _ = forwarder.join();
        ended.store(true, Ordering::SeqCst);
    })?;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Waits for the end, runs `before_reaping` while the process id is still the child's, then reaps.
fn wait(child: &mut Child, before_reaping: impl FnOnce()) -> Result<std::process::ExitStatus> {
    let pid = Pid::from_child(child);
    let ended = || {
        waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
    };
    while matches!(ended(), Err(rustix::io::Errno::INTR)) {}
    before_reaping();
    child
        .wait()
        .map_err(|e| cannot!("waiting for the program: {e}"))
}

fn spawn_failure(command: &Command, error: &std::io::Error) -> crate::failure::Failure {
    let program = command.get_program();
    let shown = program.to_string_lossy();
    let java = if is_java(program) {
        "; install a JDK 17 or newer, or give its full path"
    } else {
        ""
    };
    if error.kind() == std::io::ErrorKind::NotFound {
        let place = if shown.contains('/') {
            "no such file"
        } else {
            "not found on PATH"
        };
        return cannot!("cannot run `{shown}`: {place}{java}");
    }
    cannot!("cannot run `{shown}`: {error}{java}")
}

/// Bit n-1 is set if signal n is ignored (the SigIgn line of /proc/self/status, proc(5)).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_gets_an_argument_everything_else_the_environment() {
        let words = |w: &[&str]| w.iter().map(OsString::from).collect::<Vec<_>>();
        let c = command(
            &words(&["/opt/jdk/bin/java", "-jar", "a.jar"]),
            OsStr::new("-agentpath:x=y"),
        )
        .unwrap();
        assert_eq!(
            c.get_args().collect::<Vec<_>>(),
            ["-agentpath:x=y", "-jar", "a.jar"]
        );
        assert_eq!(c.get_envs().count(), 0);
        let c = command(&words(&["./gradlew", "test"]), OsStr::new("-agentpath:x=y")).unwrap();
        assert_eq!(c.get_args().collect::<Vec<_>>(), ["test"]);
        let (key, value) = c.get_envs().next().unwrap();
        assert_eq!(key, "JAVA_TOOL_OPTIONS");
        assert!(value.unwrap().to_str().unwrap().ends_with("-agentpath:x=y"));
    }
}
