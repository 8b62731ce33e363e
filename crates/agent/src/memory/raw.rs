//! Loads and stores by address. Every address handed in here lies in memory that this module's siblings mapped and never unmap.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// An address in counter memory.
pub type Addr = u64;

/// Loads a u32.
pub fn load32(a: Addr) -> u32 {
    // SAFETY: `a` is 4-aligned and inside a mapping that lives as long as the process (module invariant).
    unsafe { (a as *const u32).read_volatile() }
}

/// Stores a byte.
pub fn store8(a: Addr, v: u8) {
    // SAFETY: `a` lies in a mapping of ours (module invariant).
    unsafe { (a as *mut u8).write_volatile(v) }
}

/// Stores a u32.
pub fn store32(a: Addr, v: u32) {
    // SAFETY: as in `load32`; the location is writable counter memory.
    unsafe { (a as *mut u32).write_volatile(v) }
}

/// Loads a u64.
pub fn load64(a: Addr) -> u64 {
    atomic(a).load(Relaxed)
}

/// Stores a u64.
pub fn store64(a: Addr, v: u64) {
    atomic(a).store(v, Relaxed);
}

/// Stores a u64 after everything that was stored before it: publishes.
pub fn publish64(a: Addr, v: u64) {
    atomic(a).store(v, Release);
}

/// Adds atomically.
pub fn add64(a: Addr, v: u64) {
    atomic(a).fetch_add(v, Relaxed);
}

/// Fills with zeros.
pub fn zero(a: Addr, bytes: u64) {
    // SAFETY: the range is counter memory that only the caller uses (a free table of its arena).
    unsafe { std::ptr::write_bytes(a as *mut u8, 0, bytes as usize) }
}

fn atomic(a: Addr) -> &'static AtomicU64 {
    // SAFETY: `a` is 8-aligned, mapped for the life of the process, and only ever accessed as an integer.
    unsafe { AtomicU64::from_ptr(a as *mut u64) }
}
