//! What each Java thread carries along for its handlers. Made and given up by the thread itself, outside of handlers; found by number or by the clock's descriptor, since
//! thread-local storage may allocate on its first use. Records are used again, never freed: a signal may be on its way to a thread that has ended.
//! Must never happen here: a record in the hands of two threads.

use super::hotspot::{CallFrame, DEPTH, JavaThread};
use super::kernel::{self, Event};
use borescope_waste::{Mode, Reader, Seek, Tolerance, Watches};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

/// Most watches of a thread: one of x86's four registers is for seeking.
pub const WATCHES: usize = 3;
/// Threads at one time.
const MOST: usize = 1 << 16;
/// File descriptors that are known.
const DESCRIPTORS: usize = 1 << 20;

static THREADS: [AtomicPtr<Thread>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
/// The number of the thread, plus one, whose clock has a descriptor.
static CLOCKS: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
static FREE: Mutex<Free> = Mutex::new(Free {
    used: 0,
    list: Vec::new(),
});

struct Free {
    used: usize,
    list: Vec<u32>,
}

/// A debug register for data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Register {
    /// Opened once it is needed.
    pub event: Option<Event>,
    /// How it watches now; `None`: it rests.
    pub mode: Option<Mode>,
    /// The instruction that was sampled, until it has trapped.
    pub expected: Option<u64>,
    /// First byte of the thread's allocation buffer when the watch was armed.
    pub buffer: u64,
    /// The virtual thread then.
    pub mounted: u64,
}

/// An instruction that has trapped: program counter behind it, the code it is in, where it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    pub pc: u64,
    pub serial: u64,
    pub start: u64,
}

/// A thread's record.
pub struct Thread {
    /// Its number in traps' data.
    pub number: u32,
    /// The system's number of it; 0: it has ended.
    pub id: c_int,
    /// Its JNIEnv.
    pub env: *mut c_void,
    pub clock: Option<Event>,
    pub java: Option<JavaThread>,
    pub registers: [Register; WATCHES],
    pub execute: Option<Event>,
    pub watches: Watches<WATCHES>,
    pub reader: Reader,
    /// Under way, and where the thread would have allocated when it began.
    pub seek: Option<(Seek, u64)>,
    /// Collections that had begun when its watches were armed.
    pub generation: u64,
    pub met: [Met; 64],
    /// Ticks for which it makes do with fewer registers.
    pub patience: u32,
    pub frames: [CallFrame; DEPTH],
}

/// Makes the calling thread's record and starts its clock; the error is an errno, and everything is as before.
pub fn begin(
    env: *mut c_void,
    rate: u32,
    signal: c_int,
    watches: usize,
    tolerance: Tolerance,
) -> Result<(), c_int> {
    let id = kernel::thread_id();
    let number = {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        match free.list.pop() {
            Some(number) => number,
            None if free.used < MOST => {
                free.used += 1;
                free.used as u32 - 1
            }
            None => return Err(libc::EAGAIN),
        }
    };
    let clock = match Event::clock(rate, signal, id) {
        Ok(clock) => clock,
        Err(code) => {
            give_back(number);
            return Err(code);
        }
    };
    let descriptor = clock.descriptor();
    let Some(entry) = usize::try_from(descriptor)
        .ok()
        .and_then(|at| CLOCKS.get(at))
        .filter(|_| is_fair(descriptor))
    else {
        clock.close();
        give_back(number);
        return Err(libc::EMFILE);
    };
    let seed = (id as u64) << 32 ^ crate::vm::now_ms();
    let mut watching = Watches::new(seed, tolerance);
    watching.set_limit(watches);
    let record = Thread {
        number,
        id,
        env,
        clock: Some(clock),
        java: None,
        registers: [Register::default(); WATCHES],
        execute: None,
        watches: watching,
        reader: Reader::new(),
        seek: None,
        generation: 0,
        met: [Met::default(); 64],
        patience: 0,
        frames: [CallFrame {
            bci: 0,
            method: null_mut(),
        }; DEPTH],
    };
    let at = &THREADS[number as usize];
    let old = at.load(Acquire);
    if old.is_null() {
        at.store(Box::into_raw(Box::new(record)), Release);
    } else {
        // SAFETY: the record of a thread that has ended, and `number` was given to this one alone; its clock does not run yet.
        unsafe { *old = record };
    }
    entry.store(number + 1, Release);
    clock.wind();
    Ok(())
}

/// Whether one more descriptor leaves the program most of what it may open.
pub fn is_fair(descriptor: c_int) -> bool {
    u64::try_from(descriptor).is_ok_and(|n| n < kernel::most_files() / 4 * 3)
}

/// Ends the calling thread's record: `last` is done, descriptors are closed. No signal of ours comes in between. Nothing happens if it has none.
pub fn end(number: u32, last: impl FnOnce(&mut Thread)) {
    with(number, |thread| {
        last(thread);
        if let Some(clock) = thread.clock.take() {
            if let Ok(at) = usize::try_from(clock.descriptor()) {
                CLOCKS[at].store(0, Release);
            }
            clock.close();
        }
        let events = thread.registers.iter_mut().map(|r| r.event.take());
        for event in events.chain([thread.execute.take()]).flatten() {
            event.close();
        }
        thread.id = 0;
    });
    give_back(number);
}

fn give_back(number: u32) {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    free.list.push(number);
}

/// The number of the calling thread's record. Looks through all: not in a handler.
pub fn own() -> Option<u32> {
    let id = kernel::thread_id();
    let used = FREE.lock().unwrap_or_else(PoisonError::into_inner).used;
    (0..used as u32).find(|&number| with_id(number) == Some(id))
}

fn with_id(number: u32) -> Option<c_int> {
    let record = THREADS.get(number as usize)?.load(Acquire);
    // SAFETY: null or a record, which is never freed; an aligned int that only its thread writes, and only that thread's own number matters here.
    (!record.is_null()).then(|| unsafe { (&raw const (*record).id).read_volatile() })
}

/// The number of the thread whose clock this is.
pub fn of_clock(descriptor: c_int) -> Option<u32> {
    let entry = CLOCKS.get(usize::try_from(descriptor).ok()?)?;
    entry.load(Acquire).checked_sub(1)
}

/// Works on the calling thread's record; `None`: the number is not that of the calling thread.
pub fn with<T>(number: u32, f: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    if with_id(number)? != kernel::thread_id() {
        return None;
    }
    let record = THREADS[number as usize].load(Relaxed);
    // SAFETY: the calling thread's own record. Its two signals block each other while a handler runs, and are blocked in all other places that come here (`quietly`);
    // so nobody else has it.
    Some(f(unsafe { &mut *record }))
}

/// Runs something while neither of our signals comes to the calling thread.
pub fn quietly<T>(tick: c_int, f: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals on the stack, filled before they are used.
    unsafe {
        let mut ours: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut ours);
        libc::sigaddset(&mut ours, tick);
        libc::sigaddset(&mut ours, libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        result
    }
}
