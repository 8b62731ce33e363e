//! The sites lens: each new object's header says which line allocated it; snapshots of the heap read that back.
//!
//! What lives here: the layout of headers ([`header`]), the helper that instrumented code calls ([`helper`]) and its tables ([`tables`]), what is
//! instrumented ([`classes`], [`constructors`], [`jdk`]), numbers that stand in identity hashes ([`numbers`]) and the JVM's own hashes ([`drawn`]), objects that must never be marked ([`shared`]), the heap walk ([`walk`]) and the classes that it meets ([`words`]), snapshots ([`snapshot`]) and who asks for them ([`control`]), and the recording of traces instead ([`trace`]). Comes in: classes, requests, the
//! JVM's end. Goes out: `meta.log` and the snapshots' files. Must never happen here: a header that is locked or hashed is overwritten; a number in
//! a header that the log does not know when the snapshot has its name.

mod classes;
mod constructors;
mod control;
mod drawn;
mod header;
mod helper;
mod jdk;
mod numbers;
mod shared;
mod snapshot;
mod tables;
mod trace;
mod walk;
mod words;

use crate::glob::Glob;
use crate::jvmti::sys::{self, JObject, JniEnv, JvmtiEnv, capability, event};
use crate::jvmti::{Jni, Jvmti};
use crate::options::{self, Options};
use crate::spool::{self, MetaLog};
use crate::{say, vm};
use borescope_spool::meta::Record;
use borescope_spool::sites::{Cause, Mode, Sites};
use classes::Known;
use header::Layout;
use numbers::{Numbering, Numbers};
use snapshot::Snapshots;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tables::Tables;

static STATE: Current = Current(AtomicPtr::new(null_mut()));
/// What the lens listens to while it is at work.
const EVENTS: [c_int; 4] = [
    event::VM_DEATH,
    event::RESOURCE_EXHAUSTED,
    event::CLASS_PREPARE,
    event::CLASS_FILE_LOAD_HOOK,
];
/// ResourceExhausted: the heap is full (jvmti.h).
const JAVA_HEAP: c_int = 2;
/// Tags of class loaders, above those of classes.
const FIRST_LOADER: i64 = 1 << 41;

/// The lens at work, if there is one: that of an agent that was attached may end, and begin again.
struct Current(AtomicPtr<State>);

impl Current {
    fn get(&self) -> Option<&'static State> {
        // SAFETY: null, or from `begin`; a state is never freed, since events that came before its end may still use it.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Makes a state the one at work; `None`: there is one.
    fn begin(&self, state: State) -> Option<&'static State> {
        let new = Box::into_raw(Box::new(state));
        match self.0.compare_exchange(null_mut(), new, AcqRel, Acquire) {
            Ok(_) => self.get(),
            Err(_) => {
                // SAFETY: from `into_raw` above, seen by nobody.
                drop(unsafe { Box::from_raw(new) });
                None
            }
        }
    }

    fn is(&self, state: &State) -> bool {
        self.get().is_some_and(|now| std::ptr::eq(now, state))
    }

    fn end(&self) {
        self.0.store(null_mut(), Release);
    }
}

struct State {
    jvmti: Jvmti,
    options: Options,
    never: Vec<Glob>,
    /// The agent came to a JVM that ran already.
    attached: bool,
    spool: OnceLock<Spool>,
    known: Mutex<Known>,
    constructors: Mutex<constructors::Known>,
    loaders: AtomicI64,
    collected: AtomicBool,
    /// A class may have come late.
    late: AtomicBool,
    snapshots: Mutex<Snapshots>,
    /// Our end of what ends the control thread.
    thread: Mutex<Option<UnixStream>>,
}

struct Spool {
    dir: PathBuf,
    log: MetaLog,
}

/// Starts in Agent_OnLoad; the error is one line for the user.
pub fn start(jvmti: Jvmti, options: Options) -> Result<(), String> {
    prepare(jvmti, options, false)?;
    match jvmti.enable(event::VM_INIT) {
        true => Ok(()),
        false => Err("the JVM refuses event callbacks".into()),
    }
}

/// Starts in Agent_OnAttach, all at once; after an error everything is as before.
pub fn attach(jvmti: Jvmti, jni: Jni, options: Options) -> Result<(), String> {
    if STATE.get().is_some() {
        return Err("the sites lens is at work in it already".into());
    }
    if options.sites.trace {
        return Err("a trace is recorded from the start of a program, not later".into());
    }
    // The helpers of the paths lens, or of another image of this library: another version, or a copy in a container.
    let mut other = false;
    for class in jvmti.loaded_classes() {
        let signature = jvmti.signature(class).unwrap_or_default();
        other |= signature == "Ljava/lang/BorescopeProbe;"
            || signature == "Ljava/lang/BorescopeSites;" && !helper::works();
        jni.forget(class);
    }
    if other {
        return Err("another borescope is or was in it: a JVM takes one lens, from one file, in its life; start it anew".into());
    }
    let state = prepare(jvmti, options, true)?;
    begin(state, jni).inspect_err(|_| {
        if let Some(spool) = state.spool.get() {
            spool.log.close();
            let _ = std::fs::remove_dir_all(&spool.dir);
        }
        drawn::end();
        state.end();
    })
}

