//! From the live set to pprof bytes.

use super::extract::{Extract, Key};
use super::keys::Class;
use super::resolve::Resolver;
use super::state::State;
use super::{Collector, Phase, stats};
use crate::ruby_api::errors;
use crate::vm::names;
use crate::vm::{gc, memsize, threads, waiters};
use magnus::error::ErrorType;
use magnus::{Error, Ruby};
use memprofiler_core::encode::Header;
use memprofiler_core::hash::Map;
use memprofiler_core::live_set::{ClassId, Sample};
use memprofiler_core::profile::Values;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::tally::Allocated;
use rb_sys::VALUE;
use std::time::{Duration, Instant, SystemTime};

/// How to flush; see `Collector#flush`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named as the keywords of Collector#flush, which documents them")]
pub struct FlushOptions {
    pub yield_gvl: bool,
    pub proactively_yield_gvl: bool,
    pub gc: bool,
    pub min_age: u32,
    pub max_hold: Duration,
    pub max_duration: Duration,
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
        }
    }
}

/// A profile and how it was made.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Gzipped pprof.
    pub pprof: Vec<u8>,
    /// Live samples in the profile.
    pub heap_samples: usize,
    /// Samples of allocations since the last flush.
    pub allocation_samples: usize,
    /// Samples removed because there were too many, since the last flush.
    pub thinned: u64,
    /// From beginning to end.
    pub duration: Duration,
    /// Encoding and compressing.
    pub serialization: Duration,
    /// Turning samples into those of the profile, in all.
    pub sample_add: Duration,
    /// The part of `sample_add` without the GVL.
    pub sample_add_without_gvl: Duration,
    /// How often other threads were let run.
    pub yields: usize,
    /// How often it was checked whether to let other threads run.
    pub yield_checks: usize,
    /// The longest time for which no other thread could run.
    pub longest_hold: Duration,
}

/// Longer than any flush.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// How many samples are visited between two looks at the clock.
const CLOCK_STRIDE: usize = 64;
/// A flush under way. If it is dropped before it has finished, the allocations it had taken go back to the tally.
struct Flush<'a> {
    collector: &'a Collector,
    ruby: &'a Ruby,
    options: FlushOptions,
    resolver: Resolver,
    values: Map<Key, Values>,
    latest: Option<(Key, Values)>,
    result: Flushed,
    start: Instant,
    hold_start: Instant,
    /// When the slice of work under way should end.
    deadline: Instant,
    /// The deferred stack numbered last when the flush began.
    deferred: u32,
}

/// Why a slice of work ended.
enum Pause {
    Done,
    OutOfTime,
    StackUnknown(StackId),
    ClassUnknown(ClassId),
    SizeUnknown(VALUE),
}

impl Collector {
    /// Takes a profile. The caller must make sure that no other flush of this collector is under way, and mute the
    /// thread.
    pub fn flush(&self, ruby: &Ruby, options: FlushOptions) -> Result<Flushed, Error> {
        let start = Instant::now();
        if options.gc {
            ruby.gc_start();
        }
        let mut flush = Flush {
            collector: self,
            ruby,
            options,
            resolver: Resolver::default(),
            values: Map::default(),
            latest: None,
            result: Flushed::default(),
            start,
            hold_start: start,
            deadline: start + options.max_hold,
            deferred: 0,
        };
        if self.phase.get() == Phase::Running {
            // SAFETY: the GVL is held; a running collector is anchored.
            unsafe { self.make_keepers(self.holder.get()) };
        }
        // The dead that still wait to be swept belong to this interval.
        flush.settle();
        flush.deferred = self.state.with(|state| {
            state.flush_number = state.flush_number.wrapping_add(1);
            state.capture.deferred.latest()
        });
        let last = self.phase.get() == Phase::Stopped;
        flush.allocations()?;
        flush.live_samples()?;
        if last {
            // There will be no other profile to tell of those that have died meanwhile.
            flush.allocations()?;
        }
        let header = self.header(ruby, start)?;
        let extract = flush.extract()?;
        flush.result.sample_add = start.elapsed();
        flush.encode(extract, &header)?;
        // The VM looks for interrupts when a method returns: an exception that is due would throw the profile away.
        // Let it come now, while everything can go back to where it was.
        threads::check_interrupts()?;
        let mut result = flush.commit(last);
        result.duration = start.elapsed();
        Ok(result)
    }
}

