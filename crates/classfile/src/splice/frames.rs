//! StackMapTable (JVMS 4.7.4): reading frames one by one as full types, and writing them at new offsets with the extra locals.

use super::{ExtraLocal, Plain};
use crate::Error;
use crate::read::Reader;

const TOP: u8 = 0;
const INTEGER: u8 = 1;
const DOUBLE: u8 = 3;
const LONG: u8 = 4;
pub(super) const UNINITIALIZED_THIS: u8 = 6;
pub(super) const OBJECT: u8 = 7;
const UNINITIALIZED: u8 = 8;

/// Verification types in the file's encoding.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    bytes: Vec<u8>,
    /// Where each type ends in `bytes`.
    ends: Vec<u32>,
    /// Local variable slots: long and double count twice.
    slots: u32,
}

impl Types {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.slots = 0;
    }

    pub(super) fn push(&mut self, tag: u8, operand: Option<u16>) {
        self.bytes.push(tag);
        self.bytes
            .extend(operand.iter().flat_map(|operand| operand.to_be_bytes()));
        self.ends.push(self.bytes.len() as u32);
        self.slots += if matches!(tag, LONG | DOUBLE) { 2 } else { 1 };
    }

    /// Appends what a parameter of this descriptor leaves in a local; `class` gives the pool index of a class by its name.
    pub(super) fn push_parameter(
        &mut self,
        descriptor: &[u8],
        class: impl FnOnce(&[u8]) -> Result<u16, Plain>,
    ) -> Result<(), Plain> {
        match *descriptor {
            [b'Z' | b'B' | b'C' | b'S' | b'I'] => self.push(INTEGER, None),
            [b'F'] => self.push(2, None),
            [b'J'] => self.push(LONG, None),
            [b'D'] => self.push(DOUBLE, None),
            [b'L', ref name @ .., b';'] => self.push(OBJECT, Some(class(name)?)),
            [b'[', ..] => self.push(OBJECT, Some(class(descriptor)?)),
            _ => return Err(Plain::Malformed(Error::Format("bad method descriptor"))),
        }
        Ok(())
    }

    fn read(
        &mut self,
        r: &mut Reader,
        count: u16,
        moved: &impl Fn(u16) -> Result<u16, Plain>,
    ) -> Result<(), Plain> {
        for _ in 0..count {
            match r.u1()? {
                tag @ TOP..=UNINITIALIZED_THIS => self.push(tag, None),
                OBJECT => self.push(OBJECT, Some(r.u2()?)),
                UNINITIALIZED => self.push(UNINITIALIZED, Some(moved(r.u2()?)?)),
                _ => return Err(Plain::Malformed(Error::Format("bad verification type"))),
            }
        }
        Ok(())
    }

    /// Drops the last types.
    fn chop(&mut self, count: usize) -> Result<(), Plain> {
        let bad = Plain::Malformed(Error::Format("chop frame of too few locals"));
        let left = self.ends.len().checked_sub(count).ok_or(bad)?;
        let end = |n: usize| if n == 0 { 0 } else { self.ends[n - 1] as usize };
        for i in left..self.ends.len() {
            self.slots -= if matches!(self.bytes[end(i)], LONG | DOUBLE) {
                2
            } else {
                1
            };
        }
        self.bytes.truncate(end(left));
        self.ends.truncate(left);
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(&self.bytes);
    }
}

/// Reads the frames of a table in order.
pub(super) struct FrameReader<'a> {
    r: Reader<'a>,
    left: u16,
    bci: Option<u16>,
    pub(super) locals: &'a mut Types,
    pub(super) stack: &'a mut Types,
}

impl<'a> FrameReader<'a> {
    /// `locals` holds the initial frame.
    pub(super) fn new(
        table: &'a [u8],
        locals: &'a mut Types,
        stack: &'a mut Types,
    ) -> Result<Self, Plain> {
        let mut r = Reader::new(table);
        let left = r.u2()?;
        Ok(Self {
            r,
            left,
            bci: None,
            locals,
            stack,
        })
    }

