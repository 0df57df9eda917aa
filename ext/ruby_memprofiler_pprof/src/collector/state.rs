//! What a collector knows, and what an allocation and a death do to it.

use super::capture::Capture;
use super::keys::{Class, Function};
use super::mute::is_muted;
use super::options::{BacktraceMethod, Options};
use super::walker;
use crate::vm::errno::SavedErrno;
use crate::vm::hooks::TraceArg;
use crate::vm::marks::Marks;
use crate::vm::names::FunctionName;
use crate::vm::object::{Type, class, flags, is_heap};
use crate::vm::{gc, memsize};
use memprofiler_core::interner::Interner;
use memprofiler_core::live_set::{ClassId, LiveSet, RateId, Sample};
use memprofiler_core::name_table::NameTable;
use memprofiler_core::rates::RateTable;
use memprofiler_core::sampler::Sampler;
use memprofiler_core::stack_tree::{StackId, StackTree};
use memprofiler_core::tally::{Allocated, Tally};
use rb_sys::VALUE;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

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
    /// Flushes completed.
    pub flushes: u64,
}

/// The profiler's data. Everything here runs without allocating on Ruby's heap, so also in hooks.
#[derive(Debug)]
pub struct State {
    pub options: Options,
    /// The most frames to store, as `max_stack_bytes` allows.
    max_stack_nodes: usize,
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
    pub function_names: NameTable<FunctionName>,
    pub class_names: NameTable<str>,
    /// The number of the last flush, modulo 256; see [`Sample::seen`].
    pub flush_number: u8,
    pub counters: Counters,
    /// The class found last, which the next object probably has too.
    latest_class: Option<(u64, ClassId)>,
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
            method: options.bt_method,
            options: options.clone(),
            rates,
            rate,
            capture: Capture::new(truncated, lost),
            live: LiveSet::by_address(),
            marks: None,
            classes: Interner::new(),
            tally: Tally::new(),
            function_names,
            class_names: NameTable::new(),
            flush_number: 0,
            counters: Counters::default(),
            latest_class: None,
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
        self.method = walker::usable(options.bt_method);
        self.options = options;
    }

    /// Takes the object of a NEWOBJ event as a sample; `holder` is the Ruby object that marks this state.
    ///
    /// # Safety
    /// In a NEWOBJ hook; `holder` alive.
    pub unsafe fn allocated(&mut self, arg: &TraceArg, holder: VALUE) {
        if is_muted(arg.context) {
            return;
        }
        let object = arg.object;
        // SAFETY: flags and class of a new object are set.
        let (flags, class) = unsafe { (flags(object), class(object)) };
        let class = self.class_id(Class::of_header(flags, class), holder);
        // SAFETY: the VM runs the hook in this context.
        let stack = unsafe { self.capture.stack(self.method, arg.context, Type::of_flags(flags), holder) };
        self.counters.samples += 1;
        let replaced = self.live.insert(Sample {
            address: object,
            stack,
            class,
            born: gc::count(),
            rate: self.rate,
            seen: self.flush_number,
            unreported: true,
        });
        if let Some(dead) = replaced {
            self.counters.missed_deaths += 1;
            self.bury(&dead, memsize::slot_size(object));
        }
        while self.live.len() > self.options.max_heap_samples {
            self.halve();
        }
        if self.capture.stacks.len() > self.max_stack_nodes {
            self.make_room_for_stacks();
        }
    }

    /// Takes note of the death of an object. Whether it was sampled is decided without touching it.
    ///
    /// # Safety
    /// In a FREEOBJ hook for `object`.
    #[inline]
    pub unsafe fn freed(&mut self, object: VALUE) {
        if let Some(sample) = self.live.remove(object) {
            let _errno = SavedErrno::new();
            // SAFETY: the object passed to the hook is intact.
            let size = unsafe { self.size_at_death(&sample) };
            self.bury(&sample, size);
        }
    }

    /// Removes the samples that a garbage collection has found dead.
    ///
    /// # Safety
    /// In a GC_END_MARK hook.
    pub unsafe fn collected(&mut self, major: bool) {
        let Some(marks) = self.marks else { return };
        let _errno = SavedErrno::new();
        let now = gc::count();
        let mut live = std::mem::replace(&mut self.live, LiveSet::by_position());
        live.collect(
            major,
            // SAFETY: a sample in the live set was alive when the mark phase began.
            |sample| unsafe { marks.fate(sample.address as VALUE, now.wrapping_sub(sample.born)) },
            |sample| {
                // SAFETY: what is found dead at the end of marking is intact until it is swept.
                let size = unsafe { self.size_at_death(&sample) };
                self.bury(&sample, size);
            },
        );
        self.live = live;
    }

    /// The bytes of a sample's object that is dying, if they are still wanted.
    ///
    /// # Safety
    /// In a hook in which the object is intact.
    unsafe fn size_at_death(&self, sample: &Sample) -> usize {
        let object = sample.address as VALUE;
        if sample.unreported && self.options.track_allocations {
            // SAFETY: the caller's promise.
            unsafe { memsize::of_plain(object) }.unwrap_or_else(|| memsize::slot_size(object))
        } else {
            0
        }
    }

    /// Forgets which objects are alive, because deaths may have gone unnoticed. What is known of allocations stays.
    pub fn distrust(&mut self) {
        for sample in self.live.drain() {
            // The dead cannot be asked: even the page that their slot was on may be gone.
            self.bury(&sample, memsize::SMALLEST_SLOT);
        }
    }

    /// Counts the allocation of a sample that is no longer in the live set, and gives up its references.
    fn bury(&mut self, sample: &Sample, size: usize) {
        let &Sample { stack, class, rate, unreported, .. } = sample;
        if unreported && self.options.track_allocations {
            let weight = self.rates.weight(rate);
            self.count_allocated(stack, class, Allocated { objects: weight, bytes: weight * size as f64 });
        } else {
            self.release(stack, class);
        }
    }

    /// Adds to the tally, which takes over one reference to stack and class.
    pub fn count_allocated(&mut self, stack: StackId, class: ClassId, allocated: Allocated) {
        if !self.tally.add(stack, class, allocated) {
            self.release(stack, class);
        }
    }

    /// Gives up one reference to stack and class.
    pub fn release(&mut self, stack: StackId, class: ClassId) {
        self.capture.stacks.release(stack);
        self.release_class(class);
    }

    /// Gives up one reference to a class.
    pub fn release_class(&mut self, class: ClassId) {
        if self.classes.release(class.0).is_some() && self.latest_class.is_some_and(|(_, latest)| latest == class) {
            self.latest_class = None;
        }
    }

    /// The id of a class, with one reference for the caller. A class stored for the first time is announced to the GC
    /// as a reference of `holder`.
    pub fn class_id(&mut self, class: Class, holder: VALUE) -> ClassId {
        let class = if self.options.object_class { class } else { Class::Unknown };
        let key = class.key();
        if let Some((latest, id)) = self.latest_class
            && latest == key
        {
            self.classes.retain(id.0);
            return id;
        }
        let (id, new) = self.classes.acquire(key);
        if new && let Class::Object(value) = class {
            // SAFETY: the caller has just read the class from a live object.
            unsafe { gc::write_barrier(holder, value) };
        }
        self.latest_class = Some((key, ClassId(id)));
        ClassId(id)
    }

    /// Adds to the time that marking took in the garbage collection under way.
    pub fn spent_marking(&mut self, time: Duration) {
        let (spent, collection) = self.last_mark;
        let before = if collection == gc::count() { spent } else { 0 };
        self.last_mark = (before + time.as_nanos() as u64, gc::count());
    }

    /// Stops sampling classes of `id`'s key under that id: the key's object may go from now on.
    pub fn detach_class(&mut self, id: ClassId) {
        self.classes.detach(id.0);
        self.latest_class = None;
    }

    /// Drops stacks until at most half of the allowed number is left. What is known of dead objects loses its stack, not
    /// its class; if that is not enough, live samples are thinned, which keeps the estimates unbiased.
    #[cold]
    fn make_room_for_stacks(&mut self) {
        let enough = self.max_stack_nodes / 2;
        self.counters.stack_overflows += 1;
        self.capture.forget_contexts();
        for (stack, class, allocated) in self.tally.drain() {
            self.capture.stacks.release(stack);
            let lost = self.capture.stacks.retained(self.capture.lost);
            self.count_allocated(lost, class, allocated);
        }
        while self.capture.stacks.len() > enough && !self.live.is_empty() {
            self.halve();
        }
    }

    /// Keeps each live sample with probability 1/2 and lets it stand for twice as many objects; samples with half the
    /// rate from now on. Unbiased, unlike refusing new samples.
    fn halve(&mut self) {
        for position in (0..self.live.len()).rev() {
            if self.sampler.coin() {
                continue;
            }
            if let Some(sample) = self.live.remove_at(position) {
                self.release(sample.stack, sample.class);
                self.counters.thinned += 1;
                self.thinned_since_flush += 1;
            }
        }
        self.counters.halvings += 1;
        self.rates.halve();
        self.sampler.set_rate(self.sampler.rate() / 2.0);
    }

    /// Samples with probability `rate` from now on; samples already taken keep theirs.
    pub fn set_rate(&mut self, rate: f64) {
        if self.live.is_empty() || self.rates.id(rate).is_none() {
            self.compact_rates();
        }
        // At most 65,535 probabilities are in use after compaction unless there is one per live sample; then the rate
        // stays as it is.
        if let Some(id) = self.rates.id(rate) {
            self.rate = id;
            self.sampler.set_rate(rate);
        }
    }

    /// Allocations per sample, rounded; at rate 0, where none is taken any more, what the live ones stand for.
    pub fn period(&self) -> i64 {
        let rate = self.sampler.rate();
        (if rate > 0.0 { rate.recip() } else { self.rates.greatest_weight() }).round() as i64
    }

    /// Forgets the probabilities that no live sample has any more.
    pub fn compact_rates(&mut self) {
        let used = self.live.samples_mut().map(|sample| &mut sample.rate);
        self.rates.compact(used.chain([&mut self.rate]));
    }

    /// Doubles the rate again after halvings, towards the one asked for, once few live samples are left.
    pub fn recover_rate(&mut self) {
        let asked = self.options.sample_rate;
        let mut rate = self.sampler.rate();
        let mut room = self.options.max_heap_samples / 4;
        while rate < asked && self.live.len() <= room {
            rate = (rate * 2.0).min(asked);
            room /= 2;
        }
        if rate != self.sampler.rate() {
            self.set_rate(rate);
        }
    }

    /// Counts no allocation made so far: for a forked child, whose parent reports them.
    pub fn forget_allocations(&mut self) {
        self.live.samples_mut().for_each(|sample| sample.unreported = false);
        for (stack, class, _) in self.tally.drain() {
            self.release(stack, class);
        }
        self.thinned_since_flush = 0;
    }

    /// Forgets all samples and allocations not yet reported.
    pub fn clear(&mut self) {
        for sample in self.live.drain() {
            self.release(sample.stack, sample.class);
        }
        for (stack, class, _) in self.tally.drain() {
            self.release(stack, class);
        }
        self.capture.forget_contexts();
        self.capture.forget_deferred(self.capture.deferred.latest());
        self.prune_names();
    }

    /// Drops the names that no stack or class refers to any more.
    pub fn prune_names(&mut self) {
        let functions = self.capture.stacks.function_keys().filter_map(|key| match Function::of(key) {
            Function::Named(id) => Some(id),
            _ => None,
        });
        self.function_names.retain(functions);
        let classes = self.classes.attached().filter_map(|(key, _)| match Class::of(key) {
            Class::Named(id) => Some(id),
            _ => None,
        });
        self.class_names.retain(classes);
    }

    /// The instruction sequences and method entries that functions with ids in a range refer to.
    pub fn function_references(&self, ids: Range<usize>) -> impl Iterator<Item = VALUE> {
        let keys = self.capture.stacks.function_keys_of(ids);
        keys.flat_map(|key| [key.code as VALUE, key.owner as VALUE]).filter(|&value| is_heap(value))
    }

    /// The classes that this state refers to.
    pub fn class_references(&self) -> impl Iterator<Item = VALUE> {
        self.classes.attached().filter_map(|(key, _)| match Class::of(key) {
            Class::Object(class) => Some(class),
            _ => None,
        })
    }

    /// How many objects this state keeps alive.
    pub fn reference_count(&self) -> usize {
        self.function_references(0..usize::MAX).count() + self.class_references().count()
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
