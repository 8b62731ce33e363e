//! The files of a spool in which the sites lens has recorded a trace: [`EVENTS`] and [`CLASSES`], beside a `meta.log` that says what the numbers of
//! sites stand for (each `first_site` from one range, classes of the JDK included).
//!
//! `events.bin`: little-endian u64, in the order in which things happened. The first [`slot::FIRST`] are a header ([`slot`]). Then events, by place:
//!
//! | bits | allocation | reference of an identity hash |
//! |---|---|---|
//! | 0..32 | number of the site | place of the object's allocation |
//! | 32..52 | class by number, 0 = the one that the site names | 0 |
//! | 62 | 0 | 1 |
//! | 63 | 1 = the object's hash was asked for | 0 |
//!
//! 0 is no event. Only the first reference of each object is recorded. `classes.bin`: the names of the classes from number 1
//! on, as JVM signatures: u16 length, bytes.

/// The file of events.
pub const EVENTS: &str = "events.bin";
/// The file of classes' names.
pub const CLASSES: &str = "classes.bin";
/// `BSEVENT1`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BSEVENT1");
/// Classes have numbers below this.
pub const CLASS_LIMIT: u32 = 1 << 20;
/// Most events, header included: 2 GB.
pub const MOST_EVENTS: u64 = 1 << 28;

/// Places in the header (java/probe/java/lang/BorescopeTrace.java).
pub mod slot {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// The place of the next event: it may be beyond the limit, then events were lost.
    pub const NEXT: usize = 1;
    /// Events that there is room for.
    pub const LIMIT: usize = 2;
    /// References of the hash of an object that is not in the trace, as far as they are sure to be of the identity hash.
    pub const UNMARKED: usize = 3;
    /// References of the hash of an object that was locked: which one is not known.
    pub const LOCKED: usize = 4;
    /// The first event.
    pub const FIRST: usize = 8;
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An object was allocated.
    Allocated {
        /// Number of the site.
        site: u32,
        /// Number of the class; 0 = the one that the site names.
        class: u32,
        /// Its hash was asked for later.
        hashed: bool,
    },
    /// The identity hash of an object was asked for.
    Referenced {
        /// The place of its allocation.
        object: u32,
    },
}

impl Event {
    /// Reads a word; `None`: it is no event.
    pub fn of(word: u64) -> Option<Event> {
        let low = word as u32;
        match word >> 62 {
            1 => Some(Event::Referenced { object: low }),
            _ if low == 0 => None,
            top => Some(Event::Allocated {
                site: low,
                class: (word >> 32) as u32 & (CLASS_LIMIT - 1),
                hashed: top & 2 != 0,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(Event::of(0), None);
        assert_eq!(Event::of(1 << 63), None);
        let allocated = |site, class, hashed| {
            Some(Event::Allocated {
                site,
                class,
                hashed,
            })
        };
        assert_eq!(Event::of(7), allocated(7, 0, false));
        assert_eq!(Event::of(1 << 63 | 5 << 32 | 7), allocated(7, 5, true));
        assert_eq!(
            Event::of(1 << 62 | 9),
            Some(Event::Referenced { object: 9 })
        );
    }
}
