//! The splicer: inserts code into methods of a class and appends to its constant pool.
//!
//! The new class is the old one with three kinds of change: the constant pool grows at its end, the Code attribute of each edited
//! method is replaced (its constant pool indices stay valid), and nothing else. A method whose edit fails keeps its bytes.
//!
//! Where the inserted code goes, around an instruction X:
//!
//! ```text
//!     P                       the instruction before X
//!     FallThrough(X) code     Entry code if X is the first instruction
//!     goto X                  only if P falls through and there is Taken code for X
//!     Taken(A, X) code        the jump of A now leads here
//!     goto X
//!     Taken(B, X) code
//!  X: Before(X) code          jumps, handlers, lines and frames of X lead here
//!     Taken(X, T) code         if X is a goto
//!     X
//! ```
//!
//! Taken code stands before its target, not at the method's end, so that it adds no backward jump: those cost a safepoint in
//! compiled code and a counter overflow check in the interpreter.
//!
//! Exception ranges: the FallThrough and Taken code of X is covered by exactly the ranges that cover X. The verifier accepts that
//! without type inference: the state in front of X is assignable to X's state, which is assignable to the handler's frame. (The
//! ranges of P would not do: P may be a store that ends the range, after which the state no longer suits the handler.) And with
//! X's ranges a monitor's catch-all covers inserted calls from the first instruction after monitorenter and up to, but not after,
//! monitorexit, as structured locking wants. (In a handler that covers itself, such as that of javac's synchronized, an inserted
//! call keeps C1, not C2, from compiling the method: better insert behind the range that covers the handler.) Entry code is covered by nothing: handlers may expect the extra locals to be set.
//!
//! Handlers added by [`MethodEdit::unwind`] stand behind the last instruction, their exception table entries behind the method's own. Their frame
//! keeps nothing of the method's locals (all Top), so it suits the state of every instruction that they cover.
//!
//! With [`MethodEdit::keep_copy`] the old code stands once more behind everything, and a test at the entry chooses:
//!
//! ```text
//!     test; ifeq COPY         before the Entry code
//!     the edited code and the added handlers
//!  COPY: up to 3 nops         so that a switch, padded to 4 bytes, keeps its bytes
//!     the old code            bcis, jumps within it, handlers, lines and variables as they were, all moved by one distance
//! ```
//!
//! The copy has frames without the extra locals, its exception table entries stand behind all others, and no added handler covers it.

mod attributes;
mod copy;
mod frames;
mod layout;

use std::collections::HashMap;
use std::ops::Range;

use crate::Error;
use crate::class::{ClassFile, Code};
use crate::{insn, mutf8};
use copy::Copied;
use layout::Layout;

/// Why a method stays as it is. `Display` gives the words that reports show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Plain {
    /// The code would pass 65535 bytes (JVMS 4.7.3).
    #[error("its code would pass 64 KB")]
    CodeTooLarge,
    /// The code would pass the 8,000 bytes beyond which HotSpot never compiles a method (`-XX:-DontCompileHugeMethods`).
    #[error("its code would pass 8,000 bytes and so never be compiled")]
    HugeMethodLimit,
    /// The constant pool would pass 65534 entries.
    #[error("the class's constant pool is full")]
    ConstantPoolFull,
    /// A jsr or ret instruction: positions on the stack or in locals.
    #[error("it uses jsr or ret")]
    JsrRet,
    /// More than 65535 local variable slots.
    #[error("it has no room for more local variables")]
    LocalsFull,
    /// More than 65535 stack slots.
    #[error("it has no room for a deeper operand stack")]
    StackFull,
    /// More than 65535 exception table entries.
    #[error("it has no room for more exception handlers")]
    HandlersFull,
    /// A conditional jump whose displacement would pass 16 bits, and no place in reach for a long jump.
    #[error("a conditional jump would pass 32 KB")]
    FarBranch,
    /// No StackMapTable frame at a jump target, in a class that needs one.
    #[error("a jump target has no stack map frame")]
    NoFrame,
    /// A copy of its code would get a line where the code has none: before the first line, as HotSpot looks for the entry next before a bci.
    #[error("it has code before its first line number")]
    NoLine,
    /// A table of lines or variables that would pass 65535 entries.
    #[error("it has no room for more line numbers or variables")]
    TableFull,
    /// Abstract or native, or the index is beyond the last method.
    #[error("it has no code")]
    NoCode,
    /// The method is not well-formed.
    #[error("its code is malformed: {0}")]
    Malformed(Error),
    /// An insertion at a place that does not exist, such as in the middle of an instruction.
    #[error("no place for an insertion at bci {0}")]
    BadInsertion(u16),
}

