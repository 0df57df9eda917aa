//! The memory of a copy of the process: a window of addresses that belong to nobody else, of which pages are made
//! usable one after the other.
//!
//! Up to [`LARGEST_SMALL`] bytes a block has the next power of two as its size, and is used again for blocks of that
//! size. A larger one has pages of its own: it grows by being moved to other addresses, without being copied, and goes
//! back to the kernel when freed. No page's address is used for a second one; the window is large enough for that.

use super::Layout;
use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE};
use libc::{MREMAP_FIXED, MREMAP_MAYMOVE, c_void, mmap, mprotect, mremap, munmap};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

/// A multiple of every system's page size. Pages are taken in multiples of it.
const GRANULE: usize = 1 << 16;
const SMALLEST: usize = 16;
const LARGEST_SMALL: usize = GRANULE;
/// How many sizes small blocks have.
const SIZES: usize = (LARGEST_SMALL / SMALLEST).ilog2() as usize + 1;
/// The addresses in the window, if the system allows that many: a terabyte, where addresses have 64 bits.
const WINDOW: usize = 1 << (usize::BITS / 2 + 8);

/// Why there is no more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The copy has taken as much as it may.
    Limit,
    /// The system gives it no more.
    System,
}

/// Small blocks of one size.
#[derive(Clone, Copy)]
struct Blocks {
    /// The first free one, which begins with the address of the next; 0 if there is none.
    free: usize,
    /// Those that were never used.
    next: usize,
    end: usize,
}

struct Arena {
    start: usize,
    end: usize,
    /// Where the unused part of the window begins.
    next: usize,
    small: [Blocks; SIZES],
    /// Bytes taken from the kernel, now and at most.
    taken: u64,
    peak: u64,
    limit: u64,
    /// What to do without memory: it must end the process.
    give_up: fn(Shortage) -> !,
}

struct Shared(UnsafeCell<Arena>);

// SAFETY: used only in a copy of the process, which has a single thread and handles no signals.
unsafe impl Sync for Shared {}

static IN_USE: AtomicBool = AtomicBool::new(false);
static ARENA: Shared = Shared(UnsafeCell::new(Arena {
    start: 0,
    end: 0,
    next: 0,
    small: [Blocks { free: 0, next: 0, end: 0 }; SIZES],
    taken: 0,
    peak: 0,
    limit: 0,
    give_up: |_| std::process::abort(),
}));

/// Whether this process is a copy.
#[inline(always)]
pub fn in_use() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

/// From now on memory comes from the arena, at most `limit` bytes at a time; past that `give_up` is called. Blocks that
/// came from the system's allocator can be used on, and are never freed.
///
/// # Safety
/// This process must be a copy with a single thread, which handles no signals and calls this once.
pub unsafe fn begin_copy(limit: u64, give_up: fn(Shortage) -> !) {
    // SAFETY: a single thread, and nothing else has a reference to the arena.
    unsafe { (*ARENA.0.get()).open(limit, give_up) };
    IN_USE.store(true, Ordering::Relaxed);
}

/// The most bytes that were taken at a time.
pub fn peak() -> u64 {
    with(|arena| arena.peak)
}

pub fn alloc(layout: Layout) -> *mut u8 {
    with(|arena| arena.alloc(layout))
}

pub fn alloc_zeroed(layout: Layout) -> *mut u8 {
    let block = alloc(layout);
    // Pages come as zeros, and are used once.
    if size_index(layout).is_some() && !block.is_null() {
        // SAFETY: the block has just been allocated, with this size.
        unsafe { block.write_bytes(0, layout.size()) };
    }
    block
}

/// # Safety
/// `pointer` must be a block of this layout, from here or from before the copy was made, that nobody uses any more.
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    // SAFETY: required of the caller.
    with(|arena| unsafe { arena.dealloc(pointer, layout) });
}

/// # Safety
/// As for [`dealloc`]; `size` must not be 0 nor, rounded up to the alignment, exceed `isize::MAX`.
pub unsafe fn realloc(pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: required of the caller.
    let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    let (old, new) = (size_index(layout), size_index(wanted));
    let ours = with(|arena| arena.contains(pointer));
    if ours && old == new {
        return match new {
            Some(_) => pointer,
            // SAFETY: a large block of this size, as required of the caller.
            None => with(|arena| unsafe { arena.resize(pointer, layout.size(), size) }),
        };
    }
    let block = alloc(wanted);
    if !block.is_null() {
        // SAFETY: both blocks have at least that many bytes, and the new one is nowhere else in use.
        unsafe { block.copy_from_nonoverlapping(pointer, layout.size().min(size)) };
        // SAFETY: required of the caller.
        unsafe { dealloc(pointer, layout) };
    }
    block
}

fn with<T>(body: impl FnOnce(&mut Arena) -> T) -> T {
    // SAFETY: a copy has a single thread, which handles no signals, and the methods below neither allocate nor call
    // each other through this function.
    body(unsafe { &mut *ARENA.0.get() })
}

