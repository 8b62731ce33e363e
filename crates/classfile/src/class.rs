//! The reader: a view of a class file that borrows from its bytes (JVMS 4.1).

use std::borrow::Cow;

use crate::Error;
use crate::mutf8;
use crate::read::Reader;

const UTF8: u8 = 1;
const CLASS: u8 = 7;

/// A parsed class file.
#[derive(Debug)]
pub struct ClassFile<'a> {
    pub(crate) bytes: &'a [u8],
    /// Offset of each entry's tag, by index; 0 where there is none (index 0, second half of long and double).
    pool: Vec<u32>,
    /// Offset of the byte after the constant pool.
    pub(crate) pool_end: usize,
    access_flags: u16,
    pub(crate) this_class: u16,
    super_class: u16,
    methods: Vec<Method<'a>>,
    source_file: Option<u16>,
    /// Contents of the BootstrapMethods attribute (JVMS 4.7.23).
    bootstraps: &'a [u8],
}

/// A method of a class.
#[derive(Debug)]
pub struct Method<'a> {
    access_flags: u16,
    pub(crate) name: &'a [u8],
    pub(crate) descriptor: &'a [u8],
    code: Option<Code<'a>>,
}

/// A method's Code attribute (JVMS 4.7.3).
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// Depth of the operand stack.
    pub max_stack: u16,
    /// Number of local variable slots.
    pub max_locals: u16,
    /// The instructions; 1 to 65535 bytes.
    pub code: &'a [u8],
    pub(crate) exception_table: &'a [u8],
    /// All attributes of the code, after their count.
    pub(crate) attributes: &'a [u8],
    pub(crate) attribute_count: u16,
    /// Offset of the whole attribute (its name index) in the class file.
    pub(crate) at: usize,
    /// Offset of the byte after it.
    pub(crate) end: usize,
    has_stack_map: bool,
    /// Constant pool index of the name of the LineNumberTable attributes; 0 = there are none.
    lines_name: u16,
}

/// A field or method that a class refers to; names in the file's own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Internal name of the class, or descriptor of an array type.
    pub class: &'a [u8],
    /// Name.
    pub name: &'a [u8],
    /// Descriptor.
    pub descriptor: &'a [u8],
}

/// An InvokeDynamic constant with its bootstrap method (JVMS 4.4.10, 4.7.23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvokeDynamic<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Descriptor.
    pub descriptor: &'a [u8],
    /// The bootstrap method.
    pub bootstrap: Member<'a>,
}

/// An entry of an exception table (JVMS 4.7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionEntry {
    /// First bci covered.
    pub start: u16,
    /// Bci after the last one covered.
    pub end: u16,
    /// Where the handler begins.
    pub handler: u16,
    /// Constant pool index of the class caught; 0 = any.
    pub catch_type: u16,
}

/// Iterator over an exception table, in order.
#[derive(Clone, Debug)]
pub struct Exceptions<'a>(std::slice::ChunksExact<'a, u8>);

