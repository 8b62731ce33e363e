//! The header word of objects in this JVM: probed at start, read in the heap walk.
//!
//! In place, a header says itself what it holds. That of a locked object may be elsewhere (synchronizer.cpp, `read_stable_mark`, and markWord.hpp,
//! `displaced_mark_helper`): under a monitor it is the monitor's first word, since "the sync code expects the header field to be at
//! offset zero" (objectMonitor.hpp: `_header`, from JDK 22 on `_metadata`); under a stack lock (JDK 17 and 21) it is in the frame of the thread that holds the lock. Both stay
//! where they are while the VM is at a safepoint, so the walk may read them there, as collectors do. With a monitor table (JDK 24 and newer, on
//! request) and under lightweight locks (JDK 25) the header stays in place, but for its two lowest bits. Compact headers (JDK 25) have the class above the hash; they come
//! with a monitor table, so that the class is always in place.

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
/// Compact headers: where the class begins (markWord.hpp, `klass_shift`).
const CLASS_SHIFT: u8 = 42;
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
    /// The class stands above the hash.
    compact: bool,
    /// A class is 4 bytes from byte 8 on.
    narrow: bool,
    monitors: Locked,
    stack_locks: Locked,
}

impl Layout {
    fn new(hash_shift: u8, monitors: Locked, stack_locks: Locked) -> Option<Self> {
        Some(Self {
            hash_shift,
            spare: SpareLayout::new(hash_shift, 0, true).ok()?,
            compact: false,
            narrow: false,
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

    /// Bits for an owner; 0 with compact headers.
    pub fn owner_bits(&self) -> u8 {
        match self.compact {
            true => 0,
            false => self.spare.number_bits(),
        }
    }

    /// The bits that a header without mark, hash and lock has alike in all objects.
    pub fn cared(&self) -> u64 {
        cared(self.compact)
    }

    /// Where an object's class stands, for the helper: 1 = above its hash, 2 = at byte 8, 0 = not known.
    pub fn classes(&self) -> i32 {
        match (self.compact, self.narrow) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 0,
        }
    }

    /// What stands for an object's class in its first 16 bytes; `None` = not known.
    pub fn class_word(&self, header: u64, at_8: impl FnOnce() -> u64) -> Option<u32> {
        match self.classes() {
            1 => Some((header >> CLASS_SHIFT) as u32),
            2 => Some(at_8() as u32),
            _ => None,
        }
    }

    /// A header as it is without its lock, age and all; `None` = it cannot be read. `follow` reads one that is elsewhere.
    fn unlocked(&self, header: u64, follow: impl FnOnce(u64) -> u64) -> Option<u64> {
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
            Locked::Unknown => return None,
        };
        (header & LOCK_MASK == UNLOCKED).then_some(header)
    }

    /// The identity hash in a header, 0 = none; the error says why that is not known.
    pub fn hash(&self, header: u64, follow: impl FnOnce(u64) -> u64) -> Result<u32, Origin> {
        let header = self.unlocked(header, follow).ok_or(Origin::Unreadable)?;
        match self.spare.read(header & self.cared()) {
            Header::Unmarked { hash } => Ok(hash),
            Header::Marked { .. } => Err(Origin::Foreign),
            Header::Displaced | Header::Forwarded => Err(Origin::Unreadable),
        }
    }

    /// Spare mode: whose an object with this header is. Owners above `most` were never given.
    pub fn origin(&self, header: u64, most: u32, follow: impl FnOnce(u64) -> u64) -> Origin {
        let Some(header) = self.unlocked(header, follow) else {
            return Origin::Unreadable;
        };
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
    let compact = flags::flag("UseCompactObjectHeaders") == Some(true);
    let cared = cared(compact);
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
        if object.is_null() || unsafe_.header(object) & cared != UNLOCKED {
            return Err(odd());
        }
        let hash = u64::from(jvmti.hash(object).ok_or_else(odd)?);
        let hashed = unsafe_.header(object) & cared;
        let here = HASH_SHIFTS
            .into_iter()
            .find(|shift| hashed == hash << shift | UNLOCKED)
            .ok_or_else(odd)?;
        if hash == 0 || *shift.get_or_insert(here) != here {
            return Err(odd());
        }
        monitors = where_monitors_keep_it(jni, &unsafe_, object, hashed, cared);
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
    let layout = Layout::new(shift.ok_or_else(odd)?, monitors, stack_locks).ok_or_else(odd)?;
    // Else what stands above the hash is not what is expected there.
    if compact && layout.owner_shift() != CLASS_SHIFT {
        return Err(odd());
    }
    Ok(Layout {
        compact,
        narrow: flags::flag("UseCompressedClassPointers") == Some(true),
        ..layout
    })
}

/// All bits but the age and, with compact headers, the class.
fn cared(compact: bool) -> u64 {
    match compact {
        true => !AGE & ((1 << CLASS_SHIFT) - 1),
        false => !AGE,
    }
}

/// JNI's MonitorEnter always makes a monitor (synchronizer.cpp, `jni_enter`).
fn where_monitors_keep_it(
    jni: Jni,
    unsafe_: &Unsafe,
    object: JObject,
    hashed: u64,
    cared: u64,
) -> Locked {
    if !jni.lock(object) {
        return Locked::Unknown;
    }
    let header = unsafe_.header(object);
    let found = if header & LOCK_MASK != MONITOR {
        Locked::Unknown
    } else if header & cared & !LOCK_MASK == hashed & !LOCK_MASK {
        Locked::Here
    } else {
        // SAFETY: not the header itself, so it is the address of the monitor, which stays while this thread holds it.
        let word = unsafe { read_word(header & !LOCK_MASK) };
        match word & cared == hashed {
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
    fn hashes_of_headers() {
        let l = Layout::new(11, Locked::Here, Locked::Here).unwrap();
        let compact = Layout { compact: true, ..l };
        let class = 0x2a_5a5au64 << 42;
        let hash = 0x7fff_ffffu64 << 11;
        for lock in [MONITOR, STACK_LOCK, UNLOCKED] {
            assert_eq!(
                compact.hash(class | hash | lock | 0b0101_0000, nothing),
                Ok(0x7fff_ffff)
            );
            assert_eq!(compact.hash(class | lock | 8, nothing), Ok(0));
        }
        assert_eq!(compact.hash(class | 3, nothing), Err(Origin::Unreadable));
        assert_eq!(l.hash(hash | 1, nothing), Ok(0x7fff_ffff));
        // No hash of ours has anything above it.
        assert_eq!(l.hash(class | hash | 1, nothing), Err(Origin::Foreign));
        assert_eq!((compact.owner_bits(), compact.classes()), (0, 1));
        let narrow = Layout { narrow: true, ..l };
        assert_eq!((l.classes(), narrow.classes()), (0, 2));
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
