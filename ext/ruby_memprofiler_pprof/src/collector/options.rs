//! The options of a collector, already validated.

use super::sample_types::SampleTypeNames;
pub use super::stacks::BacktraceMethod;
use memprofiler_core::reservoir::Reservoir;
use std::sync::Arc;
use std::time::Duration;

/// When the hook on allocations is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// In windows where they pay, else always.
    Auto,
    /// All the time.
    Always,
    /// In one randomly placed window of each frame.
    Windows,
}

impl Sampling {
    /// The symbol that users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Windows => "windows",
        }
    }
}

/// How deaths are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// The best way on this Ruby.
    Auto,
    /// By a hook that the GC calls for each object that it frees.
    FreeObject,
    /// By checking, at the end of each mark phase, which of the sampled objects are marked.
    MarkBits,
}

impl Liveness {
    /// The symbol that users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::FreeObject => "freeobj",
            Self::MarkBits => "mark_bits",
        }
    }
}

/// See `Collector.new` for what each means to the user.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "named as the keywords of Collector.new, which documents them")]
pub struct Options {
    pub sample_rate: f64,
    pub sampling: Sampling,
    pub window_frame: Option<Duration>,
    pub window_duty: f64,
    pub max_sampling_time: f64,
    pub max_heap_samples: usize,
    pub track_allocations: bool,
    pub bt_method: BacktraceMethod,
    pub liveness: Liveness,
    pub max_frames: usize,
    pub max_stack_bytes: usize,
    pub object_class: bool,
    pub object_age: bool,
    pub labels: bool,
    pub thread_names: bool,
    pub track_peak: bool,
    pub pretty_backtraces: bool,
    pub sample_type_names: SampleTypeNames,
    pub seed: Option<u64>,
    /// Names and values that profiles list as comments.
    pub tags: Arc<[(String, String)]>,
}

impl Options {
    /// The maximum of `max_heap_samples`.
    pub const MAX_HEAP_SAMPLES: usize = Reservoir::MAX_SAMPLES;
    /// The maximum of `max_frames`.
    pub const MAX_FRAMES: usize = 100_000;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sample_rate: 0.01,
            sampling: Sampling::Auto,
            window_frame: None,
            window_duty: 0.03,
            max_sampling_time: 0.002,
            max_heap_samples: 50_000,
            track_allocations: true,
            bt_method: BacktraceMethod::ControlFrames,
            liveness: Liveness::Auto,
            max_frames: 1000,
            max_stack_bytes: 64 << 20,
            object_class: true,
            object_age: false,
            labels: true,
            thread_names: false,
            track_peak: false,
            pretty_backtraces: true,
            sample_type_names: SampleTypeNames::Ruby,
            seed: None,
            tags: Arc::default(),
        }
    }
}
