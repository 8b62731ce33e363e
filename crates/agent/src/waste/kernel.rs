//! What the lens asks of the kernel, all of it as bare system calls: ticks of CPU time and breakpoints through perf_event_open, bytes read without touching them.
//! Everything but [`probe`] may be called in a signal handler. Must never happen here: an event that another thread, a child or another program inherits.

use super::Cannot;
use std::ffi::{c_int, c_long, c_void};
use std::fs;
use std::io;
use std::sync::atomic::AtomicU64;

/// `perf_event_attr` up to `sig_data` (linux/perf_event.h, PERF_ATTR_SIZE_VER7; kernel 5.13).
#[derive(Default)]
#[repr(C)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
    bp_len: u64,
    unused: [u64; 6],
    sig_data: u64,
}

// Where the kernel looks for it.
const _: () = assert!(size_of::<Attr>() == 128 && std::mem::offset_of!(Attr, sig_data) == 120);

const SOFTWARE: u32 = 1;
const BREAKPOINT: u32 = 5;
const TASK_CLOCK: u64 = 1;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;
const CLOSE_ON_EXEC: u64 = 8;
const DISABLE: u64 = 0x2401;
const REFRESH: u64 = 0x2402;
const MODIFY: u64 = 0x4008_240B;
/// fcntl: the signal goes to one thread (asm-generic/fcntl.h).
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;

/// What a debug register waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The instruction at this address is about to run.
    Execute(u64),
    /// Bytes from an address on are read or written.
    ReadWrite(u64, u8),
    /// They are written.
    Write(u64, u8),
}

impl Break {
    fn attr(self, data: u64) -> Attr {
        // linux/hw_breakpoint.h: 1 read, 2 write, 4 execute; execution is always of 8 bytes.
        let (bp_type, bp_addr, bp_len) = match self {
            Break::Execute(at) => (4, at, 8),
            Break::ReadWrite(at, bytes) => (3, at, bytes.into()),
            Break::Write(at, bytes) => (2, at, bytes.into()),
        };
        Attr {
            kind: BREAKPOINT,
            size: size_of::<Attr>() as u32,
            sample_period: 1,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | REMOVE_ON_EXEC | SIGTRAP,
            bp_type,
            bp_addr,
            bp_len,
            sig_data: data,
            ..Attr::default()
        }
    }
}

/// An open event of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(c_int);

impl Event {
    /// Opens a breakpoint of the calling thread, at work from now on; its traps carry `data`. The error is an errno.
    pub fn break_on(what: Break, data: u64) -> Result<Event, c_int> {
        open(&what.attr(data))
    }

    /// The same register waits for something else from now on.
    pub fn change(self, what: Break, data: u64) -> bool {
        let attr = what.attr(data);
        self.ioctl(MODIFY, (&raw const attr) as u64)
    }

    /// It waits for nothing.
    pub fn rest(self) {
        self.ioctl(DISABLE, 0);
    }

    /// Opens a clock of the calling thread's CPU time outside of the kernel, which sends `signal` to it `rate` times a second, once each time it is [`Event::wind`]ed.
    pub fn clock(rate: u32, signal: c_int, thread: c_int) -> Result<Event, c_int> {
        let event = open(&Attr {
            kind: SOFTWARE,
            size: size_of::<Attr>() as u32,
            config: TASK_CLOCK,
            sample_period: 1_000_000_000 / u64::from(rate.max(1)),
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | REMOVE_ON_EXEC,
            wakeup_events: 1,
            ..Attr::default()
        })?;
        let owner = [F_OWNER_TID, thread];
        // SAFETY: F_SETOWN_EX takes a pointer to two ints, the others a number; the descriptor is ours.
        let done = unsafe {
            libc::fcntl(event.0, F_SETSIG, signal) == 0
                && libc::fcntl(event.0, F_SETOWN_EX, owner.as_ptr()) == 0
                && libc::fcntl(event.0, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK) == 0
        };
        if !done {
            let code = errno();
            event.close();
            return Err(code);
        }
        Ok(event)
    }

    /// Lets the clock run until it has sent one signal.
    pub fn wind(self) {
        self.ioctl(REFRESH, 1);
    }

    /// Its file descriptor.
    pub fn descriptor(self) -> c_int {
        self.0
    }

    /// Gives it back. Not used again.
    pub fn close(self) {
        // SAFETY: the descriptor is ours and not used again.
        unsafe { libc::syscall(libc::SYS_close, c_long::from(self.0)) };
    }

    fn ioctl(self, request: u64, argument: u64) -> bool {
        // SAFETY: requests of perf events with the arguments that they take; a pointer among them is to a whole attribute.
        unsafe { libc::syscall(libc::SYS_ioctl, c_long::from(self.0), request, argument) == 0 }
    }
}

