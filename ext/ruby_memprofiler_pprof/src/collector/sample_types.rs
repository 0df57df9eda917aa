//! The columns of a heap profile: what is counted for each sample, and under which names.

use memprofiler_core::profile::ValueType;
use std::ops::AddAssign;

/// The values of one sample, each an estimate for the whole program. Floats, so that they are rounded only once, in the
/// sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Values {
    /// Objects allocated in the interval.
    pub allocations: f64,
    /// Their bytes.
    pub allocated_bytes: f64,
    /// Objects alive.
    pub retained: f64,
    /// Their bytes.
    pub retained_bytes: f64,
}

/// What a profile counts for each of its samples, in `N` columns.
pub trait Columns<const N: usize>: Copy + Default + AddAssign {
    /// In the order of the profile's sample types.
    fn columns(self) -> [f64; N];
}

impl Columns<4> for Values {
    /// In the order of [`SampleTypeNames::types`].
    fn columns(self) -> [f64; 4] {
        [self.allocations, self.allocated_bytes, self.retained, self.retained_bytes]
    }
}

impl AddAssign for Values {
    fn add_assign(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.allocated_bytes += other.allocated_bytes;
        self.retained += other.retained;
        self.retained_bytes += other.retained_bytes;
    }
}

/// The names of the four columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SampleTypeNames {
    /// `allocations`, `allocations_size`, `retained_objects`, `retained_size`.
    #[default]
    Ruby,
    /// `alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space`, which some servers know from Go.
    Go,
}

impl SampleTypeNames {
    /// Names and units of the columns: speedscope opens with the last one.
    pub fn types(self) -> [ValueType; 4] {
        let [allocations, allocated_bytes, retained, retained_bytes] = match self {
            Self::Ruby => ["allocations", "allocations_size", "retained_objects", "retained_size"],
            Self::Go => ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"],
        };
        [
            ValueType::new(allocations, "count"),
            ValueType::new(allocated_bytes, "bytes"),
            ValueType::new(retained, "count"),
            ValueType::new(retained_bytes, "bytes"),
        ]
    }

    /// The type of the period. Parca and Pyroscope build the names of series from Go's `space`/`bytes`.
    pub fn period_type(self) -> ValueType {
        match self {
            Self::Ruby => ValueType::new("allocations", "count"),
            Self::Go => ValueType::new("space", "bytes"),
        }
    }
}

/// The column that a viewer shows first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultType {
    Allocations,
    AllocationsSize,
    RetainedObjects,
    #[default]
    RetainedSize,
}
