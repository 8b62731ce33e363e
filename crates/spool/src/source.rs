//! Where the bytes of `counters.bin` come from: a slice, or a file that is read a page at a time with a bounded cache.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Random access to bytes that may still change.
pub trait Source {
    /// Number of bytes there are.
    fn len(&self) -> u64;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from `offset`; false = some of these bytes are not there or cannot be read.
    fn read(&self, offset: u64, buf: &mut [u8]) -> bool;

    /// As [`Source::read`], past any cache.
    fn read_fresh(&self, offset: u64, buf: &mut [u8]) -> bool {
        self.read(offset, buf)
    }

    /// As [`Source::len`], past any cache.
    fn fresh_len(&self) -> u64 {
        self.len()
    }

    /// Forgets a cached copy of the bytes at `offset`: the next read sees what the JVM has written meanwhile.
    fn refresh(&self, _offset: u64) {}
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> bool {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|from| self.get(from..from.checked_add(buf.len())?));
        bytes.inspect(|bytes| buf.copy_from_slice(bytes)).is_some()
    }
}

const PAGE: u64 = 64 << 10;

/// A file read with `pread`. Holes cost no memory; at most `cache` bytes (at least a page) are kept.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    /// As it was at the last look.
    len: Cell<u64>,
    pages: RefCell<Pages>,
    error: RefCell<Option<io::Error>>,
}

#[derive(Debug)]
struct Pages {
    limit: usize,
    by_number: HashMap<u64, Rc<[u8]>>,
    oldest_first: VecDeque<u64>,
    /// Most reads hit the page of the read before.
    last: Option<(u64, Rc<[u8]>)>,
    /// Refreshes left: a file full of broken links must not be read over and over.
    refreshes: u32,
}

impl FileSource {
    /// Reads `file`, keeping at most `cache` bytes of it in memory.
    pub fn new(file: File, cache: usize) -> io::Result<FileSource> {
        let len = Cell::new(file.metadata()?.len());
        let limit = (cache / PAGE as usize).max(1);
        let pages = Pages {
            limit,
            by_number: HashMap::new(),
            oldest_first: VecDeque::new(),
            last: None,
            refreshes: 100_000,
        };
        Ok(FileSource {
            file,
            len,
            pages: RefCell::new(pages),
            error: RefCell::new(None),
        })
    }

    /// The first error that the system gave since the last call. The bytes it concerns were treated as missing.
    pub fn take_error(&self) -> Option<io::Error> {
        self.error.take()
    }

    fn page(&self, number: u64) -> Option<Rc<[u8]>> {
        let mut pages = self.pages.borrow_mut();
        if let Some((last, page)) = &pages.last
            && *last == number
        {
            return Some(page.clone());
        }
        let page = match pages.by_number.get(&number) {
            Some(page) => page.clone(),
            None => {
                let page = self.load(number)?;
                if pages.by_number.len() >= pages.limit
                    && let Some(oldest) = pages.oldest_first.pop_front()
                {
                    pages.by_number.remove(&oldest);
                }
                pages.by_number.insert(number, page.clone());
                pages.oldest_first.push_back(number);
                page
            }
        };
        pages.last = Some((number, page.clone()));
        Some(page)
    }

    fn load(&self, number: u64) -> Option<Rc<[u8]>> {
        let from = number * PAGE;
        let len = self.len.get().checked_sub(from)?.min(PAGE) as usize;
        let mut page = vec![0; len];
        match self.file.read_exact_at(&mut page, from) {
            Ok(()) => Some(page.into()),
            Err(error) => {
                self.error.borrow_mut().get_or_insert(error);
                None
            }
        }
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len.get()
    }

    fn read_fresh(&self, offset: u64, buf: &mut [u8]) -> bool {
        match self.file.read_exact_at(buf, offset) {
            Ok(()) => true,
            Err(error) => {
                if error.kind() != io::ErrorKind::UnexpectedEof {
                    self.error.borrow_mut().get_or_insert(error);
                }
                false
            }
        }
    }

    fn fresh_len(&self) -> u64 {
        if let Ok(file) = self.file.metadata() {
            self.len.set(file.len());
        }
        self.len.get()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> bool {
        if offset
            .checked_add(buf.len() as u64)
            .is_none_or(|end| end > self.len.get())
        {
            return false;
        }
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let Some(page) = self.page(at / PAGE) else {
                return false;
            };
            let Some(bytes) = page.get((at % PAGE) as usize..) else {
                return false;
            };
            let len = bytes.len().min(buf.len() - done);
            if len == 0 {
                return false;
            }
            buf[done..done + len].copy_from_slice(&bytes[..len]);
            done += len;
        }
        true
    }

    fn refresh(&self, offset: u64) {
        let mut pages = self.pages.borrow_mut();
        let number = offset / PAGE;
        if pages.refreshes == 0 {
            return;
        }
        pages.refreshes -= 1;
        pages.last = None;
        if pages.by_number.remove(&number).is_some() {
            pages.oldest_first.retain(|&page| page != number);
        }
    }
}
