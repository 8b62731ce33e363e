//! Where HotSpot keeps what the handlers look at: the heap, object headers, a thread's allocation buffer and its virtual thread; and its way to read a stack in a
//! signal handler, AsyncGetCallTrace. Offsets come from the table that libjvm exports for debuggers. Must never happen here: a load from an address that is not checked, or not
//! that of a structure of the calling thread.

use super::Cannot;
use super::kernel::peek;
use crate::jvmti::flags;
use borescope_waste::Layout;
use std::ffi::{c_int, c_void};

/// Deepest stack that is read.
pub const DEPTH: usize = 256;

/// A frame of AsyncGetCallTrace's (forte.cpp, `ASGCT_CallFrame`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallFrame {
    /// Bytecode index; negative: none (-3: a native method).
    pub bci: i32,
    /// `jmethodID`.
    pub method: *mut c_void,
}

#[repr(C)]
struct CallTrace {
    env: *mut c_void,
    frames: c_int,
    buffer: *mut CallFrame,
}

type AsyncGetCallTrace = unsafe extern "C" fn(*mut CallTrace, c_int, *mut c_void);

/// A JavaThread, the calling one, as compiled code keeps it in r15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaThread(u64);

/// A thread's allocation buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Its first byte.
    pub start: u64,
    /// Where the next object will be.
    pub top: u64,
}

impl Buffer {
    /// Whether an address is that of something allocated in it.
    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.top).contains(&address)
    }
}

/// All of it.
#[derive(Debug)]
pub struct HotSpot {
    /// Addresses that objects can have.
    pub heap: (u64, u64),
    /// The code cache's addresses.
    pub code: (u64, u64),
    /// Where headers are.
    pub layout: Layout,
    /// Code that runs long is compiled by C2.
    pub c2: bool,
    class_base: u64,
    class_shift: u32,
    compressed: bool,
    layout_helper: u64,
    tlab: u64,
    tlab_start: u64,
    tlab_top: u64,
    os_thread: u64,
    thread_id: u64,
    vthread: Option<u64>,
    trace: AsyncGetCallTrace,
}

impl HotSpot {
    /// Looks it up; not in a handler.
    pub fn find(collector: &str) -> Result<HotSpot, Cannot> {
        let unknown = |what: &str| {
            Cannot::new(
                &format!("this JVM does not say where it keeps its {what}"),
                "use a HotSpot JDK 17, 21 or 25",
            )
        };
        let field = |of: &str, name: &str| flags::field(of, name).ok_or_else(|| unknown(name));
        let at = flags::symbol_of(c"AsyncGetCallTrace");
        if at.is_null() {
            return Err(unknown("AsyncGetCallTrace"));
        }
        // SAFETY: HotSpot's function of that name has had this signature since JDK 1.4 (forte.cpp).
        let trace = unsafe { std::mem::transmute::<*const c_void, AsyncGetCallTrace>(at) };
        let bound = |name| static_word("CodeCache", name).ok_or_else(|| unknown(name));
        let compact = flags::flag("UseCompactObjectHeaders") == Some(true);
        let compressed = flags::flag("UseCompressedClassPointers") != Some(false);
        let (class_base, class_shift) = match compressed {
            true => class_encoding().ok_or_else(|| unknown("encoding of classes"))?,
            false => (0, 0),
        };
        Ok(HotSpot {
            heap: heap(collector).ok_or_else(|| unknown("heap"))?,
            code: (bound("_low_bound")?, bound("_high_bound")?),
            layout: match (compact, compressed) {
                (true, _) => Layout::COMPACT,
                (false, true) => Layout::COMPRESSED,
                (false, false) => Layout::WIDE,
            },
            c2: flags::word_flag("TieredStopAtLevel").is_none_or(|level| level > 3),
            class_base,
            class_shift,
            compressed,
            layout_helper: field("Klass", "_layout_helper")?,
            tlab: field("Thread", "_tlab")?,
            tlab_start: field("ThreadLocalAllocBuffer", "_start")?,
            tlab_top: field("ThreadLocalAllocBuffer", "_top")?,
            os_thread: flags::field("JavaThread", "_osthread")
                .or_else(|| flags::field("Thread", "_osthread"))
                .ok_or_else(|| unknown("_osthread"))?,
            thread_id: field("OSThread", "_thread_id")?,
            // JDK 17 has no virtual threads.
            vthread: flags::field("JavaThread", "_vthread"),
            trace,
        })
    }

    /// The thread in r15, if that is the calling one (`id`).
    pub fn java_thread(&self, r15: u64, id: c_int) -> Option<JavaThread> {
        let os_thread = peek(r15.checked_add(self.os_thread)?, 8)?;
        let its = peek(os_thread.checked_add(self.thread_id)?, 4)?;
        (its == id as u64).then_some(JavaThread(r15))
    }

