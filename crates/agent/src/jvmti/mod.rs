//! JVMTI and JNI behind safe calls. In: environments that the JVM handed us. Errors are `None`: an agent asks again or does less.

pub mod flags;
pub mod heap;
pub mod methods;
pub mod sys;

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};
use sys::{JObject, JavaVm, JniEnv, JvmtiEnv, NativeMethod, call};

/// A JVMTI environment, usable on any thread.
#[derive(Clone, Copy)]
pub struct Jvmti(JvmtiEnv);

// SAFETY: a jvmtiEnv may be used from any thread (JVMTI specification, "Environments").
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

/// A thread's JNI environment; valid on that thread during the callback that brought it.
#[derive(Clone, Copy)]
pub struct Jni(JniEnv);

impl Jvmti {
    /// Gets an environment from the VM.
    ///
    /// # Safety
    /// `vm` comes from the JVM.
    pub unsafe fn new(vm: JavaVm) -> Option<Self> {
        // SAFETY: by contract.
        unsafe { environment(vm, sys::JVMTI_VERSION) }.map(|env| Self(env as JvmtiEnv))
    }

    /// Adds capabilities by bit; false = the VM refuses.
    pub fn add_capabilities(self, bits: &[u32]) -> bool {
        let mut caps = [0u8; 16];
        for &b in bits {
            caps[b as usize / 8] |= 1 << (b % 8);
        }
        // SAFETY: jvmtiCapabilities is 16 bytes of bits.
        unsafe {
            call!(self.0, sys::jvmti::ADD_CAPABILITIES, (*const u8) -> c_int, caps.as_ptr()) == 0
        }
    }

    /// Sets the callbacks: (event, function) pairs.
    pub fn set_callbacks(self, callbacks: &[(c_int, *const c_void)]) -> bool {
        let mut table = [null::<c_void>(); 32];
        for &(event, f) in callbacks {
            table[(event - sys::event::FIRST) as usize] = f;
        }
        // SAFETY: the table is longer than any event we use; the VM copies `size` bytes of it.
        unsafe {
            call!(self.0, sys::jvmti::SET_EVENT_CALLBACKS, (*const c_void, c_int) -> c_int,
                table.as_ptr().cast(), size_of_val(&table) as c_int)
                == 0
        }
    }

    /// Switches an event on for all threads.
    pub fn enable(self, event: c_int) -> bool {
        // SAFETY: SetEventNotificationMode is variadic in C with no argument used; the ABI is the same.
        unsafe {
            call!(self.0, sys::jvmti::SET_EVENT_NOTIFICATION_MODE, (c_int, c_int, JObject) -> c_int, 1, event, null_mut())
                == 0
        }
    }

    /// Switches an event off for all threads.
    pub fn disable(self, event: c_int) {
        // SAFETY: as in `enable`.
        unsafe {
            call!(self.0, sys::jvmti::SET_EVENT_NOTIFICATION_MODE, (c_int, c_int, JObject) -> c_int, 0, event, null_mut())
        };
    }

