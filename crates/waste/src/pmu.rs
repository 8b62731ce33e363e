//! Records of the kernel's ring buffer, as perf_event_open writes them for precise memory events.
//!
//! Source: linux/perf_event.h (`enum perf_event_type`), asm/perf_regs.h. Allocation-free, and nothing in a record is trusted: sizes are checked
//! before use, and a record that does not fit its own size, or is cut off by the head, is [`Damage`]. Tested on synthetic records; not tested on hardware.
//!
//! [`Ring`] cuts the buffer into records (one that wraps around its end is put together in the caller's scratch), [`Format`] says what a sample holds, [`Record`] is one
//! decoded. The caller reads `data_head` with acquire order, and stores [`Ring::tail`] into `data_tail` with release order afterwards.

use crate::handler::registers::Registers;

/// Bits of `perf_event_attr.sample_type`.
pub mod sample {
    #![allow(missing_docs, reason = "the kernel's names")]
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

const RECORD_LOST: u32 = 2;
const RECORD_THROTTLE: u32 = 5;
const RECORD_UNTHROTTLE: u32 = 6;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const MISC_CPUMODE: u16 = 7;
const MISC_USER: u16 = 2;
const MISC_EXACT_IP: u16 = 1 << 14;
/// Largest record: its size is a u16.
pub const MAX_RECORD: usize = u16::MAX as usize;
const HEADER: usize = 8;
/// Call chains hold markers from here on instead of addresses (`PERF_CONTEXT_MAX`).
const CONTEXT_MARKERS: u64 = -4095i64 as u64;
const CONTEXT_USER: u64 = -512i64 as u64;

/// What is wrong with the buffer. Nothing behind it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The buffer's size is not a power of two, or more lies between tail and head than it holds.
    #[error("ring buffer: head and tail do not fit its size")]
    Ring,
    /// A record is shorter than its header, not a multiple of 8 bytes, or ends behind the head.
    #[error("ring buffer: a record of {0} bytes")]
    Size(u16),
    /// A record of this type is too short for what it must hold.
    #[error("ring buffer: a record of type {0} is too short for what it holds")]
    Short(u32),
    /// The scratch is too small for a record that wraps around.
    #[error("ring buffer: scratch of less than 65535 bytes")]
    Scratch,
    /// A sample holds something whose size cannot be told (a branch stack, a group's counts).
    #[error("ring buffer: samples of this type cannot be read")]
    Format,
}

/// The records between tail and head.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'d> {
    data: &'d [u8],
    head: u64,
    tail: u64,
}

impl<'d> Ring<'d> {
    /// `data`: the data pages; `head`, `tail`: `data_head` and `data_tail`, which only ever grow.
    pub fn new(data: &'d [u8], head: u64, tail: u64) -> Result<Ring<'d>, Damage> {
        let waiting = head.wrapping_sub(tail);
        if !data.len().is_power_of_two() || waiting > data.len() as u64 {
            return Err(Damage::Ring);
        }
        Ok(Ring { data, head, tail })
    }

    /// Up to where it has been read.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The next record's bytes, header included; `None` at the head. After damage the rest is given up: the tail is at the head.
    pub fn next<'s>(&mut self, scratch: &'s mut [u8]) -> Option<Result<&'s [u8], Damage>>
    where
        'd: 's,
    {
        let left = self.head.wrapping_sub(self.tail);
        if left == 0 {
            return None;
        }
        let record = self.record(left, scratch);
        self.tail = match record {
            Ok(bytes) => self.tail.wrapping_add(bytes.len() as u64),
            Err(_) => self.head,
        };
        Some(record)
    }

    fn record<'s>(&self, left: u64, scratch: &'s mut [u8]) -> Result<&'s [u8], Damage>
    where
        'd: 's,
    {
        let mask = self.data.len() - 1;
        let start = self.tail as usize & mask;
        // Records are aligned to 8 bytes, so a header never wraps; if the tail is not, byte by byte is right all the same.
        let byte = |n: usize| self.data.get((start + n) & mask).copied().unwrap_or(0);
        let size = u16::from_le_bytes([byte(6), byte(7)]);
        let length = usize::from(size);
        if length < HEADER || length % 8 != 0 || length as u64 > left {
            return Err(Damage::Size(size));
        }
        if let Some(whole) = self.data.get(start..start + length) {
            return Ok(whole);
        }
        let target = scratch.get_mut(..length).ok_or(Damage::Scratch)?;
        for (n, to) in target.iter_mut().enumerate() {
            *to = byte(n);
        }
        Ok(target)
    }
}

