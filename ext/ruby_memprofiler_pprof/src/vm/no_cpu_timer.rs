//! Timers on the CPU clocks of threads, which this system does not have.

use super::cpu_clock::NativeId;
use super::safepoint::Job;
use super::ticks::Ticks;
use std::io;
use std::time::Duration;

/// None: there is nothing to send it.
pub fn free_signal() -> Option<i32> {
    None
}

/// Never.
pub fn is_ours(_signal: i32) -> bool {
    false
}

/// Fails.
pub fn listen(_signal: i32, _job: Job) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing to end.
pub fn end() {}

/// Nothing to ignore.
pub fn ignore() {}

/// None.
pub fn signals() -> u64 {
    0
}

/// There is none.
#[derive(Debug)]
pub struct Timer;

impl Timer {
    /// Fails.
    pub fn new(_thread: NativeId, _signal: i32, _first: Duration, _period: Duration) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Does nothing.
    ///
    /// # Safety
    /// None needed.
    pub unsafe fn follow(&self, _data: *const u8) {}

    /// None.
    pub fn take(&self) -> Option<Ticks> {
        None
    }

    /// Never.
    pub fn has_ticks(&self) -> bool {
        false
    }
}
