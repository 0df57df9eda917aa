//! The number of allocations until the next sample.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts the allocations to skip before the next sample. The sampler, which draws that number, shares it with the
/// hook, which counts without locking anything. Counting is a load and a store, which is faster than one atomic
/// operation. Where several threads count at once, two allocations occasionally count as one, and a gap that is drawn
/// at that moment can get lost.
#[derive(Debug, Default)]
pub struct Countdown {
    left: AtomicU64,
    stopped: AtomicBool,
}

impl Countdown {
    /// How many allocations to skip; at 0 the next one is a sample.
    #[inline]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Skips one allocation. `left` is the count before it and must not be 0.
    #[inline]
    pub fn pass(&self, left: u64) {
        self.left.store(left - 1, Ordering::Relaxed);
    }

    /// Ends sampling for good: gaps drawn later have no effect.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.left.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether sampling has ended. Check this before taking a sample: another thread that counts may have overwritten
    /// the number that [`stop`](Self::stop) set.
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
