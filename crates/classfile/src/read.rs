//! A cursor over big-endian bytes: every read is checked.

use crate::Error;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(len).ok_or(Error::End(self.at))?;
        let taken = self.bytes.get(self.at..end).ok_or(Error::End(self.at))?;
        self.at = end;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.bytes[self.at..]
            .first_chunk()
            .ok_or(Error::End(self.at))?;
        self.at += N;
        Ok(*bytes)
    }

    #[inline]
    pub(crate) fn u1(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u2(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u4(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// An attribute (JVMS 4.7): the index of its name, and its contents.
    #[inline]
    pub(crate) fn attribute(&mut self) -> Result<(u16, &'a [u8]), Error> {
        let name = self.u2()?;
        let len = self.u4()? as usize;
        Ok((name, self.take(len)?))
    }
}
