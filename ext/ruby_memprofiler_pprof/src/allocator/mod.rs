//! The memory of this library's Rust code: the system's allocator, except in a copy of the process (`vm/child/`).
//!
//! There malloc must not be called: another thread may have held one of its locks when the copy was made, and in the
//! copy nobody releases that. So a copy takes its memory from the kernel alone.

#[cfg(target_os = "linux")]
mod arena;

use crate::faults;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

#[cfg(target_os = "linux")]
pub use arena::{Shortage, begin_copy, peak};

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: one of two allocators does the work: the system's before `begin_copy`, the arena ever after, which recognises
// what came from the former. Or there is no memory, and null is returned, which is allowed.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if faults::lacks_memory(layout.size()) {
            return null_mut();
        }
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            return arena::alloc(layout);
        }
        // SAFETY: the system's allocator has the same requirement for `layout`: a size that is not 0.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if faults::lacks_memory(layout.size()) {
            return null_mut();
        }
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            return arena::alloc_zeroed(layout);
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            // SAFETY: the caller no longer uses the block, which `alloc` returned for this layout, here or before the
            // copy was made.
            return unsafe { arena::dealloc(pointer, layout) };
        }
        // SAFETY: what `alloc` returned for this layout came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if faults::lacks_memory(size) {
            return null_mut();
        }
        #[cfg(target_os = "linux")]
        if arena::in_use() {
            // SAFETY: as for `dealloc`; `size` is valid for the alignment, as required of the caller.
            return unsafe { arena::realloc(pointer, layout, size) };
        }
        // SAFETY: what `alloc` returned for this layout came from the system's allocator; the rest is required of the
        // caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
