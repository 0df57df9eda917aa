//! Keeping within bounds, by sampling less.

use super::State;
use memprofiler_core::rates::RateTable;

impl State {
    /// Makes sure that the tables have room for another sample: where there is no memory for them to grow, they are
    /// thinned as at their bounds. False if not even that helps.
    #[inline]
    pub(super) fn reserve(&mut self) -> bool {
        /// Enough for most stacks, of which only the innermost frames are new.
        const FRAMES: usize = 64;
        while !self.live.try_reserve() {
            self.counters.allocation_failures += 1;
            if self.live.is_empty() {
                return false;
            }
            self.halve();
        }
        if !self.capture.stacks.try_reserve(FRAMES) {
            self.counters.allocation_failures += 1;
            self.make_room_for_stacks(self.capture.stacks.len() / 2);
            if !self.capture.stacks.try_reserve(FRAMES) {
                return false;
            }
        }
        self.classes.try_reserve(1)
    }

    /// Drops stacks until at most `enough` frames are left. What is known of dead objects loses its stack, not
    /// its class; if that is not enough, live samples are thinned, which keeps the estimates unbiased.
    #[cold]
    pub(super) fn make_room_for_stacks(&mut self, enough: usize) {
        self.counters.stack_overflows += 1;
        self.capture.forget_contexts();
        self.capture.forget_deferred(self.capture.deferred.latest());
        while !self.release_leftovers(usize::MAX) {}
        for ((stack, class, readers), allocated) in std::mem::take(&mut self.tally).into_entries() {
            let lost = self.capture.lost(stack);
            self.capture.stacks.release(stack);
            self.count_allocated((lost, class, readers), allocated);
        }
        while self.capture.stacks.len() > enough && !self.live.is_empty() {
            self.halve();
            if self.flushing {
                // What the flush has named it holds to its end: to halve again and again would not set that free.
                self.stack_limit = self.capture.stacks.len() + self.max_stack_nodes / 2;
                break;
            }
        }
    }

    /// Keeps each live sample with probability 1/2 and lets it stand for twice as many objects; samples with half the
    /// rate from now on. Unbiased, unlike refusing new samples.
    pub(super) fn halve(&mut self) {
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
        if self.live.is_empty() && self.tally.is_empty() {
            // Nothing that is still to be reported was sampled at another rate.
            self.rates = RateTable::default();
        } else if self.rates.id(rate).is_none() {
            self.begin_rate_census();
            self.live.samples().iter().for_each(|sample| self.rates.count(sample.rate));
            self.rates.end_census();
        }
        // Without room for one more the rate stays as it is. That takes as many live samples that all differ in rate.
        if let Some(id) = self.rates.id(rate) {
            self.rate = id;
            self.sampler.set_rate(rate);
        }
    }

    /// Begins to find out which probabilities live samples have; see [`RateTable::begin_census`].
    pub fn begin_rate_census(&mut self) {
        self.rates.begin_census();
        self.rates.count(self.rate);
    }

    /// Allocations per sample, rounded; at rate 0, where none is taken any more, what the live ones stand for.
    pub fn period(&self) -> i64 {
        let rate = self.sampler.rate();
        (if rate > 0.0 { rate.recip() } else { self.rates.greatest_weight() }).round() as i64
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
}