    /// The next frame's bci; its types are then in `locals` and `stack`. `moved` maps the bci of a `new` instruction.
    pub(super) fn next(
        &mut self,
        moved: &impl Fn(u16) -> Result<u16, Plain>,
    ) -> Result<Option<u16>, Plain> {
        if self.left == 0 {
            return match self.r.left() {
                0 => Ok(None),
                _ => Err(Plain::Malformed(Error::Format(
                    "bytes after the last frame",
                ))),
            };
        }
        self.left -= 1;
        let tag = self.r.u1()?;
        let delta = match tag {
            0..=63 => u16::from(tag),
            64..=127 => u16::from(tag - 64),
            128..=246 => return Err(Plain::Malformed(Error::Format("unknown frame type"))),
            _ => self.r.u2()?,
        };
        let bci = match self.bci {
            None => Some(delta),
            Some(last) => last.checked_add(delta).and_then(|bci| bci.checked_add(1)),
        };
        self.bci = Some(bci.ok_or(Plain::Malformed(Error::Format("frame beyond the code")))?);
        self.stack.clear();
        match tag {
            64..=127 | 247 => self.stack.read(&mut self.r, 1, moved)?,
            248..=250 => self.locals.chop(usize::from(251 - tag))?,
            252..=254 => self.locals.read(&mut self.r, u16::from(tag - 251), moved)?,
            255 => {
                self.locals.clear();
                let count = self.r.u2()?;
                self.locals.read(&mut self.r, count, moved)?;
                let count = self.r.u2()?;
                self.stack.read(&mut self.r, count, moved)?;
            }
            _ => {}
        }
        Ok(self.bci)
    }
}

/// Writes a table.
pub(super) struct FrameWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Where the count goes.
    start: usize,
    count: u16,
    last_offset: Option<u16>,
    /// The locals of the frame before, if known; the extra locals are left out, as they are in each frame but the initial one.
    last_locals: &'a mut Vec<u8>,
    last_known: bool,
    max_locals: u16,
    extra: &'static [ExtraLocal],
}

impl<'a> FrameWriter<'a> {
    /// `initial` is the initial frame's locals, if known.
    pub(super) fn new(
        out: &'a mut Vec<u8>,
        last_locals: &'a mut Vec<u8>,
        initial: Option<&Types>,
        max_locals: u16,
        extra: &'static [ExtraLocal],
    ) -> Self {
        let start = out.len();
        out.extend([0, 0]);
        last_locals.clear();
        let last_known = extra.is_empty() && initial.is_some();
        if let (true, Some(initial)) = (last_known, initial) {
            initial.write(last_locals);
        }
        Self {
            out,
            start,
            count: 0,
            last_offset: None,
            last_locals,
            last_known,
            max_locals,
            extra,
        }
    }

    /// Appends a frame; offsets must increase.
    pub(super) fn frame(
        &mut self,
        offset: u16,
        locals: &Types,
        stack: &Types,
    ) -> Result<(), Plain> {
        let delta = match self.last_offset {
            None => Some(offset),
            Some(last) => offset
                .checked_sub(last)
                .and_then(|delta| delta.checked_sub(1)),
        };
        let delta = delta.ok_or(Plain::Malformed(Error::Format("frames out of order")))?;
        self.last_offset = Some(offset);
        self.count += 1;
        let out = &mut *self.out;
        if self.last_known && *self.last_locals == locals.bytes && stack.ends.len() <= 1 {
            let base = if stack.ends.is_empty() { 0 } else { 64 };
            match u8::try_from(delta) {
                Ok(delta @ 0..=63) => out.push(base + delta),
                _ => {
                    out.push(if stack.ends.is_empty() { 251 } else { 247 });
                    out.extend(delta.to_be_bytes());
                }
            }
            stack.write(out);
            return Ok(());
        }
        self.last_known = true;
        self.last_locals.clear();
        locals.write(self.last_locals);

        let bad = Plain::Malformed(Error::Format("frame with more locals than max_locals"));
        let padding = u32::from(self.max_locals)
            .checked_sub(locals.slots)
            .ok_or(bad)?;
        let padding = if self.extra.is_empty() {
            0
        } else {
            padding as usize
        };
        let count = u16::try_from(locals.ends.len() + padding + self.extra.len());
        let stack_count = u16::try_from(stack.ends.len());
        let (Ok(count), Ok(stack_count)) = (count, stack_count) else {
            return Err(Plain::LocalsFull);
        };
        out.push(255);
        out.extend(delta.to_be_bytes());
        out.extend(count.to_be_bytes());
        locals.write(out);
        out.extend(std::iter::repeat_n(TOP, padding));
        out.extend(self.extra.iter().map(|local| match local {
            ExtraLocal::Int => INTEGER,
            ExtraLocal::Long => LONG,
        }));
        out.extend(stack_count.to_be_bytes());
        stack.write(out);
        Ok(())
    }

    /// From here on, frames are without the extra locals.
    pub(super) fn leave_out_extra(&mut self) {
        self.extra = &[];
        self.last_known = false;
    }

    /// Writes the count.
    pub(super) fn finish(self) {
        self.out[self.start..self.start + 2].copy_from_slice(&self.count.to_be_bytes());
    }
}
