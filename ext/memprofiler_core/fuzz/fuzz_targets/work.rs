//! Notices work that is out of proportion: counts the bytes that are allocated, which libFuzzer does not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most frames and bytes of names that a profile of `bytes` bytes may become, see the core's `expansion`.
const fn most_frames(bytes: u64) -> u64 {
    (1 << 17) + 16 * bytes
}

const fn most_text(bytes: u64) -> u64 {
    (1 << 24) + 1024 * bytes
}

/// What an operation on `profiles` profiles of `bytes` bytes each may allocate in all: some hundred bytes for each frame
/// (a node in its tables, which grow by doubling), and two copies of each name.
pub fn most(bytes: u64, profiles: u64) -> u64 {
    profiles * (128 * most_frames(bytes) + 2 * most_text(bytes) + 4096 * bytes)
}

/// Fails if `work` allocates more than `most` bytes in all.
pub fn bounded<T>(name: &str, most: u64, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let result = work();
    let allocated = ALLOCATED.load(Ordering::Relaxed) - before;
    assert!(allocated <= most, "{name} has allocated {allocated} bytes, more than {most}");
    result
}
