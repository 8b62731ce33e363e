//! The independent witness of the end-to-end tests: a JVMTI agent that records which bytecode indices each activation of the chosen
//! methods executed, in order, by single-stepping the interpreter.
//!
//! In: `-agentpath:libborescope_witness.so=classes=GLOB[:GLOB...],out=FILE` on a JVM that runs with
//! `-Xint -XX:-RewriteFrequentPairs` (fused instructions are stepped as one). Out: FILE, written at the JVM's
//! death, with lines of tab-separated fields:
//!
//! ```text
//! class   INDEX  NAME  HEX          class bytes as the load hook saw them, once for each distinct (name, bytes)
//! method  INDEX  CLASS-INDEX  NAME  DESCRIPTOR
//! run     METHOD-INDEX  COUNT  Return|Exception|Live   bci bci !bci ...      '!' = reached by catching an exception
//! error   MESSAGE                   something the record is wrong about
//! end
//! ```
//!
//! It knows nothing of control-flow graphs, numberings or borescope: nothing of those may ever be used here.

mod record;
mod sys;

use record::{End, Recorder, Stack};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use sys::{Env, Jvmti, MethodId, Object, capability, event};

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// The JVM's entry point for agents on its command line.
///
/// # Safety
/// Called by the JVM with its `JavaVM*` and a NUL-terminated (or null) option string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnLoad(
    vm: *mut *const *const c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> i32 {
    let text = if options.is_null() {
        String::new()
    } else {
        // SAFETY: the JVM passes a NUL-terminated string.
        unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned()
    };
    let started = Recorder::from_options(&text).and_then(|recorder| {
        let _ = RECORDER.set(recorder);
        // SAFETY: `vm` is the pointer the JVM gave us.
        unsafe { start(vm) }.map_err(|code| format!("JVMTI error {code}"))
    });
    match started {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("witness: {message}");
            1
        }
    }
}

/// # Safety
/// `vm` is the pointer `Agent_OnLoad` was given.
unsafe fn start(vm: *mut *const *const c_void) -> Result<(), i32> {
    // SAFETY: as the caller promises.
    let jvmti = unsafe { Jvmti::get(vm)? };
    jvmti.add_capabilities(&[
        capability::TAG_OBJECTS,
        capability::SINGLE_STEP,
        capability::EXCEPTIONS,
        capability::METHOD_ENTRY,
        capability::METHOD_EXIT,
        capability::ALL_CLASS_HOOK,
        capability::VIRTUAL_THREADS,
    ])?;
    let handlers: [(usize, *const c_void); 8] = [
        (event::VM_INIT, vm_init as *const c_void),
        (event::VM_DEATH, vm_death as *const c_void),
        (
            event::CLASS_FILE_LOAD_HOOK,
            class_file_load_hook as *const c_void,
        ),
        (event::CLASS_PREPARE, class_prepare as *const c_void),
        (event::EXCEPTION_CATCH, exception_catch as *const c_void),
        (event::SINGLE_STEP, single_step as *const c_void),
        (event::METHOD_ENTRY, method_entry as *const c_void),
        (event::METHOD_EXIT, method_exit as *const c_void),
    ];
    let mut callbacks = [std::ptr::null(); event::SLOTS];
    for (number, handler) in handlers {
        callbacks[number - event::MIN] = handler;
    }
    jvmti.set_callbacks(&callbacks)?;
    for (number, _) in handlers {
        if number != event::SINGLE_STEP {
            jvmti.enable(number)?;
        }
    }
    Ok(())
}

/// Single-stepping has no effect when it is enabled before the JVM is live (seen on JDK 17 and 25).
extern "C" fn vm_init(env: Env, _jni: *mut c_void, _thread: Object) {
    let enabled = Jvmti::from_raw(env).enable(event::SINGLE_STEP);
    if let (Err(code), Some(recorder)) = (enabled, RECORDER.get()) {
        recorder.error(format!("cannot single-step: {code}"));
    }
}

