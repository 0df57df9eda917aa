//! How far it is to the next sample.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts the allocations to pass by before the next sample. It is shared by the sampler, which draws that number, and by
/// the hook, which counts without claiming anything else. Whoever counts loads and stores, which is quicker than one
/// atomic step: where several threads count at once they now and then count two allocations as one, and a gap that was
/// drawn at that moment may get lost.
#[derive(Debug, Default)]
pub struct Countdown {
    left: AtomicU64,
    stopped: AtomicBool,
}

impl Countdown {
    /// How many allocations to pass by; if it is 0 the next one is a sample.
    #[inline]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Passes by one allocation, with `left` of them left before, which must not be 0.
    #[inline]
    pub fn pass(&self, left: u64) {
        self.left.store(left - 1, Ordering::Relaxed);
    }

    /// Ends sampling for good: no gap that is drawn after that counts.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.left.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether sampling has ended. To be asked before a sample is taken, since another thread that counts may have undone
    /// what [`stop`](Self::stop) did to the number.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Begins a gap, the number of allocations up to and including the next sample.
    pub(super) fn begin(&self, gap: u64) {
        let left = if self.is_stopped() { u64::MAX } else { gap.saturating_sub(1) };
        self.left.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_ends_with_a_sample() {
        let countdown = Countdown::default();
        countdown.begin(3);
        let mut passed = 0;
        while countdown.left() > 0 {
            countdown.pass(countdown.left());
            passed += 1;
        }
        assert_eq!(passed, 2);
    }

    #[test]
    fn no_gap_begins_once_it_has_stopped() {
        let countdown = Countdown::default();
        countdown.stop();
        countdown.begin(1);
        assert!(countdown.is_stopped() && countdown.left() > 1 << 60);
    }
}
