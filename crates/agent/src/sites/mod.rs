//! The sites lens: each new object's header says which line allocated it; snapshots of the heap read that back.
//!
//! What lives here: the layout of headers ([`header`]), the helper that instrumented code calls ([`helper`]) and its tables ([`tables`]), what is
//! instrumented ([`classes`], [`constructors`], [`jdk`]), objects that must never be marked ([`shared`]), the heap walk ([`walk`]), snapshots ([`snapshot`]) and who asks for them ([`control`]). Comes in: classes, requests, the
//! JVM's end. Goes out: `meta.log` and the snapshots' files. Must never happen here: a header that is locked or hashed is overwritten; a number in
//! a header that the log does not know when the snapshot has its name.

mod classes;
mod constructors;
mod control;
mod header;
mod helper;
mod jdk;
mod shared;
mod snapshot;
mod tables;
mod walk;

use crate::glob::Glob;
use crate::jvmti::sys::{self, JObject, JniEnv, JvmtiEnv, capability, event};
use crate::jvmti::{Jni, Jvmti};
use crate::options::Options;
use crate::spool::{self, MetaLog};
use crate::{say, vm};
use borescope_spool::meta::Record;
use borescope_spool::sites::{Cause, Mode, Sites};
use classes::Known;
use snapshot::Snapshots;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tables::Tables;

static STATE: OnceLock<State> = OnceLock::new();
/// ResourceExhausted: the heap is full (jvmti.h).
const JAVA_HEAP: c_int = 2;
/// Tags of class loaders, above those of classes.
const FIRST_LOADER: i64 = 1 << 41;

struct State {
    jvmti: Jvmti,
    options: Options,
    never: Vec<Glob>,
    spool: OnceLock<Spool>,
    known: Mutex<Known>,
    constructors: Mutex<constructors::Known>,
    loaders: AtomicI64,
    collected: AtomicBool,
    snapshots: Mutex<Snapshots>,
}

struct Spool {
    dir: PathBuf,
    log: MetaLog,
}

/// Starts in Agent_OnLoad; the error is one line for the user.
pub fn start(jvmti: Jvmti, options: Options) -> Result<(), String> {
    let wanted = [
        capability::TAG_OBJECTS,
        capability::ALL_CLASS_HOOK_EVENTS,
        capability::RESOURCE_EXHAUSTION_HEAP_EVENTS,
        capability::RETRANSFORM_CLASSES,
        capability::RETRANSFORM_ANY_CLASS,
    ];
    if !jvmti.add_capabilities(&wanted) && !jvmti.add_capabilities(&wanted[..4]) {
        return Err("the JVM does not let agents change classes and walk the heap (capabilities refused). The program runs without borescope".into());
    }
    let state = State {
        jvmti,
        options,
        never: jdk::never(),
        spool: OnceLock::new(),
        known: Mutex::default(),
        constructors: Mutex::default(),
        loaders: AtomicI64::new(FIRST_LOADER),
        collected: AtomicBool::new(false),
        snapshots: Mutex::default(),
    };
    if STATE.set(state).is_err() {
        return Err("loaded twice into one JVM; the second is ignored".into());
    }
    let set = jvmti.set_callbacks(&[
        (event::VM_INIT, on_init as sys::OnThread as *const c_void),
        (event::VM_DEATH, on_death as sys::OnVmDeath as *const c_void),
        (
            event::CLASS_FILE_LOAD_HOOK,
            on_class_file_load as sys::OnClassFileLoad as *const c_void,
        ),
        (
            event::CLASS_PREPARE,
            on_class_prepare as sys::OnClassPrepare as *const c_void,
        ),
        (
            event::RESOURCE_EXHAUSTED,
            on_exhausted as sys::OnResourceExhausted as *const c_void,
        ),
    ]);
    if !set || !jvmti.enable(event::VM_INIT) {
        return Err("the JVM refuses event callbacks. The program runs without borescope".into());
    }
    Ok(())
}

unsafe extern "system" fn on_init(_: JvmtiEnv, jni: JniEnv, _thread: JObject) {
    guard(|state| {
        if let Err(why) = begin(state, Jni::new(jni)) {
            say(&format!("{why}. The program runs without borescope"));
        }
    });
}