/// The recorded method behind `id` with the current thread's stack.
fn recorded(env: Env, id: MethodId) -> Option<(&'static Recorder, u32, &'static Stack)> {
    let recorder = RECORDER.get()?;
    let method = recorder.method(id as usize)?;
    let jvmti = Jvmti::from_raw(env);
    match jvmti.local() {
        Ok(data) if data.is_null() => {
            let stack = recorder.new_stack();
            if let Err(code) = jvmti.set_local(std::ptr::from_ref(stack).cast()) {
                recorder.error(format!("SetThreadLocalStorage: {code}"));
            }
            Some((recorder, method, stack))
        }
        // SAFETY: the only pointers stored are `&'static Stack`.
        Ok(data) => Some((recorder, method, unsafe { &*data.cast::<Stack>() })),
        Err(code) => {
            recorder.error(format!("GetThreadLocalStorage: {code}"));
            None
        }
    }
}

extern "C" fn method_entry(env: Env, _jni: *mut c_void, _thread: Object, id: MethodId) {
    if let Some((recorder, method, stack)) = recorded(env, id) {
        recorder.enter(stack, method);
    }
}

extern "C" fn method_exit(
    env: Env,
    _jni: *mut c_void,
    _thread: Object,
    id: MethodId,
    exception: u8,
    _value: u64,
) {
    if let Some((recorder, method, stack)) = recorded(env, id) {
        let end = if exception != 0 {
            End::Exception
        } else {
            End::Return
        };
        recorder.exit(stack, method, end);
    }
}

extern "C" fn single_step(
    env: Env,
    _jni: *mut c_void,
    _thread: Object,
    id: MethodId,
    location: i64,
) {
    if let Some((recorder, method, stack)) = recorded(env, id) {
        recorder.step(stack, method, location as u32);
    }
}

extern "C" fn exception_catch(
    env: Env,
    _jni: *mut c_void,
    _thread: Object,
    id: MethodId,
    _location: i64,
    _exception: Object,
) {
    if let Some((recorder, method, stack)) = recorded(env, id) {
        recorder.caught(stack, method);
    }
}

/// The tag that stands for a loader: 0 is the boot loader.
fn loader_tag(jvmti: Jvmti, recorder: &Recorder, loader: Object) -> Result<i64, i32> {
    if loader.is_null() {
        return Ok(0);
    }
    let mut tag = jvmti.tag(loader)?;
    if tag == 0 {
        tag = recorder.new_loader();
        jvmti.set_tag(loader, tag)?;
    }
    Ok(tag)
}

extern "C" fn class_file_load_hook(
    env: Env,
    _jni: *mut c_void,
    _redefined: Object,
    loader: Object,
    name: *const c_char,
    _domain: Object,
    length: i32,
    data: *const u8,
    _new_length: *mut i32,
    _new_data: *mut *mut u8,
) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    if name.is_null() {
        return;
    }
    // SAFETY: the JVM passes a NUL-terminated name.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if recorder.wants(&name) {
        // SAFETY: the JVM passes `length` bytes of class data.
        let bytes = unsafe { std::slice::from_raw_parts(data, length as usize) };
        match loader_tag(Jvmti::from_raw(env), recorder, loader) {
            Ok(tag) => recorder.class_bytes(tag, &name, bytes),
            Err(code) => recorder.error(format!("loader of {name}: {code}")),
        }
    }
}

extern "C" fn class_prepare(env: Env, _jni: *mut c_void, _thread: Object, class: Object) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    if let Err(code) = ready(Jvmti::from_raw(env), recorder, class) {
        recorder.error(format!("ClassPrepare: {code}"));
    }
}

fn ready(jvmti: Jvmti, recorder: &Recorder, class: Object) -> Result<(), i32> {
    let signature = jvmti.class_signature(class)?;
    let Some(name) = signature
        .strip_prefix('L')
        .and_then(|s| s.strip_suffix(';'))
    else {
        return Ok(());
    };
    if !recorder.wants(name) {
        return Ok(());
    }
    let loader = loader_tag(jvmti, recorder, jvmti.class_loader(class)?)?;
    let mut methods = Vec::new();
    for id in jvmti.class_methods(class)? {
        let (method, descriptor) = jvmti.method_name(id)?;
        methods.push((id as usize, method, descriptor));
    }
    recorder.class_ready(loader, name, methods);
    Ok(())
}

extern "C" fn vm_death(_env: Env, _jni: *mut c_void) {
    if let Some(recorder) = RECORDER.get()
        && let Err(error) = recorder.finish()
    {
        eprintln!("witness: cannot write the record: {error}");
    }
}
