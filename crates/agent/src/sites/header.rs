//! The header word of objects in this JVM: probed at start, read in the heap walk.
//!
//! In place, a header says itself what it holds. That of a locked object may be elsewhere (synchronizer.cpp, `read_stable_mark`, and markWord.hpp,
//! `displaced_mark_helper`): under a monitor it is the monitor's first word, since "the sync code expects the header field to be at
//! offset zero" (objectMonitor.hpp: `_header`, from JDK 22 on `_metadata`); under a stack lock (JDK 17 and 21) it is in the frame of the thread that holds the lock. Both stay
//! where they are while the VM is at a safepoint, so the walk may read them there, as collectors do. With a monitor table (JDK 24 and newer, on
//! request) and under lightweight locks (JDK 25) the header stays in place, but for its two lowest bits.

use crate::jvmti::heap::Unsafe;
use crate::jvmti::sys::JObject;
use crate::jvmti::{Jni, Jvmti, flags};
use borescope_sites::spare::{HASH_BITS, Header, SpareLayout};
use borescope_spool::snapshot::Origin;

const LOCK_MASK: u64 = 0b11;
const STACK_LOCK: u64 = 0b00;
const UNLOCKED: u64 = 0b01;
const MONITOR: u64 = 0b10;
/// Four bits of age from bit 3 on: collections change them under our eyes.
const AGE: u64 = 0x78;
/// Where the hash begins, in the JDKs that are known: 17 and 21, 25.
const HASH_SHIFTS: [u8; 2] = [8, 11];
/// Objects that have to agree.
const PROBES: usize = 4;

/// Where the header of a locked object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locked {
    /// In place, but for the lowest bits.
    Here,
    /// Where the word points to.
    There,
    /// Not known: it is not read.
    Unknown,
}

/// How headers of this JVM are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    hash_shift: u8,
    spare: SpareLayout,
    monitors: Locked,
    stack_locks: Locked,
}

impl Layout {
    fn new(hash_shift: u8, monitors: Locked, stack_locks: Locked) -> Option<Self> {
        Some(Self {
            hash_shift,
            spare: SpareLayout::new(hash_shift, 0, true).ok()?,
            monitors,
            stack_locks,
        })
    }

    /// Bit where the identity hash begins.
    pub fn hash_shift(&self) -> u8 {
        self.hash_shift
    }

    /// Bit where an owner begins.
    pub fn owner_shift(&self) -> u8 {
        self.hash_shift + HASH_BITS
    }

    /// Bits for an owner.
    pub fn owner_bits(&self) -> u8 {
        self.spare.number_bits()
    }

    /// Whose an object with this header is. `follow` reads a header that is elsewhere; owners above `most` were never given.
    pub fn origin(&self, header: u64, most: u32, follow: impl FnOnce(u64) -> u64) -> Origin {
        let locked = match header & LOCK_MASK {
            UNLOCKED => Locked::Here,
            MONITOR => self.monitors,
            // 0: a monitor is being put in place of a stack lock (markWord.hpp, INFLATING).
            STACK_LOCK if header != 0 => self.stack_locks,
            // Only while a collector moves the object.
            _ => Locked::Unknown,
        };
        let header = match locked {
            Locked::Here => header & !LOCK_MASK | UNLOCKED,
            Locked::There => follow(header & !LOCK_MASK),
            Locked::Unknown => return Origin::Unreadable,
        };
        if header & LOCK_MASK != UNLOCKED {
            return Origin::Unreadable;
        }
        match self.spare.read(header) {
            Header::Marked { number, .. } if number <= most => Origin::Owner(number),
            Header::Marked { .. } => Origin::Foreign,
            Header::Unmarked { hash: 0 } => Origin::NoMark,
            Header::Unmarked { .. } => Origin::Hashed,
            Header::Displaced | Header::Forwarded => Origin::Unreadable,
        }
    }
}

