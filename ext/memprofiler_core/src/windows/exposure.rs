//! What windows covered.

use super::calibration::{Calibration, Seen};
use crate::window_group::WindowGroup;

/// Estimates with which probability a piece of the program's work is in a window, and what the hook costs, from earlier
/// windows.
///
/// The probability is the part of the program's CPU time for which the timer has wanted windows: the duty, unless a
/// busy machine wakes it late. The hook's cost is not in that time, since windows are prolonged by it: otherwise less
/// of the program would fit into windows where many objects are allocated. Taking a sample is measured. The rest is the
/// cost per object with which what windows saw adds up to the VM's own count of allocations (the unknown is solved for,
/// as in a calibration estimate). So a sum over all sites agrees with that count, and sites of all densities are
/// unbiased, unless that rest costs more than ten times what is expected.
///
/// Both come from the past, so that a window's samples have their final weights at once. The past fades.
#[derive(Debug)]
pub struct Exposure {
    duty: f64,
    /// The hook's cost per object in nanoseconds as expected, and as estimated, apart from taking samples.
    expected_cost: f64,
    cost: f64,
    /// The part of the time that windows cover, as estimated.
    share: f64,
    /// The CPU time of the last seconds, and for how much of it the timer wanted windows.
    elapsed: f64,
    wanted: f64,
    /// What tells the hook's cost: over a longer time, and in the last seconds.
    lasting: Calibration,
    recent: Calibration,
    /// Windows so far.
    windows: u32,
}

/// What a window has held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The window's group.
    pub group: WindowGroup,
    /// Objects that the hook has seen.
    pub objects: u64,
    /// The program's CPU time in nanoseconds, with the hook's own.
    pub on_time: u64,
    /// For how many of those the hook had waited, at the window's end, for a safe point at which to be removed.
    pub overdue: u64,
    /// For how many nanoseconds samples were taken.
    pub sampling: u64,
    /// For how many nanoseconds the hook was taken to run, with that: the window was prolonged by them.
    pub prolonged: u64,
}

impl Segment {
    /// Objects per nanosecond.
    fn density(&self) -> f64 {
        // A clock that stands still tells none.
        if self.on_time > 0 { self.objects as f64 / self.on_time as f64 } else { 0.0 }
    }

    /// The part of the time that was before the window's end.
    fn in_time(&self) -> f64 {
        1.0 - self.part(self.overdue)
    }

    fn part(&self, time: u64) -> f64 {
        (time as f64 / self.on_time.max(1) as f64).min(1.0)
    }
}

/// What happened from the end of one window to that of the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The program's CPU time in nanoseconds, without what the hook took.
    pub elapsed: u64,
    /// For how many of those it wanted a window to be open.
    pub wanted: u64,
    /// The VM's own count of allocations.
    pub allocated: u64,
}

/// After how many nanoseconds of activity the past counts for 1/e. The hook's cost depends on the program, and on the
/// machine's speed; that may change within seconds, and so may how late a busy machine wakes up the timer.
const LASTING_MEMORY: f64 = 30e9;
const RECENT_MEMORY: f64 = 8e9;
const SHARE_MEMORY: f64 = 2e9;
/// After how many windows estimates are made in the first block.
const FIRST_ESTIMATES: [u32; 2] = [4, 8];
/// The duty counts as much as a measurement of this many nanoseconds.
const DUTY_WEIGHT: f64 = 0.1e9;
/// How far the cost may well be from the expected one, and that of the last seconds from the lasting one, as multiples
/// of those: the standard deviations of what is expected.
const COST_DOUBT: f64 = 2.0;
const SPEED_DOUBT: f64 = 0.25;
/// The bound of the cost, as a multiple of the expected one. A higher one would take for the hook's what windows have
/// missed, such as a burst.
const COST_BOUND: f64 = 10.0;

impl Exposure {
    /// For windows that are meant to cover the part `duty` of the time, with a hook that is expected to cost
    /// `expected_cost` nanoseconds per object.
    pub fn new(duty: f64, expected_cost: f64) -> Self {
        debug_assert!(duty > 0.0 && duty <= 1.0 && expected_cost >= 0.0);
        Self {
            duty,
            expected_cost,
            cost: expected_cost,
            share: duty,
            elapsed: 0.0,
            wanted: 0.0,
            lasting: Calibration::new(LASTING_MEMORY),
            recent: Calibration::new(RECENT_MEMORY),
            windows: 0,
        }
    }