/// What samples hold, as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    sample_type: u64,
    read_words: usize,
    user: u64,
    interrupted: u64,
}

impl Format {
    /// `sample_type`, `read_format`, `sample_regs_user` and `sample_regs_intr` of the event's `perf_event_attr`. Branch stacks and counts of
    /// groups, whose size a sample does not tell alone, are refused; so is a sample without an instruction pointer and address.
    pub fn new(
        sample_type: u64,
        read_format: u64,
        user: u64,
        interrupted: u64,
    ) -> Result<Format, Damage> {
        const GROUP: u64 = 1 << 3;
        let has = |bits: u64| sample_type & bits == bits;
        if has(sample::BRANCH_STACK) || !has(sample::IP | sample::ADDR) {
            return Err(Damage::Format);
        }
        if has(sample::READ) && read_format & GROUP != 0 {
            return Err(Damage::Format);
        }
        let extra = read_format & !GROUP & 0x1F;
        Ok(Format {
            sample_type,
            read_words: 1 + extra.count_ones() as usize,
            user,
            interrupted,
        })
    }

    fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }
}

/// What the sampled instruction did (`mem_op` of `perf_mem_data_src`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It loaded.
    Load,
    /// It stored.
    Store,
    /// A prefetch, or an instruction fetch.
    Other,
}

/// A sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'s> {
    /// The instruction.
    pub ip: u64,
    /// `ip` is that of the sampled instruction, not one near it.
    pub exact: bool,
    /// It ran in user mode.
    pub user: bool,
    /// The data address; `None` if the hardware had none (0).
    pub address: Option<u64>,
    /// What it did; `None` if not known or not asked for.
    pub operation: Option<Operation>,
    /// It was a locked instruction.
    pub locked: bool,
    /// Thread and its process.
    pub thread: Option<(u32, u32)>,
    /// Nanoseconds of the event's clock.
    pub time: Option<u64>,
    /// Events that the sample stands for.
    pub period: Option<u64>,
    /// Latency or weight.
    pub weight: Option<u64>,
    /// Registers at the sample. With IBS those of the interrupt, later than `ip`; with PEBS those behind the instruction.
    pub registers: Option<Registers>,
    chain: &'s [u8],
}

impl<'s> Sample<'s> {
    /// The user's part of the call chain, innermost first. The first address is that of the interrupted instruction.
    pub fn chain(&self) -> impl Iterator<Item = u64> + 's {
        let mut user = true;
        let words = self.chain.chunks_exact(8).filter_map(word);
        words.filter(move |&address| {
            let marker = address >= CONTEXT_MARKERS;
            if marker {
                user = address == CONTEXT_USER;
            }
            user && !marker
        })
    }
}

/// A decoded record.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "no heap here, and nearly all are samples"
)]
pub enum Record<'s> {
    /// A sample.
    Sample(Sample<'s>),
    /// The kernel had no room for so many records.
    Lost(u64),
    /// The kernel thinks there are too many samples: none for a while.
    Throttled,
    /// Samples again.
    Unthrottled,
    /// Another record.
    Other(u32),
}

impl<'s> Record<'s> {
    /// Decodes a record's bytes, as [`Ring::next`] gives them.
    pub fn decode(bytes: &'s [u8], format: &Format) -> Result<Record<'s>, Damage> {
        let header = bytes.get(..HEADER).and_then(word).ok_or(Damage::Short(0))?;
        let kind = header as u32;
        let misc = (header >> 32) as u16;
        let mut fields = Fields(bytes.get(HEADER..).unwrap_or_default());
        let decoded = match kind {
            RECORD_SAMPLE => fields.sample(misc, format).map(Record::Sample),
            RECORD_LOST => fields
                .skip(8)
                .and_then(|()| fields.word())
                .map(Record::Lost),
            RECORD_LOST_SAMPLES => fields.word().map(Record::Lost),
            RECORD_THROTTLE => Some(Record::Throttled),
            RECORD_UNTHROTTLE => Some(Record::Unthrottled),
            other => Some(Record::Other(other)),
        };
        decoded.ok_or(Damage::Short(kind))
    }
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// What is left of a record.
struct Fields<'s>(&'s [u8]);

impl<'s> Fields<'s> {
    fn take(&mut self, bytes: usize) -> Option<&'s [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes).map(|_| ())
    }

