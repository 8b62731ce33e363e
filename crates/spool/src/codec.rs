//! Encoding and decoding of `meta.log` payloads.
//!
//! ```text
//! record   u32 length of payload, u32 CRC-32 (IEEE) of payload, payload; both u32 little-endian
//! payload  u8 kind (1 Target, 2 Class, 3 Skipped, 4 Notice, 5 Sites, 6 SiteClass, 7 Owners, 8 Snapshot, 9 Ended, 10 Numbered), fields in the
//!          order of their declaration in `meta` and `sites`; several booleans in a row are the bits of one byte, lowest first
//! integer  LEB128, least significant group first
//! string   length in bytes, UTF-8
//! list     number of elements, elements
//! option   u8 0, or u8 1 and the value
//! hash     8 bytes, little-endian
//! lines    list of {bytecode index - that of the element before (wrapping 16 bits), line}
//! flow     list of blocks {start - end of the block before (wrapping 16 bits), end - start (wrapping)},
//!          list of starts {block, value, paths, u8 kind bits: 1 entry, 2 loop head, 4 handler, 8 cut},
//!          list of edges {from, to + 1 (wrapping: 0 = none), u8 kind, value}, number of paths, uncut paths (string),
//!          list of merged branches {head, list of arms, join}
//! ```

use borescope_cfg::flow::{Block, Edge, EdgeKind, Flow, Merged, Start, StartKind};

use crate::meta::{Class, Counting, Method, Record, Skipped, Target};

mod sites;
mod waste;

/// Bytes before a record's payload.
pub const FRAME_BYTES: usize = 8;

const TARGET: u8 = 1;
const CLASS: u8 = 2;
const SKIPPED: u8 = 3;
const NOTICE: u8 = 4;
const SITES: u8 = 5;
const SITE_CLASS: u8 = 6;
const OWNERS: u8 = 7;
const SNAPSHOT: u8 = 8;
const ENDED: u8 = 9;
const NUMBERED: u8 = 10;
const WASTE: u8 = 11;
const COMPILED: u8 = 12;

/// Why a payload does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A field goes past the end of the payload.
    #[error("ends inside a field")]
    Short,
    /// An integer does not fit its field.
    #[error("integer out of range")]
    Range,
    /// A string is not UTF-8.
    #[error("string is not UTF-8")]
    Utf8,
    /// A byte that must be one of a few values is none of them.
    #[error("unknown {what} {value}")]
    Unknown {
        /// What the byte stands for.
        what: &'static str,
        /// The byte.
        value: u8,
    },
    /// Bytes are left after the last field.
    #[error("{0} bytes after the last field")]
    Trailing(usize),
    /// The numbered flow of a method contradicts itself.
    #[error("flow of method {index}: {reason}")]
    Flow {
        /// Index of the method.
        index: u32,
        /// What is wrong.
        reason: String,
    },
}

