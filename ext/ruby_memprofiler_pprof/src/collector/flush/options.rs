//! How to flush.

use crate::collector::sample_types::{DefaultType, SampleTypeNames};
use memprofiler_core::readers::Readers;
use std::time::Duration;

/// See `Collector#flush`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named as the keywords of Collector#flush, which documents them")]
pub struct FlushOptions {
    pub yield_gvl: bool,
    pub proactively_yield_gvl: bool,
    pub gc: bool,
    pub min_age: u32,
    pub max_hold: Duration,
    pub max_duration: Duration,
    /// None reports what the first reader would get, without ending its interval.
    pub reader: Option<usize>,
    /// None stands for the collector's option.
    pub sample_type_names: Option<SampleTypeNames>,
    pub default_sample_type: DefaultType,
}

impl Default for FlushOptions {
    fn default() -> Self {
        Self {
            yield_gvl: true,
            proactively_yield_gvl: true,
            gc: false,
            min_age: 0,
            max_hold: Duration::from_micros(500),
            max_duration: Duration::from_secs(10),
            reader: Some(0),
            sample_type_names: None,
            default_sample_type: DefaultType::default(),
        }
    }
}

impl FlushOptions {
    /// The readers whose allocations are reported.
    pub fn reader(&self) -> Readers {
        Readers::only(self.reader.unwrap_or(0))
    }
}