    /// A system property that the VM knows.
    pub fn property(self, name: &CStr) -> Option<String> {
        let mut out: *mut c_char = null_mut();
        // SAFETY: arguments as GetSystemProperty asks.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_SYSTEM_PROPERTY, (*const c_char, *mut *mut c_char) -> c_int, name.as_ptr(), &mut out);
            (rc == 0).then(|| self.take_string(out))
        }
    }

    /// A class's signature, such as `Ljava/lang/String;` (hidden classes: `Lp/C.0x123;`).
    pub fn signature(self, class: JObject) -> Option<String> {
        let mut out: *mut c_char = null_mut();
        // SAFETY: arguments as GetClassSignature asks; the generic signature is not wanted.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_CLASS_SIGNATURE, (JObject, *mut *mut c_char, *mut *mut c_char) -> c_int,
                class, &mut out, null_mut());
            (rc == 0).then(|| self.take_string(out))
        }
    }

    /// A class's loader, null = boot.
    pub fn loader(self, class: JObject) -> Option<JObject> {
        let mut out = null_mut();
        // SAFETY: arguments as GetClassLoader asks.
        let rc = unsafe {
            call!(self.0, sys::jvmti::GET_CLASS_LOADER, (JObject, *mut JObject) -> c_int, class, &mut out)
        };
        (rc == 0).then_some(out)
    }

    /// Whether a class itself declares an instance method that can override another one, or be overridden. Unlike JNI's GetMethodID it does not initialise
    /// the class, and so waits for nobody who does.
    pub fn declares(self, class: JObject, name: &CStr, signature: &CStr) -> bool {
        const PRIVATE_OR_STATIC: c_int = 0x2 | 0x8; // JVMS 4.6
        let mut n: c_int = 0;
        let mut list: *mut *mut c_void = null_mut();
        // SAFETY: arguments as the functions ask; the list and the strings are given back once, and not used afterwards.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_CLASS_METHODS, (JObject, *mut c_int, *mut *mut *mut c_void) -> c_int,
                class, &mut n, &mut list);
            if rc != 0 || list.is_null() {
                return false;
            }
            let methods = std::slice::from_raw_parts(list, n as usize);
            let declares = methods.iter().any(|&method| {
                let (mut called, mut of): (*mut c_char, *mut c_char) = (null_mut(), null_mut());
                let rc = call!(self.0, sys::jvmti::GET_METHOD_NAME, (*mut c_void, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char) -> c_int,
                    method, &mut called, &mut of, null_mut());
                if rc != 0 {
                    return false;
                }
                let same = CStr::from_ptr(called) == name && CStr::from_ptr(of) == signature;
                self.free(called.cast());
                self.free(of.cast());
                let mut modifiers: c_int = 0;
                same && call!(self.0, sys::jvmti::GET_METHOD_MODIFIERS, (*mut c_void, *mut c_int) -> c_int, method, &mut modifiers) == 0
                    && modifiers & PRIVATE_OR_STATIC == 0
            });
            self.free(list.cast());
            declares
        }
    }

    /// The named module that holds `package` (with slashes) in a loader; null = none.
    pub fn named_module(self, loader: JObject, package: &CStr) -> JObject {
        let mut out = null_mut();
        // SAFETY: arguments as GetNamedModule asks.
        let rc = unsafe {
            call!(self.0, sys::jvmti::GET_NAMED_MODULE, (JObject, *const c_char, *mut JObject) -> c_int, loader, package.as_ptr(), &mut out)
        };
        if rc == 0 { out } else { null_mut() }
    }

    /// All loaded classes.
    pub fn loaded_classes(self) -> Vec<JObject> {
        let mut n: c_int = 0;
        let mut list: *mut JObject = null_mut();
        // SAFETY: arguments as GetLoadedClasses asks; the list is copied before it is given back.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_LOADED_CLASSES, (*mut c_int, *mut *mut JObject) -> c_int, &mut n, &mut list);
            if rc != 0 || list.is_null() {
                return Vec::new();
            }
            let out = std::slice::from_raw_parts(list, n as usize).to_vec();
            self.free(list.cast());
            out
        }
    }

    /// Whether a class may be retransformed.
    pub fn is_modifiable(self, class: JObject) -> bool {
        let mut yes: c_uchar = 0;
        // SAFETY: arguments as IsModifiableClass asks.
        unsafe {
            call!(self.0, sys::jvmti::IS_MODIFIABLE_CLASS, (JObject, *mut c_uchar) -> c_int, class, &mut yes)
                == 0
                && yes != 0
        }
    }

    /// Sends classes through the load hook again; the error is JVMTI's number.
    pub fn retransform(self, classes: &[JObject]) -> Result<(), c_int> {
        // SAFETY: arguments as RetransformClasses asks.
        let rc = unsafe {
            call!(self.0, sys::jvmti::RETRANSFORM_CLASSES, (c_int, *const JObject) -> c_int, classes.len() as c_int, classes.as_ptr())
        };
        if rc == 0 { Ok(()) } else { Err(rc) }
    }

    /// Answers the load hook: `change` gets name and bytes of the class, and gives new bytes if it has any.
    ///
    /// # Safety
    /// The arguments are those of the JVM's call: name, bytes and their number, and the places for new ones.
    pub unsafe fn change_class(
        self,
        name: *const c_char,
        (data, length): (*const c_uchar, c_int),
        (new_data, new_length): (*mut *mut c_uchar, *mut c_int),
        change: impl FnOnce(&str, &[u8]) -> Option<Vec<u8>>,
    ) {
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
        let new = change(&name, bytes);
        if let Some((new, copy)) = new.and_then(|new| Some((new.len(), self.copy_out(&new)?))) {
            // SAFETY: the JVM passes places for the result, which it takes over.
            unsafe {
                *new_data = copy;
                *new_length = new as c_int;
            }
        }
    }

    /// Copies bytes into memory that the VM takes over (new class bytes).
    fn copy_out(self, bytes: &[u8]) -> Option<*mut c_uchar> {
        let mut out: *mut c_uchar = null_mut();
        // SAFETY: Allocate gives `len` writable bytes.
        unsafe {
            let rc = call!(self.0, sys::jvmti::ALLOCATE, (i64, *mut *mut c_uchar) -> c_int, bytes.len() as i64, &mut out);
            if rc != 0 || out.is_null() {
                return None;
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out, bytes.len());
        }
        Some(out)
    }

    /// # Safety
    /// `s` was allocated by this environment and is a C string.
    unsafe fn take_string(self, s: *mut c_char) -> String {
        // SAFETY: by contract.
        let text = unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned();
        // SAFETY: by contract; not used again.
        unsafe { self.free(s.cast()) };
        text
    }

    /// # Safety
    /// `p` was allocated by this environment and is not used again.
    unsafe fn free(self, p: *mut c_uchar) {
        // SAFETY: by contract.
        unsafe { call!(self.0, sys::jvmti::DEALLOCATE, (*mut c_uchar) -> c_int, p) };
    }
}

