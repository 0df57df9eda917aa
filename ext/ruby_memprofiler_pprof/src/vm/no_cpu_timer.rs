//! Timers on the CPU clocks of threads, which this system does not have.

use super::cpu_clock::NativeId;
use super::place::Place;
use super::safepoint::Job;
use std::io;
use std::time::Duration;

/// The ticks of a thread since they were last taken.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "there are none")]
pub struct Ticks {
    pub all: u64,
    pub collecting: u64,
    pub released: u64,
    pub cpu: u64,
    pub place: Option<Place>,
}

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
