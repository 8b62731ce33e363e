//! The few JVMTI functions the witness calls, by their index in the function table of `jvmti.h` (JDK 17, include/jvmti.h; 21 and 25
//! only fill reserved slots). Nothing here knows what is recorded.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// `jvmtiEnv*`: points to a pointer to the function table.
pub type Env = *mut *const *const c_void;
/// `jobject`, `jclass`, `jthread`.
pub type Object = *mut c_void;
/// `jmethodID`.
pub type MethodId = *mut c_void;

/// `JVMTI_VERSION_11`: every JDK since 11 answers to it.
pub const JVMTI_VERSION: i32 = 0x3000_0000 + (11 << 16);

/// Event numbers (`jvmtiEvent`).
pub mod event {
    /// First event number, that of the first callback slot.
    pub const MIN: usize = 50;
    /// VMInit.
    pub const VM_INIT: usize = 50;
    /// VMDeath.
    pub const VM_DEATH: usize = 51;
    /// ClassFileLoadHook.
    pub const CLASS_FILE_LOAD_HOOK: usize = 54;
    /// ClassPrepare.
    pub const CLASS_PREPARE: usize = 56;
    /// ExceptionCatch.
    pub const EXCEPTION_CATCH: usize = 59;
    /// SingleStep.
    pub const SINGLE_STEP: usize = 60;
    /// MethodEntry.
    pub const METHOD_ENTRY: usize = 65;
    /// MethodExit.
    pub const METHOD_EXIT: usize = 66;
    /// One past the last callback slot of JDK 17 (SampledObjectAlloc is 86).
    pub const SLOTS: usize = 37;
}

/// Bit numbers in `jvmtiCapabilities`.
pub mod capability {
    /// can_tag_objects
    pub const TAG_OBJECTS: usize = 0;
    /// can_generate_single_step_events
    pub const SINGLE_STEP: usize = 16;
    /// can_generate_exception_events
    pub const EXCEPTIONS: usize = 17;
    /// can_generate_method_entry_events
    pub const METHOD_ENTRY: usize = 24;
    /// can_generate_method_exit_events
    pub const METHOD_EXIT: usize = 25;
    /// can_generate_all_class_hook_events
    pub const ALL_CLASS_HOOK: usize = 26;
    /// can_support_virtual_threads (JDK 21)
    pub const VIRTUAL_THREADS: usize = 44;
}

/// A JVMTI environment. Copying it is copying a pointer the JVM keeps valid until it dies.
#[derive(Clone, Copy)]
pub struct Jvmti(Env);

// SAFETY: JVMTI environments may be used from every thread that is attached to the JVM; callbacks only run on such threads.
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

