//! Detects disproportionate work by counting allocated bytes, which libFuzzer does not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

// SAFETY: delegates everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is also the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is also the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The maximum number of frames, and of bytes of names, that a profile of `bytes` bytes may expand to; see the core's
/// `expansion`.
const fn most_frames(bytes: u64) -> u64 {
    (1 << 17) + 16 * bytes
}

const fn most_text(bytes: u64) -> u64 {
    (1 << 24) + 1024 * bytes
}

/// How much an operation on `profiles` profiles of `bytes` bytes each may allocate in total: some hundred bytes per
/// frame (a node in its tables, which grow by doubling, with its sums by group of windows), and two copies of each
/// name.
pub fn most(bytes: u64, profiles: u64) -> u64 {
    profiles * (1024 * most_frames(bytes) + 2 * most_text(bytes) + 4096 * bytes)
}

/// Fails if `work` allocates more than `most` bytes in total.
pub fn bounded<T>(name: &str, most: u64, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let result = work();
    let allocated = ALLOCATED.load(Ordering::Relaxed) - before;
    assert!(allocated <= most, "{name} has allocated {allocated} bytes, more than {most}");
    result
}