    fn word(&mut self) -> Option<u64> {
        word(self.take(8)?)
    }

    fn word_if(&mut self, there: bool) -> Option<Option<u64>> {
        if there {
            self.word().map(Some)
        } else {
            Some(None)
        }
    }

    /// So many words as a count in front says, at most what is there.
    fn words(&mut self, count: u64) -> Option<&'s [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(8)?)
    }

    fn sample(&mut self, misc: u16, format: &Format) -> Option<Sample<'s>> {
        self.word_if(format.has(sample::IDENTIFIER))?;
        let ip = self.word()?;
        let thread = self.word_if(format.has(sample::TID))?;
        let time = self.word_if(format.has(sample::TIME))?;
        let address = self.word()?;
        for other in [sample::ID, sample::STREAM_ID, sample::CPU] {
            self.word_if(format.has(other))?;
        }
        let period = self.word_if(format.has(sample::PERIOD))?;
        if format.has(sample::READ) {
            self.skip(8 * format.read_words)?;
        }
        let mut chain: &[u8] = &[];
        if format.has(sample::CALLCHAIN) {
            let count = self.word()?;
            chain = self.words(count)?;
        }
        if format.has(sample::RAW) {
            let size = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
            self.skip(usize::try_from(size).ok()?)?;
        }
        let mut registers = None;
        if format.has(sample::REGS_USER) {
            registers = self.registers(format.user)?;
        }
        if format.has(sample::STACK_USER) {
            let size = self.word()?;
            self.skip(usize::try_from(size).ok()?)?;
            // The size that was really copied follows, unless nothing was asked for.
            self.word_if(size != 0)?;
        }
        let weight = self.word_if(format.has(sample::WEIGHT | sample::WEIGHT_STRUCT))?;
        let source = self.word_if(format.has(sample::DATA_SRC))?;
        self.word_if(format.has(sample::TRANSACTION))?;
        if format.has(sample::REGS_INTR) {
            registers = self.registers(format.interrupted)?.or(registers);
        }
        Some(Sample {
            ip,
            exact: misc & MISC_EXACT_IP != 0,
            user: misc & MISC_CPUMODE == MISC_USER,
            address: (address != 0).then_some(address),
            operation: source.and_then(operation),
            // mem_lock: 2 bits behind op, lvl and snoop; 2 is "locked".
            locked: source.is_some_and(|s| s >> 24 & 2 != 0),
            thread: thread
                .map(|ids| (ids as u32, (ids >> 32) as u32))
                .map(|(p, t)| (t, p)),
            time,
            period,
            weight,
            registers,
            chain,
        })
    }

    /// A block of registers; `Some(None)`: it is there, and empty.
    fn registers(&mut self, mask: u64) -> Option<Option<Registers>> {
        // The kernel's order: ax, bx, cx, dx, si, di, bp, sp, ip, flags, six segments, r8 to r15.
        const GENERAL: [usize; 8] = [0, 3, 1, 2, 6, 7, 5, 4];
        const ABI_NONE: u64 = 0;
        if self.word()? == ABI_NONE {
            return Some(None);
        }
        let mut registers = Registers::default();
        for n in (0..64).filter(|n| mask >> n & 1 != 0) {
            let value = self.word()?;
            match n {
                0..=7 => registers.general[GENERAL[n]] = value,
                8 => registers.rip = value,
                9 => registers.flags = value,
                16..=23 => registers.general[n - 8] = value,
                _ => {}
            }
        }
        Some(Some(registers))
    }
}

fn operation(data_source: u64) -> Option<Operation> {
    match data_source & 0x1F {
        2 => Some(Operation::Load),
        4 => Some(Operation::Store),
        8 | 16 => Some(Operation::Other),
        // 1: not available; 6: both.
        _ => None,
    }
}
