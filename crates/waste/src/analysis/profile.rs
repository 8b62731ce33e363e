//! Tables read and added up. A table may come from a killed process: nothing in it is trusted.

use super::accounts::Accounts;
use super::contexts::Contexts;
use crate::Error;
use crate::handler::table::{BUSY, CONTEXT, Capacity, Frame, HEADER, MAGIC, PAIR};
use crate::handler::tally;
use crate::handler::watches::Pair;
use crate::source::Source;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one or more tables say: all threads of one process share a table, so several are several processes, or several stays in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Where the samples come from.
    pub source: Source,
    /// Contexts of the pairs.
    pub contexts: Contexts,
    /// How often each pair was found. Their contexts are nodes of `contexts`.
    pub pairs: BTreeMap<Pair, u64>,
    /// All counters.
    pub accounts: Accounts,
    /// Slots that were being filled when the table was read, or the process was killed: at most one answer or context each.
    pub unfinished: u64,
}

/// The words of a table that is in use.
pub fn snapshot(words: &[AtomicU64]) -> Vec<u64> {
    // Pairs stand behind the contexts they name. Read from behind, a pair's contexts are there.
    let mut copy = vec![0; words.len()];
    for (to, word) in copy.iter_mut().zip(words).rev() {
        *to = word.load(Ordering::Acquire);
    }
    copy
}

impl Profile {
    /// An empty profile.
    pub fn new(source: Source) -> Profile {
        Profile {
            source,
            contexts: Contexts::default(),
            pairs: BTreeMap::new(),
            accounts: Accounts::default(),
            unfinished: 0,
        }
    }

    /// Reads a table.
    pub fn read(words: &[u64]) -> Result<Profile, Error> {
        let header = words.get(..HEADER).ok_or(Error::Table("too short"))?;
        if header[0] != MAGIC {
            return Err(Error::Table("not a table, or of another version"));
        }
        let size = |word: u64| usize::try_from(word).unwrap_or(0);
        let capacity = Capacity::new(size(header[1]), size(header[2]))
            .filter(|c| c.words() <= words.len())
            .ok_or(Error::Table("its capacities do not fit its size"))?;
        let source = Source::from_code(header[5]).ok_or(Error::Table("of an unknown source"))?;
        let mut profile = Profile::new(source);
        profile.accounts = Accounts::from_words(&words[HEADER..HEADER + tally::WORDS]);
        let contexts = &words[capacity.contexts_at()..capacity.pairs_at()];
        let nodes = profile.contexts_of(contexts)?;
        let pairs = &words[capacity.pairs_at()..capacity.words()];
        for slot in pairs.chunks_exact(PAIR) {
            profile.pair_of(slot, &nodes)?;
        }
        Ok(profile)
    }

    /// For each node of the table, the profile's.
    fn contexts_of(&mut self, words: &[u64]) -> Result<Vec<Option<u32>>, Error> {
        let slots = words.len() / CONTEXT;
        let mut nodes: Vec<Option<u32>> = vec![None; slots + 1];
        nodes[0] = Some(0);
        let mut way = Vec::new();
        for start in 1..=slots {
            // Up to a known caller, then down again: no recursion, however deep.
            let mut at = start;
            while nodes[at].is_none() {
                let slot = &words[(at - 1) * CONTEXT..at * CONTEXT];
                if slot[0] == 0 || slot[0] == BUSY {
                    break;
                }
                way.push(at);
                if way.len() > slots {
                    return Err(Error::Table("a context is its own caller"));
                }
                at = (slot[1] >> 32) as usize;
                if at > slots {
                    return Err(Error::Table("a context's caller is no node"));
                }
            }
            let Some(mut node) = nodes[at] else {
                // Where the way began there may be nothing; above a context there must be one.
                if way.is_empty() {
                    self.unfinished += u64::from(words[(at - 1) * CONTEXT] == BUSY);
                    continue;
                }
                return Err(Error::Table("a context's caller is missing"));
            };
            while let Some(at) = way.pop() {
                let slot = &words[(at - 1) * CONTEXT..at * CONTEXT];
                let frame = Frame {
                    method: slot[0],
                    bci: slot[1] as u32 as i32,
                };
                node = self.contexts.intern(node, frame);
                nodes[at] = Some(node);
            }
        }
        Ok(nodes)
    }

    fn pair_of(&mut self, slot: &[u64], nodes: &[Option<u32>]) -> Result<(), Error> {
        let Some((&count, key)) = slot.split_last() else {
            return Ok(());
        };
        if key[0] == BUSY {
            self.unfinished += 1;
        }
        // A count of 0: claimed, not counted yet.
        if key[0] == 0 || key[0] == BUSY || count == 0 {
            return Ok(());
        }
        let pair: Option<Pair> = key.try_into().ok().and_then(Pair::from_words);
        let mut pair = pair.ok_or(Error::Table("a pair that cannot be"))?;
        for node in [&mut pair.first, &mut pair.second] {
            let known = nodes.get(*node as usize).copied().flatten();
            *node = known.ok_or(Error::Table("a pair's context is missing"))?;
        }
        self.add(pair, count);
        Ok(())
    }

    /// Counts a pair whose contexts are nodes of this profile.
    pub fn add(&mut self, pair: Pair, count: u64) {
        let sum = self.pairs.entry(pair).or_insert(0);
        *sum = sum.saturating_add(count);
    }

    /// Adds another profile of the same source: samples of different weight cannot be added.
    pub fn merge(&mut self, other: &Profile) -> Result<(), Error> {
        if self.source != other.source {
            return Err(Error::Sources(self.source.name(), other.source.name()));
        }
        let mine = self.contexts.merge(&other.contexts);
        let node = |theirs: u32| mine.get(theirs as usize).copied().unwrap_or(0);
        for (pair, &count) in &other.pairs {
            let pair = Pair {
                first: node(pair.first),
                second: node(pair.second),
                ..*pair
            };
            self.add(pair, count);
        }
        self.accounts.add(&other.accounts);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        Ok(())
    }

    /// The wasteful pairs as collapsed stacks for flame graphs: the first access's context from the outside in, the kind, the second's from
    /// the inside out, and the count.
    pub fn collapsed(&self, name: impl Fn(Frame) -> String) -> String {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for (pair, &count) in self.pairs.iter().filter(|(pair, _)| pair.wasteful) {
            let mut parts: Vec<String> = self.contexts.frames(pair.first).map(&name).collect();
            parts.reverse();
            parts.push(format!("[{}]", pair.waste.name()));
            parts.extend(self.contexts.frames(pair.second).map(&name));
            // The format's own separators.
            let clean = |part: &String| part.replace([';', '\n', ' '], "_");
            let stack: Vec<String> = parts.iter().map(clean).collect();
            let sum = lines.entry(stack.join(";")).or_insert(0);
            *sum = sum.saturating_add(count);
        }
        let line = |(stack, count): (&String, &u64)| format!("{stack} {count}\n");
        lines.iter().map(line).collect()
    }
}
