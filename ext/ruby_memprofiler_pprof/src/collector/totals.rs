//! The process's totals, which show how much of it a profile explains.

use crate::vm::resident;
use magnus::{Error, Module, RHash, RModule, Ruby};
use std::time::{SystemTime, UNIX_EPOCH};

/// The VM's figures that go into a profile. Some garbage collectors lack some of them.
const STATISTICS: [&str; 6] = [
    "heap_live_slots",
    "total_allocated_objects",
    "malloc_increase_bytes",
    "oldmalloc_increase_bytes",
    "minor_gc_count",
    "major_gc_count",
];

/// The totals when a collector began.
#[derive(Debug, Clone, Copy)]
pub struct Baseline {
    time: SystemTime,
    live_slots: Option<usize>,
}

impl Baseline {
    /// The current totals.
    pub fn take(ruby: &Ruby) -> Self {
        Self { time: SystemTime::now(), live_slots: ruby.gc_stat("heap_live_slots").ok() }
    }
}

/// Which process it is, and what it had at the start, as `key=value`. Leaves out what is unknown. Needs no GVL.
pub fn origin(baseline: Option<Baseline>) -> Vec<String> {
    let mut remarks = vec![format!("pid={}", std::process::id())];
    if let Some(Baseline { time, live_slots }) = baseline {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        remarks.push(format!("started_at={seconds:.3}"));
        remarks.extend(live_slots.map(|slots| format!("live_slots_at_start={slots}")));
    }
    remarks
}

/// The current totals, as `key=value`. Leaves out what is unknown. The kernel's own figure of the peak may be a little
/// below the bytes that were resident at the `tracked` one.
pub fn remarks(ruby: &Ruby, baseline: Option<Baseline>, tracked: Option<u64>) -> Vec<String> {
    let mut remarks = origin(baseline);
    let statistics = STATISTICS.iter().filter_map(|&name| Some((name, ruby.gc_stat(name).ok()?)));
    remarks.extend(statistics.map(|(name, value)| format!("{name}={value}")));
    let pages = ruby.gc_stat("heap_allocated_pages").ok().zip(page_size(ruby).ok());
    remarks.extend(pages.map(|(pages, size)| format!("heap_bytes={}", pages * size)));
    remarks.extend(resident::now().map(|bytes| format!("rss_bytes={bytes}")));
    remarks.extend(resident::highest().max(tracked).map(|bytes| format!("peak_rss_bytes={bytes}")));
    remarks
}

/// The size of a page of Ruby's heap.
fn page_size(ruby: &Ruby) -> Result<usize, Error> {
    let gc: RModule = ruby.class_object().const_get("GC")?;
    gc.const_get::<_, RHash>("INTERNAL_CONSTANTS")?.fetch(ruby.to_symbol("HEAP_PAGE_SIZE"))
}
