//! Addresses that are kept for the moment at which there are no more: under `ulimit -v`, or where the kernel promises
//! no more memory than it has, malloc fails, and Rust's runtime would abort the process.
//!
//! They are never touched, so they take no memory. When an allocation fails, a part is unmapped, and it is tried again.
//! So the profile of a process that ends by a NoMemoryError can still be taken. What needs more than most of the
//! reserve has to end: see [`is_low`].

use crate::faults;
use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE, c_void, mmap, munmap};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The bytes of a part: more than malloc takes from the kernel at a time.
const PART: usize = 4 << 20;
/// The number of parts. A flush of 50,000 samples takes 12 MB.
const PARTS: usize = 12;
/// How many parts are left for a flush to end with what it does.
const LEAST: usize = 4;

/// The parts that there are; null for others.
static RESERVE: [AtomicPtr<c_void>; PARTS] = [const { AtomicPtr::new(null_mut()) }; PARTS];
/// How many there are.
static LEFT: AtomicUsize = AtomicUsize::new(0);
/// The thread that does without, as pthread_self tells it; 0 if none does.
static FRUGAL: AtomicUsize = AtomicUsize::new(0);

fn this_thread() -> usize {
    // SAFETY: always safe.
    unsafe { libc::pthread_self() as usize }
}

/// Reserves what is missing, as far as it can be had.
pub fn fill() {
    for part in RESERVE.iter().filter(|part| part.load(Relaxed).is_null()) {
        // SAFETY: new pages at an address that the kernel chooses concern nobody else.
        let pages = unsafe {
            mmap(null_mut(), PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        };
        if pages == MAP_FAILED {
            return;
        }
        if part.compare_exchange(null_mut(), pages, Relaxed, Relaxed).is_ok() {
            LEFT.fetch_add(1, Relaxed);
        } else {
            unmap(pages);
        }
    }
}

/// Whether so little is left that what takes memory should end.
#[inline]
pub fn is_low() -> bool {
    LEFT.load(Relaxed) < LEAST || faults::denied("reserve")
}

/// Calls `grow`, which can do without the memory that it asks for: nothing is given up for it.
#[inline]
pub fn spare<T>(grow: impl FnOnce() -> T) -> T {
    FRUGAL.store(this_thread(), Relaxed);
    let result = grow();
    FRUGAL.store(0, Relaxed);
    result
}

/// `allocate` returns a block of `size` bytes, or null if there is no memory. Then it is called again, as long as there
/// is a part to give up.
#[inline]
pub fn insist(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let mut block = allocate();
    while block.is_null() && size < PART * PARTS && give_up_part() {
        block = allocate();
    }
    block
}

/// Gives up one part, if there is any and this thread may.
#[cold]
fn give_up_part() -> bool {
    if FRUGAL.load(Relaxed) == this_thread() {
        return false;
    }
    let part = RESERVE.iter().map(|part| part.swap(null_mut(), Relaxed)).find(|part| !part.is_null());
    part.is_some_and(|part| {
        LEFT.fetch_sub(1, Relaxed);
        unmap(part);
        true
    })
}

fn unmap(part: *mut c_void) {
    // SAFETY: pages that `fill` mapped, and that only the caller has got.
    unsafe { munmap(part, PART) };
}
