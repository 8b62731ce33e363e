//! The watches of one thread: who holds which register, who gives way, and what was answered.
//!
//! The handler's order of work, for a sample: [`Watches::choose`] (cheap, most samples end here), then the calling context and the hardware
//! register, then [`Watches::arm`] or [`Watches::refuse`]. For a trap: [`Watches::trapped`]. For everything else that ends a watch: [`Watches::end`]. All counting
//! happens here, so that the sums of [`super::tally`] cannot be missed.

use super::access::{Access, Kind};
use super::code::Bytes;
use super::reservoir::{Choice, Random, Reservoir};
use super::tally::{Counter, End, Miss, Refusal, Tally};
use super::value::Tolerance;
use super::watch::{Answer, Mode, Seen, Waste, Watch};

/// Most registers that a thread has: x86 has four.
pub const REGISTERS: usize = 4;

/// Who did an access: its calling context in the table, the innermost frame alone, and the instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Node of the whole context ([`super::table::Table::context`]).
    pub context: u32,
    /// Node of its innermost frame alone.
    pub line: u32,
    /// The machine instruction.
    pub instruction: Bytes,
    /// The access initialises a new object or array: the VM's zeroing, or a store of a constructor to its own object.
    pub initialising: bool,
}

/// A watch and who asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    /// The state machine.
    pub watch: Watch,
    /// Who did the sampled access.
    pub origin: Origin,
    /// What was touched, in the caller's numbering (a class, or an allocation site); 0 if not known. One pair a number.
    pub object: u64,
}

/// What a trap came to.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// The watch as it was armed.
    pub armed: Armed,
    /// The answers, and how to watch on. `next: None`: the register is free.
    pub seen: Seen,
}

/// The watches of one thread, over `N` registers.
#[derive(Clone, Debug)]
pub struct Watches<const N: usize = REGISTERS> {
    slots: [Option<Armed>; N],
    limit: usize,
    reservoir: Reservoir,
    random: Random,
    tolerance: Tolerance,
}

impl<const N: usize> Watches<N> {
    /// None armed. `seed` decides whom chance prefers.
    pub const fn new(seed: u64, tolerance: Tolerance) -> Watches<N> {
        Watches {
            slots: [None; N],
            limit: N,
            reservoir: Reservoir::new(),
            random: Random::new(seed),
            tolerance,
        }
    }

    /// Registers that can be had: fewer than `N` if a debugger holds some. Watches in those above stay until they end.
    pub fn set_limit(&mut self, registers: usize) {
        self.limit = registers.min(N);
    }

    /// Random numbers, for the caller's own choices.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The watch of a register.
    pub fn get(&self, slot: usize) -> Option<&Armed> {
        self.slots.get(slot)?.as_ref()
    }

