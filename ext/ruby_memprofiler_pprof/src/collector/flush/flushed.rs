//! What a flush returns.

use crate::collector::sample_types::SampleTypeNames;
use std::time::Duration;

/// A profile and how it was made.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Gzipped pprof.
    pub pprof: Vec<u8>,
    /// When it was taken, in nanoseconds since 1970.
    pub time_nanos: i64,
    /// The interval in which its allocations were made, in nanoseconds; 0 if it has not ended.
    pub duration_nanos: i64,
    /// How its values are called.
    pub sample_type_names: SampleTypeNames,
    /// Live samples in the profile.
    pub heap_samples: usize,
    /// Samples of allocations since the last flush.
    pub allocation_samples: usize,
    /// Samples removed because there were too many, since the last flush.
    pub thinned: u64,
    /// From beginning to end.
    pub duration: Duration,
    /// Encoding and compressing.
    pub serialization: Duration,
    /// Turning samples into those of the profile, in all.
    pub sample_add: Duration,
    /// The part of `sample_add` without the GVL.
    pub sample_add_without_gvl: Duration,
    /// How the GVL was held.
    pub holds: Holds,
}

/// How a flush held the GVL. A hold ends when the GVL is offered to other threads, whether one wants it or not.
#[derive(Debug, Default, Clone, Copy)]
pub struct Holds {
    /// How often it was checked whether another thread waits.
    pub checks: usize,
    /// How often other threads were let run.
    pub yields: usize,
    /// The longest time for which no other thread could run.
    pub longest: Duration,
    /// The most CPU time that the flushing thread used in a hold, apart from garbage collection.
    pub longest_cpu: Duration,
}
