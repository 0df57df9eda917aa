//! How densely windows may be sampled.

/// Bounds the time that samples take, as a part of the program's time, by what they have taken lately. A window's
/// density is decided before it begins, so the probability of its samples is known, and estimates stay unbiased.
#[derive(Debug)]
pub struct Budget {
    /// The part of the program's time that samples may take.
    most: f64,
    /// The CPU time of the last seconds, and for how much of it samples would have been taken if all objects in windows
    /// had been sampled, in nanoseconds.
    elapsed: f64,
    demand: f64,
}

/// After how many nanoseconds of activity the past counts for 1/e.
const MEMORY: f64 = 8e9;
/// The least density, so that there always is something to learn from.
const LEAST: f64 = 1e-3;

impl Budget {
    /// For samples that take the part `most` of the program's time, or as much as they like if that is 1.
    pub fn new(most: f64) -> Self {
        debug_assert!(most > 0.0);
        Self { most: if most < 1.0 { most } else { f64::INFINITY }, elapsed: 0.0, demand: 0.0 }
    }

    /// Whether both allow the same.
    pub fn is_like(&self, other: &Self) -> bool {
        self.most == other.most
    }

    /// Notes that the program has used `elapsed` nanoseconds of CPU time since this was called last, and that samples
    /// would have taken `demand` nanoseconds if all objects in the window had been sampled.
    pub fn record(&mut self, elapsed: f64, demand: f64) {
        let keep = (-elapsed / MEMORY).exp();
        self.elapsed = self.elapsed * keep + elapsed;
        self.demand = self.demand * keep + demand;
    }

    /// The part of the objects in a window that may be sampled.
    pub fn density(&self) -> f64 {
        if self.demand > 0.0 && self.elapsed > 0.0 {
            (self.most * self.elapsed / self.demand).clamp(LEAST, 1.0)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: f64 = 30e6;

    /// The density after a minute, of which each frame has the demand that `demand` returns.
    fn density(most: f64, demand: impl Fn(usize) -> f64) -> f64 {
        let mut budget = Budget::new(most);
        (0..2_000).for_each(|frame| budget.record(FRAME, demand(frame)));
        budget.density()
    }

    #[test]
    fn it_is_spent_to_the_full() {
        assert!((density(0.01, |_| FRAME / 5.0) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn all_may_be_sampled_where_that_takes_little_time() {
        assert_eq!(density(0.01, |_| FRAME / 200.0), 1.0);
        assert_eq!(density(0.01, |_| 0.0), 1.0);
        assert_eq!(Budget::new(0.01).density(), 1.0);
    }

    #[test]
    fn a_clock_that_stands_still_tells_nothing() {
        let mut budget = Budget::new(1.0);
        budget.record(0.0, 1_000.0);
        assert_eq!(budget.density(), 1.0);
    }

    #[test]
    fn it_need_not_be_spent_evenly() {
        let density = density(0.01, |frame| if frame % 10 == 0 { 2.0 * FRAME } else { 0.0 });
        assert!((density - 0.05).abs() < 0.001, "{density}");
    }

    #[test]
    fn something_is_always_sampled() {
        assert_eq!(density(1e-6, |_| f64::MAX), LEAST);
    }

    #[test]
    fn all_of_the_time_is_no_bound() {
        assert_eq!(density(1.0, |_| 1e3 * FRAME), 1.0);
    }
}
