//! Files of a snapshot of the heap: `snapshot-N.bin`, the live objects summed by class and origin, and `objects-N.bin`, each of them
//! ([`objects`]). Each is written under another name and renamed when whole.
//!
//! ```text
//! snapshot   u64 MAGIC, u32 number, u32 classes, u64 rows,
//!            classes of {u16 length, class as a JVM signature: `Ljava/lang/String;`, `[B`},
//!            rows of {u32 class (index), u32 origin, u64 objects, u64 bytes}, u32 CRC-32 (IEEE) of all before
//! origin     owner (1 to MAX_OWNER), or 0x2000_0000 times the code of Origin
//! ```

pub mod objects;

use std::io::{self, Write};

use crate::sites::MAX_OWNER;

/// First eight bytes of a snapshot.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BSSNAP\x01\n");
const ROW_BYTES: usize = 24;
const CODE_SHIFT: u32 = MAX_OWNER.count_ones();

/// Name of a snapshot's file in the spool.
pub fn file_name(number: u32) -> String {
    format!("snapshot-{number}.bin")
}

/// Name of the file of a snapshot's objects.
pub fn objects_name(number: u32) -> String {
    format!("objects-{number}.bin")
}

/// What the header of an object says of where it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// An owner, 1 to [`MAX_OWNER`].
    Owner(u32),
    /// No mark and no hash: allocated by the VM, by native code, or by code that is not instrumented.
    NoMark,
    /// No mark, but a hash: the program asked for it before there was a mark, or the VM did.
    Hashed,
    /// The header is in a monitor, where it could not be read.
    Unreadable,
    /// A mark that the agent never gave.
    Foreign,
}

impl Origin {
    /// Those that are no owner, by code.
    pub const UNKNOWN: [Origin; 4] = [
        Origin::NoMark,
        Origin::Hashed,
        Origin::Unreadable,
        Origin::Foreign,
    ];

    /// As it stands in files.
    pub fn word(self) -> u32 {
        match self {
            Origin::Owner(owner) => owner & MAX_OWNER,
            Origin::NoMark => 1 << CODE_SHIFT,
            Origin::Hashed => 2 << CODE_SHIFT,
            Origin::Unreadable => 3 << CODE_SHIFT,
            Origin::Foreign => 4 << CODE_SHIFT,
        }
    }

    /// `None` = no word of this version.
    pub fn of_word(word: u32) -> Option<Origin> {
        match (word >> CODE_SHIFT, word & MAX_OWNER) {
            (0, 1..) => Some(Origin::Owner(word)),
            (1, 0) => Some(Origin::NoMark),
            (2, 0) => Some(Origin::Hashed),
            (3, 0) => Some(Origin::Unreadable),
            (4, 0) => Some(Origin::Foreign),
            _ => None,
        }
    }
}

/// Live objects of a class and an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index in [`Snapshot::classes`].
    pub class: u32,
    /// Where they were allocated.
    pub origin: Origin,
    /// How many.
    pub objects: u64,
    /// Their sizes together.
    pub bytes: u64,
}

/// A snapshot, whole in memory: it has a row for each pair of class and origin, not for each object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// From 1 on.
    pub number: u32,
    /// Classes as JVM signatures. A name may come twice (two loaders).
    pub classes: Vec<String>,
    /// In any order; a pair of class and origin may come twice, its rows add up.
    pub rows: Vec<Row>,
}

/// Why a file of a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It ends early.
    #[error("cut off")]
    Short,
    /// It does not begin as such a file does.
    #[error("not such a file of this version")]
    Magic,
    /// Its checksum is another one.
    #[error("checksum differs")]
    Checksum,
    /// A value that cannot be.
    #[error("{0}")]
    Value(&'static str),
}

/// Sums what is written.
struct Summed<W> {
    inner: W,
    hasher: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buf)?;
        self.hasher.update(&buf[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Writes a snapshot; allocates nothing that grows with it. A class's name must fit 65,535 bytes, as all of class files do.
pub fn write<'a>(
    out: impl Write,
    number: u32,
    classes: impl ExactSizeIterator<Item = &'a str>,
    rows: impl ExactSizeIterator<Item = Row>,
) -> io::Result<()> {
    let mut out = Summed {
        inner: out,
        hasher: crc32fast::Hasher::new(),
    };
    let too_many = |_| io::Error::other("too many classes");
    out.write_all(&MAGIC.to_le_bytes())?;
    out.write_all(&number.to_le_bytes())?;
    out.write_all(
        &u32::try_from(classes.len())
            .map_err(too_many)?
            .to_le_bytes(),
    )?;
    out.write_all(&(rows.len() as u64).to_le_bytes())?;
    for class in classes {
        let len = u16::try_from(class.len()).map_err(|_| io::Error::other("name too long"))?;
        out.write_all(&len.to_le_bytes())?;
        out.write_all(class.as_bytes())?;
    }
    for row in rows {
        out.write_all(&row.class.to_le_bytes())?;
        out.write_all(&row.origin.word().to_le_bytes())?;
        out.write_all(&row.objects.to_le_bytes())?;
        out.write_all(&row.bytes.to_le_bytes())?;
    }
    let Summed { mut inner, hasher } = out;
    inner.write_all(&hasher.finalize().to_le_bytes())?;
    inner.flush()
}

impl Snapshot {
    /// Reads a file's content.
    pub fn read(bytes: &[u8]) -> Result<Snapshot, Error> {
        let (content, crc) = bytes.split_last_chunk().ok_or(Error::Short)?;
        let mut from = Bytes(content);
        if from.u64().ok_or(Error::Short)? != MAGIC {
            return Err(Error::Magic);
        }
        if crc32fast::hash(content) != u32::from_le_bytes(*crc) {
            return Err(Error::Checksum);
        }
        from.snapshot()
    }
}

/// Takes values from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let header = (self.u32(), self.u32(), self.u64());
        let (Some(number), Some(named), Some(counted)) = header else {
            return Err(Error::Short);
        };
        // A name takes two bytes at least: a count that cannot be is refused before anything is allocated.
        let mut classes = Vec::with_capacity((named as usize).min(self.0.len() / 2));
        for _ in 0..named {
            let len = self.array().map(u16::from_le_bytes).ok_or(Error::Short)?;
            let name = self.take(len.into()).ok_or(Error::Short)?;
            let name =
                std::str::from_utf8(name).map_err(|_| Error::Value("a name is not UTF-8"))?;
            classes.push(name.to_owned());
        }
        if counted.checked_mul(ROW_BYTES as u64) != Some(self.0.len() as u64) {
            return Err(Error::Value("another number of rows than it says"));
        }
        let mut rows = Vec::with_capacity(self.0.len() / ROW_BYTES);
        while !self.0.is_empty() {
            let row = (self.u32(), self.u32(), self.u64(), self.u64());
            let (Some(class), Some(word), Some(objects), Some(bytes)) = row else {
                return Err(Error::Short);
            };
            if class >= named {
                return Err(Error::Value("a row of a class that is not there"));
            }
            rows.push(Row {
                class,
                origin: Origin::of_word(word).ok_or(Error::Value("an origin that cannot be"))?,
                objects,
                bytes,
            });
        }
        Ok(Snapshot {
            number,
            classes,
            rows,
        })
    }
}
