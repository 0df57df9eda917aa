//! From what was sampled to pprof bytes, as a flush of the heap profiler does it.

use super::Sampler;
use super::header::header;
use super::interval::{Interval, Values};
use crate::collector::flush::extract::{Extract, Key};
use crate::collector::flush::pace::Pace;
use crate::collector::flush::tidy;
use crate::collector::mute::Mute;
use crate::collector::resolve::Owner;
use crate::collector::sites::Sites;
use crate::collector::stacks::Stacks;
use crate::collector::{FlushFailure, FlushOptions, Flushed};
use crate::faults;
use magnus::Ruby;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::Sums;
use rb_sys::VALUE;
use std::io;
use std::time::{Duration, Instant};

/// The frame of threads that Ruby does not know, on which those with the same name are.
const NATIVE_THREADS: &str = "(native threads)";
/// The frame of CPU time that no thread accounts for.
const OTHER: &str = "(other)";
/// The frame of what sampled threads used if there was no tick that could tell what for.
const NOT_SAMPLED: &str = "(not sampled)";

impl Owner for Sampler {
    fn with_sites<R>(&self, body: impl FnOnce(&mut Sites) -> R) -> R {
        self.state.with(|state| body(&mut state.sites))
    }

    fn pretty_backtraces(&self) -> bool {
        true
    }

    fn has_failed(&self) -> bool {
        self.failure().is_some()
    }
}

/// A flush in progress. If it is dropped before it has finished, what it took is kept for the next one.
struct Flush<'a> {
    sampler: &'a Sampler,
    ruby: &'a Ruby,
    pace: Pace<'a>,
    interval: Interval,
    /// Whether the sampler ran at the beginning.
    running: bool,
    /// What was sampled, by the stack that was read. Each has a reference to its stack.
    raw: Vec<(StackId, Values)>,
    /// The same by name.
    named: Sums<Key, Values>,
    class: ClassId,
    /// How often the state had begun when this did.
    beginnings: u64,
    done: bool,
}

impl Sampler {
    /// Takes a profile, and begins another interval. One flush may run at a time. `holder` is the Ruby object that owns
    /// this sampler, `tags` are the process's, and `mute` is this thread's.
    ///
    /// # Safety
    /// Must run on the main Ractor with the GVL held, and not in a hook.
    pub unsafe fn flush(
        &self,
        ruby: &Ruby,
        holder: VALUE,
        options: FlushOptions,
        tags: &[(String, String)],
        mute: &Mute,
    ) -> Result<Flushed, FlushFailure> {
        let start = Instant::now();
        let pace = Pace::new(ruby, options, mute)?;
        self.read_stacks();
        let running = self.is_running();
        let mut flush = self.state.with(|state| {
            state.sites.begin_flush();
            Flush {
                sampler: self,
                ruby,
                pace,
                interval: state.take_interval(running),
                running,
                raw: std::mem::take(&mut state.sums).into_entries().collect(),
                named: Sums::new(),
                // SAFETY: as required above.
                class: unsafe { state.no_class(holder) },
                beginnings: state.beginnings,
                done: false,
            }
        });
        tidy::leftovers(self, || flush.rest())?;
        flush.name()?;
        let samples = flush.samples();
        flush.add_clocks();
        let header = header(ruby, &self.statistics(), &flush.interval, tags)?;
        tidy::tidy(self, || flush.rest())?;
        let extract = flush.extract()?;
        let names = self.state.with(|state| state.sites.take_names());
        let (encoded, build_time, encode_time) = {
            let named = &flush.named;
            let build = || {
                faults::point("cpu: encode");
                drop(names);
                extract.encode(named, &header)
            };
            flush.pace.without_gvl(ruby, build)?
        };
        let gc_time = flush.pace.check_interrupts(ruby)?;
        flush.check()?;
        let pprof = encoded.map_err(FlushFailure::Encoding)?;
        flush.done = true;
        self.state.with(|state| state.sites.commit_flush());
        Ok(Flushed {
            pprof,
            allocation_samples: samples,
            sums: flush.named.len(),
            time_nanos: header.time_nanos,
            duration_nanos: header.duration_nanos,
            sample_add: start.elapsed().saturating_sub(encode_time),
            sample_add_without_gvl: if options.yield_gvl { build_time } else { Duration::ZERO },
            serialization: encode_time,
            duration: start.elapsed(),
            holds: flush.pace.finish(gc_time),
            ..Flushed::default()
        })
    }

