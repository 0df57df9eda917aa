//! What a collector knows.

mod bounds;
mod departures;
mod naming;
mod peak;
mod samples;

use crate::collector::only::Only;
use crate::collector::options::{Liveness, Options};
use crate::collector::sites::{Names, Sites};
use crate::collector::stacks::Settings;
use crate::collector::totals::Baseline;
use crate::collector::{backtrace_job, walker_check};
use crate::vm::mark_bits::MarkBits;
use memprofiler_core::peak::Peak;
use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::Reservoir;
use memprofiler_core::stack_tree::StackTree;
use memprofiler_core::sums::{Tally, TallyKey};
use naming::Naming;
use rb_sys::VALUE;

pub use naming::Progress;

/// How many entries, samples or references a step of naming processes.
const STRIDE: usize = 64;

/// Events since the collector was made, or since it was forked.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counters {
    /// Allocations sampled.
    pub samples: u64,
    /// Deaths that no hook reported: the address was allocated again.
    pub missed_deaths: u64,
    /// How often there were too many stacks.
    pub stack_overflows: u64,
    /// Garbage collections that no hook reported.
    pub missed_collections: u64,
    /// How often there was no memory for a table to grow.
    pub allocation_failures: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// How often stacks and classes were named without a flush.
    pub namings: u64,
    /// How often the tally had too many entries.
    pub class_overflows: u64,
}

/// The profiler's data. Nothing here allocates on Ruby's heap, so all of it can run in hooks.
#[derive(Debug)]
pub struct State {
    pub options: Options,
    /// The live samples. Never replaced: the hook counts its countdown.
    pub reservoir: Reservoir,
    /// What samples and tally refer to.
    pub sites: Sites,
    /// How deaths are noticed; None stands for FREEOBJ.
    pub mark_bits: Option<MarkBits>,
    pub tally: Tally,
    /// The live set when the process had the most memory, if that is tracked.
    pub peak: Peak,
    /// The current readers; the first one is always there.
    pub readers: Readers,
    /// Readers removed during the current flush, which may hold unreported allocations of theirs.
    removed: Readers,
    /// For each reader, at least the weight of samples that have died since its last flush, and of which the reservoir
    /// may have forgotten the probabilities.
    past_weights: [f64; Readers::MOST],
    /// The Thread of the current flush. It is pinned as long as it lives.
    flushing: Option<VALUE>,
    /// The progress of naming without a flush.
    naming: Naming,
    /// How many entries the tally may have at least, since classes were merged.
    merged_limit: usize,
    /// Whose allocations are sampled.
    pub only: Only,
    /// The process's totals at the start.
    pub baseline: Option<Baseline>,
    pub counters: Counters,
    /// The number of samples dropped by halving at the last report to the first reader.
    pub thinned_reported: u64,
    /// How long marking took, in nanoseconds, in the garbage collection with this number.
    pub last_mark: (u64, u32),
}

impl State {
    pub fn new(options: Options, seed: u64) -> Self {
        Self {
            reservoir: Reservoir::new(options.sample_rate, options.max_heap_samples, seed),
            sites: Sites::new(stack_settings(&options), backtrace_job::run),
            options,
            mark_bits: None,
            tally: Tally::new(),
            peak: Peak::default(),
            readers: Readers::only(0),
            removed: Readers::NONE,
            past_weights: [1.0; Readers::MOST],
            flushing: None,
            naming: Naming::default(),
            merged_limit: 0,
            only: Only::All,
            baseline: None,
            counters: Counters::default(),
            thinned_reported: 0,
            last_mark: (0, 0),
        }
    }

    /// Applies options, except rate and seed.
    pub fn configure(&mut self, options: Options) {
        self.reservoir.set_bound(options.max_heap_samples);
        self.sites.stacks.configure(stack_settings(&options));
        self.options = options;
        if !self.options.track_peak {
            self.forget_peak();
        }
    }