/// Looks at objects of this JVM; the error says why the lens cannot work.
pub fn probe(jvmti: Jvmti, jni: Jni, feature: u32) -> Result<Layout, String> {
    if flags::flag("UseBiasedLocking") == Some(true) {
        return Err("with biased locking there is no room in object headers: leave out -XX:+UseBiasedLocking".into());
    }
    if flags::flag("UseCompactObjectHeaders") == Some(true) {
        return Err("compact object headers have no room for allocation sites in this version: run with -XX:-UseCompactObjectHeaders".into());
    }
    let odd = || "object headers of this JVM are laid out in a way that is not known".to_owned();
    let unsafe_ = Unsafe::find(jni).ok_or_else(odd)?;
    let class = jni.find_class(c"java/lang/Object");
    if class.is_null() {
        return Err(odd());
    }
    let mut shift = None;
    let mut monitors = Locked::Unknown;
    for _ in 0..PROBES {
        let object = jni.allocate(class);
        if object.is_null() || unsafe_.header(object) & !AGE != UNLOCKED {
            return Err(odd());
        }
        let hash = u64::from(jvmti.hash(object).ok_or_else(odd)?);
        let hashed = unsafe_.header(object) & !AGE;
        let here = HASH_SHIFTS
            .into_iter()
            .find(|shift| hashed == hash << shift | UNLOCKED)
            .ok_or_else(odd)?;
        if hash == 0 || *shift.get_or_insert(here) != here {
            return Err(odd());
        }
        monitors = where_monitors_keep_it(jni, &unsafe_, object, hashed);
        jni.forget(object);
    }
    jni.forget(class);
    let stack_locks = match flags::int_flag("LockingMode") {
        Some(2) => Locked::Here,
        Some(_) => Locked::There,
        // The flag came with JDK 21, and its default was stack locks until 22; before, there was nothing else.
        None if feature < 24 => Locked::There,
        None => Locked::Here,
    };
    Layout::new(shift.ok_or_else(odd)?, monitors, stack_locks).ok_or_else(odd)
}

/// JNI's MonitorEnter always makes a monitor (synchronizer.cpp, `jni_enter`).
fn where_monitors_keep_it(jni: Jni, unsafe_: &Unsafe, object: JObject, hashed: u64) -> Locked {
    if !jni.lock(object) {
        return Locked::Unknown;
    }
    let header = unsafe_.header(object);
    let found = if header & LOCK_MASK != MONITOR {
        Locked::Unknown
    } else if header & !AGE & !LOCK_MASK == hashed & !LOCK_MASK {
        Locked::Here
    } else {
        // SAFETY: not the header itself, so it is the address of the monitor, which stays while this thread holds it.
        let word = unsafe { read_word(header & !LOCK_MASK) };
        match word & !AGE == hashed {
            true => Locked::There,
            false => Locked::Unknown,
        }
    };
    jni.unlock(object);
    found
}

/// # Safety
/// `address` is that of 8 readable bytes.
pub unsafe fn read_word(address: u64) -> u64 {
    // SAFETY: by contract; 8-aligned, since the lowest bits of such words are lock bits.
    unsafe { (address as *const u64).read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: u64) -> u64 {
        panic!("nothing to follow")
    }

    #[test]
    fn headers_in_place() {
        for (shift, bits) in [(8, 25), (11, 22)] {
            let l = Layout::new(shift, Locked::There, Locked::There).unwrap();
            assert_eq!((l.owner_bits(), l.owner_shift()), (bits, shift + 31));
            let hash = 0x1234_5678u64 << shift;
            let owner = |n: u64| n << (shift + 31) | hash | 0b0101_0001;
            assert_eq!(l.origin(0b0010_1001, 9, nothing), Origin::NoMark);
            assert_eq!(l.origin(hash | 1, 9, nothing), Origin::Hashed);
            assert_eq!(l.origin(owner(9), 9, nothing), Origin::Owner(9));
            assert_eq!(l.origin(owner(10), 9, nothing), Origin::Foreign);
            let most = (1 << bits) - 1;
            assert_eq!(
                l.origin(owner(most), most as u32, nothing),
                Origin::Owner(most as u32)
            );
            assert_eq!(l.origin(owner(9) | 3, 9, nothing), Origin::Unreadable);
        }
    }

    #[test]
    fn headers_of_locked_objects() {
        let l = Layout::new(8, Locked::There, Locked::There).unwrap();
        let header = 7 << 39 | 99 << 8 | 1;
        for lock in [MONITOR, STACK_LOCK] {
            let follow = |address| {
                assert_eq!(address, 0x7f00_1230);
                header
            };
            assert_eq!(l.origin(0x7f00_1230 | lock, 7, follow), Origin::Owner(7));
            // What is there must be a header that was neutral.
            assert_eq!(
                l.origin(0x7f00_1230 | lock, 7, |_| header & !1),
                Origin::Unreadable
            );
        }
        assert_eq!(l.origin(0, 7, nothing), Origin::Unreadable);

        let l = Layout::new(11, Locked::Here, Locked::Here).unwrap();
        let header = 7 << 42 | 99 << 11;
        for lock in [MONITOR, STACK_LOCK, UNLOCKED] {
            assert_eq!(l.origin(header | lock, 7, nothing), Origin::Owner(7));
        }
        let l = Layout::new(11, Locked::Unknown, Locked::Here).unwrap();
        assert_eq!(l.origin(header | MONITOR, 7, nothing), Origin::Unreadable);
    }
}
