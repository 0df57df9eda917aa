//! The trap of spec/support/malloc_trap, if it is preloaded.

use std::ffi::c_int;

/// Runs `body`, and counts how often others than this library call malloc or free in this thread meanwhile. None
/// without the trap.
pub fn counted<T>(body: impl FnOnce() -> T) -> (T, Option<u64>) {
    // SAFETY: this only searches.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"memprofiler_malloc_trap".as_ptr()) };
    if found.is_null() {
        return (body(), None);
    }
    // SAFETY: the trap has this type.
    let trap = unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(c_int) -> u64>(found) };
    // SAFETY: it only counts.
    let before = unsafe { trap(1) };
    let result = body();
    // SAFETY: it only counts.
    (result, Some(unsafe { trap(0) } - before))
}
