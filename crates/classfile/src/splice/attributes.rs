//! The attributes of a Code attribute that hold code positions (JVMS 4.7.4, 4.7.12 to 4.7.14, 4.7.20).

use super::copy::Copied;
use super::frames::{FrameReader, FrameWriter, OBJECT, Types, UNINITIALIZED_THIS};
use super::layout::Layout;
use super::{MethodEdit, Plain, Splicer};
use crate::Error;
use crate::class::{Code, Method};
use crate::read::Reader;

/// Buffers for frames, kept from method to method.
#[derive(Debug, Default)]
pub(super) struct FrameBuffers {
    initial: Types,
    locals: Types,
    stack: Types,
    last_locals: Vec<u8>,
}

impl Splicer<'_> {
    /// Appends the attributes, with their count, to `edited`.
    pub(super) fn attributes(
        &mut self,
        method: &Method,
        code: &Code,
        edit: &MethodEdit,
        layout: &Layout,
        copied: Option<Copied>,
    ) -> Result<(), Plain> {
        let needs_frames = self.class.major() > 50;
        if needs_frames && !code.has_stack_map() && !layout.taken.is_empty() {
            return Err(Plain::NoFrame);
        }
        let count_at = self.buffers.edited.len();
        self.buffers.edited.extend([0, 0]);
        let mut count = code.attribute_count;
        let mut r = Reader::new(code.attributes);
        for _ in 0..code.attribute_count {
            let start = r.at();
            let (name, contents) = r.attribute()?;
            let name = self.class.utf8_bytes(name).unwrap_or_default();
            let at = self.buffers.edited.len();
            match name {
                // HotSpot reads no frames in such classes, and CLDC's StackMap in none: left out, as they would be wrong.
                b"StackMapTable" if self.class.major() < 50 => count -= 1,
                b"StackMap" => count -= 1,
                b"StackMapTable" => {
                    self.buffers
                        .edited
                        .extend(&code.attributes[start..start + 6]);
                    self.frames(method, code, edit, layout, copied, contents)?;
                    let len = (self.buffers.edited.len() - at - 6) as u32;
                    self.buffers.edited[at + 2..at + 6].copy_from_slice(&len.to_be_bytes());
                }
                _ => {
                    self.buffers.edited.extend(&code.attributes[start..r.at()]);
                    let moved = &mut self.buffers.edited[at + 6..];
                    let entry = match name {
                        b"LineNumberTable" => {
                            move_lines(contents, moved, layout)?;
                            4
                        }
                        b"LocalVariableTable" | b"LocalVariableTypeTable" => {
                            move_variables(contents, moved, layout)?;
                            10
                        }
                        // Those of the copy are left out: nothing looks there for them, and the old ones stay right.
                        b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                            move_annotations(contents, moved, layout)?;
                            continue;
                        }
                        _ => continue,
                    };
                    if let Some(copied) = copied {
                        add_copied(contents, entry, at, &mut self.buffers.edited, &copied)?;
                    }
                }
            }
        }
        let new_frames = !edit.unwinds.is_empty() || copied.is_some();
        if new_frames && self.class.major() >= 50 && !code.has_stack_map() {
            // A method without jumps and handlers had no need of frames.
            count = count.checked_add(1).ok_or(Plain::HandlersFull)?;
            let name = self.utf8("StackMapTable")?;
            self.buffers.edited.extend(name.to_be_bytes());
            let at = self.buffers.edited.len();
            self.buffers.edited.extend([0; 4]);
            self.frames(method, code, edit, layout, copied, &[0, 0])?;
            let len = (self.buffers.edited.len() - at - 4) as u32;
            self.buffers.edited[at..at + 4].copy_from_slice(&len.to_be_bytes());
        }
        self.buffers.edited[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
        Ok(())
    }

    /// Appends the contents of a StackMapTable.
    fn frames(
        &mut self,
        method: &Method,
        code: &Code,
        edit: &MethodEdit,
        layout: &Layout,
        copied: Option<Copied>,
        table: &[u8],
    ) -> Result<(), Plain> {
        let mut buffers = std::mem::take(&mut self.buffers.frames);
        let FrameBuffers {
            initial,
            locals,
            stack,
            last_locals,
        } = &mut buffers;
        let throwable = if edit.unwinds.is_empty() {
            0
        } else {
            self.class_named(b"java/lang/Throwable")?
        };
        // Only frames that refer to the initial frame need it, and the copy, which begins with it.
        let needed = table.get(2).is_some_and(|&tag| tag != 255) || copied.is_some();
        initial.clear();
        if needed {
            self.initial_frame(method, initial)?;
        }
        let moved = |bci| layout.position_of_instruction(bci);
        locals.clone_from(initial);

        // Frames needed out of order, for Taken code away from its target (rare).
        let mut far = Vec::new();
        if layout.has_far() {
            let mut reader = FrameReader::new(table, locals, stack)?;
            while let Some(bci) = reader.next(&moved)? {
                if layout
                    .taken
                    .iter()
                    .any(|taken| taken.target == bci && taken.home != bci)
                {
                    far.push((bci, reader.locals.clone(), reader.stack.clone()));
                }
            }
            locals.clone_from(initial);
        }

        let mut writer = FrameWriter::new(
            &mut self.buffers.edited,
            last_locals,
            needed.then_some(&*initial),
            code.max_locals,
            edit.extra_locals,
        );
        let mut taken = layout.taken.iter().peekable();
        // Without a frame at a jump target version 50 falls back to the old verifier, before and after; later ones fail.
        let lacking = || {
            if self.class.major() == 50 {
                Ok(())
            } else {
                Err(Plain::NoFrame)
            }
        };
        let mut reader = FrameReader::new(table, locals, stack)?;
        while let Some(bci) = reader.next(&moved)? {
            while taken.next_if(|taken| taken.home < bci).is_some() {
                lacking()?;
            }
            while let Some(taken) = taken.next_if(|taken| taken.home == bci) {
                if taken.target == bci {
                    writer.frame(taken.at as u16, reader.locals, reader.stack)?;
                } else if let Some((_, locals, stack)) =
                    far.iter().find(|(target, ..)| *target == taken.target)
                {
                    writer.frame(taken.at as u16, locals, stack)?;
                } else {
                    lacking()?;
                }
            }
            writer.frame(
                layout.label_of_instruction(bci)?,
                reader.locals,
                reader.stack,
            )?;
        }
        if taken.next().is_some() {
            lacking()?;
        }
        let mut handler = layout.len();
        for unwind in &edit.unwinds {
            locals.clear();
            stack.clear();
            stack.push(OBJECT, Some(throwable));
            writer.frame(handler as u16, locals, stack)?;
            handler += unwind.code.len() as u32;
        }
        if let Some(copied) = copied {
            writer.leave_out_extra();
            locals.clone_from(initial);
            stack.clear();
            let at = |bci| layout.check_start(bci).map(|bci| copied.at(bci));
            let mut reader = FrameReader::new(table, locals, stack)?;
            let mut next = reader.next(&at)?;
            // A frame at bci 0 suits the state at the entry, as the method falls into it there.
            if next != Some(0) || copied.entry != copied.start {
                writer.frame(copied.entry as u16, initial, &Types::default())?;
            }
            while let Some(bci) = next {
                writer.frame(copied.at(bci), reader.locals, reader.stack)?;
                next = reader.next(&at)?;
            }
        }
        writer.finish();
        self.buffers.frames = buffers;
        Ok(())
    }

    /// The initial frame (JVMS 4.10.1.6): `this` and the parameters.
    fn initial_frame(&mut self, method: &Method, initial: &mut Types) -> Result<(), Plain> {
        if !method.is_static() {
            let this = self
                .class
                .class_name_bytes(self.class.this_class)
                .unwrap_or_default();
            if method.name == b"<init>" && this != b"java/lang/Object" {
                initial.push(UNINITIALIZED_THIS, None);
            } else {
                initial.push(OBJECT, Some(self.class.this_class));
            }
        }
        let bad = || Plain::Malformed(Error::Format("bad method descriptor"));
        let mut rest = method.descriptor.strip_prefix(b"(").ok_or_else(bad)?;
        while rest.first() != Some(&b')') {
            let dimensions = rest.iter().take_while(|&&c| c == b'[').count();
            let len = match rest.get(dimensions) {
                Some(b'L') => rest.iter().position(|&c| c == b';').ok_or_else(bad)? + 1,
                _ => dimensions + 1,
            };
            let parameter = rest.get(..len).ok_or_else(bad)?;
            initial.push_parameter(parameter, |name| self.class_named(name))?;
            rest = &rest[len..];
        }
        Ok(())
    }
}

