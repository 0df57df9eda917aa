//! What samples leave behind.

use super::State;
use crate::collector::sites::Sites;
use crate::vm::memsize;
use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{Departed, LiveSample, Reservoir};
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::{Allocated, Tally, TallyKey};
use rb_sys::VALUE;

/// The parts of the state to which samples refer, and which count them once they have left the reservoir.
pub(super) struct Departures<'a> {
    sites: &'a mut Sites,
    tally: &'a mut Tally,
    readers: Readers,
    track_allocations: bool,
}

impl State {
    /// The reservoir, and the destination of samples that leave it.
    #[inline]
    pub(super) fn split(&mut self) -> (&mut Reservoir, Departures<'_>) {
        let departures = Departures {
            sites: &mut self.sites,
            tally: &mut self.tally,
            readers: self.readers,
            track_allocations: self.options.track_allocations,
        };
        (&mut self.reservoir, departures)
    }

    /// Adds to the tally, which takes over one reference to stack and class. Leaves out readers that were removed while
    /// a flush held it.
    pub fn count_allocated(&mut self, key: TallyKey, allocated: Allocated) {
        self.split().1.count_allocated(key, allocated);
        self.bound_tally();
    }
}

impl Departures<'_> {
    /// Releases the references of a sample that is to be forgotten.
    pub fn release_sample(&mut self, sample: &LiveSample) {
        self.sites.release(sample.stack, sample.class);
    }

    fn count_allocated(&mut self, key: TallyKey, allocated: Allocated) {
        let readers = key.readers.common(self.readers);
        if readers.is_empty() || !self.tally.add(TallyKey { readers, ..key }, allocated) {
            self.sites.release(key.stack, key.class);
        }
    }

    /// Whether a reader still has to see a sample's allocation.
    fn is_wanted(&self, sample: &LiveSample) -> bool {
        !sample.unreported.is_empty() && self.track_allocations
    }

    /// Counts the allocation of a sample whose object had `size` bytes, and releases its references.
    pub fn record(&mut self, departed: &Departed, size: usize) {
        let &Departed { sample, weight, window } = departed;
        if self.is_wanted(&sample) {
            let allocated = Allocated { objects: weight, bytes: weight * size as f64 };
            let LiveSample { stack, class, unreported: readers, .. } = sample;
            let stratum = Stratum::of(window, weight, size);
            self.count_allocated(TallyKey { stack, class, readers, stratum }, allocated);
        } else {
            self.release_sample(&sample);
        }
    }

    /// Does the same for a sample whose object is dying, and measures the object.
    ///
    /// # Safety
    /// Must be called in a hook in which the object is intact.
    pub unsafe fn record_dying(&mut self, departed: &Departed) {
        let object = departed.sample.address as VALUE;
        let size = if self.is_wanted(&departed.sample) {
            // SAFETY: the object is dead, but intact: it is swept, or freed, only after the hook.
            unsafe { memsize::of_plain(object).unwrap_or_else(|| memsize::slot_size(object)) }
        } else {
            0
        };
        self.record(departed, size);
    }
}
