//! One watched place: a state machine from the accesses that touch it to answers.
//!
//! The seed's three questions, for a location M:
//!
//! - *dead store*: a store to M is dead if the next access to M is a store;
//! - *silent store*: a store to M is silent if it writes the value that the store to M before it wrote; loads between do not matter;
//! - *silent load*: a load from M is silent if it reads the value that the load from M before it read; stores between do not matter.
//!
//! A sampled store asks the first two at once, a sampled load the third, a sampled read-modify-write all three. x86 cannot watch loads alone, so a watch
//! is for reads and writes while one of the questions needs loads, and for writes afterwards ([`Mode`]).
//!
//! Accesses of other widths or offsets: M is the watched bytes. A store is dead if each of its watched bytes is stored to before any of
//! them is loaded, whoever stores them: bytes that are already overwritten no longer count. Values compare in the bytes that both accesses touch;
//! [`Answer::whole`] says whether the two accesses were of the same bytes. tests/watch.rs holds this against the definitions.
//!
//! Debug registers belong to a thread: what other threads load is never seen, so a store that only they read is taken for dead, as in the seed. What they
//! store shows when the content is not what this thread left there ([`Between::others`]).

use super::access::{Access, Kind, Place};
use super::value::{Tolerance, differing};

/// Ways in which an access did no useful work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waste {
    /// The first of two stores: nothing loads between.
    DeadStore,
    /// The second of two stores of one value.
    SilentStore,
    /// The second of two loads of one value.
    SilentLoad,
}

impl Waste {
    /// All.
    pub const ALL: [Waste; 3] = [Waste::DeadStore, Waste::SilentStore, Waste::SilentLoad];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Waste::DeadStore => "dead_store",
            Waste::SilentStore => "silent_store",
            Waste::SilentLoad => "silent_load",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked(u8);

impl Asked {
    /// None.
    pub const NONE: Asked = Asked(0);
    /// All of them.
    pub const ALL: Asked = Asked(7);

    /// What a sampled access of a kind can ask.
    pub fn by(kind: Kind) -> Asked {
        match kind {
            Kind::Load => Asked::NONE.with(Waste::SilentLoad),
            Kind::Store => Asked::NONE.with(Waste::DeadStore).with(Waste::SilentStore),
            Kind::Both => Asked::ALL,
            // Whether it stores is not known: it certainly loads.
            Kind::CompareExchange => Asked::by(Kind::Load),
        }
    }

    /// One more.
    #[must_use]
    pub fn with(self, waste: Waste) -> Asked {
        Asked(self.0 | waste.bit())
    }

    /// One less.
    #[must_use]
    pub fn without(self, waste: Waste) -> Asked {
        Asked(self.0 & !waste.bit())
    }

    /// Those in both.
    #[must_use]
    pub fn and(self, other: Asked) -> Asked {
        Asked(self.0 & other.0)
    }

    /// Whether it is asked.
    pub fn has(self, waste: Waste) -> bool {
        self.0 & waste.bit() != 0
    }

    /// Whether nothing is asked.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What the hardware must trap on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads and writes.
    ReadWrite,
    /// Writes.
    Write,
}

/// What touched the place between the two accesses of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Between {
    /// The thread loaded from it. Not seen in [`Mode::Write`]: meaningless for a silent store's pair.
    pub loads: bool,
    /// The thread stored to it.
    pub stores: bool,
    /// Its content changed though the thread stored nothing.
    pub others: bool,
}

/// An answer to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The question.
    pub waste: Waste,
    /// Whether it was waste.
    pub wasteful: bool,
    /// Whether both accesses touched the same bytes. If not, the answer holds for the bytes that were watched and touched.
    pub whole: bool,
    /// What came between.
    pub between: Between,
}

/// What an access made of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    answers: [Option<Answer>; 3],
    /// How to watch on; `None`: all is answered, the register is free.
    pub next: Option<Mode>,
}

impl Seen {
    /// The questions that this access answered.
    pub fn answers(&self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.iter().flatten().copied()
    }
}

/// The state of one watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    place: Place,
    first: Access,
    /// What the sampled access loaded and stored; each means something only while its question is asked.
    loaded: u64,
    stored: u64,
    /// What the place held when the thread last touched it.
    content: u64,
    /// Bytes whose fate is open: not stored to since.
    open: u8,
    asked: Asked,
    whole: bool,
    between: Between,
    /// The sampled access has happened.
    ran: bool,
}

