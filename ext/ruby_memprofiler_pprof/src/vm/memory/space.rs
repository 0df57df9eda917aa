//! This process's addresses, as Linux's files show them. Nothing is read through a pointer: what another thread unmaps
//! meanwhile is an error of a system call.

use crate::faults;
use memprofiler_core::ledger::{Space, WORD};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The most bytes of `/proc/self/pagemap` that are read at a time.
const PIECE: usize = 1 << 16;

/// The addresses of this process. After a change of user the files may be closed to it.
#[derive(Debug)]
pub struct OwnSpace {
    pagemap: Option<File>,
    memory: Option<File>,
    page_size: u64,
}

impl OwnSpace {
    /// Opens the files, where they exist.
    pub fn open() -> Self {
        let open = |path: &str| if faults::denied(path) { None } else { File::open(path).ok() };
        // SAFETY: this only returns a number.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Self {
            pagemap: open("/proc/self/pagemap"),
            memory: open("/proc/self/mem"),
            page_size: u64::try_from(page_size).ok().filter(|&size| size > 0).unwrap_or(4096),
        }
    }
}

impl Space for OwnSpace {
    fn pagemap(&self, pages: &Range<u64>) -> Option<Vec<u8>> {
        let file = self.pagemap.as_ref()?;
        let offset = |address: u64| address / self.page_size * WORD as u64;
        let length = usize::try_from(offset(pages.end) - offset(pages.start)).ok()?;
        let mut words = vec![0; length];
        let mut done = 0;
        while done < length {
            let piece = &mut words[done..length.min(done + PIECE)];
            match file.read_at(piece, offset(pages.start) + done as u64).ok()? {
                0 => break,
                read => done += read,
            }
        }
        Some(words)
    }

    fn words(&self, address: u64) -> Option<[u64; 4]> {
        let mut bytes = [0; 4 * WORD];
        self.memory.as_ref()?.read_exact_at(&mut bytes, address).ok()?;
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(WORD)) {
            *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        Some(words)
    }

    fn page_size(&self) -> u64 {
        self.page_size
    }
}
