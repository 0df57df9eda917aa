//! Signals, which belong to the program.

/// Runs `body` with all signals blocked, which a thread or process created in it inherits.
pub fn with_all_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid for the calls that fill and read them, and the thread's own mask is restored below.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        let result = body();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}
