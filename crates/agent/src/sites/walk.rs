//! The heap walk: each object's header, summed by class and origin.
//!
//! HotSpot's IterateThroughHeap hands out no object, but the tag that it passes by address lies in a C++ object whose layout tells:
//! jvmtiTagMap.cpp, `CallbackWrapper`: the object's address stands two words before its tag. That is checked on known objects at start
//! ([`calibrate`]); where it is not so, there are no snapshots. Classes are read out of the objects ([`super::words`]) or, where that is not possible, known by their tags.
//!
//! The callbacks run in the VM's own thread while all Java threads stand still: no call into the JVM, no panic, no lock but those of `numbers.rs`.

use super::header::{Layout, read_word};
use super::numbers::{Before, Reading};
use super::tables::Tables;
use super::words::Words;
use crate::jvmti::heap::{FILTER_UNTAGGED, VISIT_ABORT};
use crate::jvmti::{Jni, Jvmti, flags};
use borescope_spool::snapshot::objects::{Object, Writer};
use borescope_spool::snapshot::{Origin, Row};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Words from an object's tag back to its address.
const BACK: usize = 2;
/// Objects that calibration looks at.
const KNOWN: usize = 5;
/// Tags of these; classes have tags from 1 on.
const KNOWN_TAG: i64 = 1 << 40;
/// ZGC of JDK 17 keeps colours in addresses from bit 42 on. Addresses of the other collectors go on above: where compressed references are off, the
/// heap is mapped near the top (0x7f...).
const ZGC_ADDRESS_BITS: u64 = (1 << 42) - 1;

/// Sums by class and origin: open addressing over (class, origin), a power of two of slots, at most half of them taken.
pub struct Rows {
    slots: Vec<Sum>,
    taken: usize,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    class: u32,
    /// `Origin::word`, 0 = the slot is free.
    origin: u32,
    objects: u64,
    bytes: u64,
}

impl Rows {
    fn new() -> Self {
        Self {
            slots: vec![Sum::default(); 1 << 14],
            taken: 0,
        }
    }

    fn place(slots: &[Sum], class: u32, origin: u32) -> usize {
        let mask = slots.len() - 1;
        let key = u64::from(class) << 32 | u64::from(origin);
        let mut i = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        while slots[i].origin != 0 && (slots[i].class, slots[i].origin) != (class, origin) {
            i = (i + 1) & mask;
        }
        i
    }

    /// Counts an object; false = no memory.
    fn add(&mut self, class: u32, origin: u32, bytes: u64) -> bool {
        let i = Self::place(&self.slots, class, origin);
        let sum = &mut self.slots[i];
        let new = sum.origin == 0;
        (sum.class, sum.origin) = (class, origin);
        sum.objects += 1;
        sum.bytes += bytes;
        self.taken += usize::from(new);
        !new || self.taken * 2 <= self.slots.len() || self.grow()
    }

    fn grow(&mut self) -> bool {
        let mut slots = Vec::new();
        if slots.try_reserve_exact(self.slots.len() * 2).is_err() {
            return false;
        }
        slots.resize(self.slots.len() * 2, Sum::default());
        for sum in self.slots.iter().filter(|s| s.origin != 0) {
            let i = Self::place(&slots, sum.class, sum.origin);
            slots[i] = *sum;
        }
        self.slots = slots;
        true
    }

    /// The rows, in no order. Class 0 = a class that was not known.
    pub fn iter(&self) -> impl Iterator<Item = Row> {
        let taken = self.slots.iter().filter(|s| s.origin != 0);
        taken.filter_map(|s| {
            Some(Row {
                class: s.class,
                origin: Origin::of_word(s.origin)?,
                objects: s.objects,
                bytes: s.bytes,
            })
        })
    }
}

/// A walk in progress.
struct Walk {
    layout: Layout,
    /// The bits of an object's address that say where it is.
    address_bits: u64,
    tables: &'static Tables,
    words: Option<Words>,
    reading: Option<Reading>,
    rows: Rows,
    list: Option<Writer<File>>,
    failure: Option<io::Error>,
    of_unknown_class: u64,
    left_out: [i64; 2],
}

