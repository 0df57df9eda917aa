//! What a collector knows.

mod bounds;
mod departures;
mod naming;
mod references;
mod samples;

use crate::collector::capture::Capture;
use crate::collector::only::Only;
use crate::collector::options::{BacktraceMethod, Options};
use crate::collector::resolve::{Names, Resolver};
use crate::collector::walker_check;
use crate::vm::mark_bits::MarkBits;
use crate::vm::names::FunctionName;
use memprofiler_core::interner::Interner;
use memprofiler_core::name_table::NameTable;
use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{ClassId, Reservoir};
use memprofiler_core::stack_tree::{StackId, StackTree};
use memprofiler_core::sums::Tally;
use naming::Naming;
use rb_sys::VALUE;
use std::sync::Arc;

pub use naming::{Pins, Progress};

/// Events since the collector was made, or since it was forked.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counters {
    /// Allocations sampled.
    pub samples: u64,
    /// Deaths that no hook told of: the address was allocated again.
    pub missed_deaths: u64,
    /// Times that there were too many stacks.
    pub stack_overflows: u64,
    /// Garbage collections that no hook told of.
    pub missed_collections: u64,
    /// Times that there was no memory for a table to grow.
    pub allocation_failures: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Times that stacks and classes were named without a flush.
    pub namings: u64,
    /// Times that the tally had too many entries.
    pub class_overflows: u64,
}

/// References to be given up.
#[derive(Debug, Default)]
pub struct Leftovers {
    pub stacks: Vec<StackId>,
    pub classes: Vec<ClassId>,
}

/// The profiler's data. Everything here runs without allocating on Ruby's heap, so also in hooks.
#[derive(Debug)]
pub struct State {
    pub options: Options,
    /// The most frames to store, as `max_stack_bytes` allows.
    max_stack_nodes: usize,
    /// How many there may be before the next attempt to store fewer; more than the most at times while a flush is under
    /// way.
    stack_limit: usize,
    /// How stacks are read, which depends on what the VM allows.
    pub method: BacktraceMethod,
    /// The live samples. It is never replaced: the hook counts its countdown.
    pub reservoir: Reservoir,
    pub capture: Capture,
    /// How deaths are noticed; None is by FREEOBJ.
    pub mark_bits: Option<MarkBits>,
    pub classes: Interner<u64>,
    pub tally: Tally,
    /// Who wants to be told of allocations; the first always does.
    pub readers: Readers,
    /// The readers that went while a flush was under way, which may hold what they have not been told.
    removed: Readers,
    /// The Thread of the flush under way. It is pinned as long as it lives.
    flushing: Option<VALUE>,
    /// What the flush under way, or else `naming`, holds.
    pub resolver: Resolver,
    /// What is named without a flush.
    pub naming: Naming,
    /// How many entries the tally may have.
    tally_limit: usize,
    /// Whose allocations are sampled.
    pub only: Only,
    pub function_names: NameTable<FunctionName>,
    pub class_names: NameTable<str>,
    pub counters: Counters,
    /// The class found last, which the next object probably has too.
    latest_class: Option<(u64, ClassId)>,
    /// References that the last flush did not take the time to give up.
    pub leftovers: Leftovers,
    /// How many samples had been removed by halving when the first reader was last told.
    pub thinned_told: u64,
    /// How long marking took, in nanoseconds, in the garbage collection with this number.
    pub last_mark: (u64, u32),
}

impl State {
    pub fn new(options: Options, seed: u64) -> Self {
        let mut function_names = NameTable::new();
        let mut pseudo = |name| function_names.id(Arc::new(FunctionName::pseudo(name)));
        let (truncated, lost) = (pseudo("(truncated)"), pseudo("(stack not kept)"));
        let mut state = Self {
            reservoir: Reservoir::new(options.sample_rate, options.max_heap_samples, seed),
            max_stack_nodes: 0,
            stack_limit: 0,
            method: options.bt_method,
            options: options.clone(),
            capture: Capture::new(truncated, lost),
            mark_bits: None,
            classes: Interner::new(),
            tally: Tally::new(),
            readers: Readers::only(0),
            removed: Readers::NONE,
            flushing: None,
            resolver: Resolver::default(),
            naming: Naming::default(),
            tally_limit: bounds::MOST_ENTRIES,
            only: Only::All,
            function_names,
            class_names: NameTable::new(),
            counters: Counters::default(),
            latest_class: None,
            leftovers: Leftovers::default(),
            thinned_told: 0,
            last_mark: (0, 0),
        };
        state.configure(options);
        state
    }