impl Watch {
    /// The watch that a sampled access asks for. `after`: the place's content after the access; `before`: before it, needed for what a
    /// read-modify-write loaded. `want`: questions of interest. `None`: none of them can be asked, or the place is not inside the access.
    pub fn new(
        place: Place,
        first: Access,
        before: Option<u64>,
        after: u64,
        want: Asked,
    ) -> Option<Watch> {
        let mut asked = Asked::by(first.kind()).and(want);
        let loaded = match first.kind() {
            Kind::Both | Kind::CompareExchange => {
                if before.is_none() {
                    asked = asked.without(Waste::SilentLoad);
                }
                before.unwrap_or(after)
            }
            Kind::Load | Kind::Store => after,
        };
        let inside = place.overlap(&first) == place.mask();
        (inside && !asked.is_empty()).then_some(Watch {
            place,
            first,
            loaded,
            stored: after,
            content: after,
            open: place.mask(),
            asked,
            whole: true,
            between: Between::default(),
            ran: true,
        })
    }

    /// The watch for an access that has not happened yet, but is what the thread does next: the first that [`Watch::see`] sees is that one,
    /// and answers nothing. `before`: the place's content now.
    pub fn ahead(place: Place, first: Access, before: u64, want: Asked) -> Option<Watch> {
        let watch = Watch::new(place, first, Some(before), before, want)?;
        Some(Watch {
            ran: false,
            ..watch
        })
    }

    /// What is watched.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The sampled access.
    pub fn first(&self) -> Access {
        self.first
    }

    /// Questions not answered yet.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// How the place must be watched now; `None`: all is answered.
    pub fn mode(&self) -> Option<Mode> {
        if self.asked.has(Waste::DeadStore) || self.asked.has(Waste::SilentLoad) {
            Some(Mode::ReadWrite)
        } else if self.asked.has(Waste::SilentStore) {
            Some(Mode::Write)
        } else {
            None
        }
    }

    /// The thread's next access to the place. `before` and `after`: the place's content around it; where `before` is not known it is taken
    /// for what the thread last saw there. A compare-and-exchange of which is not known whether it stored counts as storing if the content changed.
    /// An access that does not touch the place changes nothing.
    pub fn see(
        &mut self,
        access: &Access,
        before: Option<u64>,
        after: u64,
        tolerance: Tolerance,
    ) -> Seen {
        let mut answers = [None; 3];
        let touched = self.place.overlap(access);
        if touched != 0 && !self.ran {
            self.ran = true;
            self.content = after;
            self.stored = after;
            if self.first.kind() == Kind::Load {
                self.loaded = after;
            }
        } else if touched != 0 {
            self.step(access, touched, before, after, tolerance, &mut answers);
        }
        Seen {
            answers,
            next: self.mode(),
        }
    }

    fn step(
        &mut self,
        access: &Access,
        touched: u8,
        before: Option<u64>,
        after: u64,
        tolerance: Tolerance,
        answers: &mut [Option<Answer>; 3],
    ) {
        let same_bytes =
            (access.address(), access.width()) == (self.first.address(), self.first.width());
        let found = before.unwrap_or(self.content);
        let changed = differing(found, after);
        let stores = match access.kind() {
            Kind::CompareExchange => changed & touched != 0,
            kind => kind.stores(),
        };
        let by_access = if stores { touched } else { 0 };
        let by_others = differing(self.content, found) | (changed & !by_access);
        self.between.others |= by_others & self.place.mask() != 0;
        if access.kind().loads() {
            if self.asked.has(Waste::DeadStore) && touched & self.open != 0 {
                self.answer(answers, Waste::DeadStore, false, same_bytes);
            }
            if self.asked.has(Waste::SilentLoad) {
                let now = if stores { found } else { after };
                let first = (self.loaded, &self.first);
                let same = tolerance.same(&self.place, touched, first, (now, access));
                self.answer(answers, Waste::SilentLoad, same, same_bytes);
            }
            self.between.loads = true;
        }
        if stores {
            if self.asked.has(Waste::DeadStore) {
                self.open &= !touched;
                self.whole &= same_bytes;
                if self.open == 0 {
                    self.answer(answers, Waste::DeadStore, true, self.whole);
                }
            }
            if self.asked.has(Waste::SilentStore) {
                let first = (self.stored, &self.first);
                let same = tolerance.same(&self.place, touched, first, (after, access));
                self.answer(answers, Waste::SilentStore, same, same_bytes);
            }
            self.between.stores = true;
        }
        self.content = after;
    }

    fn answer(
        &mut self,
        answers: &mut [Option<Answer>; 3],
        waste: Waste,
        wasteful: bool,
        whole: bool,
    ) {
        self.asked = self.asked.without(waste);
        answers[waste as usize] = Some(Answer {
            waste,
            wasteful,
            whole,
            between: self.between,
        });
    }
}
