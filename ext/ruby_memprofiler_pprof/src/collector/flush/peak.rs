//! The profile of the live set when the process had the most memory.

use super::extract::Key;
use super::{CLOCK_STRIDE, Flush, FlushFailure, FlushOptions, Flushed};
use crate::collector::Collector;
use crate::collector::mute::Mute;
use crate::collector::resolve::Owner;
use crate::collector::sample_types::Values;
use crate::collector::sites::Unnamed;
use crate::collector::state::State;
use crate::collector::totals;
use crate::vm::clock::nanoseconds_since_1970;
use magnus::Ruby;
use memprofiler_core::peak::PeakKey;
use memprofiler_core::profile::Header;
use std::time::{Instant, SystemTime};

impl Collector {
    /// A profile of the peak; None if there is none. Ends no interval. See [`flush`](Self::flush) for `mute`, and what
    /// the caller must ensure.
    pub fn peak_profile(
        &self,
        ruby: &Ruby,
        options: FlushOptions,
        mute: &Mute,
    ) -> Result<Option<Flushed>, FlushFailure> {
        let start = Instant::now();
        let options = FlushOptions { reader: None, gc: false, ..options };
        let mut flush = self.begin(ruby, options, mute, start)?;
        flush.leftovers()?;
        let Some((resident, time, greatest_weight)) = flush.add_peak()? else { return Ok(None) };
        // Those of now would say nothing of then.
        let mut totals = totals::origin(self.state.with(|state| state.baseline));
        totals.push(format!("rss_bytes={resident}"));
        let header = self.header(ruby, start, &options, greatest_weight, totals)?;
        let mut header = Header { time_nanos: nanoseconds_since_1970(time), ..header };
        header.comments.push(format!("tracked_peak_rss_bytes={resident}: what was alive then").into());
        let time_nanos = header.time_nanos;
        // Nor would a ledger.
        let gc_time = flush.produce(header, None)?;
        self.state.with(|state| state.sites.end_naming());
        let mut result = std::mem::take(&mut flush.result);
        result.holds = flush.pace.finish(gc_time);
        let sample_type_names = self.sample_type_names(&options);
        Ok(Some(Flushed { time_nanos, sample_type_names, duration: start.elapsed(), ..result }))
    }
}

impl Flush<'_> {
    /// Names the stacks and classes of the peak.
    pub(super) fn name_peak(&mut self) -> Result<(), FlushFailure> {
        let mut position = usize::MAX;
        while position > 0 {
            if let Err(unnamed) = self.collector.state.with(|state| state.name_peak(&mut position)) {
                self.collector.name(self.pace.mute, unnamed)?;
            }
            self.rest()?;
        }
        Ok(())
    }

    /// Adds up what was alive at the peak, by name. Returns the resident bytes then, the time, and the
    /// greatest weight.
    fn add_peak(&mut self) -> Result<Option<(u64, SystemTime, f64)>, FlushFailure> {
        let collector = self.collector;
        let mut position = 0;
        loop {
            match collector.state.with(|state| self.add_some_of_peak(state, &mut position)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(unnamed) => collector.name(self.pace.mute, unnamed)?,
            }
            self.rest()?;
        }
        Ok(collector.state.with(|state| {
            let kept = state.peak.kept()?;
            self.result.heap_samples = kept.samples;
            Some((kept.resident, kept.time, kept.greatest_weight))
        }))
    }

    /// Adds some entries from `position` on. Returns whether there were any. The peak stays the same during a flush.
    fn add_some_of_peak(&mut self, state: &mut State, position: &mut usize) -> Result<bool, Unnamed> {
        for _ in 0..CLOCK_STRIDE {
            let entry = state.peak.kept().and_then(|kept| kept.sums.entry(*position));
            let Some((PeakKey { stack, class, stratum }, live)) = entry else { return Ok(false) };
            let (stack, class) = state.sites.named(stack, class)?;
            let values = Values { retained: live.objects, retained_bytes: live.bytes, ..Values::default() };
            self.sums.add(Key { stack, class, age: None, stratum }, values);
            *position += 1;
        }
        Ok(true)
    }
}
