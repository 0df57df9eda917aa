//! Memory that runs out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Allocations of at least this many bytes fail.
pub static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

// SAFETY: delegates to the system's allocator, or returns null, which is allowed.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LIMIT.load(Ordering::Relaxed) {
            return null_mut();
        }
        // SAFETY: the system's allocator has the same requirement for `layout`: a size that is not 0.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: what `alloc` returned for this layout came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) };
    }
}
