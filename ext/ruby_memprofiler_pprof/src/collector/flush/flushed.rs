//! The result of a flush.

use crate::collector::sample_types::SampleTypeNames;
use std::time::Duration;

/// A profile and how it was made.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Gzipped pprof.
    pub pprof: Vec<u8>,
    /// When it was taken, in nanoseconds since 1970.
    pub time_nanos: i64,
    /// The length of the interval in which its allocations were made, in nanoseconds; 0 if it has not ended.
    pub duration_nanos: i64,
    /// The names of its columns.
    pub sample_type_names: SampleTypeNames,
    /// Live samples in the profile.
    pub heap_samples: usize,
    /// Live samples of allocations since the last flush; in a profile of CPU time all samples.
    pub allocation_samples: usize,
    /// Of how many sums the profile consists: what pprof calls its samples.
    pub sums: usize,
    /// Samples dropped because there were too many, since the last flush.
    pub thinned: u64,
    /// From beginning to end.
    pub duration: Duration,
    /// Encoding and compressing.
    pub serialization: Duration,
    /// Converting samples to those of the profile, in total.
    pub sample_add: Duration,
    /// The part of `sample_add` without the GVL.
    pub sample_add_without_gvl: Duration,
    /// How the GVL was held.
    pub holds: Holds,
}

/// How a flush held the GVL. A hold ends when the GVL is offered to other threads, whether one wants it or not.
#[derive(Debug, Default, Clone, Copy)]
pub struct Holds {
    /// The number of checks for waiting threads.
    pub checks: usize,
    /// How often other threads were allowed to run.
    pub yields: usize,
    /// The longest time during which no other thread could run.
    pub longest: Duration,
    /// The most CPU time that the flushing thread used in one hold, without garbage collection.
    pub longest_cpu: Duration,
}