    /// Puts options in force, except rate and seed.
    pub fn configure(&mut self, options: Options) {
        self.reservoir.set_bound(options.max_heap_samples);
        self.capture.max_frames = options.max_frames;
        self.max_stack_nodes = options.max_stack_bytes / StackTree::BYTES_PER_NODE;
        self.stack_limit = self.max_stack_nodes;
        self.method = walker_check::usable(options.bt_method);
        self.options = options;
    }

    /// To be called when a flush begins; [`end_flush`](Self::end_flush) must follow.
    /// Returns what was named ahead, which is of no use to a flush.
    pub fn begin_flush(&mut self, thread: VALUE) -> Names {
        self.flushing = Some(thread);
        self.reservoir.begin_round();
        self.naming = Naming::default();
        self.leave_to_next()
    }

    /// To be called when a flush has given back what it held.
    pub fn end_flush(&mut self) {
        self.flushing = None;
        self.removed = Readers::NONE;
        self.stack_limit = self.max_stack_nodes;
        self.tally_limit = bounds::MOST_ENTRIES;
    }

    /// In a forked child: gives back what a flush held whose thread has not come through the fork.
    pub fn forget_flush_of_others(&mut self, current: VALUE) {
        if self.flushing.is_some_and(|thread| thread != current) {
            self.release_held();
            self.end_flush();
        }
    }

    /// Counts no allocation made so far: for a forked child, whose parent reports them.
    pub fn forget_allocations(&mut self) {
        self.reservoir.samples_mut().for_each(|sample| sample.unreported = Readers::NONE);
        for ((stack, class, _), _) in std::mem::take(&mut self.tally).into_entries() {
            self.release(stack, class);
        }
        self.thinned_told = self.reservoir.thinned();
    }

    /// Takes up one more reader, who is told of the allocations from now on. None if there are too many.
    pub fn add_reader(&mut self) -> Option<usize> {
        let number = self.readers.with(self.removed).free()?;
        self.readers = self.readers.with(Readers::only(number));
        Some(number)
    }

    /// Forgets a reader, and what it has not been told.
    pub fn remove_reader(&mut self, reader: Readers) {
        self.readers = self.readers.without(reader);
        if self.flushing.is_some() {
            self.removed = self.removed.with(reader);
        }
        self.reservoir.samples_mut().for_each(|sample| sample.unreported = sample.unreported.without(reader));
        for ((stack, class, readers), allocated) in std::mem::take(&mut self.tally).into_entries() {
            match readers.without(reader) {
                Readers::NONE => self.release(stack, class),
                others => self.count_allocated((stack, class, others), allocated),
            }
        }
    }

    /// Forgets all samples and allocations not yet reported, and with them all stacks and names.
    pub fn clear(&mut self) {
        let mut empty = Self::new(self.options.clone(), 0);
        std::mem::swap(&mut self.reservoir, &mut empty.reservoir);
        empty.reservoir.clear(true);
        empty.thinned_told = empty.reservoir.thinned();
        (empty.mark_bits, empty.counters, empty.last_mark) = (self.mark_bits, self.counters, self.last_mark);
        (empty.readers, empty.only) = (self.readers, self.only);
        (empty.removed, empty.flushing) = (self.removed, self.flushing);
        empty.capture.label_overflows = self.capture.label_overflows;
        *self = empty;
    }

    /// Bytes held in all.
    pub fn bytes(&self) -> usize {
        self.reservoir.live().bytes()
            + self.capture.bytes()
            + self.classes.bytes()
            + self.tally.bytes()
            + self.name_bytes()
    }

    /// Bytes held by names.
    pub fn name_bytes(&self) -> usize {
        self.function_names.bytes(|name| size_of::<FunctionName>() + name.name.len() + name.file.len())
            + self.class_names.bytes(str::len)
    }
}