/// Everything between VMInit and the first application class.
fn begin(state: &'static State, jni: Jni) -> Result<(), String> {
    let (jvmti, o) = (state.jvmti, &state.options);
    let version = jvmti.property(c"java.vm.version").unwrap_or_default();
    let feature = vm::feature_version(&version).unwrap_or_default();
    let layout = header::probe(jvmti, jni, feature)?;
    if !walk::calibrate(jvmti, jni) {
        return Err("heap walks of this JVM do not show where objects are".into());
    }
    let tables = Tables::new(layout.owner_bits())
        .map_err(|e| format!("cannot map the tables of allocation sites: {e}"))?;
    let dir = spool::create(&PathBuf::from(&o.out)).map_err(|e| {
        format!(
            "cannot make a spool directory in `{}`: {e}; choose another output directory",
            o.out
        )
    })?;
    let log = spool::create_file(&dir, "meta.log")
        .map_err(|e| format!("cannot make `{}`: {e}", dir.join("meta.log").display()))?;
    let log = MetaLog::new(log);
    let first = Record::Sites(Sites {
        mode: Mode::Spare,
        hash_shift: layout.hash_shift(),
        spare_bits: layout.owner_bits(),
        jdk: o.sites.jdk,
        attribute: o.sites.attribute && o.sites.jdk,
        attached: false,
    });
    if !log.append(&Record::Target(vm::target(jvmti, o))) || !log.append(&first) {
        return Err(format!(
            "cannot write to `{}`: the disk is full",
            dir.display()
        ));
    }
    let class = helper::install(jni, tables, layout);
    if class.is_null() {
        return Err("the JVM refuses the helper class".into());
    }
    shared::hash_all(jvmti, jni);
    if snapshot::walks_by_references() {
        // Where there is no such hook, the last snapshot says that it may show dead objects.
        jni.call_static(class, c"collectAtEnd", c"()V", &[]);
    }
    jni.forget(class);
    let spool = state.spool.get_or_init(|| Spool { dir, log });
    for e in [
        event::VM_DEATH,
        event::RESOURCE_EXHAUSTED,
        event::CLASS_PREPARE,
        event::CLASS_FILE_LOAD_HOOK,
    ] {
        if !jvmti.enable(e) {
            return Err(format!("the JVM refuses event {e}"));
        }
    }
    state.instrument_loaded(jni);
    if !control::start(state, jni, &spool.dir) {
        let line = "no control socket: snapshots only at the end and on OutOfMemoryError";
        state.log(&Record::Notice(line.into()));
    }
    Ok(())
}

unsafe extern "system" fn on_death(_: JvmtiEnv, jni: JniEnv) {
    guard(|state| snapshot::end(state, Jni::new(jni)));
}

/// The thread that could not allocate comes here before it throws. It was at a place where it may wait for a collection, so it may as well wait
/// for a heap walk (memAllocator.cpp, `check_out_of_memory`; jvmtiExport.cpp, `post_resource_exhausted`).
unsafe extern "system" fn on_exhausted(
    _: JvmtiEnv,
    jni: JniEnv,
    flags: c_int,
    _reserved: *const c_void,
    _description: *const c_char,
) {
    guard(|state| {
        if flags & JAVA_HEAP != 0 {
            let _ = snapshot::take(state, Jni::new(jni), Cause::OutOfMemory);
            // One is enough, and with this event HotSpot writes a line to standard output for each OutOfMemoryError.
            state.jvmti.disable(event::RESOURCE_EXHAUSTED);
        }
    });
}

/// Called by the helper where collections are not possible later.
fn ending() {
    guard(|state| {
        if state.options.sites.gc && state.jvmti.collect() {
            state.collected.store(true, Relaxed);
        }
    });
}

unsafe extern "system" fn on_class_prepare(
    _: JvmtiEnv,
    jni: JniEnv,
    _thread: JObject,
    class: JObject,
) {
    guard(|state| state.prepared(Jni::new(jni), class));
}

unsafe extern "system" fn on_class_file_load(
    _: JvmtiEnv,
    jni: JniEnv,
    _redefined: JObject,
    loader: JObject,
    name: *const c_char,
    _domain: JObject,
    length: c_int,
    data: *const c_uchar,
    new_length: *mut c_int,
    new_data: *mut *mut c_uchar,
) {
    guard(|state| {
        if name.is_null() || data.is_null() {
            return;
        }
        // SAFETY: the JVM passes a C string and `length` bytes.
        let (name, bytes) = unsafe {
            (
                CStr::from_ptr(name).to_string_lossy(),
                std::slice::from_raw_parts(data, length as usize),
            )
        };
        let jni = Jni::new(jni);
        let whose = state.whose(jni, loader, &name);
        let new = state.transform(jni, loader, &name, whose, bytes);
        if let Some((new, copy)) =
            new.and_then(|new| Some((new.len(), state.jvmti.copy_out(&new)?)))
        {
            // SAFETY: the JVM passes places for the result, which it takes over.
            unsafe {
                *new_data = copy;
                *new_length = new as c_int;
            }
        }
    });
}

impl State {
    fn log(&self, record: &Record) -> bool {
        self.spool.get().is_some_and(|s| s.log.append(record))
    }

    /// The number of a class loader, null = boot.
    fn loader(&self, loader: JObject) -> u64 {
        if loader.is_null() {
            return constructors::BOOT;
        }
        match self.jvmti.tag(loader) {
            0 => {
                let new = self.loaders.fetch_add(1, Relaxed);
                match self.jvmti.set_tag(loader, new) {
                    true => self.jvmti.tag(loader) as u64,
                    false => new as u64,
                }
            }
            tag => tag as u64,
        }
    }

    fn constructors(&self) -> MutexGuard<'_, constructors::Known> {
        self.constructors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshots(&self) -> MutexGuard<'_, Snapshots> {
        self.snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a callback with the agent's state; no panic gets out.
fn guard(f: impl FnOnce(&'static State)) {
    if let Some(state) = STATE.get() {
        let _ = catch_unwind(AssertUnwindSafe(|| f(state)));
    }
}
