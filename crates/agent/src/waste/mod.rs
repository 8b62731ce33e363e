//! The waste lens: which loads and stores of the machine code did no useful work, by sampling (docs/waste.md; how a sample goes: docs/waste-agent.md).
//!
//! What lives here: what is asked of the kernel ([`kernel`]) and of HotSpot ([`hotspot`]), the signals ([`signals`]) and what their handlers do ([`handler`]) with what each
//! thread carries along ([`threads`]), which machine code stands where ([`codemap`]), and the names of methods ([`methods`]). Comes in: ticks, traps, JVMTI events.
//! Goes out: `waste.bin`, which handlers write, and `meta.log`. Must never happen here: a class changed; a thread of the program that waits for another.

mod codemap;
mod handler;
mod hotspot;
mod kernel;
mod methods;
mod signals;
mod threads;

use crate::jvmti::sys::{self, JObject, JniEnv, JvmtiEnv, capability, event};
use crate::jvmti::{Jni, Jvmti, flags};
use crate::options::Options;
use crate::spool::{self, MetaLog};
use crate::{say, vm};
use borescope_spool::meta::Record;
use borescope_spool::waste::{FILE, Waste};
use borescope_waste::{Capacity, Source, Table, Tolerance};
use codemap::CodeMap;
use handler::Shared;
use hotspot::HotSpot;
use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, Release},
};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Slots of the table: 4 MB of contexts, 4 MB of pairs.
const CONTEXTS: usize = 1 << 18;
const PAIRS: usize = 1 << 16;
/// How often the names of new methods are written.
const EVERY: Duration = Duration::from_secs(1);
/// How long the end of the JVM waits for the thread that writes them.
const PATIENCE: Duration = Duration::from_millis(200);
/// Largest stub that is taken for one that fills or copies.
const LARGEST_STUB: c_int = 1 << 16;

static STATE: OnceLock<State> = OnceLock::new();

/// Why the lens cannot work here, and what helps.
#[derive(Debug, PartialEq, Eq)]
pub struct Cannot {
    cause: String,
    remedy: String,
}

