//! Objects behind safe calls: tags, heap walks, collections, agent threads, and the few Java calls that look at an object.

use super::sys::{self, AgentThread, JObject, JValue, OnHeapObject, call};
use super::{Jni, Jvmti};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Skip objects without a tag (`JVMTI_HEAP_FILTER_UNTAGGED`).
pub const FILTER_UNTAGGED: c_int = 8;
/// What a walk's callback returns to end it (`JVMTI_VISIT_ABORT`).
pub const VISIT_ABORT: c_int = 0x8000;
/// Priority of an agent thread (`JVMTI_THREAD_NORM_PRIORITY`).
const NORMAL_PRIORITY: c_int = 5;

impl Jvmti {
    /// An object's tag in this environment, 0 = none.
    pub fn tag(self, object: JObject) -> i64 {
        let mut tag = 0;
        // SAFETY: arguments as GetTag asks.
        let rc = unsafe {
            call!(self.0, sys::jvmti::GET_TAG, (JObject, *mut i64) -> c_int, object, &mut tag)
        };
        if rc == 0 { tag } else { 0 }
    }

    /// Sets an object's tag; 0 = none.
    pub fn set_tag(self, object: JObject, tag: i64) -> bool {
        // SAFETY: arguments as SetTag asks.
        unsafe { call!(self.0, sys::jvmti::SET_TAG, (JObject, i64) -> c_int, object, tag) == 0 }
    }

    /// Walks through the heap; the error is JVMTI's number. All Java threads stand still meanwhile.
    ///
    /// # Safety
    /// `visit` fits `data` and calls nothing of the JVM.
    pub unsafe fn iterate(
        self,
        filter: c_int,
        visit: OnHeapObject,
        data: *mut c_void,
    ) -> Result<(), c_int> {
        let mut callbacks = [null::<c_void>(); 16];
        callbacks[0] = visit as *const c_void;
        // SAFETY: jvmtiHeapCallbacks is 16 function pointers; the rest by contract.
        let rc = unsafe {
            call!(self.0, sys::jvmti::ITERATE_THROUGH_HEAP, (c_int, JObject, *const c_void, *mut c_void) -> c_int,
                filter, null_mut(), callbacks.as_ptr().cast(), data)
        };
        if rc == 0 { Ok(()) } else { Err(rc) }
    }

    /// Bytes that an object takes; 0 = not known.
    pub fn size(self, object: JObject) -> i64 {
        let mut size = 0;
        // SAFETY: arguments as GetObjectSize asks.
        let rc = unsafe {
            call!(self.0, sys::jvmti::GET_OBJECT_SIZE, (JObject, *mut i64) -> c_int, object, &mut size)
        };
        if rc == 0 { size } else { 0 }
    }

    /// Collects all garbage, and waits for it.
    pub fn collect(self) -> bool {
        // SAFETY: no arguments.
        unsafe { call!(self.0, sys::jvmti::FORCE_GARBAGE_COLLECTION, () -> c_int,) == 0 }
    }

    /// The identity hash of an object.
    pub fn hash(self, object: JObject) -> Option<u32> {
        let mut hash = 0;
        // SAFETY: arguments as GetObjectHashCode asks.
        let rc = unsafe {
            call!(self.0, sys::jvmti::GET_OBJECT_HASH_CODE, (JObject, *mut c_int) -> c_int, object, &mut hash)
        };
        (rc == 0).then_some(hash as u32)
    }

    /// Runs `body` on a new daemon thread that the application does not see. `thread` is a `java.lang.Thread` that was not started.
    pub fn run_thread(self, thread: JObject, body: AgentThread) -> bool {
        // SAFETY: arguments as RunAgentThread asks.
        unsafe {
            call!(self.0, sys::jvmti::RUN_AGENT_THREAD, (JObject, AgentThread, *mut c_void, c_int) -> c_int,
                thread, body, null_mut(), NORMAL_PRIORITY)
                == 0
        }
    }
}

