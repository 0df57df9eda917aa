//! A bounded set of samples from a stream of events, here allocations. It stays unbiased whatever its rate does.
//!
//! It decides when a sample is due, and how many events each one stands for. Stacks and classes belong to the caller,
//! who gets them back with each sample that leaves.

mod address_index;
mod countdown;
mod live_set;
mod rate;
mod rates;
mod round;
mod sample;
mod sampler;
mod window;

pub use countdown::Countdown;
pub use live_set::{Fate, LiveSet};
pub use sample::{ClassId, LiveSample};
pub use window::{Timing, Windows};

use crate::window_group::WindowGroup;
use rates::{RateId, RateTable};
use sampler::Sampler;
use std::sync::Arc;

/// Samples each event with a probability, the rate, and keeps the samples of objects that are alive.
#[derive(Debug)]
pub struct Reservoir {
    sampler: Sampler,
    rates: RateTable,
    /// The probability of new samples outside windows: the sampler's rate there.
    rate: RateId,
    /// The probability of new samples.
    current: RateId,
    /// How windows go; None if there are none.
    windows: Option<Box<Windows>>,
    /// The rate that was asked for. The sampler has it unless there were too many samples.
    asked: f64,
    /// The maximum number of samples to keep.
    bound: usize,
    live: LiveSet,
    /// The number of the latest round, from 1 on; see [`LiveSample::seen`].
    round: u8,
    halvings: u64,
    thinned: u64,
}

/// An event that was selected but is not a sample yet. What happens to the samples meanwhile applies to it, too.
#[derive(Debug)]
#[must_use]
pub struct Candidate {
    /// The number of halvings when it was selected, and its probability, which they have halved since.
    halvings: u64,
    rate: RateId,
}

/// A sample whose object is dead, or is no longer tracked.
#[derive(Debug, Clone, Copy)]
pub struct Departed {
    /// The sample itself.
    pub sample: LiveSample,
    /// How many objects of the program it stands for.
    pub weight: f64,
    /// The group of the window in which it was taken.
    pub window: Option<WindowGroup>,
}

impl Reservoir {
    /// The maximum number of samples that can be kept.
    pub const MAX_SAMPLES: usize = LiveSet::MAX_SAMPLES;

    /// An empty reservoir of up to `bound` samples, which samples with probability `rate`, in `0.0..=1.0`. The same
    /// seed selects the same events.
    pub fn new(rate: f64, bound: usize, seed: u64) -> Self {
        let mut rates = RateTable::default();
        let id = rates.id(rate, None).unwrap_or(RateId(0));
        Self {
            sampler: Sampler::new(rate, seed),
            rates,
            rate: id,
            current: id,
            windows: None,
            asked: rate,
            bound,
            live: LiveSet::by_address(),
            round: 0,
            halvings: 0,
            thinned: 0,
        }
    }

    /// The events until the next sample, for those who count them. It remains the same object for the reservoir's whole
    /// life.
    pub fn countdown(&self) -> &Arc<Countdown> {
        self.sampler.countdown()
    }

    /// Selects the current event, for which the countdown has run out, and begins the next gap.
    #[inline]
    pub fn select(&mut self) -> Candidate {
        self.sampler.select();
        Candidate { halvings: self.halvings, rate: self.current }
    }

    /// Reserves room for one more sample; false if there is no memory for it.
    #[inline]
    pub fn try_reserve(&mut self) -> bool {
        self.live.try_reserve()
    }

    /// Turns a candidate into a sample. Returns the sample that was at the same address, if samples are found by
    /// address. What has to leave for lack of room, possibly the new one, is passed to `release`.
    #[inline]
    pub fn insert(
        &mut self,
        candidate: Candidate,
        mut sample: LiveSample,
        mut release: impl FnMut(LiveSample),
    ) -> Option<Departed> {
        // It was selected before these halvings, which would have thinned it.
        for _ in candidate.halvings..self.halvings {
            if !self.sampler.coin() {
                self.thinned += 1;
                release(sample);
                return None;
            }
        }
        sample.rate = candidate.rate;
        sample.seen = self.round;
        let replaced = self.live.insert(sample).map(|replaced| self.rates.departed(replaced));
        while self.live.len() > self.bound {
            self.halve(&mut release);
        }
        replaced
    }

    /// Removes the sample at `address`, if there is one and samples are found by address.
    #[inline]
    pub fn remove(&mut self, address: u64) -> Option<Departed> {
        self.live.remove(address).map(|sample| self.rates.departed(sample))
    }

    /// Removes the samples that a garbage collection has found dead; see [`LiveSet::collect`].
    pub fn collect(
        &mut self,
        major: bool,
        fate: impl FnMut(&LiveSample, bool) -> Fate,
        mut bury: impl FnMut(Departed),
    ) {
        let rates = &self.rates;
        self.live.collect(major, fate, |sample| bury(rates.departed(sample)));
    }

    /// Removes all samples.
    pub fn drain(&mut self, mut bury: impl FnMut(Departed)) {
        for sample in self.live.drain() {
            bury(self.rates.departed(sample));
        }
    }

    /// Removes all samples, and chooses how to find new ones: by address, or only in turn.
    pub fn clear(&mut self, by_address: bool) {
        self.live = if by_address { LiveSet::by_address() } else { LiveSet::by_position() };
    }

    /// The samples of live objects.
    pub fn live(&self) -> &LiveSet {
        &self.live
    }

    /// The sample at this position in the live set; its address must not be changed.
    pub fn sample_mut(&mut self, position: usize) -> Option<&mut LiveSample> {
        self.live.sample_mut(position)
    }

    /// All samples; their addresses must not be changed.
    pub fn samples_mut(&mut self) -> impl Iterator<Item = &mut LiveSample> {
        self.live.samples_mut()
    }

    /// Updates the address of each sample to what `moved` returns for it.
    pub fn relocate(&mut self, moved: impl FnMut(u64) -> u64) {
        self.live.relocate(moved);
    }

    /// Frees memory that is not needed.
    pub fn shrink(&mut self) {
        self.live.shrink();
    }
}
