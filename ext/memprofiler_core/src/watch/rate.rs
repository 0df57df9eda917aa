//! How fast memory grows.

use std::time::Duration;

/// Bytes per second, over about the last [`Rate::SPAN`].
#[derive(Debug, Default, Clone, Copy)]
pub struct Rate {
    /// When memory was measured last, and how much there was.
    last: Option<(Duration, u64)>,
    smoothed: f64,
}

impl Rate {
    /// After this time a change of speed is known to about two thirds.
    const SPAN: f64 = 0.05;

    /// Takes a measurement. `now` is the time since any moment; it does not go backwards.
    pub fn add(&mut self, now: Duration, bytes: u64) {
        if let Some((then, before)) = self.last.replace((now, bytes)) {
            let seconds = now.saturating_sub(then).as_secs_f64();
            if seconds > 0.0 {
                let speed = (bytes as f64 - before as f64) / seconds;
                self.smoothed += (speed - self.smoothed) * (1.0 - (-seconds / Self::SPAN).exp());
            }
        }
    }

    /// Bytes per second; 0 if memory shrinks.
    pub fn bytes_per_second(&self) -> f64 {
        self.smoothed.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: &[(u64, u64)]) -> f64 {
        let mut rate = Rate::default();
        steps.iter().for_each(|&(millis, bytes)| rate.add(Duration::from_millis(millis), bytes));
        rate.bytes_per_second()
    }

    #[test]
    fn a_steady_speed_is_found_whatever_the_steps() {
        let steady: Vec<_> = (0..200).map(|step| (step * step, step * step * 1000)).collect();
        assert!((after(&steady) - 1e6).abs() < 1.0, "{}", after(&steady));
    }

    #[test]
    fn one_leap_counts_for_little() {
        assert!(after(&[(0, 0), (1000, 0), (1005, 1_000_000)]) < 2e7 + 1.0);
    }

    #[test]
    fn what_shrinks_does_not_grow() {
        assert_eq!(after(&[(0, 1000), (100, 500)]), 0.0);
        assert_eq!(after(&[(0, 1000)]), 0.0);
        assert_eq!(after(&[(0, 1000), (0, 2000)]), 0.0);
    }
}
