//! Threads of other processes that this tool traces.

use std::io;
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

/// How often to look for a stop without a pause, as most take microseconds.
const SPINS: u32 = 200;

/// The status with which thread `tid` stops next, or ends; None if it does neither before the deadline, as one that
/// waits in the kernel in state D.
pub fn next_stop(tid: i32, deadline: Instant) -> io::Result<Option<libc::c_int>> {
    for turn in 0.. {
        let mut status = 0;
        // SAFETY: `status` is this function's own.
        let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if found < 0 {
            return Err(io::Error::last_os_error());
        }
        if found == tid {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            break;
        }
        if turn < SPINS { yield_now() } else { sleep(Duration::from_micros(50)) }
    }
    Ok(None)
}