impl Record {
    /// The whole record as it stands in the file: length, CRC-32, payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer(vec![0; FRAME_BYTES]);
        match self {
            Record::Target(target) => w.target(target),
            Record::Class(class) => w.class(class),
            Record::Skipped(skipped) => w.skipped(skipped),
            Record::Notice(text) => {
                w.byte(NOTICE);
                w.string(text);
            }
            Record::Sites(sites) => w.sites(sites),
            Record::SiteClass(class) => w.site_class(class),
            Record::Owners(owners) => w.owners(owners),
            Record::Snapshot(snapshot) => w.snapshot(snapshot),
            Record::Ended { at_ms } => w.ended(*at_ms),
            Record::Numbered(numbered) => w.numbered(numbered),
            Record::Waste(waste) => w.waste(waste),
            Record::Compiled(class) => w.compiled(class),
        }
        let mut bytes = w.0;
        let (frame, payload) = bytes.split_at_mut(FRAME_BYTES);
        // A payload of 4 GiB cannot arise from one class (64 Ki methods of 64 KiB); a wrapped length would read as a torn record.
        frame[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        frame[4..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        bytes
    }

    /// Decodes one payload (without its frame).
    pub fn decode(payload: &[u8]) -> Result<Record, DecodeError> {
        let mut r = Reader(payload);
        let record = match r.byte()? {
            TARGET => Record::Target(r.target()?),
            CLASS => Record::Class(r.class()?),
            SKIPPED => Record::Skipped(r.skipped()?),
            NOTICE => Record::Notice(r.string()?),
            SITES => Record::Sites(r.sites()?),
            SITE_CLASS => Record::SiteClass(r.site_class()?),
            OWNERS => Record::Owners(r.owners()?),
            SNAPSHOT => Record::Snapshot(r.snapshot()?),
            ENDED => Record::Ended { at_ms: r.u64()? },
            NUMBERED => Record::Numbered(r.numbered()?),
            WASTE => Record::Waste(r.waste()?),
            COMPILED => Record::Compiled(r.compiled()?),
            value => return Err(unknown("record kind", value)),
        };
        match r.0.len() {
            0 => Ok(record),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn int(&mut self, value: impl Into<u64>) {
        let mut value = value.into();
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn len(&mut self, value: usize) {
        self.int(value as u64);
    }

    fn string(&mut self, value: &str) {
        self.len(value.len());
        self.0.extend_from_slice(value.as_bytes());
    }

    fn option<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn strings(&mut self, values: &[String]) {
        self.len(values.len());
        values.iter().for_each(|value| self.string(value));
    }

    fn target(&mut self, target: &Target) {
        let Target {
            pid,
            jdk,
            vm,
            collector,
            command,
            started,
            include,
            exclude,
            merge,
            straight_line,
            one_in,
        } = target;
        self.byte(TARGET);
        self.int(*pid);
        for text in [jdk, vm, collector, command] {
            self.string(text);
        }
        self.int(*started);
        self.strings(include);
        self.strings(exclude);
        self.byte(u8::from(*merge) | u8::from(*straight_line) << 1);
        self.int(*one_in);
    }

    fn class(&mut self, class: &Class) {
        let Class {
            name,
            loader,
            hash,
            source_file,
            methods,
            straight_line,
        } = class;
        self.byte(CLASS);
        self.string(name);
        self.string(loader);
        self.0.extend_from_slice(&hash.to_le_bytes());
        self.option(source_file.as_ref(), |w, file| w.string(file));
        self.len(methods.len());
        methods.iter().for_each(|method| self.method(method));
        self.int(*straight_line);
    }

    fn method(&mut self, method: &Method) {
        let Method {
            index,
            counting,
            name,
            descriptor,
            lines,
            flow,
        } = method;
        self.int(*index);
        self.byte(match counting {
            Counting::Rows => 0,
            Counting::Slots => 1,
            Counting::Groups => 2,
        });
        self.string(name);
        self.string(descriptor);
        self.len(lines.len());
        let mut before = 0u16;
        for &(bci, line) in lines {
            self.int(bci.wrapping_sub(before));
            self.int(line);
            before = bci;
        }
        self.flow(flow);
    }

    fn flow(&mut self, flow: &Flow) {
        let Flow {
            blocks,
            starts,
            edges,
            num_paths,
            uncut_paths,
            merged,
        } = flow;
        self.len(blocks.len());
        let mut before = 0u16;
        for block in blocks {
            self.int(block.start.wrapping_sub(before));
            self.int(block.end.wrapping_sub(block.start));
            before = block.end;
        }
        self.len(starts.len());
        for start in starts {
            let StartKind {
                entry,
                loop_head,
                handler,
                cut,
            } = start.kind;
            self.int(start.block);
            self.int(start.value);
            self.int(start.paths);
            self.byte(
                u8::from(entry)
                    | u8::from(loop_head) << 1
                    | u8::from(handler) << 2
                    | u8::from(cut) << 3,
            );
        }
        self.len(edges.len());
        for edge in edges {
            self.int(edge.from);
            self.int(edge.to.wrapping_add(1));
            self.byte(edge.kind as u8);
            self.int(edge.value);
        }
        self.int(*num_paths);
        self.string(uncut_paths);
        self.len(merged.len());
        for Merged { head, arms, join } in merged {
            self.int(*head);
            self.len(arms.len());
            arms.iter().for_each(|arm| self.int(*arm));
            self.int(*join);
        }
    }

    fn skipped(&mut self, skipped: &Skipped) {
        let Skipped {
            class,
            method,
            descriptor,
            reason,
        } = skipped;
        self.byte(SKIPPED);
        for text in [class, method, descriptor, reason] {
            self.string(text);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(DecodeError::Short)?;
        self.0 = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (&first, tail) = self.0.split_first().ok_or(DecodeError::Short)?;
        self.0 = tail;
        Ok(first)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            if group << shift >> shift != group {
                return Err(DecodeError::Range);
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Range)
    }

    fn int<T: TryFrom<u64>>(&mut self) -> Result<T, DecodeError> {
        T::try_from(self.u64()?).map_err(|_| DecodeError::Range)
    }

    /// A list. Every element takes at least `min` bytes, so a count the payload cannot hold is refused before anything is allocated.
    fn list<T>(
        &mut self,
        min: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let len: usize = self.int()?;
        if len > self.0.len() / min {
            return Err(DecodeError::Short);
        }
        let mut list = Vec::with_capacity(len);
        for _ in 0..len {
            list.push(element(self)?);
        }
        Ok(list)
    }

    fn string(&mut self) -> Result<String, DecodeError> {
        let len = self.int()?;
        std::str::from_utf8(self.bytes(len)?)
            .map(str::to_owned)
            .map_err(|_| DecodeError::Utf8)
    }

    fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            value => Err(unknown("option tag", value)),
        }
    }

    /// A byte of which only so many of the lowest bits may be set.
    fn bits(&mut self, what: &'static str, number: u8) -> Result<u8, DecodeError> {
        match self.byte()? {
            bits if bits >> number == 0 => Ok(bits),
            value => Err(unknown(what, value)),
        }
    }

    fn hash(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn strings(&mut self) -> Result<Vec<String>, DecodeError> {
        self.list(1, Self::string)
    }

    fn target(&mut self) -> Result<Target, DecodeError> {
        let mut target = Target {
            pid: self.int()?,
            jdk: self.string()?,
            vm: self.string()?,
            collector: self.string()?,
            command: self.string()?,
            started: self.u64()?,
            include: self.strings()?,
            exclude: self.strings()?,
            ..Target::default()
        };
        let bits = self.bits("bits of the target", 2)?;
        target.merge = bits & 1 != 0;
        target.straight_line = bits & 2 != 0;
        target.one_in = self.int()?;
        Ok(target)
    }

    fn class(&mut self) -> Result<Class, DecodeError> {
        let name = self.string()?;
        let loader = self.string()?;
        let hash = self.hash()?;
        let source_file = self.option(Self::string)?;
        let methods = self.list(11, Self::method)?;
        let straight_line = self.int()?;
        Ok(Class {
            name,
            loader,
            hash,
            source_file,
            methods,
            straight_line,
        })
    }

    fn method(&mut self) -> Result<Method, DecodeError> {
        let index = self.int()?;
        let counting = match self.byte()? {
            0 => Counting::Rows,
            1 => Counting::Slots,
            2 => Counting::Groups,
            value => return Err(unknown("place of counts", value)),
        };
        let name = self.string()?;
        let descriptor = self.string()?;
        let mut before = 0u16;
        let lines = self.list(2, |r| {
            before = before.wrapping_add(r.int()?);
            Ok((before, r.int()?))
        })?;
        Ok(Method {
            index,
            counting,
            name,
            descriptor,
            lines,
            flow: self.flow()?,
        })
    }

    fn flow(&mut self) -> Result<Flow, DecodeError> {
        let mut before = 0u16;
        let blocks = self.list(2, |r| {
            let start = before.wrapping_add(r.int()?);
            before = start.wrapping_add(r.int()?);
            Ok(Block { start, end: before })
        })?;
        let starts = self.list(4, |r| {
            Ok(Start {
                block: r.int()?,
                value: r.int()?,
                paths: r.int()?,
                kind: r.start_kind()?,
            })
        })?;
        let edges = self.list(4, |r| {
            let from = r.int()?;
            let to = r.int::<u32>()?.wrapping_sub(1);
            Ok(Edge {
                from,
                to,
                kind: r.edge_kind()?,
                value: r.int()?,
            })
        })?;
        Ok(Flow {
            blocks,
            starts,
            edges,
            num_paths: self.int()?,
            uncut_paths: self.string()?,
            merged: self.list(3, |r| {
                Ok(Merged {
                    head: r.int()?,
                    arms: r.list(1, Self::int)?,
                    join: r.int()?,
                })
            })?,
        })
    }

    fn start_kind(&mut self) -> Result<StartKind, DecodeError> {
        let bits = self.bits("kind of path start", 4)?;
        Ok(StartKind {
            entry: bits & 1 != 0,
            loop_head: bits & 2 != 0,
            handler: bits & 4 != 0,
            cut: bits & 8 != 0,
        })
    }

    fn edge_kind(&mut self) -> Result<EdgeKind, DecodeError> {
        Ok(match self.byte()? {
            0 => EdgeKind::Forward,
            1 => EdgeKind::Back,
            2 => EdgeKind::Cut,
            3 => EdgeKind::Return,
            4 => EdgeKind::Throw,
            value => return Err(unknown("kind of edge", value)),
        })
    }

    fn skipped(&mut self) -> Result<Skipped, DecodeError> {
        Ok(Skipped {
            class: self.string()?,
            method: self.string()?,
            descriptor: self.string()?,
            reason: self.string()?,
        })
    }
}

fn unknown(what: &'static str, value: u8) -> DecodeError {
    DecodeError::Unknown { what, value }
}
