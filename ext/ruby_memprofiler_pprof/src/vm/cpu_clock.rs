//! The CPU clocks of other threads, and the process's native threads.

use super::clock;
use memprofiler_core::linux;

/// The number that the system knows a native thread by.
pub type NativeId = i32;

/// The number of the calling thread.
#[cfg(target_os = "linux")]
pub fn native_id() -> NativeId {
    // SAFETY: only returns a number.
    unsafe { libc::gettid() }
}

/// Elsewhere threads are not told apart.
#[cfg(not(target_os = "linux"))]
pub fn native_id() -> NativeId {
    0
}

/// The clock of a thread's CPU time: `make_thread_cpuclock` with `CPUCLOCK_SCHED` of the kernel's posix-timers.h.
pub fn clock_of(thread: NativeId) -> libc::clockid_t {
    const PER_THREAD: i32 = 4;
    const SCHED: i32 = 2;
    ((!thread << 3) | PER_THREAD | SCHED) as libc::clockid_t
}

/// The CPU time that a thread of this process has used so far, in nanoseconds; None if it has ended.
pub fn thread_cpu_of(thread: NativeId) -> Option<u64> {
    clock::read(clock_of(thread)).map(|time| time.as_nanos() as u64)
}

/// The process's native threads. Empty where the system does not tell.
pub fn native_threads() -> Vec<NativeId> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The name that the system knows a native thread by; empty if it has ended.
pub fn thread_name(thread: NativeId) -> String {
    linux::read(format!("/proc/self/task/{thread}/comm")).unwrap_or_default().trim_end().to_owned()
}