/// Ends the lens, as far as that can be done: classes are as before, and the log is whole. What is marked stays marked.
fn stop(state: &State, jni: Jni) {
    // First of all: with the hook on, classes would come back instrumented.
    state.jvmti.disable(event::CLASS_FILE_LOAD_HOOK);
    state.restore_loaded(jni);
    drawn::end();
    snapshot::end_log(state);
    *state.thread() = None; // That is this one.
    state.end();
}

fn prepare(jvmti: Jvmti, options: Options, attached: bool) -> Result<&'static State, String> {
    let wanted = [
        capability::TAG_OBJECTS,
        capability::ALL_CLASS_HOOK_EVENTS,
        capability::RESOURCE_EXHAUSTION_HEAP_EVENTS,
        capability::RETRANSFORM_CLASSES,
        capability::RETRANSFORM_ANY_CLASS,
    ];
    if !jvmti.add_capabilities(&wanted) && !jvmti.add_capabilities(&wanted[..4]) {
        return Err(
            "the JVM does not let agents change classes and walk the heap (capabilities refused)"
                .into(),
        );
    }
    let state = State {
        jvmti,
        options,
        never: jdk::never(),
        attached,
        spool: OnceLock::new(),
        known: Mutex::default(),
        constructors: Mutex::default(),
        loaders: AtomicI64::new(FIRST_LOADER),
        collected: AtomicBool::new(false),
        late: AtomicBool::new(false),
        snapshots: Mutex::default(),
        thread: Mutex::default(),
    };
    let state = STATE.begin(state);
    let state = state.ok_or("loaded twice into one JVM; the second is ignored")?;
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
    match set {
        true => Ok(state),
        false => {
            state.end();
            Err("the JVM refuses event callbacks".into())
        }
    }
}

unsafe extern "system" fn on_init(_: JvmtiEnv, jni: JniEnv, _thread: JObject) {
    guard(|state| {
        if let Err(why) = begin(state, Jni::new(jni)) {
            drawn::end();
            say(&format!("{why}. The program runs without borescope"));
        }
    });
}

/// Everything between VMInit and the first application class, or while an agent is attached.
fn begin(state: &'static State, jni: Jni) -> Result<(), String> {
    let (jvmti, o) = (state.jvmti, &state.options);
    let version = jvmti.property(c"java.vm.version").unwrap_or_default();
    let feature = vm::feature_version(&version).unwrap_or_default();
    let layout = header::probe(jvmti, jni, feature)?;
    let numbering = numbering(o, &layout)?;
    if o.sites.trace {
        trace::is_possible(&layout, numbering.is_some())?;
    }
    // Before the first heap walk: from JDK 21 on, one gives each object a hash, and of those that are counted no number has to keep away.
    if numbering.is_some() {
        drawn::begin(jvmti, jni, numbers::LOWEST)?;
    }
    if !walk::calibrate(jvmti, jni) {
        return Err("heap walks of this JVM do not show where objects are".into());
    }
    words::calibrate(jvmti, jni, &layout);
    drawn::sample(jvmti, jni);
    let new = match helper::shared() {
        // From before, when the agent was attached the last time.
        Some(_) if helper::works() => None,
        Some(_) => return Err("the JVM refuses the helper class".into()),
        None => {
            let cannot =
                |e: std::io::Error| format!("cannot map the tables of allocation sites: {e}");
            let tables = Tables::new(match numbering {
                Some(_) => numbers::OWNER_BITS,
                None => layout.owner_bits(),
            });
            let tables = tables.map_err(cannot)?;
            if let Some(numbering) = numbering {
                numbers::begin(&tables, numbering).map_err(cannot)?;
            }
            Some(tables)
        }
    };
    let dir = spool::create(&PathBuf::from(&o.out)).map_err(|e| {
        format!(
            "cannot make a spool directory in `{}`: {e}; choose another output directory",
            o.out
        )
    })?;
    let log = spool::create_file(&dir, "meta.log")
        .map_err(|e| format!("cannot make `{}`: {e}", dir.join("meta.log").display()))?;
    let log = MetaLog::new(log);
    let record = Record::Sites(Sites {
        mode: match numbering {
            Some(Numbering::Dynamic) => Mode::Dynamic,
            Some(Numbering::Static) => Mode::Static,
            None => Mode::Spare,
        },
        hash_shift: layout.hash_shift(),
        spare_bits: layout.owner_bits(),
        jdk: o.sites.jdk,
        attribute: o.sites.attribute && o.sites.jdk,
        attached: state.attached,
        scheme: numbers::shared().map(Numbers::scheme),
    });
    if !log.append(&Record::Target(vm::target(jvmti, o))) || !log.append(&record) {
        return Err(format!(
            "cannot write to `{}`: the disk is full",
            dir.display()
        ));
    }
    let spool = state.spool.get_or_init(|| Spool { dir, log });
    match new {
        None => {
            if let Some((tables, _)) = helper::shared() {
                tables.begin_again();
            }
            if numbers::shared().is_some_and(|n| !n.log_again()) {
                return Err(format!(
                    "cannot write to `{}`: the disk is full",
                    spool.dir.display()
                ));
            }
        }
        Some(tables) => {
            if state.attached && !jvmti.enable(event::CLASS_PREPARE) {
                return Err("the JVM refuses event callbacks".into());
            }
            let class = helper::install(jni, tables, layout, state.attached);
            if class.is_null() {
                return Err("the JVM refuses the helper class".into());
            }
            if snapshot::walks_by_references() && !o.sites.trace {
                // Where there is no such hook, the last snapshot says that it may show dead objects.
                jni.call_static(class, c"collectAtEnd", c"()V", &[]);
            }
            jni.forget(class);
        }
    }
    if o.sites.trace {
        trace::install(jvmti, jni, layout, &spool.dir)?;
    }
    shared::hash_all(jvmti, jni);
    snapshot::note_hashes(state, jni)?;
    // A trace has no use for that one, and HotSpot writes a line to standard output for each OutOfMemoryError that it tells of.
    let heard = |e: &c_int| !(o.sites.trace && *e == event::RESOURCE_EXHAUSTED);
    for e in EVENTS.into_iter().filter(heard) {
        if !jvmti.enable(e) {
            return Err(format!("the JVM refuses event {e}"));
        }
    }
    state.instrument_loaded(jni);
    if !o.sites.trace && !control::start(state, jni, &spool.dir) {
        let line = "no control socket: snapshots only at the end and on OutOfMemoryError";
        state.log(&Record::Notice(line.into()));
    }
    Ok(())
}

