//! The memory of this library's Rust code: the system's allocator and, on Linux, pages of their own for large blocks
//! (`large.rs`), except in a copy of the process (`vm/child/`). If neither has memory, a reserve is given up
//! (`reserve.rs`).
//!
//! In a copy malloc must not be called: another thread may have held one of its locks when the copy was made, and in the
//! copy nobody releases that. So a copy takes its memory from the kernel alone.

#[cfg(target_os = "linux")]
mod arena;
#[cfg(target_os = "linux")]
mod large;
pub mod reserve;

use crate::faults;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

#[cfg(target_os = "linux")]
pub use arena::{Shortage, begin_copy, peak};
#[cfg(target_os = "linux")]
pub use large::blocks as large_blocks;
/// Elsewhere there are none.
#[cfg(not(target_os = "linux"))]
pub fn large_blocks() -> Vec<std::ops::Range<u64>> {
    Vec::new()
}

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: before `begin_copy` the system's allocator does the work or, as the layout alone decides, `large`; ever after
// the arena, which recognises what came from them. Or there is no memory, and null is returned, which is allowed.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: required of the caller.
        reserve::insist(layout.size(), || unsafe { self.try_alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: required of the caller.
        reserve::insist(layout.size(), || unsafe { self.try_alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            // SAFETY: the caller no longer uses the block, which `alloc` returned for this layout, here or before the
            // copy was made.
            return unsafe { arena::dealloc(pointer, layout) };
        }
        #[cfg(target_os = "linux")]
        if large::is_large(layout) {
            // SAFETY: the caller no longer uses the block, which was large when `alloc` returned it for this layout.
            return unsafe { large::dealloc(pointer, layout) };
        }
        // SAFETY: what `alloc` returned for this layout came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: required of the caller; where there is no memory the block is unchanged.
        reserve::insist(size, || unsafe { self.try_realloc(pointer, layout, size) })
    }
}

impl Allocator {
    /// # Safety
    /// As for `alloc`.
    #[inline]
    unsafe fn try_alloc(&self, layout: Layout) -> *mut u8 {
        if faults::lacks_memory(layout.size()) {
            return null_mut();
        }
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            return arena::alloc(layout);
        }
        #[cfg(target_os = "linux")]
        if large::is_large(layout) {
            return large::alloc(layout);
        }
        // SAFETY: the system's allocator has the same requirement for `layout`: a size that is not 0.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    /// As for `alloc_zeroed`.
    #[inline]
    unsafe fn try_alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if faults::lacks_memory(layout.size()) {
            return null_mut();
        }
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            return arena::alloc_zeroed(layout);
        }
        #[cfg(target_os = "linux")]
        if large::is_large(layout) {
            return large::alloc(layout);
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// # Safety
    /// As for `realloc`.
    #[inline]
    unsafe fn try_realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if faults::lacks_memory(size) {
            return null_mut();
        }
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            // SAFETY: as for `dealloc`; `size` is valid for the alignment, as required of the caller.
            return unsafe { arena::realloc(pointer, layout, size) };
        }
        // SAFETY: required of the caller.
        #[cfg(target_os = "linux")]
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        #[cfg(target_os = "linux")]
        match (large::is_large(layout), large::is_large(wanted)) {
            // SAFETY: a large block of this layout, which becomes another one, as the caller wants.
            (true, true) => return unsafe { large::realloc(pointer, layout, size) },
            (false, false) => {}
            // SAFETY: required of the caller.
            _ => return unsafe { self.move_block(pointer, layout, wanted) },
        }
        // SAFETY: what `alloc` returned for this layout came from the system's allocator; the rest is required of the
        // caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    /// Moves a block that becomes large or is no longer large.
    ///
    /// # Safety
    /// As for `realloc`.
    #[cfg(target_os = "linux")]
    unsafe fn move_block(&self, pointer: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
        // SAFETY: the size is not 0, as required of the caller.
        let block = unsafe { self.try_alloc(wanted) };
        if !block.is_null() {
            // SAFETY: both blocks have at least that many bytes, and the new one is nowhere else in use.
            unsafe { block.copy_from_nonoverlapping(pointer, layout.size().min(wanted.size())) };
            // SAFETY: required of the caller, who from now on uses the new block.
            unsafe { self.dealloc(pointer, layout) };
        }
        block
    }
}