/// The number of the small size that fits; None if none does.
fn size_index(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST);
    (size <= LARGEST_SMALL).then(|| (size.next_power_of_two() / SMALLEST).ilog2() as usize)
}

/// The bytes of the pages of a large block.
fn pages(size: usize) -> usize {
    size.next_multiple_of(GRANULE)
}

impl Arena {
    /// Reserves the window. Where addresses are limited it has half of those that are left, at most.
    fn open(&mut self, limit: u64, give_up: fn(Shortage) -> !) {
        (self.limit, self.give_up) = (limit, give_up);
        let mut size = WINDOW;
        while size >= 16 * GRANULE {
            // SAFETY: new addresses, chosen by the kernel.
            let start =
                unsafe { mmap(null_mut(), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) };
            if start == MAP_FAILED {
                size /= 2;
                continue;
            }
            self.start = (start as usize).next_multiple_of(GRANULE);
            self.end = start as usize + size;
            self.next = self.start;
            if size < WINDOW {
                self.end -= size / 2;
                // SAFETY: half of what was just reserved, and nobody uses it.
                unsafe { munmap(self.end as *mut c_void, size / 2) };
            }
            return;
        }
        give_up(Shortage::System)
    }

    fn contains(&self, pointer: *mut u8) -> bool {
        (self.start..self.end).contains(&(pointer as usize))
    }

    fn alloc(&mut self, layout: Layout) -> *mut u8 {
        if layout.align() > GRANULE {
            return null_mut();
        }
        match size_index(layout) {
            Some(index) => self.alloc_small(index),
            None => self.take_pages(pages(layout.size())),
        }
    }

    fn alloc_small(&mut self, index: usize) -> *mut u8 {
        let size = SMALLEST << index;
        let blocks = self.small[index];
        if blocks.free != 0 {
            let block = blocks.free as *mut u8;
            // SAFETY: a free block of at least 16 bytes, which begins with the address of the next.
            self.small[index].free = unsafe { block.cast::<usize>().read() };
            return block;
        }
        if blocks.next == blocks.end {
            // A granule is a multiple of each size, so blocks are aligned to their size.
            let run = self.take_pages(GRANULE) as usize;
            (self.small[index].next, self.small[index].end) = (run, run + GRANULE);
        }
        let block = self.small[index].next;
        self.small[index].next += size;
        block as *mut u8
    }

    /// # Safety
    /// See [`dealloc`].
    unsafe fn dealloc(&mut self, pointer: *mut u8, layout: Layout) {
        if !self.contains(pointer) {
            return;
        }
        match size_index(layout) {
            Some(index) => {
                // SAFETY: the block has at least 16 bytes, is aligned to 16, and nobody uses it any more.
                unsafe { pointer.cast::<usize>().write(self.small[index].free) };
                self.small[index].free = pointer as usize;
            }
            None => {
                // SAFETY: the pages of a block that nobody uses any more.
                unsafe { munmap(pointer.cast(), pages(layout.size())) };
                self.taken -= pages(layout.size()) as u64;
            }
        }
    }

    /// Gives a large block another size, which is large, too.
    ///
    /// # Safety
    /// See [`realloc`]; the block must be in the window.
    unsafe fn resize(&mut self, pointer: *mut u8, old: usize, new: usize) -> *mut u8 {
        let (old, new) = (pages(old), pages(new));
        if new <= old {
            if new < old {
                // SAFETY: the end of a block, which its owner gives up.
                unsafe { munmap(pointer.add(new).cast(), old - new) };
                self.taken -= (old - new) as u64;
            }
            return pointer;
        }
        self.count(new - old);
        let place = self.take_addresses(new);
        // SAFETY: the block's own pages move to addresses that nobody uses. They are one mapping, since a block's pages
        // become usable and move together.
        let moved = unsafe { mremap(pointer.cast(), old, new, MREMAP_MAYMOVE | MREMAP_FIXED, place) };
        if moved == MAP_FAILED {
            (self.give_up)(Shortage::System);
        }
        moved.cast()
    }

    /// New pages, full of zeros.
    fn take_pages(&mut self, bytes: usize) -> *mut u8 {
        self.count(bytes);
        let place = self.take_addresses(bytes);
        // SAFETY: a part of the window that nobody uses yet.
        if unsafe { mprotect(place, bytes, PROT_READ | PROT_WRITE) } != 0 {
            (self.give_up)(Shortage::System);
        }
        place.cast()
    }

    fn take_addresses(&mut self, bytes: usize) -> *mut c_void {
        if bytes > self.end - self.next {
            (self.give_up)(Shortage::System);
        }
        let place = self.next;
        self.next += bytes;
        place as *mut c_void
    }

    fn count(&mut self, bytes: usize) {
        self.taken += bytes as u64;
        if self.taken > self.limit {
            (self.give_up)(Shortage::Limit);
        }
        self.peak = self.peak.max(self.taken);
    }
}
