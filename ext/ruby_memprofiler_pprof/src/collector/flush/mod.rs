//! From the live set to pprof bytes.

mod allocations;
mod assembly;
pub mod extract;
mod failure;
mod flushed;
mod garbage;
mod options;
pub mod pace;
mod peak;
pub mod tidy;
mod visit;

pub use failure::FlushFailure;
pub use flushed::Flushed;
pub use options::FlushOptions;

use super::ledger::{self, Glance};
use super::mute::Mute;
use super::sample_types::{SampleTypeNames, Values};
use super::sites::Names;
use super::state::State;
use super::{Collector, Phase, exiting, stats, totals, watch};
use crate::faults;
use crate::vm::clock::nanoseconds_since_1970;
use crate::vm::threads;
use extract::{Extract, Key};
use magnus::{Error, Ruby};
use memprofiler_core::profile::Header;
use memprofiler_core::readers::Readers;
use memprofiler_core::sums::Sums;
use pace::Pace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How many steps pass between two looks at the clock.
const CLOCK_STRIDE: usize = 64;

/// A flush in progress. If it is dropped before it has finished, the allocations that it took go back to the tally. The
/// references that it holds are in the collector's state: its thread may not survive a fork.
struct Flush<'a> {
    collector: &'a Collector,
    ruby: &'a Ruby,
    options: FlushOptions,
    pace: Pace<'a>,
    /// Names found earlier, which take a while to free.
    stale: Names,
    sums: Sums<Key, Values>,
    /// How many of the sums have gone back to the tally.
    given_back: usize,
    result: Flushed,
    start: Instant,
    reader: Readers,
}

impl Collector {
    /// Takes a profile. The caller must ensure that no other flush of this collector is running. `mute` is this
    /// thread's.
    pub fn flush(&self, ruby: &Ruby, options: FlushOptions, mute: &Mute) -> Result<Flushed, FlushFailure> {
        let start = Instant::now();
        let mut flush = self.begin(ruby, options, mute, start)?;
        let last = self.is_ending() && options.reader == Some(0);
        flush.leftovers()?;
        flush.allocations()?;
        // Before samples are visited: what a collection frees meanwhile has been seen.
        let totals = self.totals(ruby);
        flush.live_samples()?;
        // Those that died before they were visited belong to this interval, too.
        flush.allocations()?;
        flush.name_peak()?;
        let greatest_weight = self.state.with(|state| state.greatest_weight(options.reader.unwrap_or(0)));
        let mut header = self.header(ruby, start, &options, greatest_weight, totals)?;
        header.comments.extend(exiting::remark().map(Arc::from));
        let Header { time_nanos, duration_nanos, .. } = header;
        // What panics there must not end a flush.
        let glance = catch_unwind(AssertUnwindSafe(|| ledger::glance(ruby, Some(self)))).ok().transpose()?;
        let gc_time = flush.produce(header, glance)?;
        let result = flush.commit(last, gc_time);
        let sample_type_names = self.sample_type_names(&options);
        Ok(Flushed { time_nanos, duration_nanos, sample_type_names, duration: start.elapsed(), ..result })
    }

    /// Begins a flush.
    fn begin<'a>(
        &'a self,
        ruby: &'a Ruby,
        options: FlushOptions,
        mute: &'a Mute,
        start: Instant,
    ) -> Result<Flush<'a>, FlushFailure> {
        let pace = Pace::new(ruby, options, mute)?;
        let mut flush = Flush {
            collector: self,
            ruby,
            options,
            pace,
            stale: Names::default(),
            sums: Sums::new(),
            given_back: 0,
            result: Flushed::default(),
            start,
            reader: options.reader(),
        };
        if self.phase.get() == Phase::Running {
            // SAFETY: the GVL is held; a running collector is anchored.
            unsafe { self.make_keepers(self.holder.get()) }?;
            if self.windows.are_used() {
                // A JIT may have been switched on. Without memory for a hook the next flush adds it.
                let _ = self.adopt_sampling(self.main_ractor());
            }
        }
        // The dead that have not been swept yet belong to this interval.
        flush.settle()?;
        flush.stale = self.state.with(|state| state.begin_flush(threads::current()));
        if options.gc {
            flush.collect_garbage()?;
        }
        Ok(flush)
    }

    /// Fails if a hook has panicked, which can happen whenever Ruby code or other threads ran. The stored data may then
    /// be inconsistent, and is no longer marked.
    pub(super) fn check(&self) -> Result<(), FlushFailure> {
        self.failure().map_or(Ok(()), |place| Err(FlushFailure::Panicked(place)))
    }

    fn sample_type_names(&self, options: &FlushOptions) -> SampleTypeNames {
        options.sample_type_names.unwrap_or_else(|| self.state.with(|state| state.options.sample_type_names))
    }

    fn totals(&self, ruby: &Ruby) -> Vec<String> {
        let (baseline, tracked) =
            self.state.with(|state| (state.baseline, state.peak.kept().map(|kept| kept.resident)));
        totals::remarks(ruby, baseline, tracked)
    }

    fn header(
        &self,
        ruby: &Ruby,
        now: Instant,
        options: &FlushOptions,
        greatest_weight: f64,
        totals: Vec<String>,
    ) -> Result<Header, Error> {
        // A snapshot has none: its interval continues.
        let duration = options
            .reader
            .map_or(Duration::ZERO, |reader| now.saturating_duration_since(self.interval_starts[reader].get()));
        let names = self.sample_type_names(options);
        let mut comments = vec![stats::ruby_description(ruby)?];
        let sampling = self.sampling();
        Ok(self.state.with(|state| {
            comments.extend(stats::remarks(state, sampling, greatest_weight));
            comments.extend(totals);
            comments.extend(watch::remark());
            let types = names.types();
            Header {
                default_sample_type: Arc::clone(&types[options.default_sample_type as usize].name),
                sample_types: types.into(),
                time_nanos: nanoseconds_since_1970(faults::time(SystemTime::now())),
                duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
                period_type: Some(names.period_type()),
                period: state.reservoir.period(),
                comments: comments.into_iter().map(Arc::from).collect(),
                ..Header::default()
            }
        }))
    }
}

