//! Traces of allocations and identity-hash references, for the simulator (seed, figure 11's experiment).
//!
//! Format: `BSTRACE1`, then records, each led by a LEB128 number whose two lowest bits are its kind and whose rest is `n`:
//!
//! | kind | record | n | then |
//! |---|---|---|---|
//! | 0 | class: its index is the number of classes before it | bytes of its name, at least 1 | the name |
//! | 1 | site: likewise | bytes of its label | class index, method ID, the label |
//! | 2 | allocation of `count` objects in a row | site index | count, at least 1 |
//! | 3 | reference of an object's identity hash | site index | which object |
//! | 0 | end | 0 | number of records before it |
//!
//! Numbers are LEB128, names UTF-8 of at most 65,535 bytes. *Which object* is the zigzag of `nth - next`, where the object is the nth that
//! its site allocated, from 0, and `next` is the one after the object last referenced of that site. A record names only classes, sites and objects that came before it.

use crate::Error;
use std::io::{Read, Write};

const MAGIC: &[u8; 8] = b"BSTRACE1";
const MAX_NAME: usize = 65_535;

/// An allocation site in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSite {
    /// Index of the class that it allocates.
    pub class: u32,
    /// The method it is in.
    pub method: u32,
    /// For people.
    pub label: String,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A site allocated objects.
    Allocate {
        /// Index of the site.
        site: u32,
        /// How many, at least one.
        count: u64,
    },
    /// The program asked for an object's identity hash; not only the first time.
    Hash {
        /// Index of the site that allocated it.
        site: u32,
        /// The how manieth of that site, from 0.
        nth: u64,
    },
}

/// A record of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A class.
    Class(String),
    /// A site.
    Site(TraceSite),
    /// A step.
    Step(Step),
}

/// What a site has done so far, and the checks that reader and writer share.
#[derive(Clone, Debug, Default)]
struct State {
    classes: u32,
    /// By site: objects allocated, and the object after the one last referenced.
    sites: Vec<(u64, u64)>,
    records: u64,
}

impl State {
    fn check(&mut self, record: &Record) -> Result<(), Error> {
        let number = self.records;
        let wrong = |reason| Error::Trace {
            record: number,
            reason,
        };
        match record {
            Record::Class(name) => {
                if !(1..=MAX_NAME).contains(&name.len()) {
                    return Err(wrong("a class's name is empty or too long"));
                }
                self.classes = self
                    .classes
                    .checked_add(1)
                    .ok_or(wrong("too many classes"))?;
            }
            Record::Site(site) => {
                if site.class >= self.classes {
                    return Err(wrong("a site of an unknown class"));
                }
                if site.label.len() > MAX_NAME {
                    return Err(wrong("a site's label is too long"));
                }
                if self.sites.len() >= u32::MAX as usize {
                    return Err(wrong("too many sites"));
                }
                self.sites.push((0, 0));
            }
            Record::Step(Step::Allocate { site, count }) => {
                let state = self.sites.get_mut(*site as usize);
                let (objects, _) = state.ok_or(wrong("an unknown site allocates"))?;
                // Below 2^63, so that differences fit.
                *objects = objects
                    .checked_add(*count)
                    .filter(|&n| *count > 0 && n < 1 << 63)
                    .ok_or(wrong("no or too many objects"))?;
            }
            Record::Step(Step::Hash { site, nth }) => {
                let state = self.sites.get_mut(*site as usize);
                let (objects, next) = state.ok_or(wrong("an object of an unknown site"))?;
                if nth >= objects {
                    return Err(wrong("an object that was not allocated"));
                }
                *next = nth + 1;
            }
        }
        self.records += 1;
        Ok(())
    }

    fn next(&self, site: u32) -> u64 {
        self.sites.get(site as usize).map_or(0, |s| s.1)
    }
}

/// Writes a trace record by record.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    state: State,
}

impl<W: Write> Writer<W> {
    /// Begins a trace. Many small writes follow: give it a buffered writer.
    pub fn new(mut out: W) -> Result<Self, Error> {
        out.write_all(MAGIC)?;
        Ok(Writer {
            out,
            state: State::default(),
        })
    }

    fn number(&mut self, mut value: u64) -> Result<(), Error> {
        let mut bytes = [0; 10];
        let mut len = 0;
        loop {
            bytes[len] = value as u8 & 0x7F | u8::from(value > 0x7F) << 7;
            len += 1;
            value >>= 7;
            if value == 0 {
                return Ok(self.out.write_all(&bytes[..len])?);
            }
        }
    }

