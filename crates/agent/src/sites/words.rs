//! Which class a word in an object stands for, so that a heap walk need not ask the JVM.
//!
//! HotSpot looks in the tags of the environment that walks, twice for each object: for a tag of its own and for one of its class. An object that has an identity
//! hash, as all have that are marked, takes a search in a table (jvmtiTagMapTable.cpp, `find`), unless the environment has no tags. So a walk uses one of its
//! own, without tags, and reads the class out of the object: a compressed pointer. The pointer itself stands in the class's mirror (javaClasses.hpp, `java_lang_Class::klass`), where
//! [`find`] searches for it with the help of known objects.
//!
//! Comes in: known objects, classes with their numbers. Goes out: a table from words to numbers. Must never happen here: a word that leads to a wrong class. So the table is made
//! anew for each walk, of classes that are kept from being unloaded until it is over; and what is not certain is no table: then the walk goes by tags.

use super::header::Layout;
use crate::jvmti::heap::{Reader, Unsafe};
use crate::jvmti::sys::{JObject, JValue, capability};
use crate::jvmti::{Jni, Jvmti};
use std::ffi::CStr;
use std::sync::OnceLock;

/// Where in a mirror the pointer may stand.
const PLACES: std::ops::RangeInclusive<usize> = 1..=24;
/// Most bits that a pointer is shifted by (compact headers have 10).
const SHIFTS: std::ops::RangeInclusive<u32> = 0..=12;
/// Classes that have to agree.
const AGREE: usize = 6;
/// Boxes are objects of a known class.
const BOXES: [(&CStr, &CStr); 6] = [
    (c"java/lang/Byte", c"(B)Ljava/lang/Byte;"),
    (c"java/lang/Short", c"(S)Ljava/lang/Short;"),
    (c"java/lang/Character", c"(C)Ljava/lang/Character;"),
    (c"java/lang/Integer", c"(I)Ljava/lang/Integer;"),
    (c"java/lang/Long", c"(J)Ljava/lang/Long;"),
    (c"java/lang/Boolean", c"(Z)Ljava/lang/Boolean;"),
];

/// How a class's word comes from its mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// Words before the pointer.
    place: usize,
    base: u64,
    shift: u32,
}

impl Rule {
    /// The word for a pointer; `None`: no object has it. (From JDK 24 on, those of interfaces and abstract classes may lie elsewhere.)
    fn word(&self, pointer: u64) -> Option<u32> {
        let distance = pointer.checked_sub(self.base)?;
        let word = u32::try_from(distance >> self.shift).ok()?;
        (word != 0 && u64::from(word) << self.shift == distance).then_some(word)
    }
}

struct Known {
    /// An environment that never has a tag.
    walker: Jvmti,
    reader: Reader,
    rule: Rule,
}

static KNOWN: OnceLock<Option<Known>> = OnceLock::new();

/// Looks where classes stand, once in a JVM's life.
pub fn calibrate(jvmti: Jvmti, jni: Jni, layout: &Layout) {
    KNOWN.get_or_init(|| {
        let reader = Unsafe::find(jni)?.keep()?;
        let samples = samples(jvmti, jni, layout, &reader);
        let rule = find(&samples)?;
        let walker = jni.environment()?;
        walker
            .add_capabilities(&[capability::TAG_OBJECTS])
            .then_some(Known {
                walker,
                reader,
                rule,
            })
    });
}

/// A class's word, and its mirror by words.
type Sample = (u32, Vec<u64>);

fn samples(jvmti: Jvmti, jni: Jni, layout: &Layout, reader: &Reader) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut look = |object: JObject| {
        if object.is_null() {
            return;
        }
        let class = jni.class_of(object);
        // SAFETY: no object is smaller than 16 bytes.
        let word = unsafe {
            let header = reader.long(jni, object, 0);
            layout.class_word(header, || reader.long(jni, object, 8))
        };
        let words = (jvmti.size(class) / 8) as usize;
        // SAFETY: within the mirror's size.
        let mirror = (0..words.min(PLACES.end() + 1))
            .map(|i| unsafe { reader.long(jni, class, i as i64 * 8) });
        samples.extend(word.map(|word| (word, mirror.collect())));
        jni.forget(class);
    };
    let class = jni.find_class(c"java/lang/Object");
    if !class.is_null() {
        let object = jni.allocate(class);
        look(class);
        look(object);
        jni.forget(object);
        jni.forget(class);
    }
    let string = jni.interned(c"");
    look(string);
    jni.forget(string);
    for (name, signature) in BOXES {
        let class = jni.find_class(name);
        if class.is_null() {
            continue;
        }
        let method = jni.static_method(class, c"valueOf", signature);
        if !method.is_null() {
            let object = jni.call_static_object(class, method, &[JValue { long: 1 }]);
            look(object);
            jni.forget(object);
        }
        jni.forget(class);
    }
    samples
}