/// What a walk is to do.
pub struct Wanted {
    /// Numbers of classes by what stands in objects; `None` = their tags in the environment that walks.
    pub words: Option<Words>,
    /// Owners stand in hashes, which are read by this; `None` = above them.
    pub reading: Option<Reading>,
    /// Gets each object.
    pub list: Option<Writer<File>>,
    /// Numbers of classes whose objects are no objects of the program's (-1 = no class).
    pub left_out: [i64; 2],
}

/// What a walk has found.
pub struct Found {
    /// Sums by class (its number) and origin.
    pub rows: Rows,
    /// The list of all objects, if it was asked for.
    pub list: Option<Writer<File>>,
    /// Objects of classes without a number.
    pub of_unknown_class: u64,
    /// What hashes were read by.
    pub reading: Option<Reading>,
}

/// Walks through the heap in an environment.
pub fn walk(
    jvmti: Jvmti,
    layout: Layout,
    tables: &'static Tables,
    wanted: Wanted,
) -> Result<Found, String> {
    let mut walk = Walk {
        layout,
        address_bits: match flags::collector() {
            "Z" => ZGC_ADDRESS_BITS,
            _ => u64::MAX,
        },
        tables,
        words: wanted.words,
        reading: wanted.reading,
        rows: Rows::new(),
        list: wanted.list,
        failure: None,
        of_unknown_class: 0,
        left_out: wanted.left_out,
    };
    // SAFETY: `visit` takes a Walk, which lives until the call returns, and calls nothing of the JVM.
    let done = unsafe { jvmti.iterate(0, visit, (&raw mut walk).cast()) };
    if let Some(error) = walk.failure {
        return Err(error.to_string());
    }
    done.map_err(|code| format!("the JVM refuses the heap walk (JVMTI error {code})"))?;
    Ok(Found {
        rows: walk.rows,
        list: walk.list,
        of_unknown_class: walk.of_unknown_class,
        reading: walk.reading,
    })
}

/// A walk that only looks at hashes.
struct Hashes<'a> {
    layout: Layout,
    before: Before<'a>,
    failed: bool,
}

/// Notes the hashes of all objects; classes are known by their tags.
pub fn hashes(jvmti: Jvmti, layout: Layout, before: Before<'_>) -> Result<(), String> {
    let mut walk = Hashes {
        layout,
        before,
        failed: false,
    };
    // SAFETY: `note_hash` takes a Hashes, which lives until the call returns, and calls nothing of the JVM.
    let done = unsafe { jvmti.iterate(0, note_hash, (&raw mut walk).cast()) };
    match done {
        Ok(()) if !walk.failed => {
            walk.before.end();
            Ok(())
        }
        Ok(()) => Err("there is no memory for the hashes of the heap".into()),
        Err(code) => Err(format!(
            "the JVM refuses the heap walk (JVMTI error {code})"
        )),
    }
}