    /// Must be called when a flush begins, and be followed by [`end_flush`](Self::end_flush). Returns what was named
    /// ahead, which a flush cannot use.
    pub fn begin_flush(&mut self, thread: VALUE) -> Names {
        self.flushing = Some(thread);
        self.reservoir.begin_round();
        self.naming = Naming::default();
        self.sites.begin_flush()
    }

    /// Must be called when a flush has ended: returns what it held. Does nothing for one that failed before it began:
    /// what is held then may be a naming's that goes on.
    pub fn end_flush(&mut self) {
        if self.flushing.take().is_some() {
            self.sites.release_held();
            self.removed = Readers::NONE;
            self.merged_limit = 0;
        }
    }

    /// Must be called when a flush for that reader, or without one, has succeeded.
    pub fn end_round(&mut self, reader: Option<usize>) {
        let weight = self.reservoir.greatest_weight();
        for (number, past) in self.past_weights.iter_mut().enumerate() {
            *past = if reader == Some(number) { 1.0 } else { past.max(weight) };
        }
        self.reservoir.end_round();
        self.reservoir.recover_rate(!self.tally.is_empty());
    }

    /// The largest number of objects that a sample stands for, of those that the next flush for that reader can report;
    /// see [`Reservoir::greatest_weight`].
    pub fn greatest_weight(&self, reader: usize) -> f64 {
        self.reservoir.greatest_weight().max(self.past_weights[reader])
    }

    /// For a forked child: returns what was held by a flush whose thread did not survive the fork.
    pub fn forget_flush_of_others(&mut self, current: VALUE) {
        if self.flushing.is_some_and(|thread| thread != current) {
            self.end_flush();
        }
    }

    /// Forgets all allocations so far: for a forked child, whose parent reports them.
    pub fn forget_allocations(&mut self) {
        self.reservoir.samples_mut().for_each(|sample| sample.unreported = Readers::NONE);
        for (key, _) in std::mem::take(&mut self.tally).into_entries() {
            self.sites.release(key.stack, key.class);
        }
        self.thinned_reported = self.reservoir.thinned();
        self.past_weights = [1.0; Readers::MOST];
    }

    /// Adds a reader, which sees the allocations from now on. None if there are too many.
    pub fn add_reader(&mut self) -> Option<usize> {
        let number = self.readers.with(self.removed).free()?;
        self.readers = self.readers.with(Readers::only(number));
        self.past_weights[number] = 1.0;
        Some(number)
    }

    /// Removes a reader, and its unreported allocations.
    pub fn remove_reader(&mut self, reader: Readers) {
        self.readers = self.readers.without(reader);
        if self.flushing.is_some() {
            self.removed = self.removed.with(reader);
        }
        self.reservoir.samples_mut().for_each(|sample| sample.unreported = sample.unreported.without(reader));
        for (key, allocated) in std::mem::take(&mut self.tally).into_entries() {
            match key.readers.without(reader) {
                Readers::NONE => self.sites.release(key.stack, key.class),
                readers => self.count_allocated(TallyKey { readers, ..key }, allocated),
            }
        }
    }

    /// Forgets all samples and all unreported allocations, and with them all stacks and names.
    pub fn clear(&mut self) {
        self.reservoir.clear(true);
        self.thinned_reported = self.reservoir.thinned();
        self.past_weights = [1.0; Readers::MOST];
        self.tally = Tally::new();
        self.peak = Peak::default();
        self.merged_limit = 0;
        self.naming = Naming::default();
        self.sites.clear();
        self.reservoir.recover_rate(false);
    }

    /// How deaths are noticed.
    pub fn liveness(&self) -> Liveness {
        if self.mark_bits.is_some() { Liveness::MarkBits } else { Liveness::FreeObject }
    }

    /// Bytes held in total.
    pub fn bytes(&self) -> usize {
        self.reservoir.live().bytes() + self.tally.bytes() + self.peak.bytes() + self.sites.bytes()
    }
}

/// How to read stacks, as far as the VM allows it.
fn stack_settings(options: &Options) -> Settings {
    Settings {
        method: walker_check::usable(options.bt_method),
        max_frames: options.max_frames,
        max_nodes: options.max_stack_bytes / StackTree::BYTES_PER_NODE,
    }
}
