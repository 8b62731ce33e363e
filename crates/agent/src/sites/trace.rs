//! Records a trace: which site allocated, and which object's identity hash was asked for, in a file that the helper writes by address
//! (`borescope_spool::trace`).
//!
//! The natives run on application threads in the middle of application code: no exception and no panic leaves them, and they hold no lock while they
//! call the VM. Disk space is allocated before the file is mapped: a full disk ends the trace, not the program.

use super::header::Layout;
use crate::jvmti::sys::{JObject, JniEnv};
use crate::jvmti::{Jni, Jvmti};
use crate::memory::{Addr, allocate, map_file, publish64, reserve_addresses};
use crate::memory::{store8, store64, zero_pages};
use crate::spool;
use borescope_spool::trace::{CLASS_LIMIT, CLASSES, EVENTS, MAGIC, MOST_EVENTS, slot};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_uchar, c_void};
use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// java/probe/java/lang/BorescopeTrace.java, once java/probe/build compiles it. Until then `Options::parse` refuses traces.
const HELPER_CLASS: &[u8] = &[];

/// Events that the file grows by.
const STEP: u64 = 8 << 20;
/// A byte for each site: numbers have at most 25 bits.
const SITES: u64 = 1 << 25;
/// A class has a `hashCode` of its own, or Object's.
const OWN: u8 = 1;
const OBJECTS: u8 = 2;

static TRACE: OnceLock<Trace> = OnceLock::new();
static LINKED: AtomicBool = AtomicBool::new(false);

struct Trace {
    jvmti: Jvmti,
    layout: Layout,
    events: Addr,
    by_site: Addr,
    by_class: Addr,
    file: Mutex<Growth>,
    classes: Mutex<Classes>,
}

struct Growth {
    file: File,
    /// Events that there is room for.
    room: u64,
    stopped: bool,
}

struct Classes {
    file: File,
    numbers: HashMap<String, u32>,
    failed: bool,
}

/// Makes the files, and defines and initialises the helper in java.base. The error is one line for the user.
pub fn install(jvmti: Jvmti, jni: Jni, layout: Layout, dir: &Path) -> Result<(), String> {
    if layout.owner_bits() == 0 {
        return Err("a trace needs headers with spare bits; compact headers have none".into());
    }
    let trace = Trace::new(jvmti, layout, dir)
        .map_err(|e| format!("cannot make a trace in `{}`: {e}", dir.display()))?;
    if TRACE.set(trace).is_err() {
        return Err("a trace is recorded already".into());
    }
    let class = jni.define_boot_class(c"java/lang/BorescopeTrace", HELPER_CLASS);
    let works = !class.is_null() && jni.initialise(class, c"EVENTS", c"J") && LINKED.load(Relaxed);
    if !class.is_null() {
        jni.forget(class);
    }
    match works {
        true => Ok(()),
        false => Err("the JVM refuses the helper class".into()),
    }
}

impl Trace {
    fn new(jvmti: Jvmti, layout: Layout, dir: &Path) -> std::io::Result<Self> {
        let events = reserve_addresses(MOST_EVENTS * 8)?;
        let mut growth = Growth {
            file: spool::create_file(dir, EVENTS)?,
            room: 0,
            stopped: false,
        };
        growth.extend(events)?;
        let header = |at: usize| events + at as u64 * 8;
        store64(header(slot::NEXT), slot::FIRST as u64);
        publish64(header(slot::MAGIC), MAGIC);
        Ok(Self {
            jvmti,
            layout,
            events,
            by_site: zero_pages(SITES)?,
            by_class: zero_pages(CLASS_LIMIT.into())?,
            file: Mutex::new(growth),
            classes: Mutex::new(Classes {
                file: spool::create_file(dir, CLASSES)?,
                numbers: HashMap::new(),
                failed: false,
            }),
        })
    }

    /// Makes room for event `n`.
    fn grow(&self, n: u64) -> bool {
        let mut growth = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while n >= growth.room && !growth.stopped {
            growth.stopped = growth.extend(self.events).is_err();
        }
        n < growth.room
    }

    /// The number of an object's class; 0 = there are no more, or it cannot be written down.
    fn class_of(&self, jni: Jni, object: JObject) -> u32 {
        let class = jni.class_of(object);
        let signature = self.jvmti.signature(class);
        jni.forget(class);
        let Some(signature) = signature else { return 0 };
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        classes.number(signature)
    }

    /// [`OWN`] or [`OBJECTS`].
    fn kind_of(&self, jni: Jni, object: JObject) -> u8 {
        let class = jni.class_of(object);
        let method = jni.method(class, c"hashCode", c"()I");
        jni.forget(class);
        if method.is_null() {
            return OWN;
        }
        let Some(declares) = self.jvmti.declaring_class(method) else {
            return OWN;
        };
        let signature = self.jvmti.signature(declares);
        jni.forget(declares);
        match signature.as_deref() {
            Some("Ljava/lang/Object;") => OBJECTS,
            _ => OWN,
        }
    }
}