impl Cannot {
    fn new(cause: &str, remedy: &str) -> Cannot {
        Cannot {
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }

    fn line(&self) -> String {
        format!("no waste lens: {}; {}", self.cause, self.remedy)
    }
}

struct State {
    jvmti: Jvmti,
    options: Options,
    spool: OnceLock<(PathBuf, MetaLog)>,
    /// Code that comes before the map of it is there is asked for again.
    writer: Mutex<Writer>,
    ended: Condvar,
    /// A thread could not be watched, which was said.
    short: AtomicBool,
}

#[derive(Default)]
struct Writer {
    known: HashSet<u64>,
    stop: bool,
    running: bool,
}

/// Starts in Agent_OnLoad; the error is one line for the user.
pub fn start(jvmti: Jvmti, options: Options) -> Result<(), String> {
    let wanted = [
        capability::COMPILED_METHOD_LOAD_EVENTS,
        capability::GARBAGE_COLLECTION_EVENTS,
        capability::GET_SOURCE_FILE_NAME,
        capability::GET_LINE_NUMBERS,
        capability::GET_BYTECODES,
        capability::GET_CONSTANT_POOL,
    ];
    if !jvmti.add_capabilities(&wanted) {
        return Err(
            "the JVM does not let agents look at compiled code (capabilities refused)".into(),
        );
    }
    let state = State {
        jvmti,
        options,
        spool: OnceLock::new(),
        writer: Mutex::default(),
        ended: Condvar::new(),
        short: AtomicBool::new(false),
    };
    if STATE.set(state).is_err() {
        return Err("loaded twice into one JVM; the second is ignored".into());
    }
    let set = jvmti.set_callbacks(&[
        (event::VM_INIT, on_init as sys::OnThread as *const c_void),
        (event::VM_DEATH, on_death as sys::OnVmDeath as *const c_void),
        (
            event::THREAD_START,
            on_thread_start as sys::OnThread as *const c_void,
        ),
        (
            event::THREAD_END,
            on_thread_end as sys::OnThread as *const c_void,
        ),
        (
            event::CLASS_LOAD,
            on_class_load as sys::OnClassLoad as *const c_void,
        ),
        (
            event::CLASS_PREPARE,
            on_class_prepare as sys::OnClassPrepare as *const c_void,
        ),
        (
            event::COMPILED_METHOD_LOAD,
            on_compiled as sys::OnCompiledMethodLoad as *const c_void,
        ),
        (
            event::COMPILED_METHOD_UNLOAD,
            on_unloaded as sys::OnCompiledMethodUnload as *const c_void,
        ),
        (
            event::DYNAMIC_CODE_GENERATED,
            on_stub as sys::OnDynamicCode as *const c_void,
        ),
        (
            event::GARBAGE_COLLECTION_START,
            on_collection as sys::OnCollection as *const c_void,
        ),
    ]);
    // From the start on: without CompiledMethodLoad HotSpot keeps no debug information between safepoints (DebugNonSafepoints), and without ClassLoad
    // AsyncGetCallTrace gives nothing.
    let early = [
        event::VM_INIT,
        event::CLASS_LOAD,
        event::CLASS_PREPARE,
        event::COMPILED_METHOD_LOAD,
    ];
    match set && early.into_iter().all(|e| jvmti.enable(e)) {
        true => Ok(()),
        false => Err("the JVM refuses event callbacks".into()),
    }
}

unsafe extern "system" fn on_init(_: JvmtiEnv, jni: JniEnv, _thread: JObject) {
    guard(|state| {
        if let Err(why) = begin(state, jni) {
            for e in [
                event::CLASS_LOAD,
                event::CLASS_PREPARE,
                event::COMPILED_METHOD_LOAD,
            ] {
                state.jvmti.disable(e);
            }
            say(&format!("{why}. The program runs without borescope"));
        }
    });
}

/// Everything between VMInit and the first application class.
fn begin(state: &'static State, env: JniEnv) -> Result<(), String> {
    let (jvmti, jni) = (state.jvmti, Jni::new(env));
    let o = &state.options.waste;
    if flags::flag("UseCompiler") == Some(false) || flags::flag("UseInterpreter").is_none() {
        return Err(Cannot::new(
            "this JVM compiles nothing (-Xint), and only compiled code is sampled",
            "leave out -Xint",
        )
        .line());
    }
    let collector = flags::collector();
    let found = signals::choose().ok_or_else(|| {
        Cannot::new(
            "the program uses SIGPROF and all real-time signals",
            "see TROUBLESHOOTING.md",
        )
        .line()
    })?;
    let registers = kernel::probe(o.rate, found).map_err(|why| why.line())?;
    let vm = HotSpot::find(collector).map_err(|why| why.line())?;
    let watches = usize::from(o.watches).min(registers - 1);
    let map = CodeMap::new(vm.code.0, vm.code.1)
        .map_err(|e| format!("cannot map a table of compiled code: {e}"))?;
    let dir = spool::create(&PathBuf::from(&state.options.out)).map_err(|e| {
        format!(
            "cannot make a spool directory in `{}`: {e}; choose another output directory",
            state.options.out
        )
    })?;
    let capacity = Capacity::new(CONTEXTS, PAIRS).ok_or("no such table")?;
    let words = table_file(&dir, capacity).map_err(|e| {
        format!(
            "cannot make `{}` of {} MB: {e}",
            dir.join(FILE).display(),
            capacity.words() >> 17
        )
    })?;
    let table = Table::make(words, capacity, Source::Software.code()).ok_or("no such table")?;
    let log = spool::create_file(&dir, "meta.log")
        .map_err(|e| format!("cannot make `{}`: {e}", dir.join("meta.log").display()))?;
    let log = MetaLog::new(log);
    let setup = Record::Waste(Waste {
        source: Source::Software,
        rate: o.rate,
        tolerance_ppm: (o.tolerance.get() * 1e6).round() as u32,
        watches: watches as u8,
        attached: false,
    });
    if !log.append(&Record::Target(vm::target(jvmti, &state.options))) || !log.append(&setup) {
        return Err(format!(
            "cannot write to `{}`: the disk is full",
            dir.display()
        ));
    }
    let _ = state.spool.set((dir, log));
    state.notice(&format!("source: software, ticks of CPU time; {}", pmu()));
    if watches < usize::from(o.watches) {
        state.notice(&format!(
            "{watches} of {} watches: a debugger or another profiler holds debug registers",
            o.watches
        ));
    }
    let shared = Shared {
        table,
        map,
        vm,
        rate: o.rate,
        watches,
        tolerance: o.tolerance,
        tick: found,
        collections: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
    };
    shared.publish();
    for class in jvmti.loaded_classes() {
        jvmti.number_methods(class);
        jni.forget(class);
    }
    let late = [
        event::COMPILED_METHOD_UNLOAD,
        event::DYNAMIC_CODE_GENERATED,
        event::GARBAGE_COLLECTION_START,
        event::THREAD_START,
        event::THREAD_END,
        event::VM_DEATH,
    ];
    for e in late {
        if !jvmti.enable(e) {
            return Err(format!("the JVM refuses event {e}"));
        }
    }
    // What was compiled and generated before the map was there.
    for e in [event::COMPILED_METHOD_LOAD, event::DYNAMIC_CODE_GENERATED] {
        if !jvmti.generate(e) {
            return Err("the JVM does not list its compiled code".into());
        }
    }
    if !signals::install(found) {
        return Err("the system refuses signal handlers".into());
    }
    let thread = jni.new_thread(c"borescope");
    if !thread.is_null() {
        state.writer().running = true;
        if !jvmti.run_thread(thread, write_names) {
            state.writer().running = false;
        }
    }
    begin_thread(state, env);
    Ok(())
}

/// Whether a PMU could be a source here, in words.
fn pmu() -> &'static str {
    let is = |path: &str| {
        Path::new("/sys/bus/event_source/devices")
            .join(path)
            .exists()
    };
    match (is("cpu/events/mem-loads"), is("ibs_op")) {
        (false, false) => "this machine has no PMU with precise events of memory (PEBS, IBS)",
        _ => {
            "this machine has a PMU with precise events of memory, which this version does not use"
        }
    }
}

