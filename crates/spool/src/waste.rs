//! Files and records of the waste lens: `waste.bin`, the table of pairs and counters that the handlers fill, and the records of `meta.log` that say
//! what its numbers mean.
//!
//! `waste.bin` holds the 64-bit words of [`borescope_waste::handler::table`], little-endian, from the first byte on; the agent gives the file its whole size
//! before it maps it, and all threads of the process share it. Its frames are (number of a method, bytecode index): [`Compiled`] names the methods, and is
//! written when compiled code with them is loaded, so before the table can hold them. Numbers are never used again for another method, whatever is unloaded.
//! What comes in is damaged or hostile until it is proven whole; no file makes [`read`] panic or take more than a small multiple of its size.

use borescope_waste::handler::table::{CONTEXT, Capacity, HEADER, PAIR};
use borescope_waste::handler::tally;
use borescope_waste::{Error, Profile, Source};

/// Name of the table's file in the spool.
pub const FILE: &str = "waste.bin";

/// How the lens was set up; once, behind [`crate::meta::Target`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waste {
    /// Where samples come from.
    pub source: Source,
    /// Ticks for each second of CPU time, or accesses for each sample, as the source has it.
    pub rate: u32,
    /// How far two floating-point values may differ and be the same, in parts per million.
    pub tolerance_ppm: u32,
    /// Debug registers of a thread that watch data.
    pub watches: u8,
    /// The agent came after the start.
    pub attached: bool,
}

/// Methods of a class that are in compiled code, by themselves or inlined. A class has as many of these records as it takes; a method may come twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Binary name with slashes.
    pub class: String,
    /// SourceFile attribute.
    pub source_file: Option<String>,
    /// The methods.
    pub methods: Vec<Method>,
}

/// A method of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its number in the table's frames, from [`borescope_waste::Frame::FIRST_METHOD`] on.
    pub number: u64,
    /// Name.
    pub name: String,
    /// Descriptor.
    pub descriptor: String,
    /// Line numbers: (first bytecode index, line), by bytecode index.
    pub lines: Vec<(u16, u16)>,
    /// Bytecodes that may touch memory, by bytecode index; `None` if the bytecode could not be had, so that nobody can say which lines are doubtful.
    pub accesses: Option<Vec<Access>>,
}

/// A bytecode that may touch memory: all but those that only move values between stack and locals, compute, compare and jump. What is not among them is taken for one
/// of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bytecode index.
    pub bci: u16,
    /// Opcode (JVMS 17, chapter 6).
    pub opcode: u8,
    /// First character of the field's descriptor, for field accesses.
    pub descriptor: Option<u8>,
}

/// A table as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Contexts, pairs and counters.
    pub profile: Profile,
    /// Bytes that are missing at the file's end (a full disk, a torn copy); what stood there is not in the profile.
    pub missing: u64,
}

/// Reads a table's file, whole or cut off at any byte behind its header.
pub fn read(bytes: &[u8]) -> Result<Read, Error> {
    let mut words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    let size = |at: usize| {
        let word = words.get(at).copied().ok_or(Error::Table("too short"))?;
        Ok(usize::try_from(word).unwrap_or(0))
    };
    let claimed = Capacity::new(size(1)?, size(2)?)
        .ok_or(Error::Table("no table, or its capacities cannot be"))?;
    let whole = claimed.words() as u64 * 8;
    let missing = whole.saturating_sub(bytes.len() as u64);
    if missing > 0 {
        words = shortened(words, claimed);
    }
    Profile::read(&words).map(|profile| Read { profile, missing })
}

/// A smaller table of the whole slots that are there, so that a claim of a large one takes no memory. Slots keep their numbers.
fn shortened(mut words: Vec<u64>, claimed: Capacity) -> Vec<u64> {
    let pairs_at = claimed.words() - claimed.pairs * PAIR;
    let fit = |slots: usize| slots.next_power_of_two().max(8);
    if words.len() < pairs_at {
        // Without pairs the contexts are of no use, and those that are there may lack their callers.
        words.truncate(HEADER + tally::WORDS);
        words.resize(HEADER + tally::WORDS, 0);
        (words[1], words[2]) = (8, 8);
        words.resize(HEADER + tally::WORDS + 8 * CONTEXT + 8 * PAIR, 0);
        return words;
    }
    let slots = (words.len() - pairs_at) / PAIR;
    let pairs = fit(slots);
    words.truncate(pairs_at + slots * PAIR);
    words.resize(pairs_at + pairs * PAIR, 0);
    words[2] = pairs as u64;
    words
}