impl Flush<'_> {
    /// Takes over what was allocated and has died since the last flush.
    fn allocations(&mut self) -> Result<(), Error> {
        let mut pending = self.collector.state.with(|state| state.tally.drain());
        while let Some((stack, class, allocated)) = pending.pop() {
            let (named_stack, named_class) = match self.name(stack, class) {
                Ok(named) => named,
                Err(error) => {
                    pending.push((stack, class, allocated));
                    self.put_back(pending);
                    return Err(error);
                }
            };
            let key = Key { stack: named_stack, class: named_class, age: None };
            self.add(
                key,
                Values { allocations: allocated.objects, allocated_bytes: allocated.bytes, ..Values::default() },
            );
            self.collector.state.with(|state| state.release(stack, class));
            if let Err(error) = self.end_slice() {
                self.put_back(pending);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns to the tally what was taken from it.
    fn put_back(&self, pending: Vec<(StackId, ClassId, Allocated)>) {
        self.collector.state.with(|state| {
            pending.into_iter().for_each(|(stack, class, sum)| state.count_allocated(stack, class, sum));
        });
    }

    fn name(&mut self, stack: StackId, class: ClassId) -> Result<(StackId, ClassId), Error> {
        loop {
            match (self.resolver.stack(stack), self.resolver.class(class)) {
                (Some(stack), Some(class)) => return Ok((stack, class)),
                (None, _) => self.resolver.name_stack(self.collector, stack)?,
                (_, None) => self.resolver.name_class(self.collector, class)?,
            }
        }
    }

    /// Visits all samples that were alive when the flush began. Walking downwards visits each of them in spite of
    /// deaths meanwhile, when the last sample takes the place of the dead one.
    fn live_samples(&mut self) -> Result<(), Error> {
        let collector = self.collector;
        let (mut position, mut order) = (usize::MAX, 0);
        let mut measured = None;
        loop {
            // The dead must be gone before anything in the live set is read, also after Ruby code ran below.
            self.settle();
            collector.state.with(|state| {
                // What a collection has moved upwards may have been passed over.
                if order != state.live.reorderings() || position > state.live.len() {
                    (position, order) = (state.live.len(), state.live.reorderings());
                }
            });
            match collector.state.with(|state| self.visit(state, &mut position, &mut measured)) {
                Pause::Done => return Ok(()),
                Pause::OutOfTime => {}
                Pause::StackUnknown(stack) => self.resolver.name_stack(collector, stack)?,
                Pause::ClassUnknown(class) => {
                    let named = self.resolver.name_class(collector, class);
                    collector.state.with(|state| state.release_class(class));
                    named?;
                }
                Pause::SizeUnknown(object) => {
                    // SAFETY: the object was alive in the slice that has just ended, and nothing has run since.
                    let size = unsafe { memsize::of_data(object) };
                    let size = match size {
                        Ok(size) => size,
                        // Thread#kill and the like are not the extension's doing.
                        Err(error) if matches!(error.error_type(), ErrorType::Jump(_)) => return Err(error),
                        // An extension whose size function raises is no reason to fail.
                        Err(_) => memsize::slot_size(object),
                    };
                    measured = Some((object, size));
                }
            }
            self.end_slice()?;
        }
    }

    /// Makes sure that what is in the live set is alive. With mark bits it is unless a collection was missed. Finishing a
    /// sweep may itself meet a dead Ractor, so that the check comes last.
    fn settle(&self) {
        if !self.collector.uses_mark_bits() {
            self.collector.collections.info(self.ruby).settle(self.ruby);
        }
        self.collector.check_collections(self.ruby);
    }

    /// Visits samples below `position` until something is missing that takes Ruby code to find. Reads objects, but
    /// runs nothing that could free one.
    fn visit(&mut self, state: &mut State, position: &mut usize, measured: &mut Option<(VALUE, usize)>) -> Pause {
        let now = gc::count();
        for step in 1.. {
            *position = (*position).min(state.live.len());
            if *position == 0 {
                return Pause::Done;
            }
            let sample = state.live.samples()[*position - 1];
            if sample.seen != state.flush_number {
                if let Err(pause) = self.visit_one(state, *position - 1, sample, now, measured) {
                    return pause;
                }
            }
            *position -= 1;
            if step % CLOCK_STRIDE == 0 && self.is_out_of_time() {
                return Pause::OutOfTime;
            }
        }
        Pause::Done
    }

    fn visit_one(
        &mut self,
        state: &mut State,
        position: usize,
        sample: Sample,
        now: u32,
        measured: &mut Option<(VALUE, usize)>,
    ) -> Result<(), Pause> {
        let object = sample.address as VALUE;
        let stack = self.resolver.stack(sample.stack).ok_or(Pause::StackUnknown(sample.stack))?;
        // SAFETY: samples in the live set are alive once the sweep is settled.
        let visible = if state.options.object_class { unsafe { names::class_of(object) } } else { None };
        let raw_class = match visible {
            Some(class) => state.class_id(Class::Object(class), self.collector.holder.get()),
            None => {
                state.classes.retain(sample.class.0);
                sample.class
            }
        };
        // On failure the caller gives up the reference, once it has named the class.
        let class = self.resolver.class(raw_class).ok_or(Pause::ClassUnknown(raw_class))?;
        // SAFETY: as above.
        let size = match unsafe { memsize::of_plain(object) } {
            Some(size) => size,
            None => match measured.take() {
                Some((of, size)) if of == object => size,
                _ => {
                    state.release_class(raw_class);
                    return Err(Pause::SizeUnknown(object));
                }
            },
        };
        let weight = state.rates.weight(sample.rate);
        let bytes = weight * size as f64;
        let age = now.wrapping_sub(sample.born);
        let mut values = Values::default();
        if age >= self.options.min_age {
            (values.retained, values.retained_bytes) = (weight, bytes);
            self.result.heap_samples += 1;
        }
        if sample.unreported && state.options.track_allocations {
            (values.allocations, values.allocated_bytes) = (weight, bytes);
            self.result.allocation_samples += 1;
        }
        let age = state.options.object_age.then(|| quantised(age));
        self.add(Key { stack, class, age }, values);
        if let Some(visited) = state.live.sample_mut(position) {
            (visited.stack, visited.class) = (stack, class);
            visited.seen = state.flush_number;
            visited.unreported = false;
        }
        state.capture.stacks.retain(stack);
        state.classes.retain(class.0);
        state.release(sample.stack, sample.class);
        state.release_class(raw_class);
        Ok(())
    }

    fn add(&mut self, key: Key, values: Values) {
        match &mut self.latest {
            Some((latest, sum)) if *latest == key => *sum += values,
            latest => {
                if let Some((key, sum)) = latest.replace((key, values)) {
                    *self.values.entry(key).or_default() += sum;
                }
            }
        }
    }

    fn is_out_of_time(&self) -> bool {
        self.options.proactively_yield_gvl && Instant::now() > self.deadline
    }

    /// Lets other threads run if the slice of work has lasted long enough.
    fn end_slice(&mut self) -> Result<(), Error> {
        if !self.is_out_of_time() {
            return Ok(());
        }
        self.result.yield_checks += 1;
        if waiters::any() {
            self.result.longest_hold = self.result.longest_hold.max(self.hold_start.elapsed());
            threads::schedule()?;
            self.result.yields += 1;
            self.hold_start = Instant::now();
        }
        self.deadline = Instant::now() + self.slice();
        Ok(())
    }

    /// How long the next slice may take. A thread that never waits keeps the GVL for its whole quantum, 100 ms, at each
    /// offer, so that a long flush would take minutes: the nearer its bound, the longer the slices, and past it there
    /// are none.
    fn slice(&self) -> Duration {
        let left = 1.0 - self.start.elapsed().as_secs_f64() / self.options.max_duration.as_secs_f64();
        if left <= 0.0 { FOREVER } else { self.options.max_hold.div_f64(left.max(1e-3)) }
    }

    /// Copies what the profile needs out of the collector.
    fn extract(&mut self) -> Result<Extract, Error> {
        if let Some((key, sum)) = self.latest.take() {
            *self.values.entry(key).or_default() += sum;
        }
        self.end_slice()?;
        let mut samples: Vec<_> = self.values.iter().map(|(&key, &values)| (key, values)).collect();
        samples.sort_unstable_by_key(|&(key, _)| key);
        let mut extract = Extract::default();
        self.end_slice()?;
        for chunk in samples.chunks(CLOCK_STRIDE) {
            self.collector.state.with(|state| chunk.iter().for_each(|&(key, values)| extract.add(state, key, values)));
            self.end_slice()?;
        }
        while !self.collector.state.with(|state| self.resolver.release_sources(state, CLOCK_STRIDE)) {
            self.end_slice()?;
        }
        Ok(extract)
    }

    /// Makes the profile's bytes, if allowed without the GVL.
    fn encode(&mut self, extract: Extract, header: &Header) -> Result<(), Error> {
        let build = move || extract.encode(header);
        self.result.longest_hold = self.result.longest_hold.max(self.hold_start.elapsed());
        let (encoded, build_time, encode_time) =
            if self.options.yield_gvl { threads::without_gvl(build) } else { build() };
        self.result.pprof = encoded.map_err(|error| errors::error(self.ruby, error.to_string()))?;
        self.result.sample_add += build_time;
        self.result.serialization = encode_time;
        if self.options.yield_gvl {
            self.result.sample_add_without_gvl = build_time;
            self.hold_start = Instant::now();
        }
        Ok(())
    }

    /// Ends the interval. With `last`, which a collector had stopped before, nothing is followed any more.
    fn commit(mut self, last: bool) -> Flushed {
        let Self { collector, .. } = self;
        self.values.clear();
        collector.interval_start.set(self.start);
        if last && collector.phase.get() == Phase::Stopped {
            collector.disconnect();
        }
        collector.state.with(|state| {
            self.resolver.release(state);
            state.capture.forget_contexts();
            state.capture.forget_deferred(self.deferred);
            state.live.shrink();
            state.capture.stacks.shrink();
            state.prune_names();
            state.compact_rates();
            state.recover_rate();
            state.counters.flushes += 1;
            self.result.thinned = std::mem::take(&mut state.thinned_since_flush);
        });
        self.result.longest_hold = self.result.longest_hold.max(self.hold_start.elapsed());
        std::mem::take(&mut self.result)
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.values).into_iter().chain(self.latest.take());
        self.collector.state.with(|state| {
            for (key, values) in values.filter(|(_, values)| values.allocations > 0.0) {
                state.capture.stacks.retain(key.stack);
                state.classes.retain(key.class.0);
                let allocated = Allocated { objects: values.allocations, bytes: values.allocated_bytes };
                state.count_allocated(key.stack, key.class, allocated);
            }
            self.resolver.release(state);
        });
    }
}

/// A power of two above 3, so that ages do not make too many samples of one stack.
fn quantised(age: u32) -> u32 {
    if age < 4 { age } else { 1 << age.ilog2() }
}

impl Collector {
    fn header(&self, ruby: &Ruby, now: Instant) -> Result<Header, Error> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let duration = now.saturating_duration_since(self.interval_start.get());
        let mut comments = vec![stats::ruby_description(ruby)?];
        Ok(self.state.with(|state| {
            comments.extend(stats::remarks(state));
            Header {
                time_nanos: i64::try_from(time.as_nanos()).unwrap_or(i64::MAX),
                duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
                period: state.period(),
                sample_type_names: state.options.sample_type_names,
                comments,
            }
        }))
    }
}
