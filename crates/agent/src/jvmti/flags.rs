//! Flags of the running HotSpot, read from the table that libjvm exports for debuggers (vmStructs.hpp,
//! `gHotSpotVMStructs` and `gHotSpotVMTypes`). A VM without it: nothing is known.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

#[repr(C)]
struct VmStruct {
    type_name: *const c_char,
    field_name: *const c_char,
    type_string: *const c_char,
    is_static: c_int,
    offset: u64,
    address: *const c_void,
}

#[repr(C)]
struct VmType {
    type_name: *const c_char,
    superclass: *const c_char,
    is_oop: c_int,
    is_integer: c_int,
    is_unsigned: c_int,
    size: u64,
}

/// Names of the garbage collectors' flags and how we call them.
const COLLECTORS: [(&str, &str); 6] = [
    ("UseG1GC", "G1"),
    ("UseParallelGC", "Parallel"),
    ("UseSerialGC", "Serial"),
    ("UseZGC", "Z"),
    ("UseShenandoahGC", "Shenandoah"),
    ("UseEpsilonGC", "Epsilon"),
];

/// The collector in use, or `unknown`.
pub fn collector() -> &'static str {
    let used = |(name, _): &&(&str, &str)| flag(name) == Some(true);
    COLLECTORS.iter().find(used).map_or("unknown", |c| c.1)
}

/// A boolean flag; `None` = this VM has none of that name.
pub fn flag(name: &str) -> Option<bool> {
    // SAFETY: a boolean flag is one byte.
    find(name).map(|address| unsafe { *address } != 0)
}

/// A flag of type int.
pub fn int_flag(name: &str) -> Option<i32> {
    // SAFETY: an int flag is four aligned bytes.
    find(name).map(|address| unsafe { *address.cast::<i32>() })
}

/// A flag of type intx.
pub fn word_flag(name: &str) -> Option<i64> {
    word(name).map(|flag| flag.load(Relaxed))
}

/// Sets a flag of type intx; nothing if this VM has none of that name.
pub fn set_word_flag(name: &str, value: i64) {
    if let Some(flag) = word(name) {
        flag.store(value, Relaxed);
    }
}

/// Offset of a field in the VM's own objects; `None` = this VM's table has none of that name.
pub fn field(of: &str, name: &str) -> Option<u64> {
    entry(of, name)
        .filter(|e| e.is_static == 0)
        .map(|e| e.offset)
}

/// Address of a static field of the VM.
pub fn static_field(of: &str, name: &str) -> Option<*const c_void> {
    let entry = entry(of, name)?;
    (entry.is_static != 0 && !entry.address.is_null()).then_some(entry.address)
}

fn entry(of: &str, name: &str) -> Option<&'static VmStruct> {
    // SAFETY: read-only walk over a table that HotSpot builds before any agent is loaded and never changes; it ends with an entry whose name is null.
    unsafe {
        let mut entry = pointer::<VmStruct>(c"gHotSpotVMStructs")?;
        while !(*entry).type_name.is_null() {
            if text((*entry).type_name) == of && text((*entry).field_name) == name {
                return Some(&*entry);
            }
            entry = entry.add(1);
        }
        None
    }
}

fn word(name: &str) -> Option<&'static AtomicI64> {
    // SAFETY: such a flag is a variable of the VM's of eight aligned bytes, there as long as the VM; its threads read it as a whole.
    find(name).map(|address| unsafe { AtomicI64::from_ptr(address.cast_mut().cast()) })
}

fn find(name: &str) -> Option<*const u8> {
    // SAFETY: read-only walk over tables that HotSpot builds before any agent is loaded and never changes.
    unsafe { find_flag(name) }
}

/// # Safety
/// The exported tables, if present, are HotSpot's.
unsafe fn find_flag(wanted: &str) -> Option<*const u8> {
    // SAFETY: by contract; each table ends with an entry whose name is null, each name is a C string.
    unsafe {
        let mut entry = pointer::<VmStruct>(c"gHotSpotVMStructs")?;
        let (mut flags, mut count, mut name, mut address) = (None, None, None, None);
        while !(*entry).type_name.is_null() {
            if text((*entry).type_name) == "JVMFlag" {
                match text((*entry).field_name) {
                    "flags" => flags = Some(((*entry).address as *const *const u8).read()),
                    "numFlags" => count = Some(((*entry).address as *const usize).read()),
                    "_name" => name = Some((*entry).offset as usize),
                    "_addr" => address = Some((*entry).offset as usize),
                    _ => {}
                }
            }
            entry = entry.add(1);
        }
        let mut kind = pointer::<VmType>(c"gHotSpotVMTypes")?;
        while !(*kind).type_name.is_null() && text((*kind).type_name) != "JVMFlag" {
            kind = kind.add(1);
        }
        if (*kind).type_name.is_null() {
            return None;
        }
        let (flags, name, address) = (flags?, name?, address?);
        for i in 0..count? {
            let flag = flags.add(i * (*kind).size as usize);
            let flag_name = (flag.add(name) as *const *const c_char).read();
            if flag_name.is_null() {
                continue;
            }
            if text(flag_name) == wanted {
                let address = (flag.add(address) as *const *const u8).read();
                return (!address.is_null()).then_some(address);
            }
        }
        None
    }
}

/// # Safety
/// The symbol, if there is one, is a pointer variable to an array of T.
unsafe fn pointer<T>(symbol: &CStr) -> Option<*const T> {
    let at = symbol_of(symbol);
    if at.is_null() {
        return None;
    }
    // SAFETY: by contract.
    let table = unsafe { *(at as *const *const T) };
    (!table.is_null()).then_some(table)
}

/// Address of a symbol that libjvm exports; null = there is none.
pub fn symbol_of(symbol: &CStr) -> *const c_void {
    // libjvm.so was loaded by the launcher with local scope, so it is looked up by name.
    // SAFETY: RTLD_NOLOAD only finds a library that is loaded already; dlsym reads its symbol table.
    unsafe {
        let lib = libc::dlopen(c"libjvm.so".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        libc::dlsym(
            if lib.is_null() {
                libc::RTLD_DEFAULT
            } else {
                lib
            },
            symbol.as_ptr(),
        )
    }
}

/// # Safety
/// `s` is null or a C string that lives as long as the VM.
unsafe fn text(s: *const c_char) -> &'static str {
    if s.is_null() {
        return "";
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(s) }.to_str().unwrap_or("")
}
