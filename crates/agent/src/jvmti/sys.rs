//! The few JNI and JVMTI functions that the agent calls, by their index in the function tables (jni.h, jvmti.h; the tables only
//! grow, so an index means the same in every JDK).

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// A reference to a Java object or class (local or global).
pub type JObject = *mut c_void;
/// `JavaVM*`.
pub type JavaVm = *const *const *const c_void;
/// `JNIEnv*`.
pub type JniEnv = *const *const *const c_void;
/// `jvmtiEnv*`.
pub type JvmtiEnv = *const *const *const c_void;

/// JVMTI version asked for: 11, in which modules are known (JDK 17 and newer all have it).
pub const JVMTI_VERSION: c_int = 0x300B_0000;

/// JNI version asked for: 10.
pub const JNI_VERSION: c_int = 0x000A_0000;

/// Event numbers.
pub mod event {
    use std::ffi::c_int;
    pub const VM_INIT: c_int = 50;
    pub const VM_DEATH: c_int = 51;
    pub const THREAD_START: c_int = 52;
    pub const THREAD_END: c_int = 53;
    pub const CLASS_FILE_LOAD_HOOK: c_int = 54;
    pub const CLASS_LOAD: c_int = 55;
    pub const CLASS_PREPARE: c_int = 56;
    pub const COMPILED_METHOD_LOAD: c_int = 68;
    pub const COMPILED_METHOD_UNLOAD: c_int = 69;
    pub const DYNAMIC_CODE_GENERATED: c_int = 70;
    pub const RESOURCE_EXHAUSTED: c_int = 80;
    pub const GARBAGE_COLLECTION_START: c_int = 81;
    /// The first event's number: its callback is the table's first.
    pub const FIRST: c_int = 50;
}

/// Capability bits.
pub mod capability {
    pub const TAG_OBJECTS: u32 = 0;
    pub const GET_BYTECODES: u32 = 3;
    pub const GET_SOURCE_FILE_NAME: u32 = 11;
    pub const GET_LINE_NUMBERS: u32 = 12;
    pub const ALL_CLASS_HOOK_EVENTS: u32 = 26;
    pub const COMPILED_METHOD_LOAD_EVENTS: u32 = 27;
    pub const GARBAGE_COLLECTION_EVENTS: u32 = 31;
    pub const GET_CONSTANT_POOL: u32 = 35;
    pub const RETRANSFORM_CLASSES: u32 = 37;
    pub const RETRANSFORM_ANY_CLASS: u32 = 38;
    pub const RESOURCE_EXHAUSTION_HEAP_EVENTS: u32 = 39;
}

/// `JNINativeMethod`.
#[repr(C)]
pub struct NativeMethod {
    pub name: *const c_char,
    pub signature: *const c_char,
    pub function: *const c_void,
}

/// A `jvalue`: an argument of the `A` variants of JNI's calls.
#[derive(Clone, Copy)]
#[repr(C)]
pub union JValue {
    pub long: i64,
    pub object: JObject,
}

/// Indices in the JNI function table; of calls with arguments, the `A` variants.
pub mod jni {
    pub const DEFINE_CLASS: usize = 5;
    pub const FIND_CLASS: usize = 6;
    pub const GET_SUPERCLASS: usize = 10;
    pub const EXCEPTION_CLEAR: usize = 17;
    pub const NEW_GLOBAL_REF: usize = 21;
    pub const DELETE_LOCAL_REF: usize = 23;
    pub const ALLOC_OBJECT: usize = 27;
    pub const NEW_OBJECT: usize = 30;
    pub const GET_OBJECT_CLASS: usize = 31;
    pub const GET_METHOD_ID: usize = 33;
    pub const CALL_OBJECT_METHOD: usize = 36;
    pub const CALL_LONG_METHOD: usize = 54;
    pub const GET_FIELD_ID: usize = 94;
    pub const GET_OBJECT_FIELD: usize = 95;
    pub const GET_LONG_FIELD: usize = 101;
    pub const GET_STATIC_METHOD_ID: usize = 113;
    pub const CALL_STATIC_OBJECT_METHOD: usize = 116;
    pub const CALL_STATIC_VOID_METHOD: usize = 143;
    pub const GET_STATIC_FIELD_ID: usize = 144;
    pub const NEW_STRING_UTF: usize = 167;
    pub const GET_STRING_UTF_CHARS: usize = 169;
    pub const RELEASE_STRING_UTF_CHARS: usize = 170;
    pub const REGISTER_NATIVES: usize = 215;
    pub const MONITOR_ENTER: usize = 217;
    pub const MONITOR_EXIT: usize = 218;
    pub const GET_JAVA_VM: usize = 219;
}

