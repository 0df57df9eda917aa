//! A collector's own statistics.

use super::Collector;
use super::options::{BacktraceMethod, Liveness};
use super::sampling::Choice;
use super::sites::Sites;
use super::state::{Counters, State};
use crate::vm::resident;
use magnus::{Error, Module, Ruby};
use std::sync::atomic::Ordering;

/// What sampling in windows has done since the collector was made, or since it was forked.
#[derive(Debug, Default, Clone, Copy)]
pub struct WindowFigures {
    /// Windows opened.
    pub opened: u64,
    /// In how much of the program's CPU time one opens, in seconds; None if windows are not used.
    pub frame: Option<f64>,
    /// Whether the timer opens and closes them itself, rather than jobs at safe points; None if they are not used.
    pub direct: Option<bool>,
    /// The fraction of the time that they cover, as estimated; None if windows are not used.
    pub coverage: Option<f64>,
    /// Windows that closed after more than a millisecond of CPU time too many, since no safe point came in time.
    pub late: u64,
    /// What the hook costs per object in nanoseconds, as estimated; None if windows are not used.
    pub hook_cost: Option<f64>,
}

/// A snapshot of a collector's figures; see `Collector#stats`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "documented where they become a Hash")]
pub struct Statistics {
    pub bt_method: BacktraceMethod,
    pub liveness: Liveness,
    pub sampling: Choice,
    pub windows: WindowFigures,
    pub effective_sample_rate: f64,
    pub live_samples: usize,
    pub unreported_entries: usize,
    pub counters: Counters,
    pub thinned: u64,
    pub halvings: u64,
    pub contended: u64,
    pub stack_ends: u64,
    pub stack_nodes: usize,
    pub functions: usize,
    pub pinned_functions: usize,
    pub pinned_classes: usize,
    pub label_sets: usize,
    pub label_overflows: u64,
    pub exemplars: usize,
    pub live_set_bytes: usize,
    pub stack_bytes: usize,
    pub name_bytes: usize,
    pub tally_bytes: usize,
    pub bytes: usize,
    pub peak_rss_bytes: Option<u64>,
    pub tracked_peak_rss_bytes: Option<u64>,
    pub last_mark_nsecs: u64,
    pub mark_table_size: usize,
    pub disarmed: Option<&'static str>,
}

impl Collector {
    /// The collector's figures now.
    pub fn statistics(&self) -> Statistics {
        let [contended, stack_ends] = [&self.contended, &self.stack_ends].map(|count| count.load(Ordering::Relaxed));
        let (sampling, windows, disarmed) = (self.sampling(), self.window_figures(), self.disarmed.get());
        let highest = resident::highest();
        self.state.with(|state| {
            let tracked_peak_rss_bytes = state.peak.kept().map(|kept| kept.resident);
            let Sites { stacks, classes, .. } = &state.sites;
            Statistics {
                bt_method: stacks.method(),
                liveness: state.liveness(),
                sampling,
                windows,
                effective_sample_rate: state.reservoir.effective_rate(),
                live_samples: state.reservoir.live().len(),
                unreported_entries: state.tally.len(),
                counters: state.counters,
                thinned: state.reservoir.thinned(),
                halvings: state.reservoir.halvings(),
                contended,
                stack_ends,
                stack_nodes: stacks.node_count(),
                functions: stacks.function_count(),
                pinned_functions: stacks.unnamed_count(),
                pinned_classes: classes.references().count(),
                label_sets: stacks.label_set_count(),
                label_overflows: stacks.label_overflows(),
                exemplars: stacks.exemplar_count(),
                live_set_bytes: state.reservoir.live().bytes(),
                stack_bytes: stacks.bytes(),
                name_bytes: state.sites.name_bytes(),
                tally_bytes: state.tally.bytes(),
                bytes: state.bytes(),
                peak_rss_bytes: highest.max(tracked_peak_rss_bytes),
                tracked_peak_rss_bytes,
                last_mark_nsecs: state.last_mark.0,
                mark_table_size: state.sites.reference_count(),
                disarmed,
            }
        })
    }
}

/// The Ruby that wrote a profile, as a comment for its reader.
pub fn ruby_description(ruby: &Ruby) -> Result<String, Error> {
    let object = ruby.class_object();
    let (engine, version): (String, String) = (object.const_get("RUBY_ENGINE")?, object.const_get("RUBY_VERSION")?);
    let platform: String = object.const_get("RUBY_PLATFORM")?;
    Ok(format!("{engine} {version} ({platform})"))
}

/// The process's tags, as comments.
pub fn tag_comments(tags: &[(String, String)]) -> impl Iterator<Item = String> + '_ {
    tags.iter().map(|(name, value)| format!("tag.{name}={value}"))
}

/// What a reader of a profile must know about how it was made, with samples of at most that weight.
pub fn remarks(state: &State, sampling: Choice, greatest_weight: f64) -> Vec<String> {
    let mut remarks = vec![
        format!("ruby_memprofiler_pprof {}", env!("CARGO_PKG_VERSION")),
        format!("sample_rate={}", state.reservoir.effective_rate()),
        format!("sampling={}: {}", sampling.name(), sampling.reason),
        format!("greatest_weight={greatest_weight}"),
        format!("max_heap_samples={}", state.options.max_heap_samples),
        format!("bt_method={}", state.sites.stacks.method().name()),
        format!("liveness={}", state.liveness().name()),
    ];
    remarks.extend(tag_comments(&state.options.tags));
    let thinned = state.thinned_since_flush();
    if thinned > 0 {
        remarks.push(format!("thinned_samples={thinned}"));
    }
    if state.counters.missed_collections > 0 {
        let missed = state.counters.missed_collections;
        remarks
            .push(format!("missed_collections={missed}: earlier live samples were dropped, since some may have died"));
    }
    if state.counters.stack_overflows > 0 {
        remarks.push(format!("stack_overflows={}", state.counters.stack_overflows));
    }
    if state.counters.class_overflows > 0 {
        remarks.push(format!("class_overflows={}", state.counters.class_overflows));
    }
    let label_overflows = state.sites.stacks.label_overflows();
    if label_overflows > 0 {
        remarks.push(format!("label_overflows={label_overflows}"));
    }
    if state.counters.allocation_failures > 0 {
        let failures = state.counters.allocation_failures;
        remarks.push(format!(
            "allocation_failures={failures}: the profiler ran short of memory and left out some objects"
        ));
    }
    if state.counters.missed_deaths > 0 {
        remarks.push(format!("missed_deaths={}", state.counters.missed_deaths));
    }
    remarks
}
