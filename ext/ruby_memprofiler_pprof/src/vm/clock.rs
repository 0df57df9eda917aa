//! The system's clocks.

use std::time::{Duration, SystemTime};

/// The CPU time that the calling thread has used so far, in user and system mode. 0 if the system does not report it.
pub fn thread_cpu() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// The CPU time that all threads of the process have used so far, in nanoseconds. 0 if the system does not report it.
/// Safe in hooks.
pub fn process_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default().as_nanos() as u64
}

/// Nanoseconds since some moment before the process began. The same in a forked child.
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or_default().as_nanos() as u64
}

/// Nanoseconds from 1970 to `time`, as in profiles. 0 if it is before that.
pub fn nanoseconds_since_1970(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Lets the calling thread's waits end when they should, instead of up to 50 µs later, when other timers end.
pub fn sleep_exactly() {
    #[cfg(target_os = "linux")]
    // SAFETY: changes one number, of this thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
    }
}

/// What `clock` shows; None if the system does not have it.
pub fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the function writes to the struct that it is given.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    Some(Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0)))
}