impl Jni {
    /// That of the current thread; `None`: the JVM does not know the thread, or has no JNI 10.
    ///
    /// # Safety
    /// `vm` comes from the JVM; valid on this thread until it returns to the JVM.
    pub unsafe fn of(vm: JavaVm) -> Option<Self> {
        // SAFETY: by contract.
        unsafe { environment(vm, sys::JNI_VERSION) }.map(|env| Self(env as JniEnv))
    }

    /// A JVMTI environment of its own; `None`: the VM gives no more.
    pub fn environment(self) -> Option<Jvmti> {
        let mut vm: JavaVm = null();
        // SAFETY: arguments as GetJavaVM asks.
        let rc = unsafe { call!(self.0, sys::jni::GET_JAVA_VM, (*mut JavaVm) -> c_int, &mut vm) };
        if rc != 0 || vm.is_null() {
            return None;
        }
        // SAFETY: the JVM has just given it.
        unsafe { Jvmti::new(vm) }
    }

    /// Wraps the environment of a callback.
    pub fn new(env: JniEnv) -> Self {
        Self(env)
    }

    /// Defines a class in the boot loader; null on failure (the exception is cleared).
    pub fn define_boot_class(self, name: &CStr, bytes: &[u8]) -> JObject {
        // SAFETY: arguments as DefineClass asks.
        let class = unsafe {
            call!(self.0, sys::jni::DEFINE_CLASS, (*const c_char, JObject, *const u8, c_int) -> JObject,
                name.as_ptr(), null_mut(), bytes.as_ptr(), bytes.len() as c_int)
        };
        self.clear_exception();
        class
    }

    /// Finds a class through the system loader; null = there is none.
    pub fn find_class(self, name: &CStr) -> JObject {
        // SAFETY: arguments as FindClass asks.
        let class = unsafe {
            call!(self.0, sys::jni::FIND_CLASS, (*const c_char) -> JObject, name.as_ptr())
        };
        self.clear_exception();
        class
    }

    /// Registers native methods: (name, signature, function).
    pub fn register_natives(
        self,
        class: JObject,
        natives: &[(&CStr, &CStr, *const c_void)],
    ) -> bool {
        let methods: Vec<NativeMethod> = natives
            .iter()
            .map(|&(n, s, function)| NativeMethod {
                name: n.as_ptr(),
                signature: s.as_ptr(),
                function,
            })
            .collect();
        // SAFETY: the strings live until the call returns; the functions have the signatures given.
        let rc = unsafe {
            call!(self.0, sys::jni::REGISTER_NATIVES, (JObject, *const NativeMethod, c_int) -> c_int,
                class, methods.as_ptr(), methods.len() as c_int)
        };
        self.clear_exception();
        rc == 0
    }

