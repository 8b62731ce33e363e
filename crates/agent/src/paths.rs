//! The paths lens: what the JVM tells us of class loads, thread ends, its end.

use crate::glob::Glob;
use crate::instrument::{self, HELPER, Instrumenter};
use crate::jvmti::sys::{self, JObject, JniEnv, JvmtiEnv, capability, event};
use crate::jvmti::{Jni, Jvmti};
use crate::memory::{Burst, Counters, Setup};
use crate::options::Options;
use crate::spool::{self, MetaLog};
use crate::{probes, say, vm};
use borescope_classfile::ClassFile;
use borescope_spool::meta::{self, Counting, Record, Skipped};
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// JDK classes that probes themselves run through, or that switch threads under a running method: always plain.
const NEVER: [&str; 13] = [
    "java/lang/Object",
    "java/lang/Thread*",
    "java/lang/BaseVirtualThread*",
    "java/lang/VirtualThread*",
    "java/lang/ThreadBuilders*",
    "java/lang/Class",
    "java/lang/BorescopeProbe",
    "java/lang/ref/Reference*",
    "java/lang/ref/Finalizer*",
    "jdk/internal/misc/*",
    "jdk/internal/vm/*",
    "jdk/internal/reflect/*",
    "java/lang/invoke/*",
];
/// Most classes in `Known::named`.
const MOST_NAMED: usize = 10_000;

static STATE: OnceLock<State> = OnceLock::new();

struct State {
    jvmti: Jvmti,
    options: Options,
    never: Vec<Glob>,
    log: OnceLock<MetaLog>,
    thread_id_field: OnceLock<usize>,
    known: Mutex<Known>,
    instrumenters: Mutex<Vec<Instrumenter>>,
}

#[derive(Default)]
struct Known {
    /// First method index by (name, hash of the bytes): the same bytes loaded again count in the same tables.
    classes: HashMap<(String, u64), Vec<u32>>,
    /// Classes named in the log that could come again and again.
    named: HashSet<String>,
}