impl Iterator for Exceptions<'_> {
    type Item = ExceptionEntry;

    fn next(&mut self) -> Option<ExceptionEntry> {
        let entry = self.0.next()?;
        let u2 = |i: usize| u16::from_be_bytes([entry[i], entry[i + 1]]);
        Some(ExceptionEntry {
            start: u2(0),
            end: u2(2),
            handler: u2(4),
            catch_type: u2(6),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Exceptions<'_> {}

impl<'a> ClassFile<'a> {
    /// Reads the structure of a class file down to the attributes of each method's code. What a constant, an attribute or an
    /// instruction means is checked only where it is used.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut r = Reader::new(bytes);
        if r.u4()? != 0xcafe_babe {
            return Err(Error::Magic);
        }
        let (minor, major) = (r.u2()?, r.u2()?);
        if (major, minor) < (45, 3) {
            return Err(Error::TooOld(major, minor));
        }
        let mut class = Self {
            bytes,
            pool: read_pool(&mut r)?,
            pool_end: r.at(),
            access_flags: r.u2()?,
            this_class: r.u2()?,
            super_class: r.u2()?,
            methods: Vec::new(),
            source_file: None,
            bootstraps: &[],
        };
        class
            .class_name(class.this_class)
            .ok_or(Error::PoolIndex(class.this_class))?;
        let interfaces = r.u2()?;
        r.take(2 * usize::from(interfaces))?;
        for _ in 0..r.u2()? {
            r.take(6)?;
            for _ in 0..r.u2()? {
                class.attribute(&mut r)?;
            }
        }
        let methods = r.u2()?;
        class
            .methods
            .reserve(usize::from(methods).min(r.left() / 8));
        for _ in 0..methods {
            let method = class.read_method(&mut r)?;
            class.methods.push(method);
        }
        for _ in 0..r.u2()? {
            let (_, name, contents) = class.attribute(&mut r)?;
            match (name, contents) {
                (b"SourceFile", &[hi, lo]) => {
                    class.source_file = Some(u16::from_be_bytes([hi, lo]));
                }
                (b"BootstrapMethods", contents) => class.bootstraps = contents,
                _ => {}
            }
        }
        if r.left() > 0 {
            return Err(Error::Format("bytes after the end of the class"));
        }
        Ok(class)
    }

    /// The next attribute: index of its name, name, contents. A name that is no constant of the class is an error, as the JVM says (JVMS 4.7):
    /// constants that are appended later could give it a meaning.
    fn attribute(&self, r: &mut Reader<'a>) -> Result<(u16, &'a [u8], &'a [u8]), Error> {
        let (index, contents) = r.attribute()?;
        let name = self.utf8_bytes(index).ok_or(Error::PoolIndex(index))?;
        Ok((index, name, contents))
    }

    fn read_method(&self, r: &mut Reader<'a>) -> Result<Method<'a>, Error> {
        let access_flags = r.u2()?;
        let (name, descriptor) = (r.u2()?, r.u2()?);
        let mut method = Method {
            access_flags,
            name: self.utf8_bytes(name).ok_or(Error::PoolIndex(name))?,
            descriptor: self
                .utf8_bytes(descriptor)
                .ok_or(Error::PoolIndex(descriptor))?,
            code: None,
        };
        for _ in 0..r.u2()? {
            let at = r.at();
            let (_, name, contents) = self.attribute(r)?;
            if name == b"Code" && method.code.replace(self.read_code(at, contents)?).is_some() {
                return Err(Error::Format("method with two Code attributes"));
            }
        }
        Ok(method)
    }

    fn read_code(&self, at: usize, contents: &'a [u8]) -> Result<Code<'a>, Error> {
        let mut r = Reader::new(contents);
        let (max_stack, max_locals) = (r.u2()?, r.u2()?);
        let code_length = r.u4()? as usize;
        if !(1..=0xffff).contains(&code_length) {
            return Err(Error::Format("code of no bytes or more than 65535"));
        }
        let code = r.take(code_length)?;
        let exceptions = r.u2()?;
        let exception_table = r.take(8 * usize::from(exceptions))?;
        let attribute_count = r.u2()?;
        let attributes = &contents[r.at()..];
        let mut code = Code {
            max_stack,
            max_locals,
            code,
            exception_table,
            attributes,
            attribute_count,
            at,
            end: at + 6 + contents.len(),
            has_stack_map: false,
            lines_name: 0,
        };
        for _ in 0..attribute_count {
            let (index, name, _) = self.attribute(&mut r)?;
            match name {
                b"StackMapTable" if code.has_stack_map => {
                    return Err(Error::Format("code with two StackMapTable attributes"));
                }
                b"StackMapTable" => code.has_stack_map = true,
                b"LineNumberTable" if ![0, index].contains(&code.lines_name) => {
                    return Err(Error::Format("LineNumberTable named by two constants"));
                }
                b"LineNumberTable" => code.lines_name = index,
                _ => {}
            }
        }
        if r.left() > 0 {
            return Err(Error::Format("bytes after the end of a Code attribute"));
        }
        Ok(code)
    }

    /// Major version, such as 61 for Java 17.
    pub fn major(&self) -> u16 {
        u16::from_be_bytes([self.bytes[6], self.bytes[7]])
    }

    /// Minor version: 0, except in classes older than 46 and in those that use preview features (65535).
    pub fn minor(&self) -> u16 {
        u16::from_be_bytes([self.bytes[4], self.bytes[5]])
    }

    /// Access flags (JVMS table 4.1-B).
    pub fn access_flags(&self) -> u16 {
        self.access_flags
    }

    /// Internal name, with slashes.
    pub fn this_name(&self) -> Cow<'a, str> {
        self.class_name(self.this_class).unwrap_or_default()
    }

    /// Internal name of the superclass; none for java/lang/Object and modules.
    pub fn super_name(&self) -> Option<Cow<'a, str>> {
        self.class_name(self.super_class)
    }

    /// The methods, in file order.
    pub fn methods(&self) -> &[Method<'a>] {
        &self.methods
    }

    /// The SourceFile attribute.
    pub fn source_file(&self) -> Option<Cow<'a, str>> {
        self.utf8(self.source_file?)
    }

    /// The constant pool's count as the file states it: one more than the highest index.
    pub fn pool_count(&self) -> u16 {
        self.pool.len() as u16 // read_pool made it from a u16
    }

    /// Text of the Utf8 constant at an index; none if something else stands there.
    pub fn utf8(&self, index: u16) -> Option<Cow<'a, str>> {
        self.utf8_bytes(index).map(mutf8::decode)
    }

    /// Internal name of the Class constant at an index; none if something else stands there.
    pub fn class_name(&self, index: u16) -> Option<Cow<'a, str>> {
        self.class_name_bytes(index).map(mutf8::decode)
    }

    /// As [`Self::utf8`], not decoded.
    pub fn utf8_bytes(&self, index: u16) -> Option<&'a [u8]> {
        match self.entry(index)? {
            [UTF8, hi, lo, text @ ..] => text.get(..usize::from(u16::from_be_bytes([*hi, *lo]))),
            _ => None,
        }
    }

    /// Tag of the constant at an index (JVMS table 4.4-A); none if no constant has it.
    pub fn constant_tag(&self, index: u16) -> Option<u8> {
        self.entry(index)?.first().copied()
    }

    /// Internal name, not decoded, of the class of the Fieldref, Methodref or InterfaceMethodref at an index.
    pub fn member_class_bytes(&self, index: u16) -> Option<&'a [u8]> {
        self.member(index).map(|member| member.class)
    }

    /// Descriptor, not decoded, of the Fieldref, Methodref or InterfaceMethodref at an index.
    pub fn member_descriptor_bytes(&self, index: u16) -> Option<&'a [u8]> {
        self.member(index).map(|member| member.descriptor)
    }

    /// The Fieldref, Methodref or InterfaceMethodref at an index.
    pub fn member(&self, index: u16) -> Option<Member<'a>> {
        match self.entry(index)? {
            [9..=11, a, b, c, d, ..] => {
                let (name, descriptor) = self.name_and_type(u16::from_be_bytes([*c, *d]))?;
                Some(Member {
                    class: self.class_name_bytes(u16::from_be_bytes([*a, *b]))?,
                    name,
                    descriptor,
                })
            }
            _ => None,
        }
    }

    /// The InvokeDynamic constant at an index.
    pub fn invoke_dynamic(&self, index: u16) -> Option<InvokeDynamic<'a>> {
        let [18, a, b, c, d, ..] = self.entry(index)? else {
            return None;
        };
        let (name, descriptor) = self.name_and_type(u16::from_be_bytes([*c, *d]))?;
        // An entry is a method handle, a count and so many arguments.
        let mut r = Reader::new(self.bootstraps);
        r.u2().ok()?;
        for _ in 0..u16::from_be_bytes([*a, *b]) {
            r.u2().ok()?;
            let count = r.u2().ok()?;
            r.take(2 * usize::from(count)).ok()?;
        }
        let bootstrap = self.method_handle(r.u2().ok()?)?;
        Some(InvokeDynamic {
            name,
            descriptor,
            bootstrap,
        })
    }

    /// The member that the MethodHandle constant at an index refers to.
    pub fn method_handle(&self, index: u16) -> Option<Member<'a>> {
        match self.entry(index)? {
            [15, _, hi, lo, ..] => self.member(u16::from_be_bytes([*hi, *lo])),
            _ => None,
        }
    }

    fn name_and_type(&self, index: u16) -> Option<(&'a [u8], &'a [u8])> {
        match self.entry(index)? {
            [12, a, b, c, d, ..] => Some((
                self.utf8_bytes(u16::from_be_bytes([*a, *b]))?,
                self.utf8_bytes(u16::from_be_bytes([*c, *d]))?,
            )),
            _ => None,
        }
    }

    /// As [`Self::this_name`], not decoded.
    pub fn this_name_bytes(&self) -> &'a [u8] {
        self.class_name_bytes(self.this_class).unwrap_or_default()
    }

    /// As [`Self::super_name`], not decoded.
    pub fn super_name_bytes(&self) -> Option<&'a [u8]> {
        self.class_name_bytes(self.super_class)
    }

    /// As [`Self::class_name`], not decoded.
    pub fn class_name_bytes(&self, index: u16) -> Option<&'a [u8]> {
        match self.entry(index)? {
            [CLASS, hi, lo, ..] => self.utf8_bytes(u16::from_be_bytes([*hi, *lo])),
            _ => None,
        }
    }

    /// Index of an existing Class constant of this name.
    pub(crate) fn find_class(&self, name: &[u8]) -> Option<u16> {
        (1..self.pool_count()).find(|&index| self.class_name_bytes(index) == Some(name))
    }

    /// The bytes from an entry's tag on.
    #[inline]
    fn entry(&self, index: u16) -> Option<&'a [u8]> {
        match *self.pool.get(usize::from(index))? {
            0 => None,
            at => self.bytes.get(at as usize..),
        }
    }
}

