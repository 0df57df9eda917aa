//! Which allocations become samples.

use super::countdown::Countdown;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// Draws the number of allocations between one sample and the next.
///
/// Each allocation is sampled with probability `rate`, independently of all others, so the gaps are geometric. A
/// fixed stride would alias with periodic programs.
#[derive(Debug)]
pub struct Sampler {
    /// Counts down the current gap.
    countdown: Arc<Countdown>,
    rate: f64,
    /// `1 / ln(1 - rate)`, so that a gap costs one logarithm.
    inverse_log: f64,
    /// The countdown at the beginning of the current gap, and the allocations before that.
    begun: u64,
    counted: u64,
    rng: SmallRng,
}

impl Sampler {
    /// A sampler for `rate`, the fraction of allocations to sample, in `0.0..=1.0`. The same seed gives the same gaps.
    pub fn new(rate: f64, seed: u64) -> Self {
        let countdown = Arc::default();
        let rng = SmallRng::seed_from_u64(seed);
        let mut sampler = Self { countdown, rate: 0.0, inverse_log: 0.0, begun: 0, counted: 0, rng };
        sampler.set_rate(rate);
        sampler
    }

    /// The allocations until the next sample.
    pub fn countdown(&self) -> &Arc<Countdown> {
        &self.countdown
    }

    /// The fraction of allocations that are sampled.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Changes the rate and begins a new gap: the rest of the current one would end in a sample of the old rate.
    pub fn set_rate(&mut self, rate: f64) {
        debug_assert!((0.0..=1.0).contains(&rate));
        self.rate = rate;
        self.inverse_log = (-rate).ln_1p().recip();
        self.begin_gap();
    }

    /// Starts another sequence of gaps.
    pub fn reseed(&mut self, seed: u64) {
        self.rng = SmallRng::seed_from_u64(seed);
        self.begin_gap();
    }

    /// Begins a gap. Cutting the current one short adds no bias, since geometric gaps have no memory.
    #[inline]
    pub fn begin_gap(&mut self) {
        self.counted = self.counted();
        let gap = self.next_gap();
        self.countdown.begin(gap);
        self.begun = self.countdown.left();
    }

    /// Selects the current allocation, which ends the gap, and begins the next one.
    #[inline]
    pub fn select(&mut self) {
        self.begin_gap();
        self.counted += 1;
    }

    /// How many allocations the countdown has seen.
    #[inline]
    pub fn counted(&self) -> u64 {
        self.counted + self.begun.saturating_sub(self.countdown.left())
    }

    /// The number of allocations up to and including the next sample: `G = 1 + floor(ln U / ln(1 - rate))` with U
    /// uniform on (0, 1), which has `P(G > n) = (1 - rate)^n`. At rate 0 no sample is ever due.
    fn next_gap(&mut self) -> u64 {
        if self.rate >= 1.0 {
            return 1;
        }
        if self.rate <= 0.0 {
            return u64::MAX;
        }
        // 53 random bits, offset by half a step so that neither 0 nor 1 is possible.
        let bits = self.rng.random::<u64>() >> 11;
        let uniform = (bits as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
        // A float-to-integer cast saturates, so a tiny rate cannot wrap around.
        1u64.saturating_add((uniform.ln() * self.inverse_log) as u64)
    }

    /// A random number in `0.0..1.0`.
    pub fn uniform(&mut self) -> f64 {
        self.rng.random()
    }

    /// A fair coin, for thinning existing samples.
    pub fn coin(&mut self) -> bool {
        self.rng.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(rate: f64, count: usize) -> Vec<u64> {
        let mut sampler = Sampler::new(rate, 42);
        (0..count).map(|_| sampler.next_gap()).collect()
    }

    /// The Anderson-Darling statistic of `uniform`, sorted values in (0, 1), against the uniform distribution.
    fn anderson_darling(uniform: &[f64]) -> f64 {
        let n = uniform.len();
        let sum: f64 = (0..n).map(|i| (2 * i + 1) as f64 * (uniform[i].ln() + (1.0 - uniform[n - 1 - i]).ln())).sum();
        -(n as f64) - sum / n as f64
    }

    #[test]
    fn gaps_are_geometric() {
        for rate in [1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0 - 1e-4] {
            // To make a discrete variable continuous, each value is spread over its share of probability.
            let mut jitter = SmallRng::seed_from_u64(7);
            let mut uniform: Vec<f64> = gaps(rate, 20_000)
                .iter()
                .map(|&gap| {
                    let survival = (1.0 - rate).powf((gap - 1) as f64);
                    let spread: f64 = jitter.random();
                    (1.0 - survival * (1.0 - spread * rate)).clamp(1e-15, 1.0 - 1e-15)
                })
                .collect();
            uniform.sort_by(f64::total_cmp);
            // 6.0 is exceeded by chance about once in a thousand runs; the seed is fixed.
            assert!(anderson_darling(&uniform) < 6.0, "rate {rate}");
        }
    }

    #[test]
    fn mean_gap_is_the_inverse_of_the_rate() {
        for rate in [1e-4, 0.01, 0.3, 0.99] {
            let count = 50_000;
            let mean = gaps(rate, count).iter().sum::<u64>() as f64 / count as f64;
            let deviation = ((1.0 - rate).sqrt() / rate) / (count as f64).sqrt();
            assert!((mean - 1.0 / rate).abs() < 6.0 * deviation, "rate {rate}: mean {mean}");
        }
    }

    #[test]
    fn rate_one_samples_everything() {
        assert!(gaps(1.0, 1000).iter().all(|&gap| gap == 1));
    }

    #[test]
    fn rate_zero_samples_nothing() {
        assert!(gaps(0.0, 1000).iter().all(|&gap| gap == u64::MAX));
    }

    #[test]
    fn a_tiny_rate_does_not_overflow() {
        assert!(gaps(f64::MIN_POSITIVE, 1000).iter().all(|&gap| gap > 1 << 60));
    }

    #[test]
    fn the_same_seed_gives_the_same_gaps() {
        assert_eq!(gaps(0.01, 1000), gaps(0.01, 1000));
    }

    #[test]
    fn a_rate_change_ends_the_current_gap() {
        let mut sampler = Sampler::new(0.0, 1);
        let countdown = Arc::clone(sampler.countdown());
        assert!(countdown.left() > 1 << 60);
        sampler.set_rate(1.0);
        assert_eq!(countdown.left(), 0);
    }

    #[test]
    fn all_allocations_are_counted() {
        let mut sampler = Sampler::new(0.1, 1);
        let countdown = Arc::clone(sampler.countdown());
        for allocation in 0..10_000 {
            assert_eq!(sampler.counted(), allocation);
            match countdown.left() {
                0 => sampler.select(),
                left => countdown.pass(left),
            }
            if allocation % 100 == 0 {
                sampler.set_rate([0.0, 0.01, 1.0][allocation as usize / 100 % 3]);
            }
        }
    }

    #[test]
    fn a_rotation_of_sites_is_sampled_evenly() {
        let (mut sampler, mut at, mut hits) = (Sampler::new(0.01, 1), 0u64, [0u32; 10]);
        for _ in 0..100_000 {
            at += sampler.next_gap();
            hits[(at % 10) as usize] += 1;
        }
        assert!(hits.iter().all(|&count| (9_400..10_600).contains(&count)), "{hits:?}");
    }
}