/// Refuses code that names a constant which the class does not have: one that is appended could make it good, where the JVM refuses it.
fn known_constants(class: &ClassFile<'_>, code: &Code<'_>) -> Result<(), Error> {
    let within = |index: u16| match index < class.pool_count() {
        true => Ok(()),
        false => Err(Error::PoolIndex(index)),
    };
    for entry in code.exceptions() {
        within(entry.catch_type)?;
    }
    for item in insn::insns(code.code) {
        let (bci, _) = item?;
        if let Some(index) = insn::constant(code.code, usize::from(bci)) {
            within(index)?;
        }
    }
    Ok(())
}

impl From<Error> for Plain {
    fn from(error: Error) -> Self {
        Self::Malformed(error)
    }
}

/// A local variable appended after `max_locals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraLocal {
    /// One slot.
    Int,
    /// Two slots.
    Long,
}

/// Where code is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// Runs once when the method is entered; jumps to bci 0 do not run it.
    Entry,
    /// Runs before the instruction at this bci, however it is reached.
    Before(u16),
    /// Runs when control falls from the instruction before into this bci, not when it jumps there. Where nothing falls in, the
    /// code is left out.
    FallThrough(u16),
    /// Runs when the jump (conditional, goto or switch) at `from` goes to `target`: for a switch, by any case or the default.
    Taken {
        /// The bci of the jump.
        from: u16,
        /// One of its targets.
        target: u16,
    },
}

/// What to insert into one method. The inserted code is straight-line, leaves the operand stack as it found it, and does not
/// throw. Insertions at one place stand in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct MethodEdit {
    /// Locals appended after the method's own, from slot `max_locals` on. Each frame declares them, so Entry code must set them.
    pub extra_locals: &'static [ExtraLocal],
    /// How many stack slots the inserted code needs above what is on the stack.
    pub extra_stack: u16,
    /// The code may pass 8,000 bytes: for what runs once and has no loop, so that it need not be compiled.
    pub may_be_huge: bool,
    insertions: Vec<(At, Range<u32>)>,
    code: Vec<u8>,
    unwinds: Vec<Unwind>,
    /// Bcis covered by the handlers in `unwinds`.
    unwind_ranges: Vec<(u16, u16)>,
    /// In `code`: what chooses between the edited code and the copy.
    test: Option<Range<usize>>,
}

/// An exception handler to add.
#[derive(Clone, Debug)]
struct Unwind {
    /// In [`MethodEdit::unwind_ranges`].
    ranges: Range<usize>,
    /// In [`MethodEdit::code`].
    code: Range<usize>,
}

impl MethodEdit {
    /// Makes it ready for the next method; keeps the buffers.
    pub fn clear(&mut self) {
        self.extra_locals = &[];
        self.extra_stack = 0;
        self.may_be_huge = false;
        self.insertions.clear();
        self.code.clear();
        self.unwinds.clear();
        self.unwind_ranges.clear();
        self.test = None;
    }

    /// Adds code.
    pub fn insert(&mut self, at: At, bytes: &[u8]) {
        let start = self.code.len() as u32;
        self.code.extend_from_slice(bytes);
        self.insertions.push((at, start..self.code.len() as u32));
    }

    /// Adds an exception handler for everything that is thrown in these half-open ranges of bcis, inserted code included, and not caught
    /// there by the method's own handlers. `code` is straight-line, finds the exception on the stack, and ends by throwing it on. It
    /// stands behind the method's last instruction and is covered by nothing. Not for code of an `<init>` before the call of another one:
    /// a handler there cannot be verified.
    pub fn unwind(&mut self, ranges: &[(u16, u16)], code: &[u8]) {
        let (start, first) = (self.code.len(), self.unwind_ranges.len());
        self.code.extend_from_slice(code);
        self.unwind_ranges.extend_from_slice(ranges);
        self.unwinds.push(Unwind {
            ranges: first..self.unwind_ranges.len(),
            code: start..self.code.len(),
        });
    }