    /// Its allocation buffer.
    pub fn buffer(&self, thread: JavaThread) -> Buffer {
        let at = thread.0 + self.tlab;
        Buffer {
            start: own(at + self.tlab_start),
            top: own(at + self.tlab_top),
        }
    }

    /// What stands for the virtual thread that it runs: the same value until a collection moves something, or it mounts another.
    pub fn mounted(&self, thread: JavaThread) -> u64 {
        let handle = self.vthread.map_or(0, |at| own(thread.0 + at));
        match handle {
            0 => 0,
            // An OopHandle points to a slot that lives as long as the thread.
            handle => own(handle),
        }
    }

    /// `Klass::_layout_helper` of the object at an address, if there is one: positive for instances (their size), negative for arrays.
    fn layout_helper_of(&self, object: u64) -> Option<i32> {
        let (offset, bytes) = self.layout.class;
        let word = peek(object.checked_add(offset.into())?, bytes.into())?;
        let class = if self.layout == Layout::COMPACT {
            // The upper 22 bits of the header (markWord.hpp).
            self.class_base + ((word >> 10) << self.class_shift)
        } else if self.compressed {
            self.class_base + (word << self.class_shift)
        } else {
            word
        };
        if class == self.class_base || class % 8 != 0 {
            return None;
        }
        Some(peek(class.checked_add(self.layout_helper)?, 4)? as u32 as i32)
    }

    /// Whether an array stands there. An address inside of an object may seem to be one with a probability that does not matter.
    pub fn is_array(&self, object: u64) -> bool {
        // Tag -1 or -2 in the upper two bits; header bytes; element's log2 in the lowest byte (klass.hpp).
        self.layout_helper_of(object).is_some_and(|helper| {
            let header = (helper >> 16) & 0xFF;
            helper < 0 && (12..=24).contains(&header) && helper & 0xFF <= 3
        })
    }

    /// Size of the instance that stands there, if one does.
    pub fn instance_bytes(&self, object: u64) -> Option<u64> {
        // The lowest bit: allocated the slow way.
        let bytes = self.layout_helper_of(object).filter(|helper| *helper > 0)? & !7;
        u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// The frames of the calling thread from the inside out, in a signal handler. `context`: the handler's, changed to what is to be looked at. The error is
    /// AsyncGetCallTrace's number.
    pub fn frames<'a>(
        &self,
        env: *mut c_void,
        context: &mut libc::ucontext_t,
        buffer: &'a mut [CallFrame; DEPTH],
    ) -> Result<&'a [CallFrame], c_int> {
        let mut trace = CallTrace {
            env,
            frames: 0,
            buffer: buffer.as_mut_ptr(),
        };
        // SAFETY: made to be called in a handler; `env` is the calling thread's, and the buffer has DEPTH frames.
        unsafe {
            (self.trace)(
                &mut trace,
                DEPTH as c_int,
                (context as *mut libc::ucontext_t).cast(),
            );
        }
        match usize::try_from(trace.frames) {
            Ok(n) if n > 0 => Ok(&buffer[..n.min(DEPTH)]),
            _ => Err(trace.frames),
        }
    }
}

/// A word of a structure of the calling thread's that HotSpot keeps as long as the thread.
fn own(at: u64) -> u64 {
    // SAFETY: `at` is in the calling JavaThread, whose address was checked in `HotSpot::java_thread`, or in a slot that it points to. An aligned word,
    // which only this thread or a safepoint changes.
    unsafe { (at as *const u64).read_volatile() }
}

fn static_word(of: &str, name: &str) -> Option<u64> {
    let at = flags::static_field(of, name)?;
    // SAFETY: a static field of the VM's of eight bytes, a pointer.
    Some(unsafe { at.cast::<u64>().read() })
}

fn class_encoding() -> Option<(u64, u32)> {
    let of = |name| flags::static_field("CompressedKlassPointers", name);
    let base = of("_narrow_klass._base").or_else(|| of("_base"))?;
    let shift = of("_narrow_klass._shift").or_else(|| of("_shift"))?;
    // SAFETY: static fields of the VM's, a pointer and an int; set before any agent's VMInit.
    unsafe {
        let shift = u32::try_from(shift.cast::<c_int>().read()).ok()?;
        Some((base.cast::<u64>().read(), shift))
    }
}

fn heap(collector: &str) -> Option<(u64, u64)> {
    if collector == "Z" {
        // ZGC has no range of its own in these tables. Its heap is somewhere from 4 TB on, above which nothing else is below 64 TB (zAddress.hpp).
        return Some((1 << 42, 1 << 46));
    }
    let collected = static_word("Universe", "_collectedHeap")?;
    let at = collected + flags::field("CollectedHeap", "_reserved")?;
    let start = peek(at + flags::field("MemRegion", "_start")?, 8)?;
    let words = peek(at + flags::field("MemRegion", "_word_size")?, 8)?;
    (start != 0 && words != 0).then(|| (start, start.saturating_add(words.saturating_mul(8))))
}