fn put(copy: &mut [u8], at: usize, value: u16) {
    copy[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// A range that starts at bci 0 goes on to do so: Entry code counts as part of the first line, and parameters are visible in it.
fn range_start(layout: &Layout, bci: u16) -> Result<u16, Plain> {
    if bci == 0 {
        Ok(0)
    } else {
        layout.label(u32::from(bci))
    }
}

fn move_lines(contents: &[u8], copy: &mut [u8], layout: &Layout) -> Result<(), Plain> {
    let mut r = Reader::new(contents);
    for _ in 0..r.u2()? {
        let at = r.at();
        put(copy, at, range_start(layout, r.u2()?)?);
        r.u2()?;
    }
    Ok(())
}

/// Adds the copy's entries to a LineNumberTable or one of variables, each so many bytes long, behind those that were moved. The attribute begins at
/// `at` and ends at the end of `out`.
fn add_copied(
    contents: &[u8],
    entry: usize,
    at: usize,
    out: &mut Vec<u8>,
    copied: &Copied,
) -> Result<(), Plain> {
    let mut r = Reader::new(contents);
    let count = r.u2()?;
    let entries = r.take(entry * usize::from(count))?;
    if r.left() > 0 {
        return Err(Error::Format("bytes after the last line or variable").into());
    }
    for old in entries.chunks_exact(entry) {
        let mut r = Reader::new(old);
        let start = r.u2()?;
        let new_start = copied.range_start(start);
        out.extend(new_start.to_be_bytes());
        if entry > 4 {
            // Moving the edited code's entries has checked that the range ends within the code.
            let new_end = copied.at(start + r.u2()?);
            out.extend((new_end - new_start).to_be_bytes());
        }
        out.extend(&old[r.at()..]);
    }
    let count = count.checked_mul(2).ok_or(Plain::TableFull)?;
    put(out, at + 6, count);
    let len = (out.len() - at - 6) as u32;
    out[at + 2..at + 6].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

/// Moves the range at the reader: its start and length.
fn move_range(r: &mut Reader, copy: &mut [u8], layout: &Layout) -> Result<(), Plain> {
    let at = r.at();
    let (start, len) = (r.u2()?, r.u2()?);
    let new_start = range_start(layout, start)?;
    let new_end = layout.label(u32::from(start) + u32::from(len))?;
    put(copy, at, new_start);
    put(copy, at + 2, new_end - new_start);
    Ok(())
}

fn move_variables(contents: &[u8], copy: &mut [u8], layout: &Layout) -> Result<(), Plain> {
    let mut r = Reader::new(contents);
    for _ in 0..r.u2()? {
        move_range(&mut r, copy, layout)?;
        r.take(6)?;
    }
    Ok(())
}

fn move_annotations(contents: &[u8], copy: &mut [u8], layout: &Layout) -> Result<(), Plain> {
    let mut r = Reader::new(contents);
    for _ in 0..r.u2()? {
        match r.u1()? {
            0x40 | 0x41 => {
                for _ in 0..r.u2()? {
                    move_range(&mut r, copy, layout)?;
                    r.u2()?;
                }
            }
            // The exception table keeps its order, so the index of a catch parameter stays.
            0x42 | 0x10 | 0x11 | 0x12 | 0x17 => drop(r.u2()?),
            target @ 0x43..=0x4b => {
                let at = r.at();
                put(copy, at, layout.position_of_instruction(r.u2()?)?);
                if target >= 0x47 {
                    r.u1()?; // type_argument_index
                }
            }
            0x13..=0x15 => {}
            0x00 | 0x01 | 0x16 => drop(r.u1()?),
            _ => {
                return Err(Plain::Malformed(Error::Format(
                    "unknown target of a type annotation",
                )));
            }
        }
        let path_length = r.u1()?;
        r.take(2 * usize::from(path_length))?;
        skip_annotation(&mut r)?;
    }
    Ok(())
}

/// Skips type_index and the element-value pairs (JVMS 4.7.16). Without recursion: nesting is up to the file.
fn skip_annotation(r: &mut Reader) -> Result<(), Error> {
    r.u2()?;
    // How many values are left to read at each level, and whether each has a name before it.
    let mut levels = vec![(r.u2()?, true)];
    while let Some((left, named)) = levels.last_mut() {
        if *left == 0 {
            levels.pop();
            continue;
        }
        *left -= 1;
        if *named {
            r.u2()?;
        }
        match r.u1()? {
            b'e' => drop(r.u4()?),
            b'@' => {
                r.u2()?;
                levels.push((r.u2()?, true));
            }
            b'[' => levels.push((r.u2()?, false)),
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => drop(r.u2()?),
            _ => return Err(Error::Format("unknown element value of an annotation")),
        }
    }
    Ok(())
}
