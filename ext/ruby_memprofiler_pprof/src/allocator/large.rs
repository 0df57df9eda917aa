//! Large blocks, with pages of their own.
//!
//! For a moment a flush needs tables of megabytes. In malloc's heap they would leave holes among what is allocated
//! meanwhile and stays, such as names, and the process would keep their pages; and a table that grows would be copied,
//! and so exist twice. Here it is moved to other addresses instead, and its pages go back to the kernel with it.

use super::Layout;
use libc::{
    MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MREMAP_MAYMOVE, PROT_READ, PROT_WRITE, c_void, mmap, mremap, munmap,
};
use std::ptr::null_mut;

/// The size from which on blocks are large. A smaller block costs less in malloc's heap than a part of a page is worth.
const SMALLEST: usize = 1 << 15;
/// Every system's pages have at least this size.
const PAGE: usize = 1 << 12;

/// Whether such a block is large.
#[inline(always)]
pub fn is_large(layout: Layout) -> bool {
    layout.size() >= SMALLEST && layout.align() <= PAGE
}

/// A large block of zeros; null if there is no memory.
pub fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: new pages at an address that the kernel chooses concern nobody else.
    let block = unsafe { mmap(null_mut(), layout.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    or_null(block)
}

/// # Safety
/// `pointer` must be a large block of this layout that nobody uses any more.
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
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
    or_null(unsafe { mremap(pointer.cast(), layout.size(), size, MREMAP_MAYMOVE) })
}

fn or_null(block: *mut c_void) -> *mut u8 {
    if block == MAP_FAILED { null_mut() } else { block.cast() }
}
