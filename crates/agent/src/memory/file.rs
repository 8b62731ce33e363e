//! The mapped file: one reserved address range, backed by `counters.bin` as it grows, so that a file offset is an address minus
//! the base. Space is allocated on the disk before it is mapped: a full disk is an error code here, never a SIGBUS in the program.

use super::raw::{Addr, load64, publish64, store32, store64};
use borescope_spool::layout::{self, Engine, Stop};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Mutex;

const PAGE: u64 = 4096;
const FIRST_STEP: u64 = 1 << 20;
const LAST_STEP: u64 = 64 << 20;
/// Largest address range asked for: hashed edges hold (address - base) / 16 in 31 bits.
const RESERVE: u64 = 32 << 30;

/// `counters.bin`, mapped.
pub struct CounterFile {
    file: File,
    base: Addr,
    limit: u64,
    growth: Mutex<Growth>,
}

struct Growth {
    mapped: u64,
    step: u64,
    stopped: bool,
}

impl CounterFile {
    /// Reserves addresses, maps the header and writes it. `limit` bounds the file in bytes.
    pub fn create(file: File, limit: u64, engine: Engine, k: u32) -> io::Result<Self> {
        let mut reserve = RESERVE;
        let base = loop {
            match reserve_addresses(reserve) {
                Ok(a) => break a,
                Err(e) if reserve <= 16 << 20 => return Err(e),
                Err(_) => reserve /= 2,
            }
        };
        let this = Self {
            file,
            base,
            limit: limit.clamp(FIRST_STEP, reserve),
            growth: Mutex::new(Growth {
                mapped: 0,
                step: FIRST_STEP,
                stopped: false,
            }),
        };
        this.extend(&mut this.lock(), layout::HEADER_BYTES)
            .map_err(|(_, e)| e)?;
        store64(base + layout::header::BASE, base);
        store32(base + layout::header::ENGINE, engine as u32);
        store32(base + layout::header::K, k);
        store64(base + layout::header::ALLOCATED, layout::HEADER_BYTES);
        publish64(base + layout::header::MAGIC, layout::MAGIC);
        Ok(this)
    }

    /// Address of offset 0.
    pub fn base(&self) -> Addr {
        self.base
    }

    /// A new chunk of at least `bytes` usable bytes for an arena; `None` once memory or disk has run out (and the header says so). The last eighth of
    /// the memory is kept for what is `vital`.
    pub fn chunk(&self, arena: u32, bytes: u64, vital: bool) -> Option<Addr> {
        let bytes = (bytes + layout::CHUNK_HEADER_BYTES).next_multiple_of(PAGE);
        let mut growth = self.lock();
        if growth.stopped && !vital {
            return None;
        }
        let at = load64(self.base + layout::header::ALLOCATED);
        let fits = match vital || at + bytes <= self.limit / 8 * 7 {
            true => self.extend(&mut growth, at + bytes).map_err(|e| e.0),
            false => Err(Stop::Memory),
        };
        if let Err(why) = fits {
            if !growth.stopped {
                growth.stopped = true;
                store32(self.base + layout::header::STOP, why as u32);
            }
            return None;
        }
        let chunk = self.base + at;
        store32(chunk + layout::chunk::MAGIC, layout::CHUNK_MAGIC);
        store32(chunk + layout::chunk::ARENA, arena);
        store64(chunk + layout::chunk::BYTES, bytes);
        store64(chunk + layout::chunk::USED, layout::CHUNK_HEADER_BYTES);
        publish64(self.base + layout::header::ALLOCATED, at + bytes);
        Some(chunk)
    }

    /// A new piece of an arena's slots, mapped at `place` too; false = memory or disk has run out, `place` is as before.
    pub fn slots(&self, arena: u32, piece: u64, place: Addr) -> bool {
        let bytes = layout::piece_bytes(piece);
        let mut growth = self.lock();
        let at = load64(self.base + layout::header::ALLOCATED);
        if self.extend(&mut growth, at + bytes).is_err()
            || map_file(&self.file, place, at, bytes).is_err()
        {
            return false;
        }
        let chunk = self.base + at;
        store32(chunk + layout::slots::MAGIC, layout::SLOTS_MAGIC);
        store32(chunk + layout::slots::ARENA, arena);
        store64(chunk + layout::slots::BYTES, bytes);
        store64(chunk + layout::slots::PIECE, piece);
        publish64(self.base + layout::header::ALLOCATED, at + bytes);
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Growth> {
        self.growth
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Maps the file up to `end` or beyond, if it is not yet.
    fn extend(&self, growth: &mut Growth, end: u64) -> Result<(), (Stop, io::Error)> {
        if end <= growth.mapped {
            return Ok(());
        }
        if end > self.limit {
            return Err((Stop::Memory, io::Error::other("memory limit")));
        }
        let generous = end
            .max(growth.mapped + growth.step)
            .min(self.limit)
            .next_multiple_of(PAGE);
        let exact = end.next_multiple_of(PAGE);
        let new = match allocate(&self.file, growth.mapped, generous) {
            Ok(()) => generous,
            Err(_) => allocate(&self.file, growth.mapped, exact)
                .map(|()| exact)
                .map_err(|e| (Stop::DiskFull, e))?,
        };
        map_file(
            &self.file,
            self.base + growth.mapped,
            growth.mapped,
            new - growth.mapped,
        )
        .map_err(|e| (Stop::Memory, e))?;
        growth.mapped = new;
        growth.step = (growth.step * 2).min(LAST_STEP);
        Ok(())
    }
}

/// Maps allocated bytes of the file from `offset` on at `place`, which lies in an address range of ours that nobody uses yet.
pub fn map_file(file: &File, place: Addr, offset: u64, bytes: u64) -> io::Result<()> {
    // SAFETY: the range lies in a reservation of ours and holds nothing; the file is allocated there.
    let p = unsafe {
        libc::mmap(
            place as *mut _,
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if p == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Allocates disk space for a range of the file.
pub fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    // SAFETY: plain system call on a file descriptor that is open.
    match unsafe {
        libc::posix_fallocate(
            file.as_raw_fd(),
            from as libc::off_t,
            (to - from) as libc::off_t,
        )
    } {
        0 => Ok(()),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

/// Addresses that nothing stands behind yet.
pub fn reserve_addresses(bytes: u64) -> io::Result<Addr> {
    map(bytes, libc::PROT_NONE)
}

/// Private zero pages, made as they are touched, left out of core files and of huge pages.
pub fn zero_pages(bytes: u64) -> io::Result<Addr> {
    let a = map(bytes, libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: advice about the mapping just made; failure does not matter.
    unsafe {
        libc::madvise(a as *mut _, bytes as usize, libc::MADV_NOHUGEPAGE);
        libc::madvise(a as *mut _, bytes as usize, libc::MADV_DONTDUMP);
    }
    Ok(a)
}

fn map(bytes: u64, protection: i32) -> io::Result<Addr> {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if p == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(p as Addr)
    }
}