    /// The next record. What a reader would refuse is refused, and not written.
    pub fn write(&mut self, record: &Record) -> Result<(), Error> {
        let next = match record {
            Record::Step(Step::Hash { site, .. }) => self.state.next(*site),
            _ => 0,
        };
        self.state.check(record)?;
        match record {
            Record::Class(name) => {
                self.number((name.len() as u64) << 2)?;
                self.out.write_all(name.as_bytes())?;
            }
            Record::Site(site) => {
                self.number((site.label.len() as u64) << 2 | 1)?;
                self.number(u64::from(site.class))?;
                self.number(u64::from(site.method))?;
                self.out.write_all(site.label.as_bytes())?;
            }
            Record::Step(Step::Allocate { site, count }) => {
                self.number(u64::from(*site) << 2 | 2)?;
                self.number(*count)?;
            }
            Record::Step(Step::Hash { site, nth }) => {
                self.number(u64::from(*site) << 2 | 3)?;
                let delta = nth.wrapping_sub(next) as i64;
                self.number((delta << 1 ^ delta >> 63) as u64)?;
            }
        }
        Ok(())
    }

    /// Ends the trace; a reader tells one that was cut off by this.
    pub fn finish(mut self) -> Result<W, Error> {
        self.number(0)?;
        self.number(self.state.records)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads a trace record by record. Ends after the first error.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    state: State,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Begins to read. Many small reads follow: give it a buffered reader.
    pub fn new(mut input: R) -> Result<Self, Error> {
        let mut magic = [0; 8];
        input.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(Error::Trace {
                record: 0,
                reason: "it does not begin as a trace",
            });
        }
        Ok(Reader {
            input,
            state: State::default(),
            done: false,
        })
    }

    fn wrong(&self, reason: &'static str) -> Error {
        Error::Trace {
            record: self.state.records,
            reason,
        }
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.input.read_exact(&mut byte)?;
            let bits = u64::from(byte[0] & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number has more than 64 bits"))
    }

    fn number32(&mut self) -> Result<u32, Error> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.wrong("an index has more than 32 bits"))
    }

    fn name(&mut self, len: u64) -> Result<String, Error> {
        let len = usize::try_from(len).ok().filter(|&len| len <= MAX_NAME);
        let mut bytes = vec![0; len.ok_or_else(|| self.wrong("a name is too long"))?];
        self.input.read_exact(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.wrong("a name is not UTF-8"))
    }

    fn record(&mut self) -> Result<Option<Record>, Error> {
        let lead = self.number()?;
        let index = || u32::try_from(lead >> 2);
        let record = match (lead & 3, lead >> 2) {
            (0, 0) => {
                return match self.number()? == self.state.records {
                    true => Ok(None),
                    false => Err(self.wrong("it ends with another number of records than it has")),
                };
            }
            (0, len) => Record::Class(self.name(len)?),
            (1, len) => Record::Site(TraceSite {
                class: self.number32()?,
                method: self.number32()?,
                label: self.name(len)?,
            }),
            (kind, _) => {
                let site = index().map_err(|_| self.wrong("an index has more than 32 bits"))?;
                let value = self.number()?;
                Record::Step(match kind {
                    2 => Step::Allocate { site, count: value },
                    _ => {
                        let delta = (value >> 1) as i64 ^ -((value & 1) as i64);
                        let nth = self.state.next(site).wrapping_add(delta as u64);
                        Step::Hash { site, nth }
                    }
                })
            }
        };
        self.state.check(&record)?;
        Ok(Some(record))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let record = self.record().transpose();
        self.done = !matches!(record, Some(Ok(_)));
        record
    }
}

/// A whole trace.
///
/// Invariant (of those read, and checked when written): steps name only sites and objects that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// The sites.
    pub sites: Vec<TraceSite>,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

impl Trace {
    /// Reads a whole trace.
    pub fn read(input: impl Read) -> Result<Self, Error> {
        let mut trace = Trace::default();
        for record in Reader::new(input)? {
            match record? {
                Record::Class(name) => trace.classes.push(name),
                Record::Site(site) => trace.sites.push(site),
                Record::Step(step) => trace.steps.push(step),
            }
        }
        Ok(trace)
    }

    /// Writes it: classes, sites, steps.
    pub fn write<W: Write>(&self, out: W) -> Result<W, Error> {
        let mut writer = Writer::new(out)?;
        for name in &self.classes {
            writer.write(&Record::Class(name.clone()))?;
        }
        for site in &self.sites {
            writer.write(&Record::Site(site.clone()))?;
        }
        for &step in &self.steps {
            writer.write(&Record::Step(step))?;
        }
        writer.finish()
    }

    /// Checks the invariant.
    pub fn check(&self) -> Result<(), Error> {
        self.write(std::io::sink()).map(drop)
    }
}
