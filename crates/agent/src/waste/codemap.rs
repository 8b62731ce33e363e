//! Which machine code stands where: compiled methods, and the stubs that fill and copy arrays. Written by JVMTI events, read by signal handlers without waiting.
//!
//! Compiled methods: a word for each 64 bytes of the code cache names the record of the method that has code there, so a look-up is two loads. Between two methods'
//! code there are always more than 64 bytes (the headers of HotSpot's `nmethod`). Stubs are few: a list that is replaced as a whole.
//!
//! A record can be out of date for as long as an event is under way. Who looks up a program counter that runs is not concerned, since what runs is not unloaded; all
//! others get bytes of the code cache, which is never unmapped, and must expect anything in them. Must never happen here: an address outside of what HotSpot said.

use borescope_waste::Code;
use std::io;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

const GRAIN: u64 = 64;
/// Records: methods compiled at one time.
const RECORDS: usize = 1 << 18;
/// Largest code cache (HotSpot's own limit is 2 GB).
const MOST: u64 = 2 << 30;

/// The map.
pub struct CodeMap {
    low: u64,
    high: u64,
    words: &'static [AtomicU32],
    records: &'static [Record],
    free: Mutex<Free>,
    stubs: AtomicPtr<Vec<Blob>>,
}

struct Free {
    used: usize,
    list: Vec<u32>,
    serial: u64,
}

struct Record {
    start: AtomicU64,
    len: AtomicU64,
    /// Another one each time it is filled.
    serial: AtomicU64,
}

/// A piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its first byte, where an instruction begins.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Never the same for two methods.
    pub serial: u64,
    /// A stub, not a method.
    pub stub: bool,
}

impl Blob {
    /// Its bytes.
    pub fn code(&self) -> Code<'static> {
        // SAFETY: HotSpot said that code stands there, in its code cache, which is never unmapped. Its threads may patch bytes meanwhile; these are decoded as
        // whatever they are.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.start as *const u8, self.len as usize) };
        Code::new(self.start, bytes)
    }

    fn contains(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.start) < self.len
    }
}

impl CodeMap {
    /// Of a code cache's reserved addresses. What it takes is taken page by page as code appears.
    pub fn new(low: u64, high: u64) -> io::Result<CodeMap> {
        let low = low - low % GRAIN;
        if high <= low || high - low > MOST {
            return Err(io::Error::other("the code cache's bounds make no sense"));
        }
        let words = ((high - low) / GRAIN + 1) as usize;
        Ok(CodeMap {
            low,
            high,
            words: zeros(words)?,
            records: zeros(RECORDS)?,
            free: Mutex::new(Free {
                used: 1,
                list: Vec::new(),
                serial: 0,
            }),
            stubs: AtomicPtr::new(Box::into_raw(Box::default())),
        })
    }

    /// A method was compiled. False: there is no room, or the address is none of the code cache's.
    pub fn load(&self, start: u64, len: u64) -> bool {
        let inside = start >= self.low && len > 0 && start.saturating_add(len) <= self.high;
        if !inside {
            return false;
        }
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        let n = match free.list.pop() {
            Some(n) => n,
            None if free.used < RECORDS => {
                free.used += 1;
                free.used as u32 - 1
            }
            None => return false,
        };
        free.serial += 1;
        let record = &self.records[n as usize];
        // No serial number: it is being filled.
        record.serial.store(0, Relaxed);
        fence(Release);
        record.start.store(start, Relaxed);
        record.len.store(len, Relaxed);
        record.serial.store(free.serial, Release);
        for word in self.span(start, len) {
            word.store(n, Release);
        }
        true
    }

    /// It is gone.
    pub fn unload(&self, start: u64) {
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        let Some(n) = self.word(start).map(|word| word.load(Relaxed)) else {
            return;
        };
        let record = &self.records[n as usize];
        // Another one may stand there by now: the events of compiling and of unloading come from different threads.
        if n == 0 || record.start.load(Relaxed) != start {
            return;
        }
        for word in self.span(start, record.len.load(Relaxed)) {
            let _ = word.compare_exchange(n, 0, Relaxed, Relaxed);
        }
        free.list.push(n);
    }

