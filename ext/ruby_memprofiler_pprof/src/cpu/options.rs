//! What a sampler does.

use std::time::Duration;

/// Which threads are sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threads {
    /// All, also those that begin later; up to Ruby 3.2 those of the main Ractor.
    #[default]
    All,
    /// Those given to the start.
    These,
}

/// See `MemprofilerPprof::CPU.start`.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The CPU time of a thread between two ticks.
    pub period: Duration,
    /// Whether labels are recorded.
    pub labels: bool,
    /// Whether each thread's name is a label.
    pub thread_names: bool,
    /// Which threads are sampled.
    pub threads: Threads,
    /// The signal of the timers.
    pub signal: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self { period: Duration::from_millis(10), labels: true, thread_names: false, threads: Threads::All, signal: 0 }
    }
}
