//! The control socket: `OUT/.spool/<pid>/control`, for the user of the JVM alone. One line in, one line out: `snapshot` gives `ok snapshot-2` or
//! `error …`; `stop` (only where the agent was attached) ends the lens and gives `ok stopped`. Served by an agent thread of the JVM's, which also takes the snapshots
//! by the clock.

use super::{STATE, State, drawn, numbers, snapshot, stop};
use crate::jvmti::Jni;
use crate::jvmti::sys::{JniEnv, JvmtiEnv};
use borescope_spool::sites::Cause;
use std::ffi::c_void;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The socket's name in the spool.
pub const NAME: &str = "control";
/// Longest request.
const MOST_BYTES: u64 = 64;
/// How long a client may take to say what it wants, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the end of the JVM waits for the thread.
const LAST_PATIENCE: Duration = Duration::from_millis(200);
/// Wait before a client is let in again that could not be (the program is out of file descriptors): it stays in the queue, so `poll` does not wait.
const PAUSE: Duration = Duration::from_millis(100);

/// On their way to the thread: the socket, and what tells it to end.
static ENDS: Mutex<Option<Ends>> = Mutex::new(None);
type Ends = (UnixListener, UnixStream);

fn ends() -> MutexGuard<'static, Option<Ends>> {
    ENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the socket and starts the thread; false = it cannot be (snapshots at the end still work).
pub fn start(state: &State, jni: Jni, dir: &Path) -> bool {
    let (Ok(listener), Ok((ours, its))) = (bind(dir), UnixStream::pair()) else {
        return false;
    };
    *ends() = Some((listener, its));
    *state.thread() = Some(ours);
    let thread = jni.new_thread(c"borescope");
    let started = !thread.is_null() && state.jvmti.run_thread(thread, serve);
    if !started {
        *ends() = None;
        *state.thread() = None;
        let _ = fs::remove_file(dir.join(NAME));
    }
    started
}

/// Lets the thread look for classes that have come late.
pub fn wake(state: &State) {
    if !state.late.swap(true, AcqRel)
        && let Some(thread) = &mut *state.thread()
    {
        let _ = thread.write(&[0]);
    }
}

/// Ends the thread, before the VM ends: that waits 300 ms for a thread that it finds in native code (vmOperations.cpp,
/// `wait_for_threads_in_native_to_block`).
pub fn end(state: &State) {
    if let Some(mut thread) = state.thread().take() {
        let _ = thread.shutdown(Shutdown::Write);
        // The thread's end of the pair goes with it. Where it waits for a collection that will never be, we do not wait for it.
        let _ = thread.set_read_timeout(Some(LAST_PATIENCE));
        let _ = thread.read(&mut [0]);
    }
}

fn bind(dir: &Path) -> io::Result<UnixListener> {
    // The path of a socket has at most 107 bytes (unix(7)); that of a file descriptor always fits.
    let handle = File::open(dir)?;
    let path = format!("/proc/self/fd/{}/{NAME}", handle.as_raw_fd());
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(dir.join(NAME), Permissions::from_mode(0o600))?;
    Ok(listener)
}

unsafe extern "system" fn serve(_: JvmtiEnv, jni: JniEnv, _: *mut c_void) {
    let (Some(state), Some((listener, end))) = (STATE.get(), ends().take()) else {
        return;
    };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        serve_all(state, Jni::new(jni), &listener, &end);
    }));
}

fn serve_all(state: &State, jni: Jni, listener: &UnixListener, mut end: &UnixStream) {
    let every = state.options.sites.every;
    let every = every.map(|seconds| Duration::from_secs(u64::from(seconds)));
    let mut next = every.map(|every| Instant::now() + every);
    loop {
        // Before anything else that is asked for.
        if state.late.swap(false, AcqRel) {
            state.instrument_late(jni);
        }
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let left = match numbers::shared() {
            Some(_) => Some(left.map_or(drawn::EVERY, |left| left.min(drawn::EVERY))),
            None => left,
        };
        match wait(listener, end, left) {
            Ok(Heard::Us) if end.read(&mut [0]).unwrap_or(0) == 0 => return,
            Err(_) => return,
            Ok(Heard::Us | Heard::Nothing) => {}
            Ok(Heard::Client) => match listener.accept() {
                Ok((client, _)) => {
                    // A client that goes away is no concern of ours.
                    let _ = answer(state, jni, client);
                    if !STATE.is(state) {
                        return;
                    }
                }
                Err(_) => std::thread::sleep(PAUSE),
            },
        }
        drawn::sample(state.jvmti, jni);
        if let (Some(due), Some(every)) = (next, every)
            && Instant::now() >= due
        {
            let _ = snapshot::take(state, jni, Cause::Interval);
            next = Some(Instant::now() + every);
        }
    }
}

/// What [`wait`] has waited for.
enum Heard {
    Client,
    /// The agent: a byte, or the end.
    Us,
    Nothing,
}

/// Waits for a client, the agent, or so long.
fn wait(listener: &UnixListener, end: &UnixStream, time: Option<Duration>) -> io::Result<Heard> {
    let poll = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polls = [poll(listener.as_raw_fd()), poll(end.as_raw_fd())];
    let ms = time.map_or(-1, |t| t.as_millis().min(3_600_000) as i32 + 1);
    // SAFETY: two pollfds.
    if unsafe { libc::poll(polls.as_mut_ptr(), 2, ms) } < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok(Heard::Nothing),
            _ => Err(error),
        };
    }
    Ok(match polls.map(|p| p.revents != 0) {
        [_, true] => Heard::Us,
        [true, _] => Heard::Client,
        _ => Heard::Nothing,
    })
}

fn answer(state: &State, jni: Jni, mut client: UnixStream) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    if !is_ours(&client)? {
        return client.write_all(b"error not your JVM\n");
    }
    let mut request = Vec::new();
    BufReader::new((&client).take(MOST_BYTES)).read_until(b'\n', &mut request)?;
    let line = match request.trim_ascii_end() {
        b"snapshot" => match snapshot::take(state, jni, Cause::Request) {
            Ok(number) => format!("ok snapshot-{number}\n"),
            Err(why) => format!("error {why}\n"),
        },
        b"stop" if state.attached => {
            stop(state, jni);
            "ok stopped\n".to_owned()
        }
        b"stop" => "error the agent came with the program, and stays with it\n".to_owned(),
        _ => "error unknown request; known: snapshot, stop\n".to_owned(),
    };
    client.write_all(line.as_bytes())
}

/// Whether the client is the JVM's user, or root.
fn is_ours(client: &UnixStream) -> io::Result<bool> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: SO_PEERCRED fills a ucred (unix(7)).
    let rc = unsafe {
        libc::getsockopt(
            client.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut len,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no arguments.
    Ok(peer.uid == 0 || peer.uid == unsafe { libc::geteuid() })
}