impl Jni {
    /// A new object of a class, no constructor run; null on failure.
    pub fn allocate(self, class: JObject) -> JObject {
        // SAFETY: arguments as AllocObject asks.
        let object = unsafe { call!(self.0, sys::jni::ALLOC_OBJECT, (JObject) -> JObject, class) };
        self.clear_exception();
        object
    }

    /// A new `java.lang.Thread` of this name, not started; null on failure.
    pub fn new_thread(self, name: &CStr) -> JObject {
        let class = self.find_class(c"java/lang/Thread");
        let text = self.new_string(name);
        let constructor = match class.is_null() {
            true => null_mut(),
            false => self.method(class, c"<init>", c"(Ljava/lang/String;)V"),
        };
        let arguments = [JValue { object: text }];
        let thread = if constructor.is_null() || text.is_null() {
            null_mut()
        } else {
            // SAFETY: the constructor is Thread's; arguments as NewObjectA asks.
            unsafe {
                call!(self.0, sys::jni::NEW_OBJECT, (JObject, *mut c_void, *const JValue) -> JObject, class, constructor, arguments.as_ptr())
            }
        };
        self.clear_exception();
        self.forget(text);
        self.forget(class);
        thread
    }

    /// Calls a static method without result; what it throws is dropped.
    pub fn call_static(self, class: JObject, name: &CStr, signature: &CStr, arguments: &[JValue]) {
        let method = self.static_method(class, name, signature);
        if !method.is_null() {
            // SAFETY: the method has this signature.
            unsafe {
                call!(self.0, sys::jni::CALL_STATIC_VOID_METHOD, (JObject, *mut c_void, *const JValue) -> (), class, method, arguments.as_ptr());
            }
            self.clear_exception();
        }
    }

    /// Calls a static method that gives an object; null on failure.
    pub fn call_static_object(
        self,
        class: JObject,
        method: *mut c_void,
        arguments: &[JValue],
    ) -> JObject {
        // SAFETY: by the caller, the method is the class's and gives an object.
        let object = unsafe {
            call!(self.0, sys::jni::CALL_STATIC_OBJECT_METHOD, (JObject, *mut c_void, *const JValue) -> JObject, class, method, arguments.as_ptr())
        };
        self.clear_exception();
        object
    }

    /// The ID of a static method; null = there is none.
    pub fn static_method(self, class: JObject, name: &CStr, signature: &CStr) -> *mut c_void {
        // SAFETY: arguments as GetStaticMethodID asks.
        let id = unsafe {
            call!(self.0, sys::jni::GET_STATIC_METHOD_ID, (JObject, *const c_char, *const c_char) -> *mut c_void,
                class, name.as_ptr(), signature.as_ptr())
        };
        self.clear_exception();
        id
    }

    /// The ID of an instance method, inherited ones included, or of a constructor; null = there is none.
    pub fn method(self, class: JObject, name: &CStr, signature: &CStr) -> *mut c_void {
        // SAFETY: arguments as GetMethodID asks.
        let id = unsafe {
            call!(self.0, sys::jni::GET_METHOD_ID, (JObject, *const c_char, *const c_char) -> *mut c_void,
                class, name.as_ptr(), signature.as_ptr())
        };
        self.clear_exception();
        id
    }

    /// The interned string of a text; null on failure.
    pub fn interned(self, text: &CStr) -> JObject {
        let string = self.new_string(text);
        if string.is_null() {
            return string;
        }
        let class = self.class_of(string);
        let intern = self.method(class, c"intern", c"()Ljava/lang/String;");
        // SAFETY: every String has this method, which takes nothing.
        let interned = unsafe {
            call!(self.0, sys::jni::CALL_OBJECT_METHOD, (JObject, *mut c_void, *const JValue) -> JObject, string, intern, null())
        };
        self.clear_exception();
        self.forget(class);
        self.forget(string);
        interned
    }

