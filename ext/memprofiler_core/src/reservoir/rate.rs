//! Changes of the rate.

use super::rates::RateTable;
use super::{LiveSample, Reservoir};
use crate::window_group::WindowGroup;

impl Reservoir {
    /// Keeps each sample with probability 1/2 and lets it stand for twice as many objects; halves the rate for new
    /// samples. Unbiased, unlike refusing new samples. Those that leave are passed to `release`.
    pub fn halve(&mut self, mut release: impl FnMut(LiveSample)) {
        for position in (0..self.live.len()).rev() {
            if self.sampler.coin() {
                continue;
            }
            if let Some(sample) = self.live.remove_at(position) {
                self.thinned += 1;
                release(sample);
            }
        }
        self.halvings += 1;
        self.rates.halve();
        self.tune();
    }

    /// Changes the rate for new samples; existing ones keep theirs. `unreported` says whether samples that have
    /// departed still have something to report.
    pub fn set_rate(&mut self, rate: f64, unreported: bool) {
        self.asked = rate;
        self.change_rate(rate, unreported);
    }

    /// After halvings, doubles the rate again, up to the one asked for, once few samples are left. `unreported` as in
    /// [`set_rate`](Self::set_rate).
    pub fn recover_rate(&mut self, unreported: bool) {
        let mut rate = self.rate();
        let mut room = self.bound / 4;
        while rate < self.asked && self.live.len() <= room {
            rate = (rate * 2.0).min(self.asked);
            room /= 2;
        }
        if rate != self.rate() {
            self.change_rate(rate, unreported);
        }
    }

    fn change_rate(&mut self, rate: f64, unreported: bool) {
        if self.live.is_empty() && !unreported {
            // Nothing unreported was sampled at another rate.
            self.rates = RateTable::default();
        } else if self.rates.id(rate, None).is_none() {
            self.begin_census();
            self.live.samples().iter().for_each(|sample| self.rates.count(sample.rate));
            self.rates.end_census();
        }
        // If the table has no room for one more rate, the rate stays as it is. That takes 65,536 live samples with
        // different rates.
        if let Some(id) = self.rates.id(rate, None) {
            self.rate = id;
            self.tune();
        }
    }

    /// Begins to find out which probabilities are in use; see [`RateTable::begin_census`].
    pub(super) fn begin_census(&mut self) {
        self.rates.begin_census();
        self.rates.count(self.rate);
        self.rates.count(self.current);
    }

    /// Restarts the selection with another seed.
    pub fn reseed(&mut self, seed: u64) {
        self.sampler.reseed(seed);
    }

    /// Limits the number of samples to `bound`, from the next one on.
    pub fn set_bound(&mut self, bound: usize) {
        self.bound = bound;
    }

    /// The probability with which an event is to become a sample. In windows it may be less; see
    /// [`effective_rate`](Self::effective_rate).
    pub fn rate(&self) -> f64 {
        self.rates.probability(self.rate)
    }

    /// How many objects of the program a sample stands for.
    #[inline]
    pub fn weight(&self, sample: &LiveSample) -> f64 {
        self.rates.weight(sample.rate)
    }

    /// The group of the window in which a sample was taken; None if there was none.
    #[inline]
    pub fn window(&self, sample: &LiveSample) -> Option<WindowGroup> {
        self.rates.window(sample.rate)
    }

    /// The largest number of objects that a sample stands for; see `RateTable::greatest_weight`.
    pub fn greatest_weight(&self) -> f64 {
        self.rates.greatest_weight()
    }

    /// Events per sample, rounded. At rate 0, which takes none, what the existing samples stand for.
    pub fn period(&self) -> i64 {
        let rate = self.effective_rate();
        (if rate > 0.0 { rate.recip() } else { self.greatest_weight() }).round() as i64
    }

    /// How many times the samples were halved.
    pub fn halvings(&self) -> u64 {
        self.halvings
    }

    /// How many samples were dropped by halving.
    pub fn thinned(&self) -> u64 {
        self.thinned
    }

    /// Resets these counts. Must not be called while there is a candidate.
    pub fn reset_counts(&mut self) {
        (self.halvings, self.thinned) = (0, 0);
    }
}
