//! The helper that instrumented code calls: its class bytes, and its native methods.
//!
//! These functions run on application threads in the middle of application code: no JNI call, no exception, no panic leaves them.

use super::header::Layout;
use super::numbers;
use super::tables::Tables;
use crate::jvmti::sys::{JObject, JValue, JniEnv};
use crate::jvmti::{Jni, Jvmti};
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Compiled by java/probe/build; a test checks that it agrees with its source.
pub const HELPER_CLASS: &[u8] =
    include_bytes!("../../../../java/probe/java/lang/BorescopeSites.class");

static SHARED: OnceLock<(Tables, Layout)> = OnceLock::new();
static LINKED: AtomicBool = AtomicBool::new(false);
/// While [`prepared`] has to do something.
static BINDS: AtomicBool = AtomicBool::new(false);
static WORKS: AtomicBool = AtomicBool::new(false);

/// The tables and the layout, once [`install`] has run.
pub fn shared() -> Option<&'static (Tables, Layout)> {
    SHARED.get()
}

/// Defines and initialises the helper in java.base; null = the VM refuses, and nothing may be instrumented. `attached`: the agent is being attached, and
/// [`prepared`] hears of classes.
pub fn install(jni: Jni, tables: Tables, layout: Layout, attached: bool) -> JObject {
    if SHARED.set((tables, layout)).is_err() {
        return null_mut();
    }
    let class = jni.define_boot_class(c"java/lang/BorescopeSites", HELPER_CLASS);
    if attached && !class.is_null() {
        initialise_from_java(jni);
    }
    let works = !class.is_null() && jni.initialise(class, c"THREADS", c"J") && LINKED.load(Relaxed);
    WORKS.store(works, Relaxed);
    if works { class } else { null_mut() }
}

/// HotSpot looks for `link` in the libraries of agents, but ours is none yet while `Agent_OnAttach` runs. To register it from here would be from outside java.base.
/// From an event on a thread that runs java.base it is not (jni.cpp, `RegisterNatives`, asks for the class of the second frame): the one that says that the
/// class is linked, which comes before it is initialised.
fn initialise_from_java(jni: Jni) {
    let class = jni.find_class(c"java/lang/Class");
    let name = jni.interned(c"java.lang.BorescopeSites");
    if !class.is_null() && !name.is_null() {
        let signature = c"(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;";
        let method = jni.static_method(class, c"forName", signature);
        let arguments = [
            JValue { object: name },
            JValue { long: 1 }, // A jvalue's smaller members are its first bytes.
            JValue { object: null_mut() },
        ];
        BINDS.store(true, Relaxed);
        if !method.is_null() {
            jni.forget(jni.call_static_object(class, method, &arguments));
        }
        BINDS.store(false, Relaxed);
    }
    jni.forget(class);
    jni.forget(name);
}

/// A class is linked; if it is the helper that is being installed, it gets its first native.
pub fn prepared(jni: Jni, jvmti: Jvmti, class: JObject) {
    if BINDS.load(Relaxed)
        && jvmti.signature(class).as_deref() == Some("Ljava/lang/BorescopeSites;")
    {
        let link = Java_java_lang_BorescopeSites_link as *const c_void;
        jni.register_natives(class, &[(c"link", c"()V", link)]);
    }
}

/// Whether the helper in this JVM is ours.
pub fn works() -> bool {
    WORKS.load(Relaxed)
}

/// The helper's first native call, bound by name; see `probes.rs`.
#[unsafe(no_mangle)]
extern "system" fn Java_java_lang_BorescopeSites_link(jni: JniEnv, class: JObject) {
    let natives: [(&CStr, &CStr, *const c_void); 5] = [
        (c"config", c"(I)J", config as *const _),
        (c"resolve", c"(II)I", resolve as *const _),
        (c"ending", c"()V", ending as *const _),
        (c"stamp", c"(Ljava/lang/Object;II)J", stamp as *const _),
        (c"shorten", c"(IJ)V", shorten as *const _),
    ];
    LINKED.store(Jni::new(jni).register_natives(class, &natives), Relaxed);
}

extern "system" fn config(_: JniEnv, _: JObject, what: c_int) -> i64 {
    let Some((tables, layout)) = shared() else {
        return 0;
    };
    match (tables.addresses().get(what as usize), what) {
        (Some(&address), _) => address as i64,
        (None, 7) => layout.hash_shift().into(),
        (None, 8) => layout.owner_shift().into(),
        (None, 9) => layout.cared() as i64,
        (None, 10) => numbers::shared().map_or(0, |n| n.stamps() as i64),
        (None, _) => layout.classes().into(),
    }
}

/// The application's shutdown hooks have run, the collector's threads have not been stopped yet.
extern "system" fn ending(jni: JniEnv, _: JObject) {
    super::ending(Jni::new(jni));
}

extern "system" fn resolve(_: JniEnv, _: JObject, site: c_int, call: c_int) -> c_int {
    let owner = || shared().map_or(0, |(tables, _)| tables.resolve(site as u32, call as u32));
    catch_unwind(AssertUnwindSafe(owner)).unwrap_or(0) as c_int
}

/// Calls into JNI and JVMTI, but runs no Java code: it is called by Java code, which has no exception pending.
extern "system" fn stamp(jni: JniEnv, _: JObject, object: JObject, owner: c_int, ty: c_int) -> i64 {
    let word = || {
        let (tables, _) = shared()?;
        let numbers = numbers::shared()?;
        let jvmti = super::STATE.get()?.jvmti;
        let class = || numbers::class_of(jvmti, Jni::new(jni), object);
        Some(numbers.stamp(tables, owner as u32, ty as u32, class))
    };
    let word = catch_unwind(AssertUnwindSafe(word));
    word.ok().flatten().unwrap_or(0) as i64
}

extern "system" fn shorten(_: JniEnv, _: JObject, owner: c_int, seen: i64) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let (Some((tables, _)), Some(numbers)) = (shared(), numbers::shared()) {
            numbers.shorten(tables, owner as u32, seen as u64);
        }
    }));
}
