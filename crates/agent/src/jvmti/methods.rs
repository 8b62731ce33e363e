//! Methods behind safe calls: what the number in a stack's frame stands for, and that each method has one. In: classes and method ids of the JVM's.

use super::sys::{self, JObject, call};
use super::{Jni, Jvmti};
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;

/// `jvmtiLineNumberEntry`.
#[repr(C)]
struct Line {
    start: i64,
    line: c_int,
}

/// The class of a method.
pub struct Declaring {
    /// Binary name with slashes.
    pub class: String,
    /// SourceFile attribute.
    pub source_file: Option<String>,
    /// Its constant pool as it stands in a class file, without the number of entries; empty if the JVM does not tell.
    pub constants: Vec<u8>,
}

/// A method.
pub struct Described {
    pub name: String,
    pub descriptor: String,
    /// (first bytecode index, line), by bytecode index.
    pub lines: Vec<(u16, u16)>,
    /// `None`: it has none, or the JVM does not tell.
    pub code: Option<Vec<u8>>,
}

impl Jvmti {
    /// Gives each method of a class its id: frames that are read in a signal handler name only methods that have one.
    pub fn number_methods(self, class: JObject) {
        let mut n: c_int = 0;
        let mut list: *mut *mut c_void = null_mut();
        // SAFETY: arguments as GetClassMethods asks; the list is given back and not looked at.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_CLASS_METHODS, (JObject, *mut c_int, *mut *mut *mut c_void) -> c_int,
                class, &mut n, &mut list);
            if rc == 0 && !list.is_null() {
                self.free(list.cast());
            }
        }
    }

    /// Sends events of one kind for all that was before.
    pub fn generate(self, event: c_int) -> bool {
        // SAFETY: arguments as GenerateEvents asks.
        unsafe { call!(self.0, sys::jvmti::GENERATE_EVENTS, (c_int) -> c_int, event) == 0 }
    }

    /// The class of a method; `None`: it is unloaded.
    ///
    /// # Safety
    /// `method` was a `jmethodID` at some time.
    pub unsafe fn declaring(self, jni: Jni, method: *mut c_void) -> Option<Declaring> {
        let mut class = null_mut();
        // SAFETY: the JVM checks ids of methods that are gone; the other arguments as the functions ask.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_METHOD_DECLARING_CLASS, (*mut c_void, *mut JObject) -> c_int, method, &mut class);
            if rc != 0 || class.is_null() {
                return None;
            }
            let mut out: *mut c_char = null_mut();
            let rc = call!(self.0, sys::jvmti::GET_SOURCE_FILE_NAME, (JObject, *mut *mut c_char) -> c_int, class, &mut out);
            let source_file = (rc == 0).then(|| self.take_string(out));
            let signature = self.signature(class);
            let constants = self.constants(class);
            jni.forget(class);
            let signature = signature?;
            Some(Declaring {
                constants,
                class: crate::vm::class_name(&signature)
                    .unwrap_or(&signature)
                    .to_owned(),
                source_file,
            })
        }
    }

    fn constants(self, class: JObject) -> Vec<u8> {
        let (mut count, mut n): (c_int, c_int) = (0, 0);
        let mut bytes: *mut c_uchar = null_mut();
        // SAFETY: arguments as GetConstantPool asks; the bytes are copied before they are given back.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_CONSTANT_POOL, (JObject, *mut c_int, *mut c_int, *mut *mut c_uchar) -> c_int,
                class, &mut count, &mut n, &mut bytes);
            if rc != 0 || bytes.is_null() {
                return Vec::new();
            }
            let copy = std::slice::from_raw_parts(bytes, n as usize).to_vec();
            self.free(bytes);
            copy
        }
    }

    /// What a method is; `None`: it is unloaded.
    ///
    /// # Safety
    /// As [`Jvmti::declaring`].
    pub unsafe fn describe(self, method: *mut c_void) -> Option<Described> {
        let (mut name, mut of): (*mut c_char, *mut c_char) = (null_mut(), null_mut());
        // SAFETY: as in `declaring`; what the JVM hands out is copied and given back once.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_METHOD_NAME, (*mut c_void, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char) -> c_int,
                method, &mut name, &mut of, null_mut());
            if rc != 0 {
                return None;
            }
            Some(Described {
                name: self.take_string(name),
                descriptor: self.take_string(of),
                lines: self.lines(method),
                code: self.bytecodes(method),
            })
        }
    }

    /// # Safety
    /// As [`Jvmti::declaring`].
    unsafe fn lines(self, method: *mut c_void) -> Vec<(u16, u16)> {
        let mut n: c_int = 0;
        let mut table: *mut Line = null_mut();
        // SAFETY: arguments as GetLineNumberTable asks; the table is copied before it is given back.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_LINE_NUMBER_TABLE, (*mut c_void, *mut c_int, *mut *mut Line) -> c_int,
                method, &mut n, &mut table);
            if rc != 0 || table.is_null() {
                return Vec::new();
            }
            let lines = std::slice::from_raw_parts(table, n as usize);
            let mut lines: Vec<(u16, u16)> = lines
                .iter()
                .map(|l| (l.start as u16, l.line as u16))
                .collect();
            lines.sort_unstable();
            self.free(table.cast());
            lines
        }
    }

    /// # Safety
    /// As [`Jvmti::declaring`].
    unsafe fn bytecodes(self, method: *mut c_void) -> Option<Vec<u8>> {
        let mut n: c_int = 0;
        let mut bytes: *mut c_uchar = null_mut();
        // SAFETY: arguments as GetBytecodes asks; the bytes are copied before they are given back.
        unsafe {
            let rc = call!(self.0, sys::jvmti::GET_BYTECODES, (*mut c_void, *mut c_int, *mut *mut c_uchar) -> c_int,
                method, &mut n, &mut bytes);
            if rc != 0 || bytes.is_null() {
                return None;
            }
            let copy = std::slice::from_raw_parts(bytes, n as usize).to_vec();
            self.free(bytes);
            Some(copy)
        }
    }
}