impl Growth {
    fn extend(&mut self, events: Addr) -> std::io::Result<()> {
        let new = (self.room + STEP).min(MOST_EVENTS);
        if new == self.room {
            return Err(std::io::Error::other("the trace is full"));
        }
        let (from, to) = (self.room * 8, new * 8);
        allocate(&self.file, from, to)?;
        map_file(&self.file, events + from, from, to - from)?;
        self.room = new;
        publish64(events + slot::LIMIT as u64 * 8, new);
        Ok(())
    }
}

impl Classes {
    fn number(&mut self, signature: String) -> u32 {
        if let Some(&number) = self.numbers.get(&signature) {
            return number;
        }
        let number = self.numbers.len() as u32 + 1;
        let Ok(len) = u16::try_from(signature.len()) else {
            return 0;
        };
        if self.failed || number >= CLASS_LIMIT {
            return 0;
        }
        let record = [&len.to_le_bytes()[..], signature.as_bytes()].concat();
        // Behind a torn record nothing could be read.
        self.failed = self.file.write_all(&record).is_err();
        if self.failed {
            return 0;
        }
        self.numbers.insert(signature, number);
        number
    }
}

/// The helper's first native call, bound by name; see `probes.rs`.
#[unsafe(no_mangle)]
extern "system" fn Java_java_lang_BorescopeTrace_link(jni: JniEnv, class: JObject) {
    let natives: [(&CStr, &CStr, *const c_void); 4] = [
        (c"config", c"(I)J", config as *const _),
        (c"grow", c"(J)Z", grow as *const _),
        (c"classOf", c"(Ljava/lang/Object;)I", class_of as *const _),
        (c"kindOf", c"(Ljava/lang/Object;J)I", kind_of as *const _),
    ];
    LINKED.store(Jni::new(jni).register_natives(class, &natives), Relaxed);
}

extern "system" fn config(_: JniEnv, _: JObject, what: c_int) -> i64 {
    let Some(trace) = TRACE.get() else { return 0 };
    match what {
        0 => trace.events as i64,
        1 => trace.by_site as i64,
        2 => trace.by_class as i64,
        3 => trace.layout.hash_shift().into(),
        _ => trace.layout.owner_shift().into(),
    }
}

extern "system" fn grow(_: JniEnv, _: JObject, n: i64) -> c_uchar {
    guard(0, |trace| trace.grow(n as u64).into())
}

extern "system" fn class_of(jni: JniEnv, _: JObject, object: JObject) -> c_int {
    guard(0, |trace| trace.class_of(Jni::new(jni), object) as c_int)
}

extern "system" fn kind_of(jni: JniEnv, _: JObject, object: JObject, place: i64) -> c_int {
    guard(OWN.into(), |trace| {
        let kind = trace.kind_of(Jni::new(jni), object);
        if place != 0 {
            store8(place as Addr, kind);
        }
        kind.into()
    })
}

fn guard<T>(otherwise: T, f: impl FnOnce(&Trace) -> T) -> T {
    let Some(trace) = TRACE.get() else {
        return otherwise;
    };
    catch_unwind(AssertUnwindSafe(|| f(trace))).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::load64;

    #[test]
    fn the_file_grows_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let events = reserve_addresses(MOST_EVENTS * 8).unwrap();
        let mut growth = Growth {
            file: spool::create_file(dir.path(), EVENTS).unwrap(),
            room: 0,
            stopped: false,
        };
        growth.extend(events).unwrap();
        store64(events + (STEP - 1) * 8, 7);
        growth.extend(events).unwrap();
        store64(events + STEP * 8, 8);
        assert_eq!(load64(events + slot::LIMIT as u64 * 8), 2 * STEP);
        let file = std::fs::read(dir.path().join(EVENTS)).unwrap();
        assert_eq!(file.len() as u64, 2 * STEP * 8);
        assert_eq!(
            (file[(STEP as usize - 1) * 8], file[STEP as usize * 8]),
            (7, 8)
        );
        growth.room = MOST_EVENTS;
        assert!(growth.extend(events).is_err());
    }

    #[test]
    fn classes_are_numbered_as_they_stand_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut classes = Classes {
            file: spool::create_file(dir.path(), CLASSES).unwrap(),
            numbers: HashMap::new(),
            failed: false,
        };
        let numbers = ["La;", "[I", "La;"].map(|s| classes.number(s.into()));
        assert_eq!(numbers, [1, 2, 1]);
        let file = std::fs::read(dir.path().join(CLASSES)).unwrap();
        assert_eq!(file, b"\x03\x00La;\x02\x00[I");
        assert_eq!(classes.number("x".repeat(70_000)), 0);
    }
}