/// Starts in Agent_OnLoad; the error is one line for the user.
pub fn start(jvmti: Jvmti, options: Options) -> Result<(), String> {
    let wanted = [
        capability::ALL_CLASS_HOOK_EVENTS,
        capability::RETRANSFORM_CLASSES,
        capability::RETRANSFORM_ANY_CLASS,
    ];
    if !jvmti.add_capabilities(&wanted) && !jvmti.add_capabilities(&wanted[..2]) {
        return Err("the JVM does not let agents change classes (capabilities refused). The program runs without borescope".into());
    }
    let state = State {
        jvmti,
        options,
        never: NEVER.iter().map(|g| Glob::new(g)).collect(),
        log: OnceLock::new(),
        thread_id_field: OnceLock::new(),
        known: Mutex::default(),
        instrumenters: Mutex::default(),
    };
    if STATE.set(state).is_err() {
        return Err("loaded twice into one JVM; the second is ignored".into());
    }
    let set = jvmti.set_callbacks(&[
        (event::VM_INIT, on_init as sys::OnThread as *const c_void),
        (event::VM_DEATH, on_death as sys::OnVmDeath as *const c_void),
        (
            event::THREAD_END,
            on_thread_end as sys::OnThread as *const c_void,
        ),
        (
            event::CLASS_FILE_LOAD_HOOK,
            on_class_file_load as sys::OnClassFileLoad as *const c_void,
        ),
        (
            event::CLASS_PREPARE,
            on_class_prepare as sys::OnClassPrepare as *const c_void,
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
    let o = &state.options;
    let out = PathBuf::from(&o.out);
    let dir = spool::create(&out).map_err(|e| {
        format!(
            "cannot make a spool directory in `{}`: {e}; choose another output directory",
            o.out
        )
    })?;
    let file = |name: &str| {
        spool::create_file(&dir, name)
            .map_err(|e| format!("cannot make `{}`: {e}", dir.join(name).display()))
    };
    let log = MetaLog::new(file("meta.log")?);
    if !log.append(&Record::Target(vm::target(state.jvmti, &state.options))) {
        return Err(format!(
            "cannot write to `{}`: the disk is full",
            dir.display()
        ));
    }
    let counters = Counters::new(
        file("counters.bin")?,
        &Setup {
            engine: o.engine,
            k: o.k,
            memory: o.memory,
            rows: o.rows,
            burst: o.one_in.map(|one_in| Burst {
                one_in,
                seed: o.seed.unwrap_or_else(vm::random),
            }),
        },
    )
    .map_err(|e| format!("cannot map counter memory in `{}`: {e}", dir.display()))?;
    let thread = jni.find_class(c"java/lang/Thread");
    let field = if thread.is_null() {
        std::ptr::null_mut()
    } else {
        jni.field(thread, c"tid", c"J")
    };
    if field.is_null() {
        return Err("java.lang.Thread has no field `tid` in this JDK".into());
    }
    let _ = state.thread_id_field.set(field as usize);
    // A trap has the interpreter call Math.addExact, where no probe may count it.
    let may_trap = !state.names("java/lang/Math");
    if !probes::install(jni, counters, may_trap) {
        return Err("the JVM refuses the probe helper class".into());
    }
    let _ = state.log.set(log);
    for e in [
        event::VM_DEATH,
        event::THREAD_END,
        event::CLASS_PREPARE,
        event::CLASS_FILE_LOAD_HOOK,
    ] {
        if !state.jvmti.enable(e) {
            return Err(format!("the JVM refuses event {e}"));
        }
    }
    instrument_loaded(state, jni);
    Ok(())
}

/// Classes that were there before the load hook was on: JDK classes asked for, and classes of agents that came first.
fn instrument_loaded(state: &State, jni: Jni) {
    let is_wanted = |name: &str, loader| state.wants(jni, loader, name);
    vm::retransform(state.jvmti, jni, usize::MAX, is_wanted, |name, why| {
        state.skip_class(name, why);
    });
}

unsafe extern "system" fn on_death(_: JvmtiEnv, _: JniEnv) {
    guard(|_| {
        if let Some(c) = probes::counters() {
            c.end(vm::now_ms());
        }
    });
}

unsafe extern "system" fn on_thread_end(_: JvmtiEnv, jni: JniEnv, thread: JObject) {
    guard(|state| {
        if let (Some(c), Some(&field)) = (probes::counters(), state.thread_id_field.get()) {
            // SAFETY: `field` is Thread.tid, a long.
            let tid = unsafe { Jni::new(jni).long_field(thread, field as *mut c_void) };
            c.threads.release(tid as u64);
        }
    });
}

unsafe extern "system" fn on_class_prepare(
    _: JvmtiEnv,
    jni: JniEnv,
    _thread: JObject,
    class: JObject,
) {
    guard(|state| {
        // Only hidden classes are of interest: they never come by the load hook. Their signature has a dot before the suffix.
        let Some(signature) = state.jvmti.signature(class) else {
            return;
        };
        let Some((name, _)) = signature.strip_prefix('L').and_then(|s| s.split_once('.')) else {
            return;
        };
        let jni = Jni::new(jni);
        let Some(loader) = state.jvmti.loader(class) else {
            return;
        };
        if state.wants(jni, loader, name) {
            // JDK 17 numbers lambda proxies before the suffix: Host$$Lambda$14.
            let name = name.split_once("$$Lambda").map_or(name, |(host, _)| host);
            let lambda = signature.contains("$$Lambda");
            let shown = if lambda {
                format!("{name}$$Lambda")
            } else {
                name.to_owned()
            };
            if state.first_time(&shown) {
                state.skip_class(&shown, if lambda {
                    "hidden class, not visible to agents (the lambda's body is counted in its host class)"
                } else {
                    "hidden class, not visible to agents"
                });
            }
        }
        jni.forget(loader);
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
                    let wanted = state.wants(jni, loader, name);
                    wanted.then(|| state.transform(jni, loader, name, bytes))?
                },
            );
        }
    });
}