    /// Some new object; null on failure. Neither Java code runs nor is a class loader asked.
    pub fn new_object(self) -> JObject {
        let string = self.new_string(c"");
        self.clear_exception();
        string
    }

    fn new_string(self, text: &CStr) -> JObject {
        // SAFETY: arguments as NewStringUTF asks; the text is ASCII.
        let string = unsafe {
            call!(self.0, sys::jni::NEW_STRING_UTF, (*const c_char) -> JObject, text.as_ptr())
        };
        self.clear_exception();
        string
    }

    /// Locks an object.
    pub fn lock(self, object: JObject) -> bool {
        // SAFETY: arguments as MonitorEnter asks.
        unsafe { call!(self.0, sys::jni::MONITOR_ENTER, (JObject) -> c_int, object) == 0 }
    }

    /// Unlocks what [`Self::lock`] has locked.
    pub fn unlock(self, object: JObject) {
        // SAFETY: arguments as MonitorExit asks.
        unsafe { call!(self.0, sys::jni::MONITOR_EXIT, (JObject) -> c_int, object) };
        self.clear_exception();
    }
}

/// `jdk.internal.misc.Unsafe`, which reads headers without a race against collectors that move objects.
pub struct Unsafe {
    jni: Jni,
    object: JObject,
    get_long: *mut c_void,
}

impl Unsafe {
    /// Finds it; `None` = this JDK has another one.
    pub fn find(jni: Jni) -> Option<Self> {
        let class = jni.find_class(c"jdk/internal/misc/Unsafe");
        if class.is_null() {
            return None;
        }
        let get = jni.static_method(class, c"getUnsafe", c"()Ljdk/internal/misc/Unsafe;");
        let get_long = jni.method(class, c"getLong", c"(Ljava/lang/Object;J)J");
        let object = if get.is_null() || get_long.is_null() {
            null_mut()
        } else {
            jni.call_static_object(class, get, &[])
        };
        jni.forget(class);
        (!object.is_null()).then_some(Self {
            jni,
            object,
            get_long,
        })
    }

    /// The header word of an object.
    pub fn header(&self, of: JObject) -> u64 {
        let arguments = [JValue { object: of }, JValue { long: 0 }];
        // SAFETY: `get_long` is Unsafe.getLong(Object, long); every object has 8 bytes at offset 0.
        let word = unsafe {
            call!(self.jni.0, sys::jni::CALL_LONG_METHOD, (JObject, *mut c_void, *const JValue) -> i64,
                self.object, self.get_long, arguments.as_ptr())
        };
        self.jni.clear_exception();
        word as u64
    }

    /// For any thread, as long as the JVM lives; `None` = no memory.
    pub fn keep(&self) -> Option<Reader> {
        // SAFETY: arguments as NewGlobalRef asks.
        let object = unsafe {
            call!(self.jni.0, sys::jni::NEW_GLOBAL_REF, (JObject) -> JObject, self.object)
        };
        (!object.is_null()).then_some(Reader {
            object,
            get_long: self.get_long,
        })
    }
}

/// As [`Unsafe`], not bound to a thread.
pub struct Reader {
    object: JObject,
    get_long: *mut c_void,
}

// SAFETY: a global reference and a method's ID are good on any thread (JNI specification, "Global and Local References").
unsafe impl Send for Reader {}
// SAFETY: as above.
unsafe impl Sync for Reader {}

impl Reader {
    /// 8 bytes of an object.
    ///
    /// # Safety
    /// The object goes on for 8 bytes from `offset`.
    pub unsafe fn long(&self, jni: Jni, of: JObject, offset: i64) -> u64 {
        let arguments = [JValue { object: of }, JValue { long: offset }];
        // SAFETY: `get_long` is Unsafe.getLong(Object, long); the rest by contract.
        let word = unsafe {
            call!(jni.0, sys::jni::CALL_LONG_METHOD, (JObject, *mut c_void, *const JValue) -> i64,
                self.object, self.get_long, arguments.as_ptr())
        };
        jni.clear_exception();
        word as u64
    }
}