    /// Fails for a flush that began with so many `beginnings`, if it cannot go on.
    fn check(&self, beginnings: u64) -> Result<(), FlushFailure> {
        if let Some(place) = self.failure() {
            return Err(FlushFailure::Panicked(place));
        }
        if self.is_past(beginnings) {
            return Err(FlushFailure::Encoding(io::Error::other("the process was forked in the middle of a flush")));
        }
        Ok(())
    }

    /// Whether Ruby code that ran meanwhile has forked, and this is the child, in which sampling has begun anew.
    fn is_past(&self, beginnings: u64) -> bool {
        self.state.with(|state| state.beginnings != beginnings)
    }
}

impl Flush<'_> {
    fn rest(&mut self) -> Result<(), FlushFailure> {
        self.pace.rest(self.ruby)?;
        self.check()
    }

    fn check(&self) -> Result<(), FlushFailure> {
        self.sampler.check(self.beginnings)
    }

    /// Replaces each stack by one that is known by name.
    fn name(&mut self) -> Result<(), FlushFailure> {
        faults::point("cpu: name");
        while let Some(&(stack, values)) = self.raw.last() {
            match self.sampler.state.with(|state| state.sites.named_stack(stack)) {
                Ok(named) => {
                    let key = self.key(named);
                    self.raw.pop();
                    self.sampler.state.with(|state| {
                        if self.named.add(key, values) {
                            state.sites.stacks.retain(named);
                        }
                        state.sites.classes.retain(self.class);
                        state.sites.release_source(stack, self.class);
                    });
                }
                Err(unnamed) => self.sampler.name(self.pace.mute, unnamed)?,
            }
            self.rest()?;
        }
        Ok(())
    }

    /// The number of ticks.
    fn samples(&self) -> usize {
        let values = (0..self.named.len()).filter_map(|position| self.named.entry(position));
        values.map(|(_, values)| values.samples as usize).sum()
    }

    fn key(&self, stack: StackId) -> Key {
        Key { stack, class: self.class, age: None, stratum: Stratum::ONLY }
    }

    /// Makes the sum equal to the CPU time that the clocks say.
    fn add_clocks(&mut self) {
        let entries: Vec<_> = (0..self.named.len()).filter_map(|position| self.named.entry(position)).collect();
        let scale = self.interval.scale(entries.iter().map(|(_, values)| values.nanoseconds).sum());
        let mut sums = Sums::new();
        for (key, values) in entries {
            sums.add(key, Values { nanoseconds: values.nanoseconds * scale, ..values });
        }
        let unseen = if sums.is_empty() { self.interval.ruby } else { 0 };
        self.sampler.state.with(|state| {
            let stacks = &mut state.sites.stacks;
            let mut add = |stacks: &mut Stacks, stack: StackId, nanoseconds: u64| {
                let values = Values { samples: 0.0, nanoseconds: nanoseconds as f64 };
                if nanoseconds == 0 || !sums.add(self.key(stack), values) {
                    stacks.release(stack);
                }
            };
            let other = stacks.with_frame(StackId::EMPTY, OTHER);
            add(stacks, other, self.interval.rest());
            let not_sampled = stacks.with_frame(StackId::EMPTY, NOT_SAMPLED);
            add(stacks, not_sampled, unseen);
            let natives = stacks.with_frame(StackId::EMPTY, NATIVE_THREADS);
            for (name, nanoseconds) in &self.interval.natives {
                let native = stacks.with_frame(natives, name);
                add(stacks, native, *nanoseconds);
            }
            stacks.release(natives);
        });
        self.named = sums;
    }

    /// Copies what the profile needs out of the sampler.
    fn extract(&mut self) -> Result<Extract, FlushFailure> {
        let Self { sampler, ruby, pace, named, beginnings, .. } = self;
        Extract::of(*sampler, named, || {
            pace.rest(ruby)?;
            sampler.check(*beginnings)
        })
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        // After a panic nothing is certain, and another one here would end the process.
        if std::thread::panicking() || self.sampler.failure().is_some() || self.sampler.is_past(self.beginnings) {
            return;
        }
        let named = std::mem::take(&mut self.named).into_entries();
        self.sampler.state.with(|state| {
            if self.done {
                named.for_each(|(key, _)| state.sites.stacks.release(key.stack));
                state.sites.classes.release(self.class);
                return;
            }
            let kept = named.map(|(key, values)| (key.stack, values));
            // The clocks' own entries have no ticks, and are found again.
            for (stack, values) in kept.chain(self.raw.drain(..)) {
                if values.samples == 0.0 || !state.sums.add(stack, values) {
                    state.sites.stacks.release(stack);
                }
            }
            state.sites.classes.release(self.class);
            state.keep_interval(std::mem::take(&mut self.interval), self.running);
            state.sites.release_held();
        });
    }
}
