//! The agent: `libborescope.so`, loaded into the JVM by `-agentpath`. It instruments classes as they load, gives the probes
//! their memory, and writes down how to decode what they count or mark. One lens at a time: `paths`, `sites` or `waste`. The only room of borescope with `unsafe`.
//!
//! Comes in: classes (ClassFileLoadHook), probe slow paths, thread ends. Goes out: a spool directory (`borescope_spool`). Must never
//! happen here: an exception, a deadlock, a verify error or a crash in the application; when in doubt the class stays plain.

mod events;
pub mod glob;
pub mod instrument;
mod jvmti;
pub mod memory;
pub mod options;
mod paths;
mod probes;
mod sites;
mod spool;
mod vm;
mod waste;

use jvmti::sys::JavaVm;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Entry point at JVM start (JVMTI specification, "Agent Start-Up"). Always lets the JVM go on: if the agent cannot work it
/// says so in one line and leaves the program alone.
///
/// # Safety
/// Called by the JVM with its own pointers.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: JavaVm,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    let outcome = std::panic::catch_unwind(|| {
        // SAFETY: the JVM passes null or a C string.
        let text = unsafe { text(options) };
        // SAFETY: `vm` comes from the JVM.
        unsafe { events::start(vm, &text) }
    });
    if let Ok(Err(why)) = outcome {
        say(&why);
    }
    0
}

/// Entry point in a JVM that runs (JVMTI specification, "Agent Start-Up in the Live Phase"). Gives 0 once the lens works; otherwise nothing is changed in
/// the program, and who loads the agent reads why in a file (`events::REFUSED`), since the program's streams are its own.
///
/// # Safety
/// Called by the JVM with its own pointers.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: JavaVm,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    let outcome = std::panic::catch_unwind(|| {
        // SAFETY: the JVM passes null or a C string.
        let text = unsafe { text(options) };
        // SAFETY: `vm` comes from the JVM.
        unsafe { events::attach(vm, &text) }
    });
    match outcome {
        Ok(true) => 0,
        _ => 1,
    }
}

/// # Safety
/// `options` is null or a C string.
unsafe fn text(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: by contract.
    let text = unsafe { CStr::from_ptr(options) };
    text.to_string_lossy().into_owned()
}

/// One line to the user, on standard error.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "borescope: {line}");
}