/// Offsets of all constants (JVMS 4.4); leaves the reader behind the pool.
fn read_pool(r: &mut Reader) -> Result<Vec<u32>, Error> {
    let count = usize::from(r.u2()?);
    if count == 0 {
        return Err(Error::Format("constant pool count is 0"));
    }
    let mut pool = Vec::with_capacity(count);
    pool.push(0);
    while pool.len() < count {
        pool.push(u32::try_from(r.at()).map_err(|_| Error::Format("file of more than 4 GB"))?);
        let tag = r.u1()?;
        // Where the indices of other constants are.
        let (len, refers) = match tag {
            UTF8 => (usize::from(r.u2()?), 0..0),
            3 | 4 => (4, 0..0),
            9..=12 => (4, 0..4),
            17 | 18 => (4, 2..4),
            5 | 6 => (8, 0..0),
            CLASS | 8 | 16 | 19 | 20 => (2, 0..2),
            15 => (3, 1..3),
            _ => return Err(Error::PoolTag(tag)),
        };
        // Constants that are appended later could give an index beyond the pool a meaning.
        for index in r.take(len)?[refers].chunks_exact(2) {
            let index = u16::from_be_bytes([index[0], index[1]]);
            if !(1..count).contains(&usize::from(index)) {
                return Err(Error::PoolIndex(index));
            }
        }
        if matches!(tag, 5 | 6) {
            pool.push(0);
        }
    }
    if pool.len() > count {
        return Err(Error::Format("constant pool ends inside a long or double"));
    }
    Ok(pool)
}

