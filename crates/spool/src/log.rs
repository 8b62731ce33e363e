//! Reads `meta.log`.
//!
//! A record whose frame or CRC is wrong ends the log: nothing after it can be trusted to be aligned ([`LogReader::torn`]). A record
//! whose CRC is right but whose payload does not decode is left out and named ([`LogReader::damaged`]); the log goes on after it.

use crate::codec::{DecodeError, FRAME_BYTES};
use crate::meta::Record;

/// The end of a log that was cut off, by a killed JVM or a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// File offset of the record that is not whole.
    pub offset: usize,
    /// Bytes from there to the end of the file.
    pub bytes: usize,
}

/// A record that is whole but means nothing to this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// File offset of the record.
    pub offset: usize,
    /// Why.
    pub reason: DecodeError,
}

/// Refuses a class with a flow that contradicts itself: its path IDs would decode to nonsense.
fn validated(record: Record) -> Result<Record, DecodeError> {
    if let Record::Class(class) = &record {
        for method in &class.methods {
            let flow = |reason: borescope_cfg::Invalid| DecodeError::Flow {
                index: method.index,
                reason: reason.to_string(),
            };
            method.flow.validate().map_err(flow)?;
        }
    }
    Ok(record)
}

/// Iterates over the records of a log held in memory.
#[derive(Clone, Debug)]
pub struct LogReader<'a> {
    bytes: &'a [u8],
    offset: usize,
    torn: Option<Torn>,
    damaged: Vec<Damaged>,
}

impl<'a> LogReader<'a> {
    /// Reads `bytes`, the content of `meta.log`.
    pub fn new(bytes: &'a [u8]) -> Self {
        LogReader {
            bytes,
            offset: 0,
            torn: None,
            damaged: Vec::new(),
        }
    }

    /// The torn end; known once the iterator is exhausted.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// Records left out so far.
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    fn payload(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.offset..)?;
        if rest.is_empty() || self.torn.is_some() {
            return None;
        }
        let payload = rest.split_first_chunk().and_then(|(len, rest)| {
            let (crc, rest) = rest.split_first_chunk()?;
            let payload = rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
            // An empty payload is no record: a hole of zeroes at the end of a file would otherwise read as endless good ones.
            (!payload.is_empty() && crc32fast::hash(payload) == u32::from_le_bytes(*crc))
                .then_some(payload)
        });
        match payload {
            Some(payload) => self.offset += FRAME_BYTES + payload.len(),
            None => {
                self.torn = Some(Torn {
                    offset: self.offset,
                    bytes: rest.len(),
                })
            }
        }
        payload
    }
}

impl Iterator for LogReader<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let offset = self.offset;
            match Record::decode(self.payload()?).and_then(validated) {
                Ok(record) => return Some(record),
                Err(reason) => self.damaged.push(Damaged { offset, reason }),
            }
        }
    }
}
