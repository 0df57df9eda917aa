//! What a collector knows.

mod bounds;
mod references;
mod samples;

use crate::collector::capture::Capture;
use crate::collector::only::Only;
use crate::collector::options::{BacktraceMethod, Options};
use crate::collector::walker;
use crate::vm::marks::Marks;
use crate::vm::names::FunctionName;
use memprofiler_core::interner::Interner;
use memprofiler_core::live_set::{ClassId, LiveSet, RateId};
use memprofiler_core::name_table::NameTable;
use memprofiler_core::rates::RateTable;
use memprofiler_core::readers::Readers;
use memprofiler_core::sampler::Sampler;
use memprofiler_core::stack_tree::{StackId, StackTree};
use memprofiler_core::tally::Tally;
use std::sync::Arc;

/// Events since the collector was made, or since it was forked.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counters {
    /// Allocations sampled.
    pub samples: u64,
    /// Live samples removed because there were too many.
    pub thinned: u64,
    /// Times that the live samples were halved.
    pub halvings: u64,
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
    pub sampler: Sampler,
    pub rates: RateTable,
    /// The probability of the samples taken now.
    rate: RateId,
    pub capture: Capture,
    pub live: LiveSet,
    /// How deaths are noticed; None is by FREEOBJ.
    pub marks: Option<Marks>,
    pub classes: Interner<u64>,
    pub tally: Tally,
    /// Who wants to be told of allocations; the first always does.
    pub readers: Readers,
    /// The readers that went while a flush was under way, which may hold what they have not been told.
    gone: Readers,
    /// Whether a flush is under way.
    flushing: bool,
    /// Whose allocations are sampled.
    pub only: Only,
    pub function_names: NameTable<FunctionName>,
    pub class_names: NameTable<str>,
    /// The number of the last flush, modulo 256; see [`seen`](memprofiler_core::live_set::Sample::seen).
    pub flush_number: u8,
    pub counters: Counters,
    /// The class found last, which the next object probably has too.
    latest_class: Option<(u64, ClassId)>,
    /// References that the last flush did not take the time to give up.
    pub leftovers: Leftovers,
    /// Samples removed by halving since the last flush.
    pub thinned_since_flush: u64,
    /// How long marking took, in nanoseconds, in the garbage collection with this number.
    pub last_mark: (u64, u32),
}

impl State {
    pub fn new(options: Options, seed: u64) -> Self {
        let mut function_names = NameTable::new();
        let mut pseudo = |name| function_names.id(Arc::new(FunctionName::pseudo(name)));
        let (truncated, lost) = (pseudo("(truncated)"), pseudo("(stack not kept)"));
        let mut rates = RateTable::default();
        let rate = rates.id(options.sample_rate).unwrap_or(RateId(0));
        let mut state = Self {
            sampler: Sampler::new(options.sample_rate, seed),
            max_stack_nodes: 0,
            stack_limit: 0,
            method: options.bt_method,
            options: options.clone(),
            rates,
            rate,
            capture: Capture::new(truncated, lost),
            live: LiveSet::by_address(),
            marks: None,
            classes: Interner::new(),
            tally: Tally::new(),
            readers: Readers::only(0),
            gone: Readers::NONE,
            flushing: false,
            only: Only::All,
            function_names,
            class_names: NameTable::new(),
            flush_number: 0,
            counters: Counters::default(),
            latest_class: None,
            leftovers: Leftovers::default(),
            thinned_since_flush: 0,
            last_mark: (0, 0),
        };
        state.configure(options);
        state
    }

    /// Puts options in force, except rate and seed.
    pub fn configure(&mut self, options: Options) {
        self.capture.max_frames = options.max_frames;
        self.max_stack_nodes = options.max_stack_bytes / StackTree::BYTES_PER_NODE;
        self.stack_limit = self.max_stack_nodes;
        self.method = walker::usable(options.bt_method);
        self.options = options;
    }

    /// To be called when a flush begins; [`end_flush`](Self::end_flush) must follow.
    pub fn begin_flush(&mut self) {
        self.flush_number = self.flush_number.wrapping_add(1);
        self.flushing = true;
        self.begin_rate_census();
    }

    /// To be called when a flush has given back what it held, or will never do so: its thread did not come through a fork.
    pub fn end_flush(&mut self) {
        self.flushing = false;
        self.gone = Readers::NONE;
        self.stack_limit = self.max_stack_nodes;
    }

    /// Counts no allocation made so far: for a forked child, whose parent reports them.
    pub fn forget_allocations(&mut self) {
        self.live.samples_mut().for_each(|sample| sample.unreported = Readers::NONE);
        for ((stack, class, _), _) in std::mem::take(&mut self.tally).into_entries() {
            self.release(stack, class);
        }
        self.thinned_since_flush = 0;
    }

    /// Takes up one more reader, who is told of the allocations from now on. None if there are too many.
    pub fn add_reader(&mut self) -> Option<usize> {
        let number = self.readers.with(self.gone).free()?;
        self.readers = self.readers.with(Readers::only(number));
        Some(number)
    }

    /// Forgets a reader, and what it has not been told.
    pub fn remove_reader(&mut self, reader: Readers) {
        self.readers = self.readers.without(reader);
        if self.flushing {
            self.gone = self.gone.with(reader);
        }
        self.live.samples_mut().for_each(|sample| sample.unreported = sample.unreported.without(reader));
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
        std::mem::swap(&mut self.sampler, &mut empty.sampler);
        std::mem::swap(&mut self.rates, &mut empty.rates);
        (empty.rate, empty.marks, empty.counters) = (self.rate, self.marks, self.counters);
        (empty.flush_number, empty.last_mark) = (self.flush_number, self.last_mark);
        (empty.readers, empty.only) = (self.readers, self.only);
        (empty.gone, empty.flushing) = (self.gone, self.flushing);
        empty.capture.label_overflows = self.capture.label_overflows;
        *self = empty;
    }

    /// Bytes held in all.
    pub fn bytes(&self) -> usize {
        self.live.bytes() + self.capture.bytes() + self.classes.bytes() + self.tally.bytes() + self.name_bytes()
    }

    /// Bytes held by names.
    pub fn name_bytes(&self) -> usize {
        self.function_names.bytes(|name| size_of::<FunctionName>() + name.name.len() + name.file.len())
            + self.class_names.bytes(str::len)
    }
}
