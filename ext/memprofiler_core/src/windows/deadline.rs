//! Deadlines that are checked again and again.

use std::sync::atomic::{AtomicU64, Ordering};

/// A moment within the next second or so, by the processor's time-stamp counter: the system's clock would take about as
/// long as the rest of the hook, since it waits until the processor has done all that came before.
///
/// How fast the counter counts is measured from one call to the next, so whatever happens to it, as when a virtual
/// machine moves to another host, matters until then only.
#[derive(Debug)]
pub struct Deadline {
    /// The moment, by the counter.
    moment: AtomicU64,
    /// What the clock and the counter said when the counter's speed was last measured; 0 before.
    time: AtomicU64,
    ticks: AtomicU64,
    /// Ticks per nanosecond, as the bits of an `f64`.
    speed: AtomicU64,
}

/// In less time than that, in nanoseconds, the counter's speed is not measured precisely.
const LEAST_INTERVAL: u64 = 1_000_000;

impl Deadline {
    /// A moment in the past.
    pub const fn passed() -> Self {
        let [moment, time, ticks, speed] = [const { AtomicU64::new(0) }; 4];
        Self { moment, time, ticks, speed }
    }

    /// Whether the moment has come when the counter says `ticks`.
    #[inline]
    pub fn has_passed(&self, ticks: u64) -> bool {
        ticks >= self.moment.load(Ordering::Relaxed)
    }

    /// Makes it a moment in the past.
    pub fn end(&self) {
        self.moment.store(0, Ordering::Relaxed);
    }

    /// Makes it the moment `left` nanoseconds after `time`, by a clock in nanoseconds, when the counter says `ticks`. As
    /// long as the counter's speed is not known it is no later than `time`.
    pub fn put_off(&self, left: u64, time: u64, ticks: u64) {
        let interval = time.saturating_sub(self.time.load(Ordering::Relaxed));
        if interval >= LEAST_INTERVAL {
            // If two threads do this at once, the speed may be wrong until the next time.
            let counted = ticks.saturating_sub(self.ticks.swap(ticks, Ordering::Relaxed));
            let first = self.time.swap(time, Ordering::Relaxed) == 0;
            let speed = if first { 0.0 } else { counted as f64 / interval as f64 };
            self.speed.store(speed.to_bits(), Ordering::Relaxed);
        }
        let speed = f64::from_bits(self.speed.load(Ordering::Relaxed));
        self.moment.store(ticks.saturating_add((left as f64 * speed) as u64), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 5_000_000_000;
    const MILLISECOND: u64 = 1_000_000;

    /// Of a counter that has counted `ticks` a nanosecond for a second, up to [`START`].
    fn known(ticks: u64) -> Deadline {
        let deadline = Deadline::passed();
        deadline.put_off(0, START - 1_000 * MILLISECOND, (START - 1_000 * MILLISECOND) * ticks);
        deadline.put_off(0, START, START * ticks);
        deadline
    }

    #[test]
    fn it_passes_once_so_much_time_has() {
        for ticks in [1, 3] {
            let deadline = known(ticks);
            deadline.put_off(500, START + 10, (START + 10) * ticks);
            assert!(!deadline.has_passed((START + 509) * ticks));
            assert!(deadline.has_passed((START + 510) * ticks));
        }
    }

    #[test]
    fn it_has_passed_as_long_as_the_counters_speed_is_not_known() {
        let deadline = Deadline::passed();
        assert!(deadline.has_passed(0));
        // The counter began long before the clock.
        let ticks = 9 * START;
        deadline.put_off(500, START, ticks);
        assert!(deadline.has_passed(ticks));
        deadline.put_off(500, START + MILLISECOND / 2, ticks + 1);
        assert!(deadline.has_passed(ticks + 1));
        deadline.put_off(500, START + MILLISECOND, ticks + 3 * MILLISECOND);
        assert!(!deadline.has_passed(ticks + 3 * MILLISECOND));
    }

    #[test]
    fn it_can_be_ended() {
        let deadline = known(3);
        deadline.put_off(500, START, START * 3);
        deadline.end();
        assert!(deadline.has_passed(START * 3));
    }

    #[test]
    fn a_counter_that_begins_anew_is_known_again_with_the_next_interval() {
        let deadline = known(3);
        deadline.put_off(500, START + MILLISECOND, 0);
        assert!(deadline.has_passed(0));
        deadline.put_off(500, START + 2 * MILLISECOND, 2 * MILLISECOND);
        assert!(!deadline.has_passed(2 * MILLISECOND + 999));
        assert!(deadline.has_passed(2 * MILLISECOND + 1_000));
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let deadline = known(3);
        deadline.put_off(500, START - MILLISECOND, START * 3);
        assert!(!deadline.has_passed(START * 3 + 1_499));
        assert!(deadline.has_passed(START * 3 + 1_500));
    }
}
