//! `Collector#stats` and what else gives figures of the profiler itself.

use super::collector::{RubyCollector, is_running};
use crate::collector::walker_check;
use magnus::typed_data::Obj;
use magnus::{Error, RClass, RHash, Ruby, method, prelude::*};

/// Defines the methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_method("live_heap_samples_count", method!(live_heap_samples_count, 0))?;
    class.define_method("last_mark_nsecs", method!(last_mark_nsecs, 0))?;
    class.define_method("mark_table_size", method!(mark_table_size, 0))?;
    class.define_method("stats", method!(stats, 0))
}

fn live_heap_samples_count(this: Obj<RubyCollector>) -> usize {
    this.collector.statistics().live_samples
}

fn last_mark_nsecs(this: Obj<RubyCollector>) -> u64 {
    this.collector.statistics().last_mark_nsecs
}

fn mark_table_size(this: Obj<RubyCollector>) -> usize {
    this.collector.statistics().mark_table_size
}

fn stats(ruby: &Ruby, this: Obj<RubyCollector>) -> Result<RHash, Error> {
    let stats = this.collector.statistics();
    let hash = ruby.hash_new();
    hash.aset(ruby.to_symbol("running"), is_running(this))?;
    hash.aset(ruby.to_symbol("bt_method"), ruby.to_symbol(stats.bt_method.name()))?;
    hash.aset(ruby.to_symbol("liveness"), ruby.to_symbol(stats.liveness.name()))?;
    hash.aset(ruby.to_symbol("sampling"), ruby.to_symbol(stats.sampling.name()))?;
    hash.aset(ruby.to_symbol("sampling_reason"), stats.sampling.reason)?;
    hash.aset(ruby.to_symbol("windows"), stats.windows.opened)?;
    hash.aset(ruby.to_symbol("window_frame"), stats.windows.frame)?;
    let toggle = stats.windows.direct.map(|direct| ruby.to_symbol(if direct { "timer" } else { "safe_point" }));
    hash.aset(ruby.to_symbol("window_toggle"), toggle)?;
    hash.aset(ruby.to_symbol("window_coverage"), stats.windows.coverage)?;
    hash.aset(ruby.to_symbol("late_windows"), stats.windows.late)?;
    hash.aset(ruby.to_symbol("hook_cost_nsecs"), stats.windows.hook_cost)?;
    hash.aset(ruby.to_symbol("walker_failure"), walker_check::failure())?;
    hash.aset(ruby.to_symbol("disarmed"), stats.disarmed)?;
    hash.aset(ruby.to_symbol("failure"), this.collector.failure())?;
    hash.aset(ruby.to_symbol("effective_sample_rate"), stats.effective_sample_rate)?;
    hash.aset(ruby.to_symbol("live_samples"), stats.live_samples)?;
    hash.aset(ruby.to_symbol("samples"), stats.counters.samples)?;
    hash.aset(ruby.to_symbol("thinned_samples"), stats.thinned)?;
    hash.aset(ruby.to_symbol("halvings"), stats.halvings)?;
    hash.aset(ruby.to_symbol("missed_deaths"), stats.counters.missed_deaths)?;
    hash.aset(ruby.to_symbol("stack_overflows"), stats.counters.stack_overflows)?;
    hash.aset(ruby.to_symbol("allocation_failures"), stats.counters.allocation_failures)?;
    hash.aset(ruby.to_symbol("missed_collections"), stats.counters.missed_collections)?;
    hash.aset(ruby.to_symbol("contended"), stats.contended)?;
    hash.aset(ruby.to_symbol("stack_ends"), stats.stack_ends)?;
    hash.aset(ruby.to_symbol("flushes"), stats.counters.flushes)?;
    hash.aset(ruby.to_symbol("unreported_entries"), stats.unreported_entries)?;
    hash.aset(ruby.to_symbol("stack_nodes"), stats.stack_nodes)?;
    hash.aset(ruby.to_symbol("functions"), stats.functions)?;
    hash.aset(ruby.to_symbol("pinned_functions"), stats.pinned_functions)?;
    hash.aset(ruby.to_symbol("pinned_classes"), stats.pinned_classes)?;
    hash.aset(ruby.to_symbol("namings"), stats.counters.namings)?;
    hash.aset(ruby.to_symbol("class_overflows"), stats.counters.class_overflows)?;
    hash.aset(ruby.to_symbol("label_sets"), stats.label_sets)?;
    hash.aset(ruby.to_symbol("label_overflows"), stats.label_overflows)?;
    hash.aset(ruby.to_symbol("exemplars"), stats.exemplars)?;
    hash.aset(ruby.to_symbol("live_set_bytes"), stats.live_set_bytes)?;
    hash.aset(ruby.to_symbol("stack_bytes"), stats.stack_bytes)?;
    hash.aset(ruby.to_symbol("name_bytes"), stats.name_bytes)?;
    hash.aset(ruby.to_symbol("tally_bytes"), stats.tally_bytes)?;
    hash.aset(ruby.to_symbol("bytes"), stats.bytes)?;
    hash.aset(ruby.to_symbol("peak_rss_bytes"), stats.peak_rss_bytes)?;
    hash.aset(ruby.to_symbol("tracked_peak_rss_bytes"), stats.tracked_peak_rss_bytes)?;
    Ok(hash)
}
