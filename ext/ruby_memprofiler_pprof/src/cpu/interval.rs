//! What the clocks say of the time between two flushes.

use crate::collector::sample_types::Columns;
use memprofiler_core::profile::ValueType;
use std::ops::AddAssign;

/// The values of one stack.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Values {
    /// Ticks.
    pub samples: f64,
    /// CPU time.
    pub nanoseconds: f64,
}

impl AddAssign for Values {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.nanoseconds += other.nanoseconds;
    }
}

impl Columns<2> for Values {
    /// In the order of [`sample_types`].
    fn columns(self) -> [f64; 2] {
        [self.samples, self.nanoseconds]
    }
}

/// Names and units of the columns, as in a CPU profile of Go.
pub fn sample_types() -> Vec<ValueType> {
    vec![ValueType::new("samples", "count"), period_type()]
}

/// What the period counts.
pub fn period_type() -> ValueType {
    ValueType::new("cpu", "nanoseconds")
}

/// An interval. All times are in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    /// The CPU time of the sampled threads.
    pub ruby: u64,
    /// The CPU time of the process, or of the sampled threads if not all are.
    pub process: u64,
    /// The names of other threads, and their CPU times.
    pub natives: Vec<(String, u64)>,
    /// When it began, by the monotonic clock.
    pub began: u64,
    /// How long it was.
    pub nanoseconds: u64,
}

impl Interval {
    /// The CPU time that no thread accounts for: of threads that have ended, and of threads' beginnings and ends.
    pub fn rest(&self) -> u64 {
        let natives: u64 = self.natives.iter().map(|(_, time)| time).sum();
        self.process.saturating_sub(self.ruby).saturating_sub(natives)
    }

    /// By how much the sampled threads' estimates have to be multiplied to have the sum that their clocks say. A thread
    /// has ticks at whole periods only; the rest of its time is known in sum but not by stack.
    pub fn scale(&self, estimated: f64) -> f64 {
        if estimated > 0.0 { self.ruby as f64 / estimated } else { 1.0 }
    }
}