impl State {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, record: &Record) -> bool {
        self.log.get().is_some_and(|l| l.append(record))
    }

    /// Whether a class that may come under many suffixes or many times is to be named in the report now.
    fn first_time(&self, name: &str) -> bool {
        let mut known = self.known();
        known.named.len() < MOST_NAMED && known.named.insert(name.to_owned())
    }

    fn skip_class(&self, name: &str, reason: &str) {
        self.log(&Record::Skipped(Skipped::class(name, reason)));
    }

    /// Whether the options name a class of the JDK.
    fn names(&self, name: &str) -> bool {
        let any = |globs: &[Glob]| globs.iter().any(|g| g.matches(name));
        any(&self.options.include) && !any(&self.options.exclude)
    }

    /// Whether a class is to be instrumented: named by an include, or not of the JDK; not excluded.
    fn wants(&self, jni: Jni, loader: JObject, name: &str) -> bool {
        let any = |globs: &[Glob]| globs.iter().any(|g| g.matches(name));
        let o = &self.options;
        if any(&o.exclude) {
            return false;
        }
        if o.include.is_empty() {
            return !vm::is_jdk(self.jvmti, jni, loader, name);
        }
        if !any(&o.include) {
            return false;
        }
        let never = any(&self.never);
        if never && name != HELPER && self.first_time(name) {
            self.skip_class(name, "the probes themselves run through it");
        }
        !never
    }

    fn transform(&self, jni: Jni, loader: JObject, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let counters = probes::counters()?;
        let class = match ClassFile::parse(bytes) {
            Ok(c) => c,
            Err(e) => {
                self.skip_class(name, &format!("cannot be read: {e}"));
                return None;
            }
        };
        if let Some(why) = instrument::refuse(&class) {
            self.skip_class(name, &why);
            return None;
        }
        // Another agent may hand us a class that has our probes already.
        if memchr::memmem::find(bytes, HELPER.as_bytes()).is_some() {
            self.skip_class(name, "has borescope's probes already");
            return None;
        }
        let hash = xxhash_rust::xxh3::xxh3_64(bytes);
        let key = (name.to_owned(), hash);
        let known = self.known().classes.get(&key).cloned();
        let mut instrumenter = self
            .instrumenters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default();
        let mut indices = None;
        let done = instrumenter.instrument(&class, self.options.instrumenting(), |counts| {
            indices = known.clone().or_else(|| counters.reserve(counts));
            indices.clone()
        });
        self.instrumenters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(instrumenter);
        let Some(done) = done else {
            self.skip_class(name, "no room for more counters");
            return None;
        };
        if known.is_none() {
            let record = meta::Class {
                name: name.to_owned(),
                loader: vm::loader_name(self.jvmti, jni, loader),
                hash,
                source_file: class.source_file().map(|s| s.to_string()),
                methods: done.methods,
                straight_line: done.straight_line,
            };
            for m in record
                .methods
                .iter()
                .filter(|m| m.counting != Counting::Slots)
            {
                let runs = done.with_runs.contains(&m.index);
                for group in 0..m.counting.slots(m.flow.num_paths) {
                    counters.set_method(m.index + group, m.flow.num_paths, runs);
                }
            }
            if !self.record(record, done.skipped) {
                return None;
            }
            self.known()
                .classes
                .insert(key, indices.unwrap_or_default());
        }
        done.bytes
    }

    /// Writes down how to decode a class before any of its probes can run; false = it could not be written.
    fn record(&self, class: meta::Class, skipped: Vec<Skipped>) -> bool {
        for s in skipped {
            self.log(&Record::Skipped(s));
        }
        class.methods.is_empty() && class.straight_line == 0 || self.log(&Record::Class(class))
    }
}

/// Runs a callback with the agent's state; no panic gets out.
fn guard(f: impl FnOnce(&'static State)) {
    if let Some(state) = STATE.get() {
        let _ = catch_unwind(AssertUnwindSafe(|| f(state)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a probe in such a class would call itself without end.
    #[test]
    fn the_helper_uses_no_class_that_may_have_probes() {
        let never: Vec<Glob> = NEVER.iter().map(|g| Glob::new(g)).collect();
        vm::check_helper(probes::HELPER_CLASS, &never);
        vm::check_helper(probes::TRAP_CLASS, &never);
    }
}