    /// Keeps the code as it was beside the edited one. `test` runs first of all when the method is entered, covered by nothing, and leaves an int
    /// on the stack: where that is 0, the activation runs in the copy and meets nothing that was inserted. It may set extra locals.
    pub fn keep_copy(&mut self, test: &[u8]) {
        let start = self.code.len();
        self.code.extend_from_slice(test);
        self.test = Some(start..self.code.len());
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.insertions.is_empty() && self.unwinds.is_empty() && self.test.is_none()
    }

    /// What chooses between the edited code and the copy, without the jump.
    fn test(&self) -> Option<&[u8]> {
        self.test.clone().map(|range| &self.code[range])
    }

    /// Bytes before the Entry code: the test and its jump.
    fn test_len(&self) -> u32 {
        self.test().map_or(0, |test| test.len() as u32 + 3)
    }

    /// Bytes of the handlers added.
    fn unwind_len(&self) -> u32 {
        self.unwinds.iter().map(|u| u.code.len() as u32).sum()
    }
}

/// Edits a class.
#[derive(Debug)]
pub struct Splicer<'a> {
    class: &'a ClassFile<'a>,
    /// The count after the additions.
    pool_count: u32,
    buffers: Buffers,
}

/// What a [`Splicer`] allocates: worth keeping from class to class.
#[derive(Debug, Default)]
pub struct Buffers {
    /// The constants added, as they will stand in the file.
    added: Vec<u8>,
    /// Index by constant (tag and contents) of the additions.
    index: HashMap<Box<[u8]>, u16>,
    /// Index of the Class constant by name, old or added, as far as frames needed it.
    classes: HashMap<Box<[u8]>, u16>,
    /// Method index, and where in `edited` its new Code attribute stands.
    edits: Vec<(usize, Range<usize>)>,
    edited: Vec<u8>,
    layout: Layout,
    frames: attributes::FrameBuffers,
}

impl<'a> Splicer<'a> {
    /// Starts to edit a class.
    pub fn new(class: &'a ClassFile<'a>) -> Self {
        Self::with_buffers(class, Buffers::default())
    }

    /// As [`Self::new`], with the buffers of a splicer that has finished.
    pub fn with_buffers(class: &'a ClassFile<'a>, mut buffers: Buffers) -> Self {
        buffers.added.clear();
        buffers.index.clear();
        buffers.classes.clear();
        buffers.edits.clear();
        buffers.edited.clear();
        Self {
            class,
            pool_count: u32::from(class.pool_count()),
            buffers,
        }
    }

    /// Adds a constant (tag and contents) unless it was added before.
    fn constant(&mut self, constant: &[u8], slots: u32) -> Result<u16, Plain> {
        if let Some(&index) = self.buffers.index.get(constant) {
            return Ok(index);
        }
        let index = self.pool_count;
        if index + slots > 0xffff {
            return Err(Plain::ConstantPoolFull);
        }
        self.pool_count += slots;
        self.buffers.added.extend_from_slice(constant);
        self.buffers.index.insert(constant.into(), index as u16);
        Ok(index as u16)
    }

    fn reference(&mut self, tag: u8, first: u16, second: u16) -> Result<u16, Plain> {
        let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
        self.constant(&[tag, a, b, c, d], 1)
    }

    fn utf8_constant(&mut self, text: &[u8]) -> Result<u16, Plain> {
        let len = u16::try_from(text.len()).map_err(|_| Plain::ConstantPoolFull)?;
        let mut constant = Vec::with_capacity(text.len() + 3);
        constant.push(1);
        constant.extend(len.to_be_bytes());
        constant.extend(text);
        self.constant(&constant, 1)
    }

    /// A Utf8 constant.
    pub fn utf8(&mut self, text: &str) -> Result<u16, Plain> {
        self.utf8_constant(&mutf8::encode(text))
    }