impl<'a> Method<'a> {
    /// Access flags (JVMS table 4.6-A).
    pub fn access_flags(&self) -> u16 {
        self.access_flags
    }

    /// Name.
    pub fn name(&self) -> Cow<'a, str> {
        mutf8::decode(self.name)
    }

    /// Descriptor.
    pub fn descriptor(&self) -> Cow<'a, str> {
        mutf8::decode(self.descriptor)
    }

    /// The code; none for abstract and native methods.
    pub fn code(&self) -> Option<Code<'a>> {
        self.code
    }

    /// As [`Self::name`], not decoded.
    pub fn name_bytes(&self) -> &'a [u8] {
        self.name
    }

    /// As [`Self::descriptor`], not decoded.
    pub fn descriptor_bytes(&self) -> &'a [u8] {
        self.descriptor
    }

    /// Whether it is static.
    pub fn is_static(&self) -> bool {
        self.access_flags & 0x8 != 0
    }
}

impl<'a> Code<'a> {
    /// The exception table, in order (the first match wins).
    pub fn exceptions(&self) -> Exceptions<'a> {
        Exceptions(self.exception_table.chunks_exact(8))
    }

    /// (bci, line) of all LineNumberTable attributes together, by bci; empty if there is none. A line holds up to the next
    /// entry's bci.
    pub fn line_numbers(&self) -> Vec<(u16, u16)> {
        let mut lines = Vec::new();
        let mut r = Reader::new(self.attributes);
        while let Ok((name, contents)) = r.attribute() {
            if self.lines_name != 0 && name == self.lines_name {
                let entries = contents.get(2..).unwrap_or_default().chunks_exact(4);
                lines.extend(entries.map(|e| {
                    (
                        u16::from_be_bytes([e[0], e[1]]),
                        u16::from_be_bytes([e[2], e[3]]),
                    )
                }));
            }
        }
        lines.sort_by_key(|&(bci, _)| bci);
        lines
    }

    /// Whether there is a StackMapTable attribute.
    pub fn has_stack_map(&self) -> bool {
        self.has_stack_map
    }
}
