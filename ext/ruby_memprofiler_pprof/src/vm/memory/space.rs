//! This process's addresses, as Linux's files show them. Nothing is read through a pointer: what another thread unmaps
//! meanwhile is an error of a system call.

use crate::faults;
use memprofiler_core::ledger::{Residency, Space, WORD};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How many pages are looked at together.
const PIECE: usize = 1 << 11;
/// The same if not all are looked at, at least.
const SAMPLE: usize = 64;
/// Of how many such samples a mapping has to have room.
const FEWEST: usize = 8;
/// About as many samples are taken of a very large mapping, which mostly is not in memory.
const MANY: usize = 64;

/// The addresses of this process. After a change of user the files may be closed to it.
#[derive(Debug)]
pub struct OwnSpace {
    pagemap: Option<File>,
    memory: Option<File>,
    page_size: u64,
    /// Of large mappings, only every nth sample of pages is looked at. A page in memory takes some 70 ns.
    pub nth: usize,
}

impl OwnSpace {
    /// Opens the files, where they exist.
    pub fn open() -> Self {
        let open = |path: &str| if faults::denied(path) { None } else { File::open(path).ok() };
        Self { pagemap: open("/proc/self/pagemap"), memory: open("/proc/self/mem"), page_size: page_size(), nth: 1 }
    }
}

/// The size of a page of memory.
pub fn page_size() -> u64 {
    // SAFETY: this only returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).ok().filter(|&size| size > 0).unwrap_or(4096)
}

impl Space for OwnSpace {
    fn residency(&self, addresses: &Range<u64>) -> Option<Residency> {
        let file = self.pagemap.as_ref()?;
        let (first, end) = (addresses.start / self.page_size, addresses.end / self.page_size);
        let pages = usize::try_from(end.checked_sub(first)?).ok()?;
        let (piece, nth) = if pages < FEWEST * SAMPLE * self.nth {
            (PIECE, 1)
        } else {
            ((pages / self.nth / MANY).clamp(SAMPLE, PIECE), self.nth)
        };
        let mut residency = Residency::new(addresses.start, self.page_size);
        let mut words = [0; PIECE * WORD];
        while residency.len() < pages {
            let left = pages - residency.len();
            let words = &mut words[..piece.min(left) * WORD];
            let read = file.read_at(words, (first + residency.len() as u64) * WORD as u64).ok()? / WORD * WORD;
            if read == 0 {
                break;
            }
            residency.add(&words[..read]);
            for _ in 1..nth {
                residency.repeat_last((read / WORD).min(pages - residency.len()));
            }
        }
        Some(residency)
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