/// The only rule by which each class's word comes from its mirror.
fn find(samples: &[Sample]) -> Option<Rule> {
    let mut words: Vec<u32> = samples.iter().map(|s| s.0).collect();
    words.sort_unstable();
    words.dedup();
    let (word, first) = samples.first().filter(|_| words.len() >= AGREE)?;
    let rules = PLACES.flat_map(|place| SHIFTS.map(move |shift| (place, shift)));
    let mut rules = rules.filter_map(|(place, shift)| {
        let base = first.get(place)?.checked_sub(u64::from(*word) << shift)?;
        let rule = Rule { place, base, shift };
        let agree =
            |(word, mirror): &Sample| mirror.get(place).and_then(|&p| rule.word(p)) == Some(*word);
        samples.iter().all(agree).then_some(rule)
    });
    let rule = rules.next()?;
    rules.next().is_none().then_some(rule)
}

/// Numbers of classes by their words: open addressing, a power of two of slots, at most half of them taken; number 0 = free.
pub struct Words {
    slots: Vec<(u32, u32)>,
    last: (u32, u32),
}

impl Words {
    fn new(classes: usize) -> Self {
        Self {
            slots: vec![(0, 0); (classes * 2).next_power_of_two().max(2)],
            last: (0, 0),
        }
    }

    fn place(&self, word: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut i = (word.wrapping_mul(0x9E37_79B9) >> 7) as usize & mask;
        while self.slots[i].1 != 0 && self.slots[i].0 != word {
            i = (i + 1) & mask;
        }
        i
    }

    /// False: another class has this word.
    fn insert(&mut self, word: u32, number: u32) -> bool {
        let i = self.place(word);
        let free = self.slots[i].1 == 0;
        if free {
            self.slots[i] = (word, number);
        }
        free
    }

    /// The class's number; 0 = not known.
    pub fn number(&mut self, word: u32) -> u32 {
        if self.last.0 != word {
            self.last = (word, self.slots[self.place(word)].1);
        }
        self.last.1
    }
}

/// The environment that is to walk, and the words of the classes that are loaded; `None`: it is to go by tags. Classes with number 0 have none.
pub fn of(jni: Jni, jvmti: Jvmti, classes: &[(JObject, u32)]) -> Option<(Jvmti, Words)> {
    let known = KNOWN.get()?.as_ref()?;
    let mut words = Words::new(classes.len());
    for &(class, number) in classes.iter().filter(|c| c.1 != 0) {
        let end = (known.rule.place as i64 + 1) * 8;
        if jvmti.size(class) < end {
            return None;
        }
        // SAFETY: within the mirror's size.
        let pointer = unsafe { known.reader.long(jni, class, end - 8) };
        if let Some(word) = known.rule.word(pointer)
            && !words.insert(word, number)
        {
            return None;
        }
    }
    Some((known.walker, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror(word: u32, rule: Rule) -> Vec<u64> {
        let mut mirror: Vec<u64> = (0..12).map(|i| u64::from(word) * 77 + i).collect();
        mirror[rule.place] = rule.base + (u64::from(word) << rule.shift);
        mirror
    }

    #[test]
    fn the_rule_is_found() {
        for (place, base, shift) in [(2, 0x7f12_3400_0000, 0), (5, 0, 3), (11, 1 << 40, 10)] {
            let rule = Rule { place, base, shift };
            let samples: Vec<Sample> = [3, 900, 17, 1_000_003, 44, 5]
                .map(|word| (word, mirror(word, rule)))
                .into();
            assert_eq!(find(&samples), Some(rule));
            // Too few, and one that differs.
            assert_eq!(find(&samples[..5]), None);
            let mut wrong = samples.clone();
            wrong[4].1[place] += 1 << shift;
            assert_eq!(find(&wrong), None);
            // Two places that say the same.
            let twice = samples.iter().cloned().map(|(word, mut mirror)| {
                mirror.push(mirror[place]);
                (word, mirror)
            });
            assert_eq!(find(&twice.collect::<Vec<_>>()), None);
        }
    }

    #[test]
    fn pointers_that_no_object_has() {
        let rule = Rule {
            place: 2,
            base: 0x1000,
            shift: 3,
        };
        assert_eq!(rule.word(0x1008), Some(1));
        for pointer in [0x1000, 0xff8, 0x1009, 0x1000 + (8 << 32)] {
            assert_eq!(rule.word(pointer), None, "{pointer:x}");
        }
    }

    #[test]
    fn words_lead_to_their_classes() {
        let mut words = Words::new(1000);
        for i in 1..=1000 {
            assert!(words.insert(i * 64, i));
        }
        assert!(!words.insert(64, 7));
        for i in 1..=1000 {
            assert_eq!((words.number(i * 64), words.number(i * 64 + 1)), (i, 0));
        }
    }
}
