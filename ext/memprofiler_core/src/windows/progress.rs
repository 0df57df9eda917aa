//! How long to sleep until the program has used some CPU time.

/// How much of the time the program runs, which is less than all where it waits, or where others have the CPUs.
///
/// Who sleeps for just as long as a program with one running thread needs comes too early, never too late, and sleeps
/// again: a few times if it runs half of the time. So a window's end is awaited. Its beginning is far away at first,
/// and up to shortly before it the program is taken to run as much as lately.
#[derive(Debug, Default)]
pub struct Progress {
    /// The real time and the program's CPU time before the last sleep.
    last: Option<(u64, u64)>,
    /// For how long it was slept lately, and how much CPU time the program used meanwhile, in nanoseconds.
    slept: f64,
    used: f64,
    /// For how many nanoseconds of the last sleep the program did not run.
    lost: u64,
    /// Its CPU time when it was last seen to go on after it had waited, and how much it used until it was seen to wait
    /// again.
    resumed: Option<u64>,
    burst: u64,
}

/// The time after which sleeps count for 1/e, in nanoseconds.
const MEMORY: f64 = 100e6;
/// The least part of the time that the program is taken to run.
const LEAST_RATE: f64 = 0.1;
/// A window is near if it is no further away than so many times its length.
const NEAR: u64 = 8;
/// By which part of its length a window is got ready before it opens.
const EARLY: u64 = 4;
/// Where the program does not run, the least sleep is this part of a window: by that a window may be too long.
const STEPS: u64 = 4;

impl Progress {
    /// Notes the real time and the program's CPU time, with what the hook has taken, after a sleep and before the next.
    pub fn record(&mut self, real: u64, cpu: u64) {
        let Some((began, before)) = self.last.replace((real, cpu)) else {
            self.resumed = Some(cpu);
            return;
        };
        let (slept, used) = (real.saturating_sub(began), cpu.saturating_sub(before));
        let keep = (-(slept as f64) / MEMORY).exp();
        self.slept = self.slept * keep + slept as f64;
        self.used = self.used * keep + used as f64;
        self.lost = slept.saturating_sub(used);
    }

    /// Notes that the time up to the next [`record`](Self::record) says nothing: the program waits.
    pub fn pause(&mut self) {
        if let (Some((_, cpu)), Some(resumed)) = (self.last, self.resumed) {
            self.burst = cpu.saturating_sub(resumed);
        }
        (self.last, self.lost) = (None, 0);
    }

    /// For how many nanoseconds to sleep until a window of length `window` begins, when the program has used `left`
    /// nanoseconds of CPU time.
    pub fn until_open(&self, left: u64, window: u64) -> u64 {
        let near = left.min(NEAR.saturating_mul(window));
        let far = (left - near) as f64 / self.rate();
        self.until_close(near.saturating_add(far as u64), window)
    }

    /// For how many nanoseconds to sleep until a window of length `window` can be got ready, which opens when the
    /// program has used `left` nanoseconds of CPU time. It should be too early rather than too late: so the program is
    /// only taken to run as much as lately until the window is near, which depends on for how long it runs between
    /// waits, or if these are moments.
    pub fn until_ready(&self, left: u64, window: u64) -> u64 {
        let rate = self.rate();
        let margin = (NEAR / 2 * window).max(self.burst / 2 * 3);
        let likely = if left > 2 * margin {
            (left - margin) as f64 / rate
        } else if self.burst < window / 2 {
            left.saturating_sub(window) as f64 / (2.0 * rate).min(1.0)
        } else {
            0.0
        };
        left.saturating_sub(window / EARLY).max(likely as u64).max(window / EARLY)
    }

    /// How many nanoseconds before it opens a window can be got ready. Earlier where the program waits: a thread that
    /// is woken when it goes on may have to wait for a CPU itself, for a millisecond and more.
    pub fn reach(window: u64, running: bool) -> u64 {
        if running { window / 2 } else { 2 * window }
    }

    /// For how many nanoseconds to sleep until a window of length `window` ends; at least a part of what was slept in
    /// vain.
    pub fn until_close(&self, left: u64, window: u64) -> u64 {
        left.max(self.lost.min(window / STEPS))
    }

    /// The part of the time that the program has run lately.
    fn rate(&self) -> f64 {
        if self.slept > 0.0 { (self.used / self.slept).clamp(LEAST_RATE, 1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1_000_000;
    const FAR: u64 = 30_000_000;

    /// After some sleeps of 10 ms, of which the program has run for `used` nanoseconds each.
    fn progress(used: u64) -> Progress {
        let mut progress = Progress::default();
        (0..100).for_each(|number| progress.record(number * 10_000_000, number * used));
        progress
    }

    #[test]
    fn a_program_that_always_runs_is_awaited_exactly() {
        let progress = progress(10_000_000);
        assert_eq!((progress.until_open(FAR, WINDOW), progress.until_close(1, WINDOW)), (FAR, 1));
    }

    #[test]
    fn up_to_shortly_before_a_window_it_runs_as_much_as_lately() {
        assert_eq!(progress(5_000_000).until_open(FAR, WINDOW), 8_000_000 + 44_000_000);
    }

    #[test]
    fn a_window_is_got_ready_before_it_opens() {
        assert_eq!(progress(10_000_000).until_ready(FAR, WINDOW), FAR - WINDOW / 4);
        assert_eq!(progress(5_000_000).until_ready(FAR, WINDOW), 52_000_000);
        assert_eq!(progress(2_500_000).until_ready(5_000_000, WINDOW), 8_000_000);
        assert_eq!(progress(10_000_000).until_ready(0, WINDOW), WINDOW / 4);
    }

    #[test]
    fn what_is_near_is_not_missed() {
        let progress = progress(5_000_000);
        assert_eq!(progress.until_open(2_000_000, WINDOW), 2_000_000);
        assert_eq!(progress.until_close(5_000_000, WINDOW), 5_000_000);
    }

    #[test]
    fn a_program_that_does_not_run_is_not_looked_at_all_the_time() {
        let progress = progress(0);
        assert_eq!((progress.until_open(1, WINDOW), progress.until_close(1, WINDOW)), (250_000, 250_000));
        assert_eq!(progress.until_open(FAR, WINDOW), 8_000_000 + 220_000_000);
    }

    #[test]
    fn a_pause_says_nothing() {
        let mut progress = progress(10_000_000);
        progress.pause();
        progress.record(u64::MAX / 2, 0);
        assert_eq!((progress.until_open(FAR, WINDOW), progress.until_close(1, WINDOW)), (FAR, 1));
    }

    #[test]
    fn clocks_that_go_backwards_are_no_reason_to_fail() {
        let mut progress = Progress::default();
        progress.record(u64::MAX, u64::MAX);
        progress.record(0, 0);
        progress.record(u64::MAX, u64::MAX);
        assert_eq!(progress.until_open(u64::MAX, u64::MAX), u64::MAX);
    }
}