/// Indices in the JVMTI function table (the numbers in jvmti.h, less one).
pub mod jvmti {
    pub const SET_EVENT_NOTIFICATION_MODE: usize = 1;
    pub const RUN_AGENT_THREAD: usize = 11;
    pub const GET_NAMED_MODULE: usize = 39;
    pub const IS_MODIFIABLE_CLASS: usize = 44;
    pub const ALLOCATE: usize = 45;
    pub const DEALLOCATE: usize = 46;
    pub const GET_CLASS_SIGNATURE: usize = 47;
    pub const GET_SOURCE_FILE_NAME: usize = 49;
    pub const GET_CLASS_METHODS: usize = 51;
    pub const GET_CLASS_LOADER: usize = 56;
    pub const GET_OBJECT_HASH_CODE: usize = 57;
    pub const GET_METHOD_NAME: usize = 63;
    pub const GET_METHOD_DECLARING_CLASS: usize = 64;
    pub const GET_METHOD_MODIFIERS: usize = 65;
    pub const GET_LINE_NUMBER_TABLE: usize = 69;
    pub const GET_BYTECODES: usize = 74;
    pub const GET_LOADED_CLASSES: usize = 77;
    pub const GET_TAG: usize = 105;
    pub const SET_TAG: usize = 106;
    pub const FORCE_GARBAGE_COLLECTION: usize = 107;
    pub const ITERATE_THROUGH_HEAP: usize = 115;
    pub const GENERATE_EVENTS: usize = 122;
    pub const SET_EVENT_CALLBACKS: usize = 121;
    pub const GET_SYSTEM_PROPERTY: usize = 130;
    pub const ADD_CAPABILITIES: usize = 141;
    pub const GET_CONSTANT_POOL: usize = 145;
    pub const RETRANSFORM_CLASSES: usize = 151;
    pub const GET_OBJECT_SIZE: usize = 153;
}

/// Calls function `index` of an environment's table with the C signature given by the arguments' types.
///
/// The caller vouches for the index, the types and the environment.
macro_rules! call {
    ($env:expr, $index:expr, ($($type:ty),*) -> $ret:ty, $($arg:expr),*) => {{
        let env = $env;
        let function: unsafe extern "system" fn(*const *const *const std::ffi::c_void $(, $type)*) -> $ret =
            std::mem::transmute((*env).add($index).read());
        function(env $(, $arg)*)
    }};
}
pub(crate) use call;

/// Callback types.
pub type OnThread = unsafe extern "system" fn(JvmtiEnv, JniEnv, JObject);
/// VMDeath.
pub type OnVmDeath = unsafe extern "system" fn(JvmtiEnv, JniEnv);
/// ResourceExhausted.
pub type OnResourceExhausted =
    unsafe extern "system" fn(JvmtiEnv, JniEnv, c_int, *const c_void, *const c_char);
/// `jvmtiStartFunction`.
pub type AgentThread = unsafe extern "system" fn(JvmtiEnv, JniEnv, *mut c_void);
/// `jvmtiHeapIterationCallback`: class's tag, size, place of the object's tag, length of an array, user data.
pub type OnHeapObject = unsafe extern "system" fn(i64, i64, *mut i64, c_int, *mut c_void) -> c_int;
/// ClassPrepare.
pub type OnClassPrepare = unsafe extern "system" fn(JvmtiEnv, JniEnv, JObject, JObject);
/// ClassFileLoadHook.
pub type OnClassFileLoad = unsafe extern "system" fn(
    JvmtiEnv,
    JniEnv,
    JObject,
    JObject,
    *const c_char,
    JObject,
    c_int,
    *const c_uchar,
    *mut c_int,
    *mut *mut c_uchar,
);
/// ClassLoad.
pub type OnClassLoad = OnClassPrepare;
/// CompiledMethodLoad: method, bytes, address, map of lines, compiler's information.
pub type OnCompiledMethodLoad = unsafe extern "system" fn(
    JvmtiEnv,
    *mut c_void,
    c_int,
    *const c_void,
    c_int,
    *const c_void,
    *const c_void,
);
/// CompiledMethodUnload: method, address.
pub type OnCompiledMethodUnload = unsafe extern "system" fn(JvmtiEnv, *mut c_void, *const c_void);
/// DynamicCodeGenerated: name, address, bytes.
pub type OnDynamicCode = unsafe extern "system" fn(JvmtiEnv, *const c_char, *const c_void, c_int);
/// GarbageCollectionStart.
pub type OnCollection = unsafe extern "system" fn(JvmtiEnv);
