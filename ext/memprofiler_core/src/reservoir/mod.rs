//! A bounded set of samples from a stream of events, here allocations, that stays unbiased whatever its rate does.
//!
//! It decides when a sample is due, and for how many others each one stands. Stacks and classes are the caller's, who
//! gets them back with each sample that leaves.

mod address_index;
mod countdown;
mod live_set;
mod rate;
mod rates;
mod round;
mod sample;
mod sampler;

pub use countdown::Countdown;
pub use live_set::{Fate, LiveSet};
pub use sample::{ClassId, LiveSample};

use rates::{RateId, RateTable};
use sampler::Sampler;
use std::sync::Arc;

/// Samples each event with a probability, the rate, and keeps the samples of what lives on.
#[derive(Debug)]
pub struct Reservoir {
    sampler: Sampler,
    rates: RateTable,
    /// The probability of the samples taken now: the sampler's.
    rate: RateId,
    /// What the sampler's rate is to be, and is unless there were too many samples.
    asked: f64,
    /// The most samples to keep.
    bound: usize,
    live: LiveSet,
    /// The number of the latest round, from 1 on; see [`LiveSample::seen`].
    round: u8,
    halvings: u64,
    thinned: u64,
}

/// An event that was selected, and is to become a sample. Until then it takes part in what happens to the samples.
#[derive(Debug)]
#[must_use]
pub struct Candidate {
    /// The halvings there had been when it was selected.
    halvings: u64,
}

/// A sample whose object has died, or is no longer followed.
#[derive(Debug, Clone, Copy)]
pub struct Departed {
    /// What was kept of it.
    pub sample: LiveSample,
    /// How many objects of the program it stands for.
    pub weight: f64,
}

impl Reservoir {
    /// The most samples that can be kept.
    pub const MAX_SAMPLES: usize = LiveSet::MAX_SAMPLES;

    /// An empty reservoir of up to `bound` samples, which samples with probability `rate`, in `0.0..=1.0`. The same seed
    /// selects the same events.
    pub fn new(rate: f64, bound: usize, seed: u64) -> Self {
        let mut rates = RateTable::default();
        Self {
            sampler: Sampler::new(rate, seed),
            rate: rates.id(rate).unwrap_or(RateId(0)),
            rates,
            asked: rate,
            bound,
            live: LiveSet::by_address(),
            round: 0,
            halvings: 0,
            thinned: 0,
        }
    }

    /// How far it is to the next sample, for whoever counts events; it is the same one for the reservoir's whole life.
    pub fn countdown(&self) -> &Arc<Countdown> {
        self.sampler.countdown()
    }

    /// Selects the event under way, for which the countdown has run out, and begins the next gap.
    #[inline]
    pub fn select(&mut self) -> Candidate {
        self.sampler.begin_gap();
        Candidate { halvings: self.halvings }
    }

    /// Makes sure of room for one more sample; false if there is no memory for it.
    #[inline]
    pub fn try_reserve(&mut self) -> bool {
        self.live.try_reserve()
    }

    /// Makes a sample of a candidate. Returns the one that was at the same address, if samples are found by address. What
    /// has to leave for want of room, which may be the new one, is passed to `release`.
    #[inline]
    pub fn insert(
        &mut self,
        candidate: Candidate,
        mut sample: LiveSample,
        mut release: impl FnMut(LiveSample),
    ) -> Option<Departed> {
        // It was selected at the rate before these halvings, which would have thinned it.
        for _ in candidate.halvings..self.halvings {
            if !self.sampler.coin() {
                self.thinned += 1;
                release(sample);
                return None;
            }
        }
        (sample.rate, sample.seen) = (self.rate, self.round);
        let replaced = self.live.insert(sample).map(|replaced| self.departed(replaced));
        while self.live.len() > self.bound {
            self.halve(&mut release);
        }
        replaced
    }

    /// Removes the sample at `address`, if samples are found by address and there is one.
    #[inline]
    pub fn remove(&mut self, address: u64) -> Option<Departed> {
        self.live.remove(address).map(|sample| self.departed(sample))
    }

    /// Removes those that a garbage collection has found dead; see [`LiveSet::collect`].
    pub fn collect(
        &mut self,
        major: bool,
        fate: impl FnMut(&LiveSample, bool) -> Fate,
        mut bury: impl FnMut(Departed),
    ) {
        let rates = &self.rates;
        self.live.collect(major, fate, |sample| bury(Departed { sample, weight: rates.weight(sample.rate) }));
    }

    /// Removes all samples.
    pub fn drain(&mut self, mut bury: impl FnMut(Departed)) {
        for sample in self.live.drain() {
            bury(self.departed(sample));
        }
    }

    /// Forgets all samples, and chooses how to find those to come: by address, or only ever one after the other.
    pub fn clear(&mut self, by_address: bool) {
        self.live = if by_address { LiveSet::by_address() } else { LiveSet::by_position() };
    }

    fn departed(&self, sample: LiveSample) -> Departed {
        Departed { sample, weight: self.weight(&sample) }
    }

    /// The samples that are kept.
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

    /// Gives every sample the address that `moved` returns for its old one.
    pub fn relocate(&mut self, moved: impl FnMut(u64) -> u64) {
        self.live.relocate(moved);
    }

    /// Gives memory back that is not needed.
    pub fn shrink(&mut self) {
        self.live.shrink();
    }
}
