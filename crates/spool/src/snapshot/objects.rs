//! `objects-N.bin`: address, size, class and origin of each object of a snapshot, in the order of the walk. Written and read as a stream: it
//! may be gigabytes.
//!
//! ```text
//! file    u64 MAGIC, u32 number, u32 0, blocks, the last of 0 objects
//! block   u32 objects, u32 CRC-32 (IEEE) of what follows, objects of
//!         {u64 address, u32 size in units of 8 bytes, u32 class (index in the snapshot), u32 origin};
//!         that of 0 objects: u64 objects of the file
//! ```

use std::io::{self, Read, Write};

use super::{Bytes, Error, Origin};

/// First eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BSOBJS\x01\n");
const OBJECT_BYTES: usize = 20;
/// Objects of a block. 80 KB: memory of writer and reader.
const BLOCK: usize = 4096;
const BLOCK_HEADER: usize = 8;

/// A live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it was at the time.
    pub address: u64,
    /// Its size: a multiple of 8 below 32 GiB, as in HotSpot.
    pub bytes: u64,
    /// Index in the classes of the snapshot.
    pub class: u32,
    /// Where it was allocated.
    pub origin: Origin,
}

/// Writes the file. Allocates at the start only, so that a heap walk can use it.
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
    objects: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(mut out: W, number: u32) -> io::Result<Writer<W>> {
        out.write_all(&MAGIC.to_le_bytes())?;
        out.write_all(&u64::from(number).to_le_bytes())?;
        let mut block = Vec::with_capacity(BLOCK_HEADER + BLOCK * OBJECT_BYTES);
        block.extend([0; BLOCK_HEADER]);
        Ok(Writer {
            out,
            block,
            objects: 0,
        })
    }

    /// Adds an object. An error is for good: write no more, remove the file.
    pub fn push(&mut self, object: Object) -> io::Result<()> {
        let units = u32::try_from(object.bytes.div_ceil(8)).unwrap_or(u32::MAX);
        self.block.extend(object.address.to_le_bytes());
        for value in [units, object.class, object.origin.word()] {
            self.block.extend(value.to_le_bytes());
        }
        self.objects += 1;
        match self.block.len() < BLOCK_HEADER + BLOCK * OBJECT_BYTES {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let objects = (self.block.len() - BLOCK_HEADER) / OBJECT_BYTES;
        match objects {
            0 => Ok(()),
            _ => self.end(objects as u32),
        }
    }

    fn end(&mut self, objects: u32) -> io::Result<()> {
        let (header, content) = self.block.split_at_mut(BLOCK_HEADER);
        header[..4].copy_from_slice(&objects.to_le_bytes());
        header[4..].copy_from_slice(&crc32fast::hash(content).to_le_bytes());
        self.out.write_all(&self.block)?;
        self.block.truncate(BLOCK_HEADER);
        Ok(())
    }

    /// Ends the file; gives the number of its objects, and what it was written to.
    pub fn finish(mut self) -> io::Result<(u64, W)> {
        self.flush()?;
        self.block.extend(self.objects.to_le_bytes());
        self.end(0)?;
        self.out.flush()?;
        Ok((self.objects, self.out))
    }
}

/// Reads the file. After an error, or its end, it gives nothing more.
pub struct Reader<R> {
    from: R,
    number: u32,
    block: Vec<u8>,
    at: usize,
    objects: u64,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(mut from: R) -> Result<Reader<R>, Error> {
        let mut header = [0; 16];
        read_exact(&mut from, &mut header)?;
        let mut bytes = Bytes(&header);
        let (magic, number, zero) = (bytes.u64(), bytes.u32(), bytes.u32());
        match (magic, number, zero) {
            (Some(MAGIC), Some(number), Some(0)) => Ok(Reader {
                from,
                number,
                block: Vec::new(),
                at: 0,
                objects: 0,
                done: false,
            }),
            _ => Err(Error::Magic),
        }
    }

    /// Number of the snapshot.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The next block; false = that was the last.
    fn fill(&mut self) -> Result<bool, Error> {
        let mut header = [0; BLOCK_HEADER];
        read_exact(&mut self.from, &mut header)?;
        let mut bytes = Bytes(&header);
        let (Some(objects), Some(crc)) = (bytes.u32(), bytes.u32()) else {
            return Err(Error::Short);
        };
        if objects as usize > BLOCK {
            return Err(Error::Value("a block of more objects than fit"));
        }
        let len = match objects {
            0 => 8,
            _ => objects as usize * OBJECT_BYTES,
        };
        self.block.resize(len, 0);
        self.at = 0;
        read_exact(&mut self.from, &mut self.block)?;
        if crc32fast::hash(&self.block) != crc {
            return Err(Error::Checksum);
        }
        if objects > 0 {
            self.objects += u64::from(objects);
            return Ok(true);
        }
        if Bytes(&self.block).u64() != Some(self.objects) {
            return Err(Error::Value("another number of objects than it says"));
        }
        match self.from.read(&mut [0])? {
            0 => Ok(false),
            _ => Err(Error::Value("something behind its end")),
        }
    }

    fn object(&mut self) -> Result<Option<Object>, Error> {
        if self.at == self.block.len() && !self.fill()? {
            return Ok(None);
        }
        let mut bytes = Bytes(self.block.get(self.at..).unwrap_or_default());
        self.at += OBJECT_BYTES;
        let object = (bytes.u64(), bytes.u32(), bytes.u32(), bytes.u32());
        let (Some(address), Some(units), Some(class), Some(word)) = object else {
            return Err(Error::Short);
        };
        Ok(Some(Object {
            address,
            bytes: u64::from(units) * 8,
            class,
            origin: Origin::of_word(word).ok_or(Error::Value("an origin that cannot be"))?,
        }))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Object, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let object = self.object().transpose();
        self.done = !matches!(object, Some(Ok(_)));
        object
    }
}

fn read_exact(from: &mut impl Read, buf: &mut [u8]) -> Result<(), Error> {
    from.read_exact(buf).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::Short,
        _ => Error::Io(error),
    })
}
