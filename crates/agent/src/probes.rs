//! The probe helper: its class bytes, and the native methods that its slow paths call.
//!
//! These functions run on application threads in the middle of application code: no JNI call, no exception, no panic leaves them.

use crate::jvmti::Jni;
use crate::jvmti::sys::{JObject, JniEnv};
use crate::memory::Counters;
use std::ffi::{CStr, c_int, c_uchar, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Compiled by java/probe/build; a test checks that it agrees with its source.
pub const HELPER_CLASS: &[u8] =
    include_bytes!("../../../java/probe/java/lang/BorescopeProbe.class");
/// As well: what makes slow paths traps in C2's code.
pub const TRAP_CLASS: &[u8] =
    include_bytes!("../../../java/probe/java/lang/invoke/BorescopeTrap.class");

static COUNTERS: OnceLock<Counters> = OnceLock::new();

/// The counters of this JVM, once [`install`] has run.
pub fn counters() -> Option<&'static Counters> {
    COUNTERS.get()
}

/// Defines and initialises the helper in java.base; false = the VM refuses, and nothing may be instrumented. `may_trap` = slow paths may be traps in
/// C2's code, where the JDK has what that takes.
pub fn install(jni: Jni, counters: Counters, may_trap: bool) -> bool {
    if COUNTERS.set(counters).is_err() {
        return false;
    }
    if may_trap {
        let trap = jni.define_boot_class(c"java/lang/invoke/BorescopeTrap", TRAP_CLASS);
        TRAPS.store(
            !trap.is_null() && jni.initialise(trap, c"TRAPS", c"[B"),
            Relaxed,
        );
    }
    let class = jni.define_boot_class(c"java/lang/BorescopeProbe", HELPER_CLASS);
    !class.is_null() && jni.initialise(class, c"BASE", c"J") && LINKED.load(Relaxed)
}

static LINKED: AtomicBool = AtomicBool::new(false);
static TRAPS: AtomicBool = AtomicBool::new(false);

/// The helper's first native call, bound by name. Registering the rest from Agent code would make HotSpot warn about native methods
/// of java.base bound from outside (jni.cpp, RegisterNatives).
#[unsafe(no_mangle)]
extern "system" fn Java_java_lang_BorescopeProbe_link(jni: JniEnv, class: JObject) {
    let natives: [(&CStr, &CStr, *const c_void); 8] = [
        (c"config", c"(I)J", config as *const _),
        (c"lease", c"(JZ)J", lease as *const _),
        (c"newRoot", c"(JI)J", new_root as *const _),
        (c"draw", c"(J)J", draw as *const _),
        (c"miss", c"(JIZ)J", miss as *const _),
        (c"missRun", c"(JJI)J", miss_run as *const _),
        (c"missKsf", c"(JI)J", miss_ksf as *const _),
        (c"caught", c"(J)V", caught as *const _),
    ];
    LINKED.store(Jni::new(jni).register_natives(class, &natives), Relaxed);
}

/// Runs a slow path; a panic in it gives back `otherwise`, and the activation goes on uncounted.
fn guarded(otherwise: i64, f: impl FnOnce(&Counters) -> u64) -> i64 {
    catch_unwind(AssertUnwindSafe(|| counters().map(|c| f(c) as i64)))
        .ok()
        .flatten()
        .unwrap_or(otherwise)
}

extern "system" fn config(_: JniEnv, _: JObject, what: c_int) -> i64 {
    guarded(0, |c| {
        let (table, limit, shared, mask) = c.threads.addresses();
        match what {
            0 => table,
            1 => limit,
            2 => shared,
            3 => mask,
            4 => c.base(),
            5 => u64::from(c.window_length()),
            6 => u64::from(c.moves_to_front()),
            _ => u64::from(TRAPS.load(Relaxed)),
        }
    })
}

extern "system" fn lease(_: JniEnv, _: JObject, tid: i64, shares: c_uchar) -> i64 {
    guarded(0, |c| c.lease(tid as u64, shares != 0))
}

extern "system" fn new_root(_: JniEnv, _: JObject, block: i64, method: c_int) -> i64 {
    guarded(0, |c| c.new_root(block as u64, method as u32))
}

extern "system" fn draw(_: JniEnv, _: JObject, block: i64) -> i64 {
    // Without a draw, no activation for a long time rather than each.
    guarded(1 << 30, |c| c.draw(block as u64))
}

extern "system" fn miss(_: JniEnv, _: JObject, s: i64, r: c_int, last: c_uchar) -> i64 {
    guarded(s, |c| c.miss(s as u64, r as u32, last != 0))
}

extern "system" fn miss_run(_: JniEnv, _: JObject, s: i64, n: i64, r: c_int) -> i64 {
    guarded(s, |c| c.miss_run(s as u64, n as u64, r as u32))
}

extern "system" fn miss_ksf(_: JniEnv, _: JObject, s: i64, r: c_int) -> i64 {
    guarded(s, |c| c.miss_ksf(s as u64, r as u32))
}

extern "system" fn caught(_: JniEnv, _: JObject, s: i64) {
    guarded(0, |c| {
        c.caught(s as u64);
        0
    });
}