/// `waste.bin`, with its whole size on the disk, mapped for good.
fn table_file(dir: &Path, capacity: Capacity) -> io::Result<&'static [AtomicU64]> {
    let bytes = capacity.words() * 8;
    let file: File = spool::create_file(dir, FILE)?;
    // SAFETY: allocates the file's space, so that no store to the mapping can fail; the mapping is shared, page-aligned, of the file's size, and never unmapped.
    unsafe {
        let rc = libc::posix_fallocate(file.as_raw_fd(), 0, bytes as i64);
        if rc != 0 {
            return Err(io::Error::from_raw_os_error(rc));
        }
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(at.cast(), capacity.words()))
    }
}

/// The thread that writes the names of methods.
unsafe extern "system" fn write_names(_: JvmtiEnv, jni: JniEnv, _: *mut c_void) {
    guard(|state| {
        let Some(shared) = Shared::get() else { return };
        let mut writer = state.writer();
        while !writer.stop {
            methods::log_new(state, Jni::new(jni), &shared.table, &mut writer.known);
            let waited = state.ended.wait_timeout(writer, EVERY);
            writer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        writer.running = false;
        state.ended.notify_all();
    });
}

unsafe extern "system" fn on_death(_: JvmtiEnv, jni: JniEnv) {
    guard(|state| {
        let Some(shared) = Shared::get() else { return };
        shared.stopped.store(true, Release);
        let mut writer = state.writer();
        methods::log_new(state, Jni::new(jni), &shared.table, &mut writer.known);
        // The VM waits 300 ms for a thread that it finds in native code, so it is to be gone.
        writer.stop = true;
        state.ended.notify_all();
        while writer.running {
            let (now, late) = state
                .ended
                .wait_timeout(writer, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            writer = now;
            if late.timed_out() {
                break;
            }
        }
        state.log(&Record::Ended {
            at_ms: vm::now_ms(),
        });
    });
}

unsafe extern "system" fn on_thread_start(_: JvmtiEnv, jni: JniEnv, _thread: JObject) {
    guard(|state| begin_thread(state, jni));
}

fn begin_thread(state: &State, env: JniEnv) {
    let Some(shared) = Shared::get().filter(|s| !s.stopped.load(Relaxed)) else {
        return;
    };
    // ThreadStart may come for the main thread, too, which has begun in VMInit. Two records of one thread would take each other's registers.
    if threads::own().is_some() {
        return;
    }
    let begun = threads::quietly(shared.tick, || {
        threads::begin(
            env.cast_mut().cast(),
            shared.rate,
            shared.tick,
            shared.watches,
            shared.tolerance,
        )
    });
    if let Err(code) = begun
        && !state.short.swap(true, Relaxed)
    {
        let why = io::Error::from_raw_os_error(code);
        state.notice(&format!(
            "some threads are not sampled: {why} (raise `ulimit -n`)"
        ));
    }
}

unsafe extern "system" fn on_thread_end(_: JvmtiEnv, _: JniEnv, _thread: JObject) {
    guard(|_| {
        let Some(shared) = Shared::get() else { return };
        threads::quietly(shared.tick, || {
            if let Some(number) = threads::own() {
                threads::end(number, |thread| handler::ending(thread, shared));
            }
        });
    });
}

/// Does nothing but be wanted: AsyncGetCallTrace asks whether somebody listens.
unsafe extern "system" fn on_class_load(_: JvmtiEnv, _: JniEnv, _: JObject, _: JObject) {}

unsafe extern "system" fn on_class_prepare(_: JvmtiEnv, _: JniEnv, _: JObject, class: JObject) {
    guard(|state| state.jvmti.number_methods(class));
}

unsafe extern "system" fn on_compiled(
    _: JvmtiEnv,
    _method: *mut c_void,
    bytes: c_int,
    address: *const c_void,
    _: c_int,
    _: *const c_void,
    _: *const c_void,
) {
    guard(|_| {
        if let Some(shared) = Shared::get() {
            shared
                .map
                .load(address as u64, u64::try_from(bytes).unwrap_or(0));
        }
    });
}

unsafe extern "system" fn on_unloaded(_: JvmtiEnv, _method: *mut c_void, address: *const c_void) {
    guard(|_| {
        if let Some(shared) = Shared::get() {
            shared.map.unload(address as u64);
        }
    });
}

unsafe extern "system" fn on_stub(
    _: JvmtiEnv,
    name: *const c_char,
    address: *const c_void,
    bytes: c_int,
) {
    guard(|_| {
        if name.is_null() || !(1..LARGEST_STUB).contains(&bytes) {
            return;
        }
        // SAFETY: the JVM passes a C string.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let moves = name.ends_with("_fill") || name.contains("arraycopy");
        if let Some(shared) = Shared::get().filter(|_| moves) {
            shared.map.stub(address as u64, bytes as u64);
        }
    });
}

unsafe extern "system" fn on_collection(_: JvmtiEnv) {
    if let Some(shared) = Shared::get() {
        shared.collecting();
    }
}

impl State {
    fn log(&self, record: &Record) -> bool {
        self.spool.get().is_some_and(|(_, log)| log.append(record))
    }

    fn notice(&self, line: &str) {
        self.log(&Record::Notice(line.into()));
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a callback with the agent's state; no panic gets out.
fn guard(f: impl FnOnce(&'static State)) {
    if let Some(state) = STATE.get() {
        let _ = catch_unwind(AssertUnwindSafe(|| f(state)));
    }
}

/// Options of the lens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Ticks for each second of CPU time.
    pub rate: u32,
    /// When two floating-point values are the same.
    pub tolerance: Tolerance,
    /// Watches of a thread.
    pub watches: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rate: 100,
            tolerance: Tolerance::default(),
            watches: threads::WATCHES as u8,
        }
    }
}

impl Settings {
    /// Takes one option, if it is one of the lens's; the error is one line for the user.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "rate" => {
                let rate = value.parse().ok().filter(|n| (1..=10_000).contains(n));
                self.rate = rate.ok_or_else(|| format!("rate must be a number of ticks for each second of CPU time, from 1 to 10000, not `{value}`"))?;
            }
            "tolerance" => {
                let tolerance = value.parse().ok().and_then(Tolerance::new);
                self.tolerance = tolerance.ok_or_else(|| {
                    format!(
                        "tolerance must be a number from 0 to below 1 (0.01 is 1 %), not `{value}`"
                    )
                })?;
            }
            _ => {
                let watches = value
                    .parse()
                    .ok()
                    .filter(|n| (1..=threads::WATCHES as u8).contains(n));
                self.watches = watches.ok_or_else(|| {
                    format!(
                        "watches must be a number from 1 to {}, not `{value}`",
                        threads::WATCHES
                    )
                })?;
            }
        }
        Ok(())
    }
}