    /// A stub was made.
    pub fn stub(&self, start: u64, len: u64) {
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        let mut stubs = self.stubs().to_vec();
        if len == 0 || stubs.iter().any(|stub| stub.start == start) {
            return;
        }
        free.serial += 1;
        stubs.push(Blob {
            start,
            len,
            serial: free.serial,
            stub: true,
        });
        // The old list stays: a handler may be reading it. There are a few dozen.
        self.stubs.store(Box::into_raw(Box::new(stubs)), Release);
    }

    fn stubs(&self) -> &'static [Blob] {
        // SAFETY: from `into_raw` of a box that is never freed, and not changed once it is here.
        unsafe { &*self.stubs.load(Acquire) }
    }

    /// The code that an address is in.
    pub fn find(&self, pc: u64) -> Option<Blob> {
        let n = self.word(pc)?.load(Acquire);
        if n != 0 {
            let record = &self.records[n as usize];
            let serial = record.serial.load(Acquire);
            let blob = Blob {
                start: record.start.load(Relaxed),
                len: record.len.load(Relaxed),
                serial,
                stub: false,
            };
            fence(Acquire);
            let whole = serial != 0 && record.serial.load(Relaxed) == serial;
            if whole && blob.contains(pc) {
                return Some(blob);
            }
        }
        self.stubs().iter().find(|stub| stub.contains(pc)).copied()
    }

    fn word(&self, pc: u64) -> Option<&AtomicU32> {
        self.words
            .get(usize::try_from(pc.checked_sub(self.low)? / GRAIN).ok()?)
    }

    fn span(&self, start: u64, len: u64) -> &[AtomicU32] {
        let grain = |at: u64| ((at - self.low) / GRAIN) as usize;
        self.words
            .get(grain(start)..=grain(start + len - 1))
            .unwrap_or_default()
    }
}

/// So many zeros of a type of atomic integers, mapped and not touched.
fn zeros<T>(n: usize) -> io::Result<&'static [T]> {
    // SAFETY: an anonymous mapping, aligned to a page and of whole size, all zeros, which is a value of the atomic integers that it is asked for; never unmapped.
    unsafe {
        let at = libc::mmap(
            null_mut(),
            n * size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(at.cast(), n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_loaded_last_is_found() {
        let low = 0x7F00_0000_0000;
        let map = CodeMap::new(low, low + (1 << 20)).unwrap();
        assert_eq!(map.find(low + 100), None);
        assert!(map.load(low + 96, 1000));
        let first = map.find(low + 100).unwrap();
        assert_eq!(
            (first.start, first.len, first.stub),
            (low + 96, 1000, false)
        );
        assert_eq!(map.find(low + 1095), Some(first));
        for outside in [0, low, low + 95, low + 1096, low + (1 << 20), u64::MAX] {
            assert_eq!(map.find(outside), None, "{outside:x}");
        }
        // The news of the old method's end may come after its successor.
        assert!(map.load(low + 128, 500));
        map.unload(low + 96);
        assert_eq!(map.find(low + 130).map(|blob| blob.start), Some(low + 128));
        map.unload(low + 128);
        assert_eq!(map.find(low + 130), None);
        assert!(map.load(low + 128, 500));
        assert_ne!(
            map.find(low + 130).map(|blob| blob.serial),
            Some(first.serial)
        );
        assert!(!map.load(low - 10, 5) && !map.load(low + (1 << 20) - 4, 8));
    }

    #[test]
    fn stubs_are_told_from_methods() {
        let low = 0x7F00_0000_0000;
        let map = CodeMap::new(low, low + (1 << 20)).unwrap();
        map.stub(low + 32, 16);
        map.stub(low + 48, 16);
        map.stub(low + 48, 16);
        assert!(map.find(low + 40).unwrap().stub);
        assert_eq!(map.find(low + 48).map(|blob| blob.start), Some(low + 48));
        assert_eq!(map.find(low + 64), None);
        assert_eq!(map.stubs().len(), 2);
    }
}