/// How owners are to stand in identity hashes, `None` = above them; the error says why what is asked for cannot be.
fn numbering(options: &Options, layout: &Layout) -> Result<Option<Numbering>, String> {
    let compact = layout.owner_bits() == 0;
    let before = helper::shared().map(|_| numbers::shared().map(Numbers::numbering));
    let asked = match options.sites.mode {
        options::Mode::Auto => None,
        options::Mode::Spare => Some(None),
        options::Mode::Dynamic => Some(Some(Numbering::Dynamic)),
        options::Mode::Static => Some(Some(Numbering::Static)),
    };
    match (asked, before) {
        (None, Some(before)) => Ok(before),
        (None, None) => Ok(compact.then_some(Numbering::Dynamic)),
        (Some(None), _) if compact => Err(
            "compact object headers have no spare bits: leave out mode=spare, or run with -XX:-UseCompactObjectHeaders".into(),
        ),
        (Some(asked), Some(before)) if asked != before => Err(
            "its objects are marked in another mode since the lens was in it before: leave out mode".into(),
        ),
        (Some(asked), _) => Ok(asked),
    }
}

unsafe extern "system" fn on_death(_: JvmtiEnv, jni: JniEnv) {
    guard(|state| {
        if state.options.sites.trace {
            snapshot::end_log(state);
            return;
        }
        snapshot::end(state, Jni::new(jni));
        control::end(state);
    });
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
fn ending(jni: Jni) {
    guard(|state| {
        let o = &state.options.sites;
        if o.gc && !o.trace && state.jvmti.collect() {
            state.collected.store(true, Relaxed);
        }
        drawn::sample(state.jvmti, jni);
    });
}

unsafe extern "system" fn on_class_prepare(
    _: JvmtiEnv,
    jni: JniEnv,
    _thread: JObject,
    class: JObject,
) {
    guard(|state| {
        let jni = Jni::new(jni);
        helper::prepared(jni, state.jvmti, class);
        state.prepared(jni, class);
    });
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
        let jni = Jni::new(jni);
        // SAFETY: these are the JVM's arguments.
        unsafe {
            state.jvmti.change_class(
                name,
                (data, length),
                (new_data, new_length),
                |name, bytes| {
                    let whose = state.whose(jni, loader, name);
                    state.transform(jni, loader, name, whose, bytes)
                },
            );
        }
    });
}

impl State {
    /// No event comes any more.
    fn end(&self) {
        for e in EVENTS {
            self.jvmti.disable(e);
        }
        STATE.end();
    }

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

    fn thread(&self) -> MutexGuard<'_, Option<UnixStream>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Appends to the log of the lens at work.
fn log(record: &Record) -> bool {
    STATE.get().is_some_and(|state| state.log(record))
}