impl Flush<'_> {
    fn rest(&mut self) -> Result<(), FlushFailure> {
        self.pace.rest(self.ruby)?;
        self.check()
    }

    fn check(&self) -> Result<(), FlushFailure> {
        self.collector.check()
    }

    /// Releases what the previous flush left over.
    fn leftovers(&mut self) -> Result<(), FlushFailure> {
        tidy::leftovers(self.collector, || self.rest())
    }

    /// Encodes the profile of what was added up, with a quick ledger. Nothing fails after that; returns the total time
    /// of garbage collections, for [`Pace::finish`].
    fn produce(&mut self, header: Header, glance: Option<Glance>) -> Result<Duration, FlushFailure> {
        self.tidy()?;
        self.result.sums = self.sums.len();
        let extract = self.extract()?;
        self.result.sample_add = self.start.elapsed();
        self.encode(extract, header, glance)?;
        let gc_time = self.pace.check_interrupts(self.ruby)?;
        self.check()?;
        Ok(gc_time)
    }

    /// Copies what the profile needs out of the collector.
    fn extract(&mut self) -> Result<Extract, FlushFailure> {
        faults::point("flush: extract");
        let Self { collector, ruby, pace, sums, .. } = self;
        Extract::of(*collector, sums, || {
            pace.rest(ruby)?;
            collector.check()
        })
    }

    /// Releases what was needed to name stacks and classes, and memory that the collector no longer needs.
    fn tidy(&mut self) -> Result<(), FlushFailure> {
        if self.options.reader.is_none() {
            while self.give_back(CLOCK_STRIDE) {
                self.rest()?;
            }
        }
        tidy::tidy(self.collector, || self.rest())?;
        self.collector.state.with(|state| state.reservoir.shrink());
        self.rest()
    }

    /// Encodes the profile, without the GVL if that is allowed.
    fn encode(&mut self, extract: Extract, mut header: Header, glance: Option<Glance>) -> Result<(), FlushFailure> {
        // Freeing these takes long, too.
        let names = (self.collector.state.with(|state| state.sites.take_names()), std::mem::take(&mut self.stale));
        let sums = &self.sums;
        let build = move || {
            faults::point("flush: encode");
            drop(names);
            let start = Instant::now();
            header.comments.extend(glance.and_then(Glance::remark).map(Arc::from));
            let remark_time = start.elapsed();
            let (encoded, build_time, encode_time) = extract.encode(sums, &header);
            (encoded, remark_time + build_time, encode_time)
        };
        let (encoded, build_time, encode_time) = self.pace.without_gvl(self.ruby, build)?;
        self.result.pprof = encoded.map_err(FlushFailure::Encoding)?;
        self.result.sample_add += build_time;
        self.result.serialization = encode_time;
        if self.options.yield_gvl {
            self.result.sample_add_without_gvl = build_time;
        }
        Ok(())
    }

    /// Ends the interval. With `last`, for a collector that was already stopped, tracking ends as well.
    fn commit(mut self, last: bool, gc_time: Duration) -> Flushed {
        let Self { collector, .. } = self;
        faults::point("flush: commit");
        self.sums = Sums::new();
        if let Some(reader) = self.options.reader {
            collector.interval_starts[reader].set(self.start);
        }
        collector.state.with(|state| {
            state.sites.commit_flush();
            state.end_round(self.options.reader);
            state.counters.flushes += 1;
            self.result.thinned = state.thinned_since_flush();
            if self.options.reader == Some(0) {
                state.thinned_reported = state.reservoir.thinned();
            }
        });
        if last && collector.is_ending() {
            collector.disconnect();
        }
        let mut result = std::mem::take(&mut self.result);
        result.holds = self.pace.finish(gc_time);
        result
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        // After a panic nothing is certain, and another one here would end the process.
        if std::thread::panicking() || self.collector.failure().is_some() {
            return;
        }
        self.give_back(usize::MAX);
        self.collector.state.with(State::end_flush);
    }
}