    /// A Class constant for an internal name.
    pub fn class(&mut self, name: &str) -> Result<u16, Plain> {
        let [hi, lo] = self.utf8(name)?.to_be_bytes();
        self.constant(&[7, hi, lo], 1)
    }

    /// A NameAndType constant.
    pub fn name_and_type(&mut self, name: &str, descriptor: &str) -> Result<u16, Plain> {
        let (name, descriptor) = (self.utf8(name)?, self.utf8(descriptor)?);
        self.reference(12, name, descriptor)
    }

    /// A Methodref constant: a method of a class (not of an interface).
    pub fn methodref(&mut self, class: &str, name: &str, descriptor: &str) -> Result<u16, Plain> {
        let (class, member) = (self.class(class)?, self.name_and_type(name, descriptor)?);
        self.reference(10, class, member)
    }

    /// A String constant.
    pub fn string(&mut self, text: &str) -> Result<u16, Plain> {
        let [hi, lo] = self.utf8(text)?.to_be_bytes();
        self.constant(&[8, hi, lo], 1)
    }

    /// An Integer constant.
    pub fn integer(&mut self, value: i32) -> Result<u16, Plain> {
        let [a, b, c, d] = value.to_be_bytes();
        self.constant(&[3, a, b, c, d], 1)
    }

    /// A Long constant.
    pub fn long(&mut self, value: i64) -> Result<u16, Plain> {
        let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
        self.constant(&[5, a, b, c, d, e, f, g, h], 2)
    }

    /// A Class constant for a name in the file's own bytes: an existing one if there is.
    fn class_named(&mut self, name: &[u8]) -> Result<u16, Plain> {
        if let Some(&index) = self.buffers.classes.get(name) {
            return Ok(index);
        }
        let index = match self.class.find_class(name) {
            Some(index) => index,
            None => {
                let [hi, lo] = self.utf8_constant(name)?.to_be_bytes();
                self.constant(&[7, hi, lo], 1)?
            }
        };
        self.buffers.classes.insert(name.into(), index);
        Ok(index)
    }

    /// Edits a method; the last edit of a method counts. After an error the method is as if this had not been called.
    pub fn edit(&mut self, method: usize, edit: &MethodEdit) -> Result<(), Plain> {
        let start = self.buffers.edited.len();
        let mut layout = std::mem::take(&mut self.buffers.layout);
        let done = self.replace_code(method, edit, &mut layout);
        self.buffers.layout = layout;
        match done {
            Ok(()) => {
                self.buffers.edits.retain(|(other, _)| *other != method);
                self.buffers
                    .edits
                    .push((method, start..self.buffers.edited.len()));
            }
            Err(_) => self.buffers.edited.truncate(start),
        }
        done
    }

