//! SIGINT, SIGTERM and SIGHUP, as a flag: whoever has begun something brings it to a good end first.

use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static HAPPENED: AtomicBool = AtomicBool::new(false);
/// How late a signal may be noticed.
const NOTICED: Duration = Duration::from_millis(50);

extern "C" fn note(_: libc::c_int) {
    HAPPENED.store(true, Ordering::Relaxed);
}

/// From now on they do nothing but set the flag. What is ignored, as under `nohup`, stays ignored.
pub fn catch() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only sets a flag.
        unsafe {
            if libc::signal(signal, note as *const () as libc::sighandler_t) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Whether there was one since.
pub fn happened() -> bool {
    HAPPENED.load(Ordering::Relaxed)
}

/// Fails if there was one since.
pub fn check() -> Result<(), Failure> {
    if happened() { Err(Failure::new("interrupted")) } else { Ok(()) }
}

/// Sleeps, until there is one.
pub fn sleep(duration: Duration) {
    let start = Instant::now();
    while !happened() {
        let left = duration.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(NOTICED));
    }
}
