//! What a pair means, in words, and how much of it a change of the program could save.
//!
//! 90 to 96 % of all loads are silent in any program, so a share alone says nothing. A *weight* from 0 to 1 says which part of a pair's samples a person
//! can hope to save. It is a judgement, used for the order of the list and nothing else; the counts beside it are what was measured.

use crate::handler::watch::Waste;

/// What is known of a leaf pair (all its contexts together).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The kind.
    pub waste: Waste,
    /// Both accesses are the same machine instruction at the same line.
    pub same_instruction: bool,
    /// Both are in the same method.
    pub same_method: bool,
    /// In most samples both had the same callers.
    pub same_callers: bool,
    /// In most samples something was stored to the place between.
    pub stores_between: bool,
    /// In most samples its content changed though the thread stored nothing.
    pub others_between: bool,
    /// One of the accesses initialises.
    pub initialising: bool,
}

/// What to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// A dead store: the zeroing of a new object, or its constructor.
    Initialised,
    /// A dead store that one instruction makes again and again.
    StoredInEachTurn,
    /// A dead store that another line overwrites.
    Overwritten,
    /// A silent store that one instruction makes again and again.
    SameStoredInEachTurn,
    /// A silent store of what another line stored.
    SameStoredTwice,
    /// A silent load of one instruction with the same callers.
    ReloadedInEachTurn,
    /// A silent load of one instruction with different callers.
    ReloadedByCallers,
    /// A silent load of what another line loaded.
    LoadedTwice,
    /// A silent load though something was stored between.
    SameAfterStore,
    /// Others write there.
    Shared,
}

impl Hint {
    /// The hint for a pair.
    pub fn of(facts: &Facts) -> Hint {
        match facts.waste {
            _ if facts.initialising => Hint::Initialised,
            _ if facts.others_between => Hint::Shared,
            Waste::DeadStore if facts.same_instruction => Hint::StoredInEachTurn,
            Waste::DeadStore => Hint::Overwritten,
            Waste::SilentStore if facts.same_instruction => Hint::SameStoredInEachTurn,
            Waste::SilentStore => Hint::SameStoredTwice,
            Waste::SilentLoad if facts.stores_between => Hint::SameAfterStore,
            Waste::SilentLoad if !facts.same_instruction => Hint::LoadedTwice,
            Waste::SilentLoad if facts.same_callers => Hint::ReloadedInEachTurn,
            Waste::SilentLoad => Hint::ReloadedByCallers,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Hint::Initialised => {
                "one of the two accesses initialises a new object, which Java requires; allocating less often would save it"
            }
            Hint::StoredInEachTurn => {
                "the same instruction stores again and again and nothing reads the value between: keep it in a local variable and store it once, after the loop"
            }
            Hint::Overwritten => {
                "the second line overwrites what the first has stored before anything reads it: the first store can go, or move to where it is needed"
            }
            Hint::SameStoredInEachTurn => {
                "the same instruction stores the value that is already there: store it once, or only when it changes"
            }
            Hint::SameStoredTwice => {
                "the second line stores the value that the first has stored: one of the two stores is enough"
            }
            Hint::ReloadedInEachTurn => {
                "the value is reloaded in each iteration though nothing stores to it between: load it once before the loop, in this method or in the caller that repeats it"
            }
            Hint::ReloadedByCallers => {
                "the same line reads the same unchanged value for different callers: pass it on, or keep what is computed from it"
            }
            Hint::LoadedTwice => {
                "two lines read the same unchanged value: the second could use what the first has read"
            }
            Hint::SameAfterStore => {
                "the value is read again after a store that did not change it: see the silent stores to the same place"
            }
            Hint::Shared => {
                "another thread writes to the same place: what looks like waste may be how threads talk to each other"
            }
        }
    }

    /// Which part of the samples a change of the program could save.
    pub fn weight(self) -> f64 {
        match self {
            Hint::StoredInEachTurn | Hint::Overwritten => 1.0,
            Hint::SameStoredInEachTurn | Hint::SameStoredTwice | Hint::ReloadedInEachTurn => 0.5,
            Hint::ReloadedByCallers | Hint::LoadedTwice => 0.25,
            Hint::SameAfterStore => 0.1,
            Hint::Initialised | Hint::Shared => 0.05,
        }
    }
}
