//! Large blocks, with pages of their own.
//!
//! For a moment a flush needs tables of megabytes. In malloc's heap they would leave holes among what is allocated
//! meanwhile and stays, such as names, and the process would keep their pages; and a table that grows would be copied,
//! and so exist twice. Here it is moved to other addresses instead, and its pages go back to the kernel with it.

use super::Layout;
use libc::{
    MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MREMAP_MAYMOVE, PROT_READ, PROT_WRITE, c_void, mmap, mremap, munmap,
};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The size from which on blocks are large. A smaller block costs less in malloc's heap than a part of a page is worth.
const SMALLEST: usize = 1 << 15;
/// Every system's pages have at least this size.
const PAGE: usize = 1 << 12;
/// The bits of an entry that say how many pages the block has; those above say which page is the first.
const SIZE_BITS: u32 = 24;

/// Where large blocks are, for the ledger; 0 is a free entry. Blocks that find none free are not in the list. A copied
/// process needs no lock to go on with it.
static BLOCKS: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

/// Whether such a block is large.
#[inline(always)]
pub fn is_large(layout: Layout) -> bool {
    layout.size() >= SMALLEST && layout.align() <= PAGE
}

/// A large block of zeros; null if there is no memory.
pub fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: new pages at an address that the kernel chooses concern nobody else.
    let block = unsafe { mmap(null_mut(), layout.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    listed(block, layout.size())
}

/// # Safety
/// `pointer` must be a large block of this layout that nobody uses any more.
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    replace(entry(pointer, layout.size()), 0);
    // SAFETY: the pages of the block hold nothing else, and it is no longer in use, as required of the caller.
    unsafe { munmap(pointer.cast(), layout.size()) };
}

/// The block with another size, which is large, too, perhaps elsewhere. If there is no memory null, and the block is
/// unchanged.
///
/// # Safety
/// `pointer` must be a large block of this layout, whose address nobody uses any more.
pub unsafe fn realloc(pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the pages of the block hold nothing else, and only the caller refers to them, as required.
    let block = unsafe { mremap(pointer.cast(), layout.size(), size, MREMAP_MAYMOVE) };
    if block != MAP_FAILED {
        replace(entry(pointer, layout.size()), 0);
    }
    listed(block, size)
}

/// The addresses of large blocks, with all of their pages, as of now.
pub fn blocks() -> Vec<Range<u64>> {
    let entries = BLOCKS.iter().map(|entry| entry.load(Relaxed)).filter(|&entry| entry != 0);
    let range = |entry: u64| {
        let (page, pages) = (entry >> SIZE_BITS, entry & ((1 << SIZE_BITS) - 1));
        page * PAGE as u64..(page + pages) * PAGE as u64
    };
    entries.map(range).collect()
}

/// A new block, which is in the list from now on; null if there was no memory.
fn listed(block: *mut c_void, size: usize) -> *mut u8 {
    if block == MAP_FAILED {
        return null_mut();
    }
    replace(0, entry(block.cast(), size));
    block.cast()
}

/// The entry of a block; 0 if it is too large for one.
fn entry(block: *mut u8, size: usize) -> u64 {
    let pages = size.div_ceil(PAGE) as u64;
    if pages >> SIZE_BITS == 0 { (block as u64 / PAGE as u64) << SIZE_BITS | pages } else { 0 }
}

/// Replaces one entry of that value, if there is one.
fn replace(old: u64, new: u64) {
    let change = |entry: &AtomicU64| entry.compare_exchange(old, new, Relaxed, Relaxed).is_ok();
    if old != new {
        let _ = BLOCKS.iter().any(|entry| entry.load(Relaxed) == old && change(entry));
    }
}
