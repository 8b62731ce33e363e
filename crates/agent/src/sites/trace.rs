//! Records a trace: which site allocated, and which object's identity hash was asked for, in a file that the helper writes by address
//! (`borescope_spool::trace`).
//!
//! The natives run on application threads in the middle of application code: no exception and no panic leaves them, and they hold no lock while they
//! call the VM. Disk space is allocated before the file is mapped: a full disk ends the trace, not the program.

use super::header::Layout;
use crate::jvmti::sys::{JObject, JniEnv};
use crate::jvmti::{Jni, Jvmti};
use crate::memory::{Addr, allocate, map_file, publish64, reserve_addresses};
use crate::memory::{load64, store8, store64, zero_pages};
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

/// Compiled by java/probe/build; a test checks that it agrees with its source.
pub const HELPER_CLASS: &[u8] =
    include_bytes!("../../../../java/probe/java/lang/BorescopeTrace.class");

/// Events that the file grows by.
const STEP: u64 = 8 << 20;
/// A byte for each site: numbers have at most 25 bits.
const SITES: u64 = 1 << 25;
/// A class has a `hashCode` of its own, or Object's.
const OWN: u8 = 1;
const OBJECTS: u8 = 2;
/// Tag of a class whose kind is known, less the kind: above those of classes and loaders.
const KINDS: i64 = 1 << 42;

static TRACE: OnceLock<Trace> = OnceLock::new();
static LINKED: AtomicBool = AtomicBool::new(false);
/// There will be no more room: each event asks for it then, and need not wait for a lock.
static FULL: AtomicBool = AtomicBool::new(false);

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
}

struct Classes {
    file: File,
    numbers: HashMap<String, u32>,
    failed: bool,
}

/// Whether a trace can be recorded in this JVM at all; the error says why not.
pub fn is_possible(layout: &Layout, dynamic: bool) -> Result<(), String> {
    match (layout.owner_bits(), dynamic) {
        (0, _) => Err(
            "a trace needs bits that compact object headers do not have: run with -XX:-UseCompactObjectHeaders".into(),
        ),
        (_, true) => Err("a trace needs the identity hashes for itself: leave out mode=dynamic or static".into()),
        _ => Ok(()),
    }
}

/// Makes the files, and defines and initialises the helper in java.base. The error is one line for the user.
pub fn install(jvmti: Jvmti, jni: Jni, layout: Layout, dir: &Path) -> Result<(), String> {
    let trace = Trace::new(jvmti, layout, dir).map_err(|e| {
        // Else it would seem that something was recorded.
        let _ = std::fs::remove_file(dir.join(EVENTS));
        format!("cannot make a trace in `{}`: {e}", dir.display())
    })?;
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
        if FULL.load(Relaxed) {
            return n < load64(self.events + slot::LIMIT as u64 * 8);
        }
        let mut growth = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while n >= growth.room {
            if FULL.load(Relaxed) || growth.extend(self.events).is_err() {
                FULL.store(true, Relaxed);
                return false;
            }
        }
        true
    }

    /// The number of an object's class; 0 = there are no more, or it cannot be written down: the trace ends.
    fn class_of(&self, jni: Jni, object: JObject) -> u32 {
        let class = jni.class_of(object);
        let signature = self.jvmti.signature(class);
        jni.forget(class);
        let number = signature.map_or(0, |signature| {
            let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
            classes.number(signature)
        });
        if number == 0 {
            self.end();
        }
        number
    }

    /// From here on everything counts as lost: what cannot be named must not be missing without a word.
    fn end(&self) {
        let mut growth = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        FULL.store(true, Relaxed);
        growth.end(self.events);
    }

    /// [`OWN`] or [`OBJECTS`].
    fn kind_of(&self, jni: Jni, object: JObject) -> u8 {
        let mut class = jni.class_of(object);
        let known = self.jvmti.tag(class);
        if known > KINDS {
            jni.forget(class);
            return (known - KINDS) as u8;
        }
        let of_object = class;
        let kind = loop {
            let declares = self.jvmti.declares(class, c"hashCode", c"()I");
            let above = jni.superclass(class);
            if class != of_object {
                jni.forget(class);
            }
            match (declares, above.is_null()) {
                (_, true) => break OBJECTS,
                (true, false) => {
                    jni.forget(above);
                    break OWN;
                }
                (false, false) => class = above,
            }
        };
        self.jvmti.set_tag(of_object, KINDS + i64::from(kind));
        jni.forget(of_object);
        kind
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

    /// There is room for no event that has no place yet.
    fn end(&mut self, events: Addr) {
        self.room = self.room.min(load64(events + slot::NEXT as u64 * 8));
        publish64(events + slot::LIMIT as u64 * 8, self.room);
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

    #[test]
    fn the_file_grows_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let events = reserve_addresses(MOST_EVENTS * 8).unwrap();
        let mut growth = Growth {
            file: spool::create_file(dir.path(), EVENTS).unwrap(),
            room: 0,
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
        store64(events + slot::NEXT as u64 * 8, 99);
        growth.end(events);
        growth.end(events);
        assert_eq!(load64(events + slot::LIMIT as u64 * 8), 99);
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