    /// Watches that are armed.
    pub fn armed(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// The register whose place an address lies in, as a trap reports it.
    pub fn at(&self, address: u64) -> Option<usize> {
        self.slots.iter().position(|slot| {
            slot.as_ref().is_some_and(|armed| {
                let place = armed.watch.place();
                (place.start()..place.start() + u64::from(place.len())).contains(&address)
            })
        })
    }

    /// The sampler fired.
    pub fn tick(&self, tally: &Tally<'_>) {
        tally.add(Counter::Tick);
    }

    /// The tick came to nothing.
    pub fn missed(&self, miss: Miss, tally: &Tally<'_>) {
        tally.add(Counter::Miss(miss));
    }

    /// The tick reached an access.
    pub fn reached(&self, tally: &Tally<'_>) {
        tally.add(Counter::Reached);
    }

    /// The access that was reached is not armed. [`Watches::choose`] counts what it passes over itself.
    pub fn refuse(&self, refusal: Refusal, tally: &Tally<'_>) {
        tally.add(Counter::Refused(refusal));
    }

    /// Whether an access that was reached may be armed, and where. It is not armed yet, and nobody has given way.
    pub fn choose(&mut self, tally: &Tally<'_>) -> Option<usize> {
        let usable = self.slots.get(..self.limit).unwrap_or_default();
        let free = usable.iter().position(Option::is_none);
        let busy = usable.iter().flatten().count();
        let slot = match self.reservoir.offer(busy, self.limit, &mut self.random) {
            Choice::Free => free,
            Choice::Replace(slot) => Some(slot),
            Choice::PassOver => None,
        };
        if slot.is_none() {
            self.refuse(Refusal::PassedOver, tally);
        }
        slot
    }

    /// The register now watches `armed`; who held it gives way. How it is to be watched; `None` if it cannot be, which counts as refused.
    pub fn arm(&mut self, slot: usize, armed: Armed, tally: &Tally<'_>) -> Option<Mode> {
        let mode = armed.watch.mode();
        if slot >= N || mode.is_none() {
            self.refuse(Refusal::NotAsked, tally);
            return None;
        }
        self.end(slot, End::Replaced, tally);
        self.slots[slot] = Some(armed);
        tally.add(Counter::Armed);
        for waste in Waste::ALL {
            if armed.watch.asked().has(waste) {
                tally.add(Counter::Asked(waste));
            }
        }
        mode
    }

    /// The thread touched a watched place. Contents as in [`Watch::see`]. `None`: nothing is armed there.
    pub fn trapped(
        &mut self,
        slot: usize,
        access: &Access,
        before: Option<u64>,
        after: u64,
        tally: &Tally<'_>,
    ) -> Option<Trap> {
        let held = self.slots.get_mut(slot)?;
        let armed = held.as_mut()?;
        let seen = armed.watch.see(access, before, after, self.tolerance);
        for answer in seen.answers() {
            tally.add(match answer.wasteful {
                true => Counter::Wasteful(answer.waste),
                false => Counter::Useful(answer.waste),
            });
        }
        let trap = Trap {
            armed: *armed,
            seen,
        };
        if seen.next.is_none() {
            *held = None;
            tally.add(Counter::Ended(End::Completed));
        }
        Some(trap)
    }

    /// The watch of a register ends before all is answered. Nothing happens if there is none.
    pub fn end(&mut self, slot: usize, end: End, tally: &Tally<'_>) {
        let Some(armed) = self.slots.get_mut(slot).and_then(Option::take) else {
            return;
        };
        tally.add(Counter::Ended(end));
        for waste in Waste::ALL {
            if armed.watch.asked().has(waste) {
                tally.add(Counter::Unanswered(waste));
            }
        }
    }

    /// All watches end.
    pub fn end_all(&mut self, end: End, tally: &Tally<'_>) {
        (0..N).for_each(|slot| self.end(slot, end, tally));
    }
}

/// A pair as it goes into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The question, and whether it was waste.
    pub waste: Waste,
    /// See there.
    pub wasteful: bool,
    /// Node of the first access's context.
    pub first: u32,
    /// Node of the second's; 0 if not wasteful.
    pub second: u32,
    /// What is known of the pair beside its contexts.
    pub detail: Detail,
    /// The first access's instruction.
    pub first_instruction: Bytes,
    /// The second's; empty if not wasteful.
    pub second_instruction: Bytes,
    /// What was touched; 0 if not known.
    pub object: u64,
}

/// What is known of a pair beside its contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Detail {
    /// See [`Answer::whole`].
    pub whole: bool,
    /// See [`super::watch::Between`].
    pub loads_between: bool,
    /// See there.
    pub stores_between: bool,
    /// See there.
    pub others_between: bool,
    /// One of the two accesses initialises ([`Origin::initialising`]).
    pub initialising: bool,
    /// The two accesses: what, how wide, which elements.
    pub first: Shape,
    /// The second; as the first if not wasteful.
    pub second: Shape,
}

/// An access without its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// What it does.
    pub kind: Kind,
    /// Bytes.
    pub width: u8,
    /// What they mean.
    pub element: super::access::Element,
}

impl Shape {
    /// The shape of an access.
    pub fn of(access: &Access) -> Shape {
        Shape {
            kind: access.kind(),
            width: access.width(),
            element: access.element(),
        }
    }
}

impl Pair {
    /// The pair of an answer. What was not waste is kept by the first access's line alone: it says of how many the waste is a share.
    pub fn new(armed: &Armed, answer: &Answer, second: &Origin, access: &Access) -> Pair {
        let origin = &armed.origin;
        let shape = Shape::of(&armed.watch.first());
        let wasteful = answer.wasteful;
        let of = |yes: bool| wasteful && yes;
        Pair {
            waste: answer.waste,
            wasteful,
            first: if wasteful {
                origin.context
            } else {
                origin.line
            },
            second: if wasteful { second.context } else { 0 },
            detail: Detail {
                whole: answer.whole || !wasteful,
                loads_between: of(answer.between.loads),
                stores_between: of(answer.between.stores),
                others_between: of(answer.between.others),
                initialising: origin.initialising || of(second.initialising),
                first: shape,
                second: if wasteful { Shape::of(access) } else { shape },
            },
            first_instruction: origin.instruction,
            second_instruction: match wasteful {
                true => second.instruction,
                false => Bytes::default(),
            },
            object: if wasteful { armed.object } else { 0 },
        }
    }
}
