//! Counters as they were read: sums of all tables, and whether they come out.

use crate::handler::tally::{Counter, End, Miss, Refusal, Tally, WORDS};
use crate::handler::watch::Waste;

/// The counters of one table or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounts([u64; WORDS]);

impl Default for Accounts {
    fn default() -> Self {
        Accounts([0; WORDS])
    }
}

/// Two numbers that should be the same (or, while threads run, of which the first is the larger), and are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {whole} are not the {parts} that they came to")]
pub struct Imbalance {
    /// Of what.
    pub what: &'static str,
    /// What went in.
    pub whole: u64,
    /// What is accounted for.
    pub parts: u64,
}

impl Accounts {
    /// From words; missing ones are 0.
    pub fn from_words(words: &[u64]) -> Accounts {
        let mut accounts = Accounts::default();
        accounts.0.iter_mut().zip(words).for_each(|(a, w)| *a = *w);
        accounts
    }

    /// Those of a table that is in use.
    pub fn of(tally: &Tally<'_>) -> Accounts {
        let mut accounts = Accounts::default();
        for counter in Accounts::counters() {
            accounts.0[counter.index()] = tally.get(counter);
        }
        accounts
    }

    /// All counters there are.
    pub fn counters() -> impl Iterator<Item = Counter> {
        let plain = [
            Counter::Tick,
            Counter::Reached,
            Counter::Armed,
            Counter::Recorded,
            Counter::NoRoom,
            Counter::ContextCut,
            Counter::RecordsLost,
        ];
        let kinds = Waste::ALL.into_iter().flat_map(|w| {
            [
                Counter::Asked(w),
                Counter::Wasteful(w),
                Counter::Useful(w),
                Counter::Unanswered(w),
            ]
        });
        plain
            .into_iter()
            .chain(Miss::ALL.map(Counter::Miss))
            .chain(Refusal::ALL.map(Counter::Refused))
            .chain(End::ALL.map(Counter::Ended))
            .chain(kinds)
    }

    /// One counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter.index()]
    }

    /// Adds those of another table.
    pub fn add(&mut self, other: &Accounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    fn sum(&self, counters: impl IntoIterator<Item = Counter>) -> u64 {
        let add = |sum: u64, counter| sum.saturating_add(self.get(counter));
        counters.into_iter().fold(0, add)
    }

    /// Questions of a kind that were answered.
    pub fn completed(&self, waste: Waste) -> u64 {
        self.sum([Counter::Wasteful(waste), Counter::Useful(waste)])
    }

    /// Answers of all kinds.
    pub fn answers(&self) -> u64 {
        Waste::ALL
            .map(|w| self.completed(w))
            .iter()
            .fold(0, |s, n| s.saturating_add(*n))
    }

    /// The way of all samples, by name, as the report has it.
    pub fn samples(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Accounts::counters().filter_map(move |counter| Some((counter.name()?, self.get(counter))))
    }

    /// The sums as (what, whole, parts). Whole less parts is what is under way, nothing once all has ended.
    pub fn sums(&self) -> [(&'static str, u64, u64); 7] {
        let kind = |what, w| {
            let parts = [
                Counter::Wasteful(w),
                Counter::Useful(w),
                Counter::Unanswered(w),
            ];
            (what, self.get(Counter::Asked(w)), self.sum(parts))
        };
        let misses = Miss::ALL.map(Counter::Miss).into_iter();
        let refusals = Refusal::ALL.map(Counter::Refused).into_iter();
        [
            (
                "ticks",
                self.get(Counter::Tick),
                self.sum(misses.chain([Counter::Reached])),
            ),
            (
                "accesses reached",
                self.get(Counter::Reached),
                self.sum(refusals.chain([Counter::Armed])),
            ),
            (
                "watches armed",
                self.get(Counter::Armed),
                self.sum(End::ALL.map(Counter::Ended)),
            ),
            kind("dead store questions", Waste::DeadStore),
            kind("silent store questions", Waste::SilentStore),
            kind("silent load questions", Waste::SilentLoad),
            (
                "answers",
                self.answers(),
                self.sum([Counter::Recorded, Counter::NoRoom]),
            ),
        ]
    }

    /// Whether all sums come out. `ended`: all watches and seeks have ended; before, something may be under way.
    pub fn check(&self, ended: bool) -> Result<(), Imbalance> {
        for (what, whole, parts) in self.sums() {
            if whole < parts || (ended && whole != parts) {
                return Err(Imbalance { what, whole, parts });
            }
        }
        Ok(())
    }
}