    /// Whether both expect the same.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.duty, self.expected_cost) == (other.duty, other.expected_cost)
    }

    /// The part of the time that windows are meant to cover.
    pub fn duty(&self) -> f64 {
        self.duty
    }

    /// The part of the time that windows cover, as estimated now: the probability that a piece of work is in one.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The hook's cost in nanoseconds per object, apart from taking samples, as estimated now.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Adds a window, and the interval that it ends.
    pub fn record(&mut self, segment: Segment, interval: Interval) {
        let elapsed = interval.elapsed as f64;
        let keep = (-elapsed / SHARE_MEMORY).exp();
        self.elapsed = self.elapsed * keep + elapsed;
        self.wanted = self.wanted * keep + interval.wanted as f64;
        let seen = Seen {
            group: segment.group,
            objects: segment.objects as f64,
            density: segment.density(),
            in_time: segment.in_time(),
            sampling: segment.part(segment.sampling),
            share: self.share,
            prolonged: segment.part(segment.prolonged),
        };
        for calibration in [&mut self.lasting, &mut self.recent] {
            calibration.add(seen, elapsed, interval.allocated.max(segment.objects) as f64);
        }
        self.windows = self.windows.wrapping_add(1);
        // After each block, in which all groups have a window.
        if self.windows % WindowGroup::COUNT as u32 == 0 || FIRST_ESTIMATES.contains(&self.windows) {
            self.estimate();
        }
    }

    fn estimate(&mut self) {
        let share = (self.wanted + self.duty * DUTY_WEIGHT) / (self.elapsed + DUTY_WEIGHT);
        self.share = share.clamp(f64::MIN_POSITIVE, 1.0);
        let most = COST_BOUND * self.expected_cost;
        let lasting = self.lasting.cost(self.expected_cost, COST_DOUBT, most);
        self.cost = self.recent.cost(lasting, SPEED_DOUBT, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUTY: f64 = 0.1;
    const FRAME: u64 = 10_000_000;
    const WINDOW: u64 = 1_000_000;

    fn segment(number: usize, objects: u64) -> Segment {
        Segment { group: WindowGroup::new(number), objects, on_time: WINDOW, overdue: 0, sampling: 0, prolonged: 0 }
    }

    /// A window with `objects`, not prolonged, after a frame in which the VM has counted `allocated`.
    fn record(exposure: &mut Exposure, number: usize, objects: u64, allocated: u64) {
        exposure.record(segment(number, objects), Interval { elapsed: FRAME, wanted: WINDOW, allocated });
    }

    #[test]
    fn it_follows_the_time_for_which_windows_were_wanted() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        assert_eq!(exposure.share(), DUTY);
        let interval = Interval { elapsed: FRAME, wanted: FRAME / 5, allocated: 0 };
        (0..3_200).for_each(|_| exposure.record(segment(0, 0), interval));
        assert!((0.19..=0.2).contains(&exposure.share()), "{}", exposure.share());
    }

    #[test]
    fn the_cost_is_that_which_the_vms_count_tells() {
        let (cost, density) = (80, 1_000);
        let mut exposure = Exposure::new(DUTY, 50.0);
        // Objects per millisecond with the hook and without.
        let (with, without) = (density * 1_000_000 / (1_000_000 + cost * density), density);
        (0..1_600).for_each(|number| record(&mut exposure, number, with, with + 9 * without));
        assert!((exposure.cost() - 80.0).abs() < 2.0, "{}", exposure.cost());
    }

    #[test]
    fn a_cost_once_found_stays() {
        let (cost, density) = (80, 1_000);
        let mut exposure = Exposure::new(DUTY, 80.0);
        // Windows are prolonged by what the hook costs.
        let prolonged = WINDOW * cost * density / 1_000_000;
        let window = Segment { on_time: WINDOW + prolonged, prolonged, ..segment(0, density) };
        let interval = Interval { elapsed: FRAME, wanted: WINDOW, allocated: 10 * density };
        (0..1_600).for_each(|number| {
            exposure.record(Segment { group: WindowGroup::new(number), ..window }, interval);
        });
        assert!((exposure.cost() - 80.0).abs() < 1.0, "{}", exposure.cost());
    }

    #[test]
    fn a_little_data_changes_little() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        (0..16).for_each(|number| record(&mut exposure, number, if number == 0 { 1_000 } else { 0 }, 100_000));
        assert!((40.0..110.0).contains(&exposure.cost()), "{}", exposure.cost());
    }

    #[test]
    fn what_cannot_be_is_no_reason_to_fail() {
        let mut exposure = Exposure::new(1.0, 0.0);
        for _ in 0..100 {
            let most = Segment { overdue: u64::MAX, prolonged: u64::MAX, ..segment(0, 0) };
            let segment = |objects, on_time| Segment { objects, on_time, ..most };
            exposure.record(segment(u64::MAX, 0), Interval { elapsed: 0, wanted: u64::MAX, allocated: 0 });
            exposure.record(segment(0, u64::MAX), Interval { elapsed: u64::MAX, wanted: 0, allocated: u64::MAX });
        }
        assert!(exposure.share() > 0.0 && exposure.share() <= 1.0, "{}", exposure.share());
        assert!(exposure.cost() >= 0.0, "{}", exposure.cost());
    }
}