    /// Initialises a class by looking up one of its static fields; false = its initialiser failed.
    pub fn initialise(self, class: JObject, field: &CStr, signature: &CStr) -> bool {
        // SAFETY: arguments as GetStaticFieldID asks, which initialises the class (JNI specification).
        let id = unsafe {
            call!(self.0, sys::jni::GET_STATIC_FIELD_ID, (JObject, *const c_char, *const c_char) -> *mut c_void,
                class, field.as_ptr(), signature.as_ptr())
        };
        self.clear_exception();
        !id.is_null()
    }

    /// The ID of an instance field; null = there is none.
    pub fn field(self, class: JObject, name: &CStr, signature: &CStr) -> *mut c_void {
        // SAFETY: arguments as GetFieldID asks.
        let id = unsafe {
            call!(self.0, sys::jni::GET_FIELD_ID, (JObject, *const c_char, *const c_char) -> *mut c_void,
                class, name.as_ptr(), signature.as_ptr())
        };
        self.clear_exception();
        id
    }

    /// Reads a long field.
    ///
    /// # Safety
    /// `field` is a long field of the object's class.
    pub unsafe fn long_field(self, object: JObject, field: *mut c_void) -> i64 {
        // SAFETY: by contract.
        unsafe {
            call!(self.0, sys::jni::GET_LONG_FIELD, (JObject, *mut c_void) -> i64, object, field)
        }
    }

    /// Reads a String field of an object; `None` = null or no such field.
    pub fn string_field(self, object: JObject, name: &CStr) -> Option<String> {
        let class = self.class_of(object);
        let field = self.field(class, name, c"Ljava/lang/String;");
        self.forget(class);
        if field.is_null() {
            return None;
        }
        // SAFETY: `field` is a String field of the object's class; the characters are copied before release.
        unsafe {
            let string = call!(self.0, sys::jni::GET_OBJECT_FIELD, (JObject, *mut c_void) -> JObject, object, field);
            if string.is_null() {
                return None;
            }
            let chars = call!(self.0, sys::jni::GET_STRING_UTF_CHARS, (JObject, *mut c_uchar) -> *const c_char, string, null_mut());
            let text =
                (!chars.is_null()).then(|| CStr::from_ptr(chars).to_string_lossy().into_owned());
            if !chars.is_null() {
                call!(self.0, sys::jni::RELEASE_STRING_UTF_CHARS, (JObject, *const c_char) -> (), string, chars);
            }
            self.forget(string);
            text
        }
    }

    /// The class of an object.
    pub fn class_of(self, object: JObject) -> JObject {
        // SAFETY: `object` is a live reference.
        unsafe { call!(self.0, sys::jni::GET_OBJECT_CLASS, (JObject) -> JObject, object) }
    }

    /// The superclass; null = there is none.
    pub fn superclass(self, class: JObject) -> JObject {
        // SAFETY: `class` is a live reference to a class.
        unsafe { call!(self.0, sys::jni::GET_SUPERCLASS, (JObject) -> JObject, class) }
    }

    /// Drops a local reference, if it is one (null).
    pub fn forget(self, object: JObject) {
        if object.is_null() {
            return;
        }
        // SAFETY: `object` is a local reference of this frame, not used again.
        unsafe { call!(self.0, sys::jni::DELETE_LOCAL_REF, (JObject) -> (), object) }
    }

    fn clear_exception(self) {
        // SAFETY: no arguments.
        unsafe { call!(self.0, sys::jni::EXCEPTION_CLEAR, () -> (),) }
    }
}

/// The environment of a version; `None`: this VM has none.
///
/// # Safety
/// `vm` comes from the JVM.
unsafe fn environment(vm: JavaVm, version: c_int) -> Option<*mut c_void> {
    let mut env: *mut c_void = null_mut();
    // SAFETY: GetEnv is function 6 of the invocation interface (jni.h).
    let rc = unsafe { call!(vm, 6, (*mut *mut c_void, c_int) -> c_int, &mut env, version) };
    (rc == 0 && !env.is_null()).then_some(env)
}

/// A C string from text that may hold a NUL (then it is cut there).
pub fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}
