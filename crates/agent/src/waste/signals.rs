//! Signal handlers: what a signal says, the registers of the interrupted code, and who had the signal before us. A signal that is not ours goes to its earlier
//! handler, and to what the system does by default if there was none. Must never happen here: anything that is not async-signal-safe; a signal lost.

use super::handler;
use super::kernel::keeping_errno;
use borescope_waste::Registers;
use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// `si_code` of perf events' signals (asm-generic/siginfo.h).
const TRAP_PERF: c_int = 6;
/// The trap was not delivered where it happened, since the signal was blocked.
const ASYNCHRONOUS: u32 = 1;
/// `si_code` of signals that a file descriptor sends: POLL_IN to POLL_HUP.
const POLL: std::ops::RangeInclusive<c_int> = 1..=6;

/// The signal of clocks.
static TICK: AtomicI32 = AtomicI32::new(0);
static BEFORE_TICK: OnceLock<libc::sigaction> = OnceLock::new();
static BEFORE_TRAP: OnceLock<libc::sigaction> = OnceLock::new();

/// The part of `siginfo_t` that we read (asm-generic/siginfo.h, x86-64).
#[repr(C)]
struct Info {
    signal: c_int,
    errno: c_int,
    code: c_int,
    pad: c_int,
    /// `si_addr`, or `si_band`.
    address: u64,
    /// `si_perf_data`, or `si_fd` in its lower half.
    data: u64,
    kind: u32,
    flags: u32,
}

/// Chooses the signal of clocks: SIGPROF, or if the program has a handler for that a real-time signal that nobody has. `None`: all are taken.
pub fn choose() -> Option<c_int> {
    // From above: those who take one usually begin below.
    let real_time = (libc::SIGRTMIN() + 1..=libc::SIGRTMAX() - 1).rev();
    std::iter::once(libc::SIGPROF)
        .chain(real_time)
        .find(|&signal| current(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL))
}

fn current(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks; sigaction fills the structure.
    unsafe {
        let rc = libc::sigaction(signal, null(), action.as_mut_ptr());
        (rc == 0).then(|| action.assume_init())
    }
}

/// Installs the handlers, once; false = the system refuses.
pub fn install(tick: c_int) -> bool {
    TICK.store(tick, Relaxed);
    let before = |signal, to: &OnceLock<libc::sigaction>| {
        current(signal).is_some_and(|action| {
            to.get_or_init(|| action);
            true
        })
    };
    before(tick, &BEFORE_TICK)
        && before(libc::SIGTRAP, &BEFORE_TRAP)
        && set(libc::SIGTRAP, on_trap)
        && set(tick, on_tick)
}

fn set(signal: c_int, handler: extern "C" fn(c_int, *mut Info, *mut libc::ucontext_t)) -> bool {
    // SAFETY: a zeroed sigaction is an empty one; the handler has the signature of SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as *const () as usize;
        // On the thread's own stack: compiled code has made sure of room there, an alternative stack of the program's may be small.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        // The two share a thread's state.
        libc::sigaddset(&mut action.sa_mask, TICK.load(Relaxed));
        libc::sigaddset(&mut action.sa_mask, libc::SIGTRAP);
        libc::sigaction(signal, &action, std::ptr::null_mut()) == 0
    }
}

extern "C" fn on_tick(signal: c_int, info: *mut Info, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel's own, of SA_SIGINFO.
    let (seen, interrupted) = unsafe { (&*info, &mut *context) };
    let mut ours = false;
    if POLL.contains(&seen.code) {
        keeping_errno(|| ours = handler::tick(seen.data as c_int, &mut Context(interrupted)));
    }
    if !ours {
        pass_on(
            signal,
            info,
            context,
            &BEFORE_TICK,
            POLL.contains(&seen.code),
        );
    }
}

extern "C" fn on_trap(signal: c_int, info: *mut Info, context: *mut libc::ucontext_t) {
    // SAFETY: as in `on_tick`.
    let (seen, interrupted) = unsafe { (&*info, &mut *context) };
    let mut ours = false;
    if seen.code == TRAP_PERF {
        let late = seen.flags & ASYNCHRONOUS != 0;
        keeping_errno(|| ours = handler::trap(seen.data, late, &mut Context(interrupted)));
    }
    if !ours {
        pass_on(signal, info, context, &BEFORE_TRAP, false);
    }
}

/// Gives a signal to who had it before. `harmless`: one that would do nothing but end the program by default, sent by a descriptor that has been closed since.
fn pass_on(
    signal: c_int,
    info: *mut Info,
    context: *mut libc::ucontext_t,
    before: &OnceLock<libc::sigaction>,
    harmless: bool,
) {
    let Some(before) = before.get() else {
        return;
    };
    // SAFETY: the earlier action as the system gave it, called as the system would; for the default one the signal is sent again once the handler is left.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_IGN => {}
            libc::SIG_DFL if harmless => {}
            libc::SIG_DFL => {
                libc::sigaction(signal, before, std::ptr::null_mut());
                libc::syscall(
                    libc::SYS_tgkill,
                    c_long::from(libc::getpid()),
                    c_long::from(super::kernel::thread_id()),
                    c_long::from(signal),
                );
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let call: extern "C" fn(c_int, *mut c_void, *mut c_void) =
                    std::mem::transmute(handler);
                call(signal, info.cast(), context.cast());
            }
            handler => {
                let call: extern "C" fn(c_int) = std::mem::transmute(handler);
                call(signal);
            }
        }
    }
}

/// What a signal has interrupted.
pub struct Context<'a>(&'a mut libc::ucontext_t);

/// The order of general registers in a context, as encodings count them.
const ORDER: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

impl Context<'_> {
    /// Its registers.
    pub fn registers(&self) -> Registers {
        let value = |n: c_int| self.0.uc_mcontext.gregs[n as usize] as u64;
        Registers {
            general: ORDER.map(value),
            rip: value(libc::REG_RIP),
            flags: value(libc::REG_EFL),
            fs_base: None,
            gs_base: None,
        }
    }

    /// A copy with another program counter, stack and frame pointer, for who walks the stack. The interrupted code goes on as it was.
    pub fn at(&self, pc: u64, sp: u64, fp: u64) -> libc::ucontext_t {
        // SAFETY: a plain structure; its pointer to the floating-point state stays valid as long as the handler.
        let mut copy = unsafe { std::ptr::read(self.0) };
        let registers = &mut copy.uc_mcontext.gregs;
        registers[libc::REG_RIP as usize] = pc as i64;
        registers[libc::REG_RSP as usize] = sp as i64;
        registers[libc::REG_RBP as usize] = fp as i64;
        copy
    }
}