/// Calls function number `$index` (1-based, as in jvmti.h's comments) of the table.
macro_rules! call {
    ($env:expr, $index:literal, fn($($ty:ty),*), $($arg:expr),*) => {{
        // SAFETY: the index and the signature are those of jvmti.h; the environment is valid as `Jvmti` says.
        let code: i32 = unsafe {
            let function = *(*$env).add($index - 1);
            let function: extern "C" fn(Env $(, $ty)*) -> i32 = std::mem::transmute(function);
            function($env $(, $arg)*)
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }};
}

impl Jvmti {
    /// Wraps the environment that a callback was given.
    pub fn from_raw(env: Env) -> Jvmti {
        Jvmti(env)
    }

    /// Gets a new environment from a `JavaVM*`.
    ///
    /// # Safety
    /// `vm` is the pointer `Agent_OnLoad` was given.
    pub unsafe fn get(vm: *mut *const *const c_void) -> Result<Jvmti, i32> {
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: slot 6 of JNIInvokeInterface_ is GetEnv (three reserved slots come first).
        let code = unsafe {
            let get_env: extern "C" fn(*mut *const *const c_void, *mut *mut c_void, i32) -> i32 =
                std::mem::transmute(*(*vm).add(6));
            get_env(vm, &mut env, JVMTI_VERSION)
        };
        if code == 0 {
            Ok(Jvmti(env.cast()))
        } else {
            Err(code)
        }
    }

    /// Adds the wanted capabilities as far as this JVM has them.
    pub fn add_capabilities(self, wanted: &[usize]) -> Result<(), i32> {
        let mut potential = [0u8; 16];
        call!(self.0, 140, fn(*mut u8), potential.as_mut_ptr())?;
        let mut add = [0u8; 16];
        for bit in wanted {
            add[bit / 8] |= potential[bit / 8] & (1 << (bit % 8));
        }
        call!(self.0, 142, fn(*const u8), add.as_ptr())
    }

    /// Sets the callbacks; slot 0 is event number [`event::MIN`].
    pub fn set_callbacks(self, callbacks: &[*const c_void; event::SLOTS]) -> Result<(), i32> {
        let bytes = size_of_val(callbacks) as i32;
        call!(
            self.0,
            122,
            fn(*const c_void, i32),
            callbacks.as_ptr().cast(),
            bytes
        )
    }

    /// Enables an event for all threads.
    pub fn enable(self, event: usize) -> Result<(), i32> {
        call!(
            self.0,
            2,
            fn(i32, i32, Object),
            1,
            event as i32,
            ptr::null_mut()
        )
    }

    /// The methods that a class declares.
    pub fn class_methods(self, class: Object) -> Result<Vec<MethodId>, i32> {
        let (mut count, mut methods) = (0i32, ptr::null_mut::<MethodId>());
        call!(
            self.0,
            52,
            fn(Object, *mut i32, *mut *mut MethodId),
            class,
            &mut count,
            &mut methods
        )?;
        let list = if methods.is_null() {
            Vec::new()
        } else {
            // SAFETY: JVMTI returned an array of `count` method IDs.
            unsafe { std::slice::from_raw_parts(methods, count as usize).to_vec() }
        };
        self.deallocate(methods.cast());
        Ok(list)
    }

    /// Name and descriptor of a method.
    pub fn method_name(self, method: MethodId) -> Result<(String, String), i32> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        call!(
            self.0,
            64,
            fn(MethodId, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char),
            method,
            &mut name,
            &mut descriptor,
            ptr::null_mut()
        )?;
        Ok((self.take_string(name), self.take_string(descriptor)))
    }

    /// Descriptor of a class (`Ljava/lang/String;`).
    pub fn class_signature(self, class: Object) -> Result<String, i32> {
        let mut signature = ptr::null_mut();
        call!(
            self.0,
            48,
            fn(Object, *mut *mut c_char, *mut *mut c_char),
            class,
            &mut signature,
            ptr::null_mut()
        )?;
        Ok(self.take_string(signature))
    }

    /// The defining loader of a class; null for the boot loader.
    pub fn class_loader(self, class: Object) -> Result<Object, i32> {
        let mut loader = ptr::null_mut();
        call!(self.0, 57, fn(Object, *mut Object), class, &mut loader)?;
        Ok(loader)
    }

    /// The tag of an object; 0 = none.
    pub fn tag(self, object: Object) -> Result<i64, i32> {
        let mut tag = 0i64;
        call!(self.0, 106, fn(Object, *mut i64), object, &mut tag)?;
        Ok(tag)
    }

    /// Tags an object.
    pub fn set_tag(self, object: Object, tag: i64) -> Result<(), i32> {
        call!(self.0, 107, fn(Object, i64), object, tag)
    }

    /// What [`Jvmti::set_local`] stored for the current thread (virtual threads have their own).
    pub fn local(self) -> Result<*mut c_void, i32> {
        let mut data = ptr::null_mut();
        call!(
            self.0,
            102,
            fn(Object, *mut *mut c_void),
            ptr::null_mut(),
            &mut data
        )?;
        Ok(data)
    }

    /// Stores a pointer for the current thread.
    pub fn set_local(self, data: *const c_void) -> Result<(), i32> {
        call!(
            self.0,
            103,
            fn(Object, *const c_void),
            ptr::null_mut(),
            data
        )
    }

    fn take_string(self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: JVMTI returns NUL-terminated strings.
        let owned = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        self.deallocate(text.cast());
        owned
    }

    fn deallocate(self, memory: *mut u8) {
        // The only error is a null environment.
        let _: Result<(), i32> = call!(self.0, 47, fn(*mut u8), memory);
    }
}