    /// Appends the new Code attribute to `edited`.
    fn replace_code(
        &mut self,
        method: usize,
        edit: &MethodEdit,
        layout: &mut Layout,
    ) -> Result<(), Plain> {
        let class = self.class;
        let method = class.methods().get(method).ok_or(Plain::NoCode)?;
        let code = method.code().ok_or(Plain::NoCode)?;
        known_constants(class, &code)?;
        let extra_slots: usize = edit
            .extra_locals
            .iter()
            .map(|local| match local {
                ExtraLocal::Int => 1,
                ExtraLocal::Long => 2,
            })
            .sum();
        let max_locals = u16::try_from(usize::from(code.max_locals) + extra_slots)
            .map_err(|_| Plain::LocalsFull)?;
        let max_stack = code
            .max_stack
            .max(u16::from(!edit.unwinds.is_empty())) // the exception
            .checked_add(edit.extra_stack)
            .ok_or(Plain::StackFull)?;
        let own = code.exceptions().len() * if edit.test.is_some() { 2 } else { 1 };
        let handlers =
            u16::try_from(own + edit.unwind_ranges.len()).map_err(|_| Plain::HandlersFull)?;

        let has_frames = class.major() >= 50 && code.has_stack_map();
        layout.plan(&code, edit, has_frames)?;
        let mut code_len = layout.len() + edit.unwind_len();
        let copied = (edit.test.is_some())
            .then(|| Copied::plan(&code, code_len, layout))
            .transpose()?;
        if let Some(copied) = copied {
            code_len = copied.end();
        }
        if code_len > 0xffff {
            return Err(Plain::CodeTooLarge);
        }
        if code_len > 8000 && code.code.len() <= 8000 && !edit.may_be_huge {
            return Err(Plain::HugeMethodLimit);
        }

        let head = class.bytes.get(code.at..code.at + 2).unwrap_or_default();
        let start = self.buffers.edited.len();
        self.buffers.edited.extend(head);
        self.buffers.edited.extend([0; 4]); // the length, known at the end
        self.buffers.edited.extend(max_stack.to_be_bytes());
        self.buffers.edited.extend(max_locals.to_be_bytes());
        self.buffers.edited.extend(code_len.to_be_bytes());
        let base = self.buffers.edited.len();
        layout.emit(code.code, edit, &mut self.buffers.edited)?;
        for unwind in &edit.unwinds {
            self.buffers.edited.extend(&edit.code[unwind.code.clone()]);
        }
        if let Some(copied) = copied {
            let edited = &mut self.buffers.edited;
            copied.emit(code.code, edit.test_len(), base, edited)?;
        }
        self.buffers.edited.extend(handlers.to_be_bytes());
        for entry in code.exceptions() {
            for bci in [layout.boundary(entry.start)?, layout.boundary(entry.end)?] {
                self.buffers.edited.extend(bci.to_be_bytes());
            }
            self.buffers
                .edited
                .extend(layout.label_of_instruction(entry.handler)?.to_be_bytes());
            self.buffers.edited.extend(entry.catch_type.to_be_bytes());
        }
        let mut handler = layout.len();
        for unwind in &edit.unwinds {
            for &(start, end) in &edit.unwind_ranges[unwind.ranges.clone()] {
                let bad = |_| Plain::BadInsertion(start);
                let (start, end) = match start < end && usize::from(end) <= code.code.len() {
                    true => (
                        layout.boundary(start).map_err(bad)?,
                        layout.boundary(end).map_err(bad)?,
                    ),
                    false => return Err(Plain::BadInsertion(start)),
                };
                for number in [start, end, handler as u16, 0] {
                    self.buffers.edited.extend(number.to_be_bytes());
                }
            }
            handler += unwind.code.len() as u32;
        }
        for entry in code.exceptions().filter(|_| copied.is_some()) {
            for bci in [entry.start, entry.end, entry.handler] {
                let moved = copied.map_or(bci, |copied| copied.at(bci));
                self.buffers.edited.extend(moved.to_be_bytes());
            }
            self.buffers.edited.extend(entry.catch_type.to_be_bytes());
        }
        self.attributes(method, &code, edit, layout, copied)?;
        let len = (self.buffers.edited.len() - start - 6) as u32;
        self.buffers.edited[start + 2..start + 6].copy_from_slice(&len.to_be_bytes());
        Ok(())
    }

    /// The new class file; without successful edits, the old one.
    pub fn finish(self) -> Vec<u8> {
        self.finish_keeping().0
    }

    /// As [`Self::finish`], and the buffers.
    pub fn finish_keeping(mut self) -> (Vec<u8>, Buffers) {
        let bytes = self.class.bytes;
        let Buffers {
            added,
            edits,
            edited,
            ..
        } = &mut self.buffers;
        if edits.is_empty() {
            return (bytes.to_vec(), self.buffers);
        }
        // Methods are parsed in file order, so this is the order of their Code attributes.
        edits.sort_unstable_by_key(|(method, _)| *method);
        let mut out = Vec::with_capacity(bytes.len() + added.len() + edited.len());
        out.extend(&bytes[..8]);
        out.extend((self.pool_count as u16).to_be_bytes());
        out.extend(&bytes[10..self.class.pool_end]);
        out.extend(&*added);
        let mut copied = self.class.pool_end;
        for (method, range) in edits {
            let Some(code) = self.class.methods()[*method].code() else {
                continue;
            };
            out.extend(&bytes[copied..code.at]);
            out.extend(&edited[range.clone()]);
            copied = code.end;
        }
        out.extend(&bytes[copied..]);
        (out, self.buffers)
    }
}