fn open(attr: &Attr) -> Result<Event, c_int> {
    // SAFETY: a whole attribute; this thread, any processor, no group.
    let fd: c_long = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attr as *const Attr,
            0 as c_long,
            -1 as c_long,
            -1 as c_long,
            CLOSE_ON_EXEC,
        )
    };
    match c_int::try_from(fd) {
        Ok(fd) if fd >= 0 => Ok(Event(fd)),
        _ => Err(errno()),
    }
}

fn errno() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Runs a handler's work; the interrupted code finds errno as it was.
pub fn keeping_errno(f: impl FnOnce()) {
    let before = errno();
    f();
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = before };
}

/// The calling thread's id.
pub fn thread_id() -> c_int {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as c_int }
}

/// Copies bytes of this process as the kernel does it: no breakpoint traps for it, and an address that is not mapped is no fault. At most 8.
pub fn peek(address: u64, bytes: usize) -> Option<u64> {
    let mut word = [0u8; 8];
    let bytes = bytes.min(word.len());
    let local = libc::iovec {
        iov_base: word.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: bytes,
    };
    // SAFETY: the local buffer has that many bytes; the kernel checks the other address.
    let copied = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            c_long::from(libc::getpid()),
            &raw const local,
            1usize,
            &raw const remote,
            1usize,
            0usize,
        )
    };
    (copied == bytes as c_long).then(|| u64::from_le_bytes(word))
}

/// Most open files of this process.
pub fn most_files() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit fills the structure.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => limit.rlim_cur,
        _ => 0,
    }
}

/// A word that nothing touches while it has a breakpoint.
static PROBED: AtomicU64 = AtomicU64::new(7);

/// What this machine lets us have: the number of debug registers, or why the lens cannot work. On the calling thread; nothing stays open.
pub fn probe(rate: u32, signal: c_int) -> Result<usize, Cannot> {
    let clock =
        Event::clock(rate, signal, thread_id()).map_err(|code| denied(code, "the clock"))?;
    clock.close();
    let word = (&raw const PROBED) as u64;
    if peek(word, 8) != Some(7) {
        return Err(Cannot::new(
            "this container does not let a process read its own memory by process_vm_readv",
            "allow it in the seccomp profile",
        ));
    }
    let mut open = Vec::new();
    let mut refused = 0;
    while open.len() < 4 {
        // Nothing runs there.
        match Event::break_on(Break::Execute(1), 0) {
            Ok(event) => open.push(event),
            Err(code) => {
                refused = code;
                break;
            }
        }
    }
    let registers = open.len();
    open.into_iter().for_each(Event::close);
    if registers == 0 {
        return Err(denied(refused, "breakpoints"));
    }
    if registers == 1 {
        return Err(Cannot::new(
            "only one debug register is free, and one sample takes two (a debugger holds the others?)",
            "end the debugger",
        ));
    }
    // Data breakpoints are not a given where those of execution are.
    match Event::break_on(Break::ReadWrite(word, 8), 0) {
        Ok(event) => {
            event.close();
            Ok(registers)
        }
        Err(code) => Err(denied(code, "breakpoints on data")),
    }
}

/// Puts an errno of perf_event_open into words.
fn denied(code: c_int, what: &str) -> Cannot {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid: i32 = paranoid.trim().parse().unwrap_or(-1);
    match code {
        libc::EACCES | libc::EPERM if paranoid > 2 => Cannot::new(
            &format!(
                "the kernel denies perf_event_open ({what}): kernel.perf_event_paranoid is {paranoid}"
            ),
            "`sysctl kernel.perf_event_paranoid=2`, or run as root",
        ),
        libc::EACCES | libc::EPERM => Cannot::new(
            &format!(
                "perf_event_open is denied ({what}), though kernel.perf_event_paranoid is {paranoid}: a seccomp profile, as containers have"
            ),
            "allow perf_event_open in the seccomp profile, or run outside of the container",
        ),
        libc::ENOSPC => Cannot::new(
            "no debug register is free: a debugger or `perf` holds all of them",
            "end it",
        ),
        libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP => Cannot::new(
            &format!("this machine has no {what} for perf_event_open"),
            "run on hardware or in a VM that has debug registers",
        ),
        libc::ENOSYS => Cannot::new("this kernel has no perf_event_open", "run on one that has"),
        libc::EINVAL | libc::E2BIG => Cannot::new(
            &format!("this kernel does not know signals of perf events ({what})"),
            "run on Linux 5.13 or newer",
        ),
        libc::EMFILE | libc::ENFILE => {
            Cannot::new("no file descriptor is free", "raise `ulimit -n`")
        }
        _ => Cannot::new(
            &format!(
                "perf_event_open fails ({what}): {}",
                io::Error::from_raw_os_error(code)
            ),
            "see TROUBLESHOOTING.md",
        ),
    }
}