unsafe extern "system" fn note_hash(
    class: i64,
    _size: i64,
    tag: *mut i64,
    _length: c_int,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as in `visit`, with a Hashes.
    let (walk, header) = unsafe { (&mut *data.cast::<Hashes<'_>>(), read_word(object_at(tag))) };
    // SAFETY: as in `visit`.
    let follow = |address| unsafe { read_word(address) };
    let note = AssertUnwindSafe(|| {
        if let Ok(hash) = walk.layout.hash(header, follow)
            && hash != 0
        {
            walk.before.add(class, hash);
        }
    });
    if catch_unwind(note).is_err() {
        walk.failed = true;
        return VISIT_ABORT;
    }
    0
}

unsafe extern "system" fn visit(
    class: i64,
    size: i64,
    tag: *mut i64,
    _length: c_int,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the Walk handed to IterateThroughHeap, in use by nobody else meanwhile; the place before the tag holds the object's address, as
    // calibrated.
    let (walk, object) = unsafe { (&mut *data.cast::<Walk>(), object_at(tag)) };
    // SAFETY: the object's first word is its header. Where that leads, see `header.rs`: the VM is at a safepoint.
    let (header, follow) = unsafe { (read_word(object), |address| read_word(address)) };
    let class = match &mut walk.words {
        None => class,
        Some(words) => {
            // No object is smaller than 16 bytes where this is asked for.
            let word = walk.layout.class_word(header, || follow(object + 8));
            word.map_or(0, |word| words.number(word).into())
        }
    };
    if walk.left_out.contains(&class) {
        return 0;
    }
    let origin = match &mut walk.reading {
        None => walk.layout.origin(header, walk.tables.owners(), follow),
        Some(reading) => {
            let (layout, tables) = (walk.layout, walk.tables);
            let read = AssertUnwindSafe(|| {
                reading.begin();
                match layout.hash(header, follow) {
                    Ok(hash) => reading.origin(tables, class, hash),
                    Err(why) => why,
                }
            });
            let Ok(origin) = catch_unwind(read) else {
                walk.failure = Some(io::Error::other("the numbers cannot be read"));
                return VISIT_ABORT;
            };
            origin
        }
    };
    let origin = match origin {
        Origin::Owner(owner) if !walk.tables.is_logged(owner) => Origin::NoMark,
        origin => origin,
    };
    let class = u32::try_from(class).unwrap_or(0);
    walk.of_unknown_class += u64::from(class == 0);
    if !walk.rows.add(class, origin.word(), size as u64) {
        walk.failure = Some(io::Error::other("no memory for the sums of the heap walk"));
        return VISIT_ABORT;
    }
    if let Some(list) = &mut walk.list {
        let object = Object {
            address: object & walk.address_bits,
            bytes: size as u64,
            class,
            origin,
        };
        if let Err(error) = list.push(object) {
            walk.failure = Some(error);
            return VISIT_ABORT;
        }
    }
    0
}

/// # Safety
/// `tag` is what HotSpot passes to a callback.
unsafe fn object_at(tag: *const i64) -> u64 {
    // SAFETY: the C++ object that the tag is in begins before that.
    unsafe { tag.cast::<u64>().sub(BACK).read_volatile() }
}

/// What calibration knows and finds.
struct Known {
    references: [*const u64; KNOWN],
    right: u32,
    wrong: u32,
}

/// Whether walks of this JVM show objects' addresses where [`visit`] expects them.
pub fn calibrate(jvmti: Jvmti, jni: Jni) -> bool {
    let class = jni.find_class(c"java/lang/Object");
    let mut objects = [std::ptr::null_mut(); KNOWN];
    let mut usable = !class.is_null();
    for (i, object) in objects.iter_mut().enumerate() {
        if usable {
            *object = jni.allocate(class);
            usable = !object.is_null() && jvmti.set_tag(*object, KNOWN_TAG + i as i64);
        }
    }
    let mut known = Known {
        // A local reference is the address of a place that holds the object's address (jniHandles.hpp; its two lowest bits are 0).
        references: objects.map(|o| o as *const u64),
        right: 0,
        wrong: 0,
    };
    if usable {
        // SAFETY: `compare` takes a Known, which lives until the call returns.
        usable =
            unsafe { jvmti.iterate(FILTER_UNTAGGED, compare, (&raw mut known).cast()) }.is_ok();
    }
    for object in objects.into_iter().filter(|o| !o.is_null()) {
        jvmti.set_tag(object, 0);
        jni.forget(object);
    }
    jni.forget(class);
    usable && known.right == KNOWN as u32 && known.wrong == 0
}

unsafe extern "system" fn compare(
    _class: i64,
    _size: i64,
    tag: *mut i64,
    _length: c_int,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the Known handed to IterateThroughHeap; `tag` is the VM's; the references live, and the VM is at a safepoint.
    unsafe {
        let known = &mut *data.cast::<Known>();
        let Some(&reference) = usize::try_from(*tag - KNOWN_TAG)
            .ok()
            .and_then(|i| known.references.get(i))
        else {
            return 0;
        };
        let differs = (object_at(tag) ^ reference.read_volatile()) & ZGC_ADDRESS_BITS;
        match differs {
            0 => known.right += 1,
            _ => known.wrong += 1,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// As a map does, whatever comes, past several growths.
        #[test]
        fn sums_are_right(objects in prop::collection::vec((0u32..300, 1u32..400, 1u64..9), 0..40_000)) {
            let mut rows = Rows::new();
            let mut expected: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
            for (class, owner, bytes) in objects {
                prop_assert!(rows.add(class, owner, bytes));
                let e = expected.entry((class, owner)).or_default();
                *e = (e.0 + 1, e.1 + bytes);
            }
            let found: HashMap<_, _> = rows
                .iter()
                .map(|r| ((r.class, r.origin.word()), (r.objects, r.bytes)))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
